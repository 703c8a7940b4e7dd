// The walk of descriptors that all writers of messages share: the fields of a message, their order, the property of
// each, and when it counts as set. A writer is compiled once per message type and also reads init objects, so that no
// message has to be created first.
import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { type Fields, hasPresence } from "./fields.js";
import { checkInt32, checkLong, checkUint32, rejectValue } from "./scalar-check.js";
import { isLong, isSignedLong } from "./value-rules.js";

/** Writes a field to the output, and returns the output. */
export type WriteField<Out> = (message: Fields, out: Out) => Out;

/** Writes messages in one format. */
export interface MessageFormat<W, Out> {
  /** The order in which fields are written, by their numbers. */
  readonly order: "ascending" | "descending";
  /** Whether a field is written at all; every field unless given. */
  readonly isWritten?: (field: DescField) => boolean;
  /** Compiles the writer of a field. */
  readonly field: (field: DescField) => WriteField<Out>;
  /** Creates the writer of a message; `fields` is filled before its first call. */
  readonly message: (fields: readonly WriteField<Out>[], desc: DescMessage) => W;
}

/**
 * Creates the function that gets the writer of a message type and compiles it once. Messages may be recursive, so a
 * writer can be found while its fields are compiled.
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
 * The property of a field, and when it counts as set. Each writer creates closures of its own: shared ones would be
 * slower, because engines optimize monomorphic calls.
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
export function describeAccess(field: DescField): FieldAccess {
  const { localName: property, fieldKind } = field;
  if (field.oneof !== undefined) return { kind: "member", property: field.oneof.localName, name: property };
  if (fieldKind === "list" || fieldKind === "map") return { kind: fieldKind, property };
  if (hasPresence(field)) return { kind: "present", property, isRequired: field.presence === REQUIRED };
  return { kind: "implicit", property, isZero: createZeroTest(field.scalar ?? ScalarType.INT32) };
}

/** The property of a message that holds a oneof. */
export interface OneofMember {
  readonly case?: string;
  readonly value?: unknown;
}

// FieldPresence.LEGACY_REQUIRED: `required` of proto2.
const REQUIRED = 3;

function createZeroTest(type: ScalarType): (value: unknown) => boolean {
  if (type === ScalarType.STRING) return (value) => value === "";
  if (type === ScalarType.BOOL) return (value) => value === false;
  if (type === ScalarType.BYTES) return (value) => (value as Uint8Array).length === 0;
  if (type === ScalarType.DOUBLE || type === ScalarType.FLOAT) return (value) => Object.is(value, 0);
  // 64-bit integers may be strings.
  return (value) => value === 0 || value === 0n || value === "0";
}

/**
 * Asserts that a value is a message of a type, or an init object of one. Anything else would be written as an empty
 * message.
 */
export function assertMessage(value: unknown, typeName: string): asserts value is Fields {
  if (typeof value !== "object" || value === null || Array.isArray(value) || value instanceof Date)
    rejectValue(value, typeName);
  const actual = (value as { readonly $typeName?: string }).$typeName;
  if (actual !== undefined && actual !== typeName) rejectValue(actual, typeName);
}

/** Asserts that a value is an object, as maps are. */
export function assertMap(value: unknown): asserts value is Fields {
  if (typeof value !== "object" || value === null || Array.isArray(value) || value instanceof Map)
    rejectValue(value, "object of keys and values");
}

/** Creates the reader of the keys of a map, which are names of properties whatever their type. */
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
