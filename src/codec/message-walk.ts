// The walk of descriptors that all writers of messages share: which fields a message has, in which order, which
// property holds each, and when it counts as set. A writer is compiled once per message type and reads init objects as well as
// messages, so no message has to be created first.
import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { type Fields, hasPresence } from "./fields.js";
import { checkInt32, checkLong, checkUint32, rejectValue } from "./scalar-check.js";
import { isLong, isSignedLong } from "./value-rules.js";

/** Adds a field to what is written of a message, and returns it. */
export type WriteField<Out> = (message: Fields, out: Out) => Out;

/** How a format writes messages. */
export interface MessageFormat<W, Out> {
  /** The order in which fields are written, by their numbers. */
  readonly order: "ascending" | "descending";
  /** Whether a field is written at all; every field unless given. */
  readonly isWritten?: (field: DescField) => boolean;
  /** Compiles the writer of a field. */
  readonly field: (field: DescField) => WriteField<Out>;
  /** Makes the writer of a message; `fields` is filled before the first call of it. */
  readonly message: (fields: readonly WriteField<Out>[], desc: DescMessage) => W;
}

/**
 * Creates the function that compiles the writer of a message type, or finds it. A message may hold itself, so that its
 * writer is found while its fields are compiled.
 */
export function createMessageCompiler<W, Out>(format: MessageFormat<W, Out>): (desc: DescMessage) => W {
  const { order, isWritten = () => true } = format;
  const compiled = new WeakMap<DescMessage, W>();
  return (desc) => {
    const known = compiled.get(desc);
    if (known !== undefined) return known;
    const fields: WriteField<Out>[] = [];
    const writer = format.message(fields, desc);
    compiled.set(desc, writer);
    const sorted = desc.fields.filter(isWritten).sort((a, b) => a.number - b.number);
    if (order === "descending") sorted.reverse();
    for (const field of sorted) fields.push(format.field(field));
    return writer;
  };
}

/**
 * Which property holds the value of a field, and when it counts as set. Each writer makes closures of its own for it: those
 * that several writers shared would be slower, because engines optimize a call by what it has called before.
 */
export type FieldAccess =
  /** Set when `message[property]` has `name` as its case; its value may be zero. */
  | { readonly kind: "member"; readonly property: string; readonly name: string }
  /** Set when the message itself, not its prototype with the defaults, has a value, which may be zero. */
  | { readonly kind: "present"; readonly property: string; readonly isRequired: boolean }
  /** A scalar or enum that is set when it has a value that is not zero. */
  | { readonly kind: "implicit"; readonly property: string; readonly isZero: (value: unknown) => boolean }
  /** A list, an array, or a map, an object: set when it has elements. */
  | { readonly kind: "list" | "map"; readonly property: string };

/** Describes how writers read a field. */
export function fieldAccess(field: DescField): FieldAccess {
  const { localName: property, fieldKind } = field;
  if (field.oneof !== undefined) return { kind: "member", property: field.oneof.localName, name: property };
  if (fieldKind === "list" || fieldKind === "map") return { kind: fieldKind, property };
  if (hasPresence(field)) return { kind: "present", property, isRequired: field.presence === REQUIRED };
  return { kind: "implicit", property, isZero: zeroTest(field.scalar ?? ScalarType.INT32) };
}

/** The property of a message that holds a oneof. */
export interface OneofMember {
  readonly case?: string;
  readonly value?: unknown;
}

// FieldPresence.LEGACY_REQUIRED: `required` of proto2.
const REQUIRED = 3;

function zeroTest(type: ScalarType): (value: unknown) => boolean {
  if (type === ScalarType.STRING) return (value) => value === "";
  if (type === ScalarType.BOOL) return (value) => value === false;
  if (type === ScalarType.BYTES) return (value) => (value as Uint8Array).length === 0;
  if (type === ScalarType.DOUBLE || type === ScalarType.FLOAT) return (value) => Object.is(value, 0);
  // Longs may be kept as texts.
  return (value) => value === 0 || value === 0n || value === "0";
}

/**
 * Asserts that a value is a message of a type, or an init object for one. Anything else has none of the fields, and
 * would be written as an empty message.
 */
export function assertMessage(value: unknown, typeName: string): asserts value is Fields {
  if (typeof value !== "object" || value === null || Array.isArray(value) || value instanceof Date)
    rejectValue(value, typeName);
  const actual = (value as { readonly $typeName?: string }).$typeName;
  if (actual !== undefined && actual !== typeName) rejectValue(actual, typeName);
}

/** Asserts that a value is what a map is kept as. */
export function assertMap(value: unknown): asserts value is Fields {
  if (typeof value !== "object" || value === null || Array.isArray(value) || value instanceof Map)
    rejectValue(value, "object of keys and values");
}

/** Makes the reader of the keys of a map, which are names of properties whatever their type is. */
export function createMapKeyReader(type: ScalarType): (key: string) => unknown {
  if (type === ScalarType.STRING) return (key) => key;
  if (type === ScalarType.BOOL)
    return (key) => key === "true" || (key === "false" ? false : rejectValue(key, "key that is a boolean"));
  if (isLong(type)) {
    const isSigned = isSignedLong(type);
    return (key) => checkLong(key, isSigned);
  }
  const check = type === ScalarType.UINT32 || type === ScalarType.FIXED32 ? checkUint32 : checkInt32;
  return (key) => (/^-?[0-9]{1,10}$/.test(key) ? check(Number(key)) : rejectValue(key, "key that is an integer"));
}
