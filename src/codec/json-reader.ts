// Reads JSON as messages (the JSON mapping of protobuf), with readers that are compiled once per message type. Errors
// name the path of the field. fromJson of protobuf-es does not, and it changes or loses some values instead of
// rejecting them (docs/transcoding.md#json).

import {
  create,
  type DescField,
  type DescMessage,
  type JsonValue,
  type Message,
  type Registry,
  ScalarType,
} from "@bufbuild/protobuf";
import { type Any, AnySchema, anyPack, hasCustomJsonRepresentation } from "@bufbuild/protobuf/wkt";
import { isJsonObject } from "../kernel/strict-json.js";
import { emptyOf, type Fields, isWrapper, setField } from "./fields.js";
import {
  createEnumReader,
  createKeyReader,
  createLeafReader,
  createScalarReader,
  createWrapperReader,
  enterMessage,
  type ReadContext,
  type ReadValue,
  readStruct,
  reject,
  rejectAt,
} from "./json-read-value.js";
import { findType, TYPE_URL_PREFIX } from "./type-registry.js";
import { formatMessageRule, formatValueRule } from "./value-rules.js";

export interface JsonReadOptions {
  /** The types that an Any may contain. */
  readonly registry: Registry;
  /** Whether unknown fields are ignored, at every depth. Unknown names of enum values are always rejected. */
  readonly ignoreUnknown: boolean;
}

/**
 * Reads a JSON value as a message.
 *
 * @param path the path of the value in errors; "" for the body of a request
 * @throws JsonReadError naming the first wrong field
 */
export function readMessage(desc: DescMessage, json: JsonValue, path: string, options: JsonReadOptions): Message {
  return createMessageReader(desc)(json, contextAt(path, options));
}

/**
 * Reads a JSON value as the value of a field, in the form of protobuf-es. Undefined for the null of a well-known type,
 * which leaves the field unset.
 *
 * @param path the path of the value in errors
 * @throws JsonReadError naming the first wrong field
 */
export function readValue(field: DescField, json: JsonValue, path: string, options: JsonReadOptions): unknown {
  const context = contextAt(path, options);
  const isLeaf = field.fieldKind === "message" && hasCustomJsonRepresentation(field.message);
  if (json === null && isLeaf && !takesNull(field)) return undefined;
  return createFieldReader(field)(json, context);
}

/**
 * Reads a JSON value as one item of a repeated field, or as the value of one key of a map.
 *
 * @param path the path of the value in errors
 * @throws JsonReadError naming the first wrong field
 */
export function readElement(field: DescField, json: JsonValue, path: string, options: JsonReadOptions): unknown {
  return createElementReader(field)(json, contextAt(path, options));
}

function contextAt(path: string, { registry, ignoreUnknown }: JsonReadOptions): ReadContext {
  return { path: path === "" ? [] : [path], registry, ignoreUnknown, depth: 0 };
}

const messageReaders = new WeakMap<DescMessage, ReadValue<Message>>();
const fieldReaders = new WeakMap<DescField, ReadValue>();

function createMessageReader(desc: DescMessage): ReadValue<Message> {
  let reader = messageReaders.get(desc);
  if (reader === undefined) {
    reader = compileMessage(desc);
    messageReaders.set(desc, reader);
  }
  return reader;
}

function createFieldReader(field: DescField): ReadValue {
  let reader = fieldReaders.get(field);
  if (reader === undefined) {
    reader = compileField(field);
    fieldReaders.set(field, reader);
  }
  return reader;
}

interface NamedField {
  readonly field: DescField;
  /** The other spelling of its name; undefined if both are the same. */
  readonly otherName: string | undefined;
  readonly skipsNull: boolean;
  /** Compiled at the first use, because messages may be recursive. */
  read: ReadValue | undefined;
}

function compileMessage(desc: DescMessage): ReadValue<Message> {
  if (desc.typeName === AnySchema.typeName) return readAny;
  const value = isWrapper(desc) ? desc.fields[0] : undefined;
  if (value?.fieldKind === "scalar") return createWrapperReader(desc, value);
  const leaf = createLeafReader(desc);
  if (leaf !== undefined) return leaf;

  const rule = formatMessageRule(desc);
  const createEmpty = emptyOf(desc);
  const fields = new Map<string, NamedField>();
  for (const field of desc.fields) {
    const { name, jsonName } = field;
    const named = { field, skipsNull: !takesNull(field), read: undefined };
    const otherName = name === jsonName ? undefined : jsonName;
    fields.set(name, { ...named, otherName });
    if (otherName !== undefined) fields.set(jsonName, { ...named, otherName: name });
  }
  return (json, context) => {
    if (!isJsonObject(json)) return reject(context, rule);
    enterMessage(context);
    const message = createEmpty();
    const { path } = context;
    for (const key of Object.keys(json)) {
      const named = fields.get(key);
      if (named === undefined) {
        if (context.ignoreUnknown) continue;
        return rejectAt(context, key, "is not a field of this request");
      }
      const { field, otherName } = named;
      path.push(field.jsonName);
      if (otherName !== undefined && Object.hasOwn(json, otherName))
        reject(context, `is given twice, as ${key} and as ${otherName}`);
      const value = json[key] as JsonValue;
      if (value !== null || !named.skipsNull) {
        if (field.oneof !== undefined) assertOnlyMember(message, field, context);
        named.read ??= createFieldReader(field);
        setField(message, field, named.read(value, context));
      }
      path.pop();
    }
    context.depth--;
    return message;
  };
}

