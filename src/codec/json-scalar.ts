// Formats scalars, and well-known types that are scalars in JSON.
import { checkBytes, checkDouble, checkInt32, checkLong, checkText, rejectValue } from "./scalar-check.js";

const SHORT = 80;

/**
 * Formats a string as JSON. Short strings without escapes, as most are, do not need JSON.stringify.
 *
 * @throws RangeError for a lone surrogate, which is no valid text
 */
export function quote(text: string): string {
  if (typeof text !== "string") return rejectValue(text, "string");
  if (text.length > SHORT) return JSON.stringify(checkText(text));
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 32 || code === 34 || code === 92) return JSON.stringify(checkText(text));
    if (code >= 0xd800 && code <= 0xdfff) return JSON.stringify(checkText(text));
  }
  return `"${text}"`;
}

/** Formats a float or double as JSON; NaN and infinities are strings. */
export function formatNumber(value: number): string {
  if (!Number.isFinite(checkDouble(value)))
    return Number.isNaN(value) ? '"NaN"' : value > 0 ? '"Infinity"' : '"-Infinity"';
  return Object.is(value, -0) ? "-0" : String(value);
}

/** Formats bytes as JSON: padded base64 of the standard alphabet. */
export function formatBytes(bytes: Uint8Array): string {
  const { buffer, byteOffset, byteLength } = checkBytes(bytes);
  return `"${Buffer.from(buffer, byteOffset, byteLength).toString("base64")}"`;
}

const DAY_SECONDS = 86_400;
const SECOND_NANOS = 1_000_000_000;
const MIN_SECONDS = -62_135_596_800;
const MAX_SECONDS = 253_402_300_799;
const TWO = Array.from({ length: 100 }, (_, i) => String(i).padStart(2, "0"));
/** How many days are cached as text: about eleven years. */
const MAX_DAYS = 4096;
const dayTexts = new Map<number, string>();

/** The fraction digits of a timestamp: always three, or as many of 0, 3, 6 and 9 as necessary. */
export type TimestampDigits = "milliseconds" | "exact";

/**
 * Formats a google.protobuf.Timestamp as JSON: RFC 3339 in UTC. Further digits are truncated, not rounded.
 *
 * @param seconds since 1970, in whole seconds.
 * @param nanos fraction of the second in nanoseconds, never negative.
 * @throws RangeError outside the years 1 to 9999, and for an invalid fraction
 */
export function formatTimestamp(seconds: unknown, nanos: unknown, digits: TimestampDigits): string {
  const whole = wholeSeconds(seconds);
  if (!(whole >= MIN_SECONDS && whole <= MAX_SECONDS)) rejectValue(`${whole} s`, "timestamp");
  if (checkInt32(nanos) < 0 || (nanos as number) >= SECOND_NANOS) rejectValue(`${nanos} ns`, "part of a timestamp");
  const day = Math.floor(whole / DAY_SECONDS);
  const rest = whole - day * DAY_SECONDS;
  const hour = TWO[Math.floor(rest / 3600)];
  const minute = TWO[Math.floor(rest / 60) % 60];
  const fraction = digits === "exact" ? fractionOf(nanos as number) : threeDigits(nanos as number);
  return `${dayTexts.get(day) ?? newDayText(day)}${hour}:${minute}:${TWO[rest % 60]}${fraction}Z"`;
}

function wholeSeconds(seconds: unknown): number {
  if (typeof seconds === "bigint") return Number(seconds);
  return Number(checkLong(seconds, true));
}

function threeDigits(nanos: number): string {
  const ms = Math.floor(nanos / 1_000_000);
  return ms < 10 ? `.00${ms}` : ms < 100 ? `.0${ms}` : `.${ms}`;
}

function fractionOf(nanos: number): string {
  if (nanos === 0) return "";
  const digits = String(nanos).padStart(9, "0");
  if (digits.endsWith("000000")) return `.${digits.slice(0, 3)}`;
  return digits.endsWith("000") ? `.${digits.slice(0, 6)}` : `.${digits}`;
}

// Computing a date takes as long as the rest of a small response.
function newDayText(day: number): string {
  if (dayTexts.size === MAX_DAYS) dayTexts.clear();
  const text = `"${new Date(day * DAY_SECONDS * 1000).toISOString().slice(0, 11)}`;
  dayTexts.set(day, text);
  return text;
}

const MAX_DURATION = 315_576_000_000;

/**
 * Formats a google.protobuf.Duration as JSON: seconds with 0, 3, 6 or 9 fraction digits and the suffix `s`.
 *
 * @param seconds whole seconds.
 * @param nanos fraction in nanoseconds, of the same sign as the seconds.
 * @throws RangeError beyond 10,000 years, for an invalid fraction, and for different signs
 */
export function formatDuration(seconds: unknown, nanos: unknown): string {
  const whole = wholeSeconds(seconds);
  if (Math.abs(whole) > MAX_DURATION) rejectValue(`${whole} s`, "duration");
  const part = checkInt32(nanos);
  if (Math.abs(part) >= SECOND_NANOS || whole * part < 0) rejectValue(`${part} ns`, "part of a duration");
  const sign = whole < 0 || part < 0 ? "-" : "";
  return `"${sign}${Math.abs(whole)}${fractionOf(Math.abs(part))}s"`;
}

/**
 * Formats a google.protobuf.FieldMask as JSON: paths in camelCase, separated by commas.
 *
 * @throws RangeError for a path that would be parsed as another one, such as `a__b` or `aB`
 */
export function formatFieldMask(paths: readonly unknown[]): string {
  return quote(paths.map(toCamelCase).join(","));
}

function toCamelCase(path: unknown): string {
  if (typeof path !== "string") return rejectValue(path, "path");
  const camelCase = path.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
  const isReversible = camelCase.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`) === path;
  return isReversible && !/[_,]/.test(camelCase) ? camelCase : rejectValue(path, "path that JSON can represent");
}
