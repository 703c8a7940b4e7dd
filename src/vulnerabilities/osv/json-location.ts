// Reads values out of parsed JSON and says where in it one breaks a rule.
import { invalidArgument } from "../../kernel/errors.js";
import { isPrintable } from "../../pipeline/resource/rules.js";

/** An object within a text, and how errors name it. */
export interface JsonLocation {
  readonly field: string;
  readonly value: Readonly<Record<string, unknown>>;
}

const MAX_TEXT = 1_000;
// RFC 3339 in UTC, as OSV demands.
const TIME = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.\d+)?Z$/;

/** The object that `value` is; throws INVALID_ARGUMENT for anything else. */
export function at(value: unknown, field: string): JsonLocation {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return { field, value: value as never };
  throw refusal(field, "must be an object");
}

/** The elements of a list, none where it is absent or null; each with its name for errors. */
export function list(
  place: JsonLocation,
  name: string,
  most: number,
): { readonly field: string; readonly value: unknown }[] {
  const field = pathOf(place, name);
  const value = place.value[name] ?? [];
  if (!Array.isArray(value)) throw refusal(field, "must be an array");
  if (value.length > most) throw refusal(field, `must be at most ${most}`);
  return value.map((element, i) => ({ field: `${field}[${i}]`, value: element }));
}

/** A text that may be missing: one printable line of at most 1,000 characters. */
export function text(place: JsonLocation, name: string): string | undefined {
  const value = place.value[name];
  const field = pathOf(place, name);
  if (value === undefined) return undefined;
  if (typeof value !== "string") throw refusal(field, "must be a string");
  if (value.length > MAX_TEXT) throw refusal(field, `must be at most ${MAX_TEXT} characters`);
  if (!isPrintable(value)) throw refusal(field, "must not contain control characters");
  return value;
}

/** A text that must be there and not be empty. */
export function textAt(place: JsonLocation, name: string): string {
  const value = text(place, name);
  if (value === undefined || value === "") throw refusal(pathOf(place, name), "is required");
  return value;
}

/** A time that may be missing or null, in epoch milliseconds. */
export function timeAt(place: JsonLocation, name: string): number | undefined {
  if (place.value[name] === null) return undefined;
  const value = text(place, name);
  if (value === undefined) return undefined;
  const [, year, month, day] = TIME.exec(value) ?? [];
  const timeMs = year === undefined || year === "0000" ? Number.NaN : Date.parse(value);
  // A day that its month does not have is counted on into the next.
  if (Number.isNaN(timeMs) || new Date(Date.parse(`${year}-${month}-${day}`)).getUTCDate() !== Number(day)) {
    throw refusal(pathOf(place, name), "must be a time such as 2024-01-31T12:00:00Z");
  }
  return timeMs;
}

function pathOf({ field }: JsonLocation, name: string): string {
  if (name === "") return field;
  return field === "record" ? name : `${field}.${name}`;
}

function refusal(field: string, rule: string) {
  return invalidArgument({ field, description: `${field} ${rule}` });
}
