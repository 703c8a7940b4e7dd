// Reads and writes message fields by descriptor, in the layout of protobuf-es: a member of a oneof is in the property
// of the oneof, every other field in its own.
import {
  create,
  type DescEnumValue,
  type DescExtension,
  type DescField,
  type DescMessage,
  type DescMethod,
  equals,
  getOption,
  hasOption,
  isMessage,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import type { GenExtension } from "@bufbuild/protobuf/codegenv2";
import type { EnumValueOptions, FieldOptions, MethodOptions } from "@bufbuild/protobuf/wkt";
import { FieldBehavior, field_behavior } from "#gen/google/api/field_behavior_pb.js";

/** A message, or an init object of one, as an object. */
export type Fields = Record<string, unknown>;

type OneofValue = { readonly case?: string | undefined; readonly value?: unknown };

const names = new WeakMap<DescMessage, ReadonlyMap<string, DescField>>();

/** Whether a value is a plain object, not an instance of a class. */
export function isPlainObject(value: unknown): value is Fields {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Gets the fields of a message by their names in the proto and in JSON. */
export function getFieldsByName(desc: DescMessage): ReadonlyMap<string, DescField> {
  let map = names.get(desc);
  if (map === undefined) {
    map = new Map([
      ...desc.fields.map((field) => [field.name, field] as const),
      ...desc.fields.map((field) => [field.jsonName, field] as const),
    ]);
    names.set(desc, map);
  }
  return map;
}

// Messages that updates replace as a whole, by their fields in version 2beta1.
const replacedWhole = new Set([
  "chainguard.platform.registry.v2beta1.Overlay.config",
  "chainguard.platform.registry.v2beta1.OverlayBinding.tag_selector",
]);

/** Whether an update replaces the message in a field as a whole, so that masks name no field in it. */
export function isReplacedWhole({ parent, name }: DescField): boolean {
  return replacedWhole.has(`${parent.typeName.replace(".v2.", ".v2beta1.")}.${name}`);
}

/** Creates a function that creates empty messages of a type: copies of one, where no two of them would share a list. */
export function emptyOf(desc: DescMessage): () => Message {
  const empty = create(desc);
  const isFlat = isPlainObject(empty) && Object.values(empty).every((value) => typeof value !== "object");
  return isFlat ? () => ({ ...empty }) : () => create(desc);
}

/** Gets the value of a field; undefined when it is unset and has presence. */
export function getField(message: Message, field: DescField): unknown {
  const fields = message as unknown as Fields;
  if (field.oneof === undefined) return fields[field.localName];
  const oneof = fields[field.oneof.localName] as OneofValue | undefined;
  return oneof?.case === field.localName ? oneof.value : undefined;
}

/** Sets a field to a value, in the form of protobuf-es. */
export function setField(message: Message, field: DescField, value: unknown): void {
  const fields = message as unknown as Fields;
  if (field.oneof === undefined) fields[field.localName] = value;
  else fields[field.oneof.localName] = { case: field.localName, value };
}

/**
 * Finds the JSON path of a oneof member that is set in `message` and that setting the last field of `chain` would
 * unset; undefined when there is none.
 *
 * @param chain a field path: message fields, and the field at its end
 */
export function findConflictingPath(message: Message, chain: readonly DescField[]): string | undefined {
  let at: Message | undefined = message;
  let prefix = "";
  for (const field of chain) {
    if (at === undefined) return undefined;
    const oneof = field.oneof && ((at as unknown as Fields)[field.oneof.localName] as OneofValue | undefined);
    if (oneof?.case !== undefined && oneof.case !== field.localName) {
      const member = field.oneof?.fields.find(({ localName }) => localName === oneof.case);
      return prefix + (member?.jsonName ?? oneof.case);
    }
    at = field.fieldKind === "message" ? (getField(at, field) as Message | undefined) : undefined;
    prefix += `${field.jsonName}.`;
  }
  return undefined;
}

/** Gets the message at the field path `parents`, and creates it if it is missing. */
export function ensureContainer(message: Message, parents: readonly DescField[]): Message {
  let at = message;
  for (const field of parents) {
    if (field.fieldKind !== "message") throw new TypeError(`${field} is no message`);
    let next = getField(at, field) as Message | undefined;
    if (next === undefined) {
      next = create(field.message);
      setField(at, field, next);
    }
    at = next;
  }
  return at;
}

/** Finds the message at the field path `parents`; undefined when it is missing. */
export function findContainer(message: Message, parents: readonly DescField[]): Message | undefined {
  let at: Message | undefined = message;
  for (const field of parents) {
    at = getField(at, field) as Message | undefined;
    if (at === undefined) return undefined;
  }
  return at;
}

// FieldPresence.IMPLICIT of google.protobuf.FeatureSet, also that of lists and maps.
const IMPLICIT = 2;

/** Whether a field has presence, so that unset differs from zero. Lists and maps have none. */
export function hasPresence(field: DescField): boolean {
  return field.presence !== IMPLICIT;
}

/**
 * Whether the empty value of the field is a value like others, so that no request is rejected for it, even if the field
 * is required: a map, or a boolean without presence.
 */
export function isEmptyValid(field: DescField): boolean {
  return field.fieldKind === "map" || (field.scalar === ScalarType.BOOL && !hasPresence(field));
}

export function isDefault(value: unknown): boolean {
  return value === undefined || value === "" || value === 0 || value === 0n || value === false || isEmptyBytes(value);
}

function isEmptyBytes(value: unknown): boolean {
  return value instanceof Uint8Array && value.length === 0;
}

/** Whether two values of a singular field are equal. */
export function isSameValue(field: DescField, a: unknown, b: unknown): boolean {
  if (a instanceof Uint8Array && b instanceof Uint8Array) return Buffer.compare(a, b) === 0;
  if (field.fieldKind !== "message" || !isMessage(a) || !isMessage(b)) return a === b;
  return equals(field.message, a, b);
}

/** The name of a well-known type without its package; undefined for all other messages. */
export function findWellKnownName(desc: DescMessage): string | undefined {
  const prefix = "google.protobuf.";
  return desc.typeName.startsWith(prefix) && !desc.typeName.includes(".", prefix.length)
    ? desc.typeName.slice(prefix.length)
    : undefined;
}

const WRAPPERS: ReadonlySet<string> = new Set([
  "DoubleValue",
  "FloatValue",
  "Int64Value",
  "UInt64Value",
  "Int32Value",
  "UInt32Value",
  "BoolValue",
  "StringValue",
  "BytesValue",
]);

/** Whether a message is one of the wrappers of scalars. */
export function isWrapper(desc: DescMessage): boolean {
  const name = findWellKnownName(desc);
  return name !== undefined && WRAPPERS.has(name);
}

type Options = EnumValueOptions | FieldOptions | MethodOptions;
type DescriptorOf<O extends Options> = O extends MethodOptions
  ? DescMethod
  : O extends FieldOptions
    ? DescField
    : DescEnumValue;

const options = new WeakMap<DescMethod | DescField | DescEnumValue, Map<DescExtension, unknown>>();

/**
 * Reads an option of a method, a field or an enum value; undefined unless the proto sets it. It is decoded once, because
 * that takes microseconds and a start reads hundreds of them several times. So nobody may change the value.
 */
export function readOption<O extends Options, T>(element: DescriptorOf<O>, option: GenExtension<O, T>): T | undefined {
  let read = options.get(element);
  if (read === undefined) {
    read = new Map();
    options.set(element, read);
  }
  const key: DescExtension = option;
  if (!read.has(key)) read.set(key, hasOption(element, key) ? getOption(element, key) : undefined);
  return read.get(key) as T | undefined;
}

/** Whether the proto declares a behaviour of a field (google.api.field_behavior, AIP-203). */
export function hasBehavior(field: DescField, behavior: FieldBehavior): boolean {
  return readOption(field, field_behavior)?.includes(behavior) ?? false;
}

/**
 * Whether a request must have the field (google.api.field_behavior, AIP-203). Of a oneof with several members a request
 * has one, so none of them is required by itself.
 */
export function isRequired(field: DescField): boolean {
  return hasBehavior(field, FieldBehavior.REQUIRED) && !isAlternative(field);
}

// Whether the field is one of several members of a oneof.
function isAlternative({ oneof }: DescField): boolean {
  return oneof !== undefined && oneof.fields.length > 1;
}
