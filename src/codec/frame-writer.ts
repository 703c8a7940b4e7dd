// Encodes responses as gRPC frames, with writers that are compiled once per message type. They also read init objects, so
// that no message has to be created first.
import { type DescField, type DescMessage, isMessage, ScalarType } from "@bufbuild/protobuf";
import { type Fields, isPlainObject, isWrapper } from "./fields.js";
import { createScalarWriter, type Write, wireTypeOf } from "./frame-scalar.js";
import { beginFrame, countWrittenBytes, takeFrame, takeMessage, writeVarint } from "./frame-scratch.js";
import { isWrapperMessage } from "./json-wkt.js";
import {
  assertMap,
  assertMessage,
  createMapKeyReader,
  createMessageCompiler,
  describeAccess,
  type OneofMember,
  type WriteField,
} from "./message-walk.js";
import { checkList, rejectValue } from "./scalar-check.js";

const LENGTH_DELIMITED = 2;
const START_GROUP = 3;
const END_GROUP = 4;

/**
 * Encodes a response, a message or an init object of one, as a frame: its prefix and the binary message (gRPC over
 * HTTP/2, "Length-Prefixed-Message"). Unknown fields are left out.
 *
 * @throws TypeError, RangeError for values that the fields cannot have, which is a bug in a handler
 */
export function encodeFrame(desc: DescMessage, response: object): Buffer {
  beginFrame();
  messageWriter(desc)(response);
  return takeFrame();
}

/**
 * Encodes a response as the binary message alone.
 *
 * @throws TypeError, RangeError as {@link encodeFrame} does.
 */
export function encodeMessage(desc: DescMessage, response: object): Buffer {
  beginFrame();
  messageWriter(desc)(response);
  return takeMessage();
}

/**
 * Asserts that a response can be encoded, before protobuf-es encodes it, which changes some values instead of rejecting
 * them.
 *
 * @throws TypeError, RangeError as {@link encodeFrame} does.
 */
export function assertWritable(desc: DescMessage, response: object): void {
  beginFrame();
  messageWriter(desc)(response);
}

// Descending, because frames are written from their end.
const messageWriter = createMessageCompiler<Write, void>({
  order: "descending",
  message:
    (fields, { typeName }) =>
    (value) => {
      assertMessage(value, typeName);
      for (let i = 0; i < fields.length; i++) (fields[i] as WriteField<void>)(value);
    },
  field: createFieldWriter,
});

function createFieldWriter(field: DescField): WriteField<void> {
  if (field.fieldKind === "map") return createMapWriter(field);
  const write = createTaggedWriter(field, field.number);
  if (field.fieldKind === "list") return createListWriter(field, write);
  const access = describeAccess(field);
  const { property } = access;
  if (access.kind === "member") {
    const { name } = access;
    return (message) => {
      const member = message[property] as OneofMember | undefined;
      if (member?.case === name) write(member.value);
    };
  }
  if (access.kind === "implicit") {
    const { isZero } = access;
    return (message) => {
      const value = message[property];
      if (value !== undefined && !isZero(value)) write(value);
    };
  }
  const isRequired = access.kind === "present" && access.isRequired;
  return (message) => {
    const value = Object.hasOwn(message, property) ? message[property] : undefined;
    if (value !== undefined && value !== null) write(value);
    else if (isRequired) rejectValue(value, `value of ${field}, which is required`);
  };
}

// Writes a value and the tag before it.
function createTaggedWriter(field: DescField, number: number): Write {
  const { message, scalar = ScalarType.INT32 } = field;
  if (message === undefined) return createTaggedScalar(scalar, number);
  const write = messageWriter(message);
  const enclosed = field.fieldKind !== "map" && field.delimitedEncoding ? writeGroup : writeDelimited;
  const toMessage = messageForm(field, message);
  return toMessage === undefined
    ? (value) => enclosed(number, write, value)
    : (value) => enclosed(number, write, toMessage(value));
}

function createTaggedScalar(type: ScalarType, number: number): Write {
  const write = createScalarWriter(type);
  const tag = ((number << 3) | wireTypeOf(type)) >>> 0;
  return (value) => {
    write(value);
    writeVarint(tag);
  };
}

// protobuf-es stores a wrapper as its bare value where possible, and a Struct as JSON.
function messageForm(field: DescField, message: DescMessage): ((value: unknown) => unknown) | undefined {
  if (isWrapper(message))
    return (value) =>
      isWrapperMessage(value) ? value : value === undefined ? rejectValue(value, message.typeName) : { value };
  if (message.typeName !== "google.protobuf.Struct" || field.parent.typeName === "google.protobuf.Value")
    return undefined;
  return (value) => (isMessage(value) ? value : structOf(value));
}

function structOf(json: unknown): object {
  if (!isPlainObject(json)) return rejectValue(json, "object of JSON");
  return { fields: Object.fromEntries(Object.entries(json).map(([key, value]) => [key, { kind: kindOf(value) }])) };
}

function kindOf(json: unknown): OneofMember {
  if (json === null) return { case: "nullValue", value: 0 };
  if (typeof json === "string") return { case: "stringValue", value: json };
  if (typeof json === "boolean") return { case: "boolValue", value: json };
  if (typeof json === "number" && Number.isFinite(json)) return { case: "numberValue", value: json };
  if (!Array.isArray(json)) return { case: "structValue", value: structOf(json) };
  return { case: "listValue", value: { values: json.map((item) => ({ kind: kindOf(item) })) } };
}

function writeDelimited(number: number, write: Write, value: unknown): void {
  const before = countWrittenBytes();
  write(value);
  writeVarint(countWrittenBytes() - before);
  writeVarint(((number << 3) | LENGTH_DELIMITED) >>> 0);
}

// The group encoding, with a tag at either end.
function writeGroup(number: number, write: Write, value: unknown): void {
  writeVarint(((number << 3) | END_GROUP) >>> 0);
  write(value);
  writeVarint(((number << 3) | START_GROUP) >>> 0);
}

function createListWriter(field: DescField & { readonly fieldKind: "list" }, write: Write): WriteField<void> {
  const { localName: name, number } = field;
  const itemsOf = (message: Fields) => checkList(message[name] ?? []);
  if (field.listKind === "message" || !field.packed) {
    return (message) => {
      const items = itemsOf(message);
      for (let i = items.length - 1; i >= 0; i--) write(items[i]);
    };
  }
  const writeBare = createScalarWriter(field.scalar ?? ScalarType.INT32);
  const writeAll = (items: unknown) => {
    for (let i = (items as unknown[]).length - 1; i >= 0; i--) writeBare((items as unknown[])[i]);
  };
  return (message) => {
    const items = itemsOf(message);
    if (items.length > 0) writeDelimited(number, writeAll, items);
  };
}

function createMapWriter(field: DescField & { readonly fieldKind: "map" }): WriteField<void> {
  const { localName: name, number } = field;
  const writeKey = createTaggedScalar(field.mapKey, 1);
  const writeValue = createTaggedWriter(field, 2);
  const keyOf = createMapKeyReader(field.mapKey);
  const writeEntry = (entry: unknown) => {
    const [key, value] = entry as [string, unknown];
    writeValue(value);
    writeKey(keyOf(key));
  };
  return (message) => {
    const map = message[name] ?? {};
    assertMap(map);
    for (const entry of Object.entries(map).reverse()) writeDelimited(number, writeEntry, entry);
  };
}