// Null is a value of Value and NullValue; for all other types it means that the field is not set.
/** Whether null is a value of the field; for all others it means not set. */
export function takesNull({ fieldKind, message, enum: values }: DescField): boolean {
  if (fieldKind === "list" || fieldKind === "map") return false;
  return isNullable(message?.typeName ?? values?.typeName);
}

/** Whether null is a value of the type. */
export function isNullable(typeName: string | undefined): boolean {
  return typeName === "google.protobuf.Value" || typeName === "google.protobuf.NullValue";
}

function assertOnlyMember(message: Message, { oneof }: DescField, context: ReadContext): void {
  const member = oneof && ((message as unknown as Fields)[oneof.localName] as { readonly case?: string }).case;
  if (member === undefined) return;
  const conflicting = oneof?.fields.find((field) => field.localName === member)?.jsonName;
  reject(context, `cannot be given together with ${conflicting}`);
}

function compileField(field: DescField): ReadValue {
  const read = createElementReader(field);
  if (field.fieldKind === "list") return createListReader(field, read);
  if (field.fieldKind === "map") return createMapReader(field, read);
  return read;
}

function createElementReader(field: DescField): ReadValue {
  const { message, scalar = ScalarType.INT32 } = field;
  if (field.enum !== undefined) return createEnumReader(field.enum);
  const longAsString = field.fieldKind !== "map" && (field as { longAsString?: boolean }).longAsString === true;
  if (message === undefined) return createScalarReader(scalar, longAsString);
  // Fields store a Struct as JSON. A Value is read as a whole, so its own fields never come here.
  if (message.typeName === "google.protobuf.Struct") return readStruct;
  const value = isWrapper(message) ? message.fields[0] : undefined;
  const isBare = field.fieldKind === "message" && field.oneof === undefined;
  if (isBare && value?.fieldKind === "scalar") return createScalarReader(value.scalar, false);
  return createMessageReader(message);
}

function createListReader(field: DescField, read: ReadValue): ReadValue {
  const whole = formatValueRule(field, "whole");
  const element = formatValueRule(field, "element");
  const allowsNull = isNullable(field.message?.typeName ?? field.enum?.typeName);
  return (json, context) => {
    if (!Array.isArray(json)) return reject(context, whole);
    const { path } = context;
    const items: unknown[] = [];
    for (let i = 0; i < json.length; i++) {
      path.push(i);
      const item = json[i] as JsonValue;
      if (item === null && !allowsNull) reject(context, element);
      items.push(read(item, context));
      path.pop();
    }
    return items;
  };
}

function createMapReader(field: DescField & { readonly fieldKind: "map" }, read: ReadValue): ReadValue {
  const whole = formatValueRule(field, "whole");
  const element = formatValueRule(field, "element");
  const allowsNull = isNullable(field.message?.typeName ?? field.enum?.typeName);
  const readKey = createKeyReader(field.mapKey);
  return (json, context) => {
    if (!isJsonObject(json)) return reject(context, whole);
    const { path } = context;
    const map: Fields = {};
    for (const text of Object.keys(json)) {
      path.push(text);
      const key = readKey(text, context);
      if (Object.hasOwn(map, key)) reject(context, "is a key that is given twice");
      const item = json[text] as JsonValue;
      if (item === null && !allowsNull) reject(context, element);
      map[key] = read(item, context);
      path.pop();
    }
    return map;
  };
}

function readAny(json: JsonValue, context: ReadContext): Any {
  const rule = formatMessageRule(AnySchema);
  if (!isJsonObject(json)) return reject(context, rule);
  const { "@type": type, ...fields } = json;
  if (type === undefined && Object.keys(fields).length === 0) return create(AnySchema);
  if (typeof type !== "string") return reject(context, rule);
  const desc = findType(context.registry, type);
  if (desc === undefined) return reject(context, rule);
  enterMessage(context);
  const any = anyPack(
    desc,
    hasCustomJsonRepresentation(desc) ? readValueOf(desc) : createMessageReader(desc)(fields, context),
  );
  context.depth--;
  any.typeUrl = type.includes("/") ? type : TYPE_URL_PREFIX + type;
  return any;

  function readValueOf(special: DescMessage): Message {
    const { value, ...others } = fields;
    const [unknown] = Object.keys(others);
    if (unknown !== undefined && !context.ignoreUnknown) rejectAt(context, unknown, "is not a field of this request");
    if (value === undefined) return rejectAt(context, "value", formatMessageRule(special));
    context.path.push("value");
    const message = createMessageReader(special)(value, context);
    context.path.pop();
    return message;
  }
}
