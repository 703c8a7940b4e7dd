// The values that a message has at a path, which of them count as absent, and when two count as the same. Clients read a
// resource, change it and send it back: what they cannot keep exactly, such as fractions of seconds, must not look like
// a change.
import { clone, type DescField, type DescMessage, equals, isMessage, type Message } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { TimestampSchema } from "@bufbuild/protobuf/wkt";
import { FieldBehavior } from "#gen/google/api/field_behavior_pb.js";
import { getField, hasBehavior } from "../../codec/fields.js";

/** A value in a message: an element of a list and an entry of a map are values of their own. */
interface LocatedValue {
  readonly field: DescField;
  /** The path in JSON. */
  readonly at: string;
  /** The key of an entry of a map. */
  readonly key?: string;
  readonly value: unknown;
}

export function findValues(
  message: Message,
  [field, ...rest]: readonly DescField[],
  prefix = "",
): readonly LocatedValue[] {
  const value = field && getField(message, field);
  if (field === undefined || value === undefined || value === null) return [];
  const at = prefix + field.jsonName;
  const placed: readonly LocatedValue[] =
    field.fieldKind === "list"
      ? (value as readonly unknown[]).map((one, i) => ({ field, at: `${at}[${i}]`, value: one }))
      : field.fieldKind === "map"
        ? Object.entries(value).map(([key, one]) => ({ field, at: `${at}.${key}`, key, value: one }))
        : [{ field, at, value }];
  return rest.length === 0 ? placed : placed.flatMap((one) => findValues(one.value as Message, rest, `${one.at}.`));
}

/** Whether `message` holds the field at the end of `path`, and its value is zero. */
export function isZeroAt(message: Message, path: readonly DescField[]): boolean {
  const values = findValues(message, path);
  return values.length > 0 && values.every(({ value }) => isZero(value));
}

/** The zero of `time.Time` in Go, whose clients send it for a time that is not set: the start of the year 1. */
const GO_ZERO_SECONDS = -62_135_596_800n;

export function isZero(value: unknown): boolean {
  if (isMessage(value, TimestampSchema)) return value.nanos === 0 && [0n, GO_ZERO_SECONDS].includes(value.seconds);
  return value instanceof Uint8Array ? value.length === 0 : [0, 0n, "", false].some((zero) => zero === value);
}

export function isSame(a: LocatedValue, b: LocatedValue): boolean {
  if (a.key !== b.key) return false;
  const { message } = a.field;
  if (message === undefined) return a.value === b.value;
  return isSameMessage(message, a.value as Message, b.value as Message);
}

/** Whether two messages are equal in all but output-only fields, times to the second. */
export function isSameMessage(message: DescMessage, a: Message, b: Message): boolean {
  return equals(message, normalize(message, a), normalize(message, b));
}

// Clients keep times as text of whole seconds, and cannot send back what the service has set meanwhile.
function normalize(message: DescMessage, value: Message): Message {
  const copy = clone(message, value);
  truncate(message, copy);
  return copy;
}

function truncate(message: DescMessage, value: Message): void {
  if (isMessage(value, TimestampSchema)) value.nanos = 0;
  for (const field of message.fields) {
    if (hasBehavior(field, FieldBehavior.OUTPUT_ONLY)) reflect(message, value).clear(field);
    const inner = field.message && getField(value, field);
    if (field.message === undefined || inner === undefined || inner === null) continue;
    const all = field.fieldKind === "message" ? [inner] : Object.values(inner);
    for (const one of all) truncate(field.message, one as Message);
  }
}
