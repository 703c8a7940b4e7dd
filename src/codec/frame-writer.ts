// Answers as gRPC frames, by writers made once per message type. They read init
// objects as well as messages, so an answer is written without first being made
// a message.
import {
  create,
  type DescField,
  type DescMessage,
  type MessageInitShape,
  ScalarType,
  toBinary,
} from "@bufbuild/protobuf";
import { isWrapperDesc } from "@bufbuild/protobuf/wkt";
import type { Fields } from "./fields.js";
import { scalarWriter, type Write, wireTypeOf } from "./frame-scalar.js";
import { beginFrame, bytesWritten, takeFrame, writeRaw, writeVarint } from "./frame-scratch.js";
import { createMessageCompiler, fieldAccess, type OneofMember, type WriteField } from "./message-walk.js";

const LENGTH_DELIMITED = 2;

/**
 * The frame of an answer, a message or an init object for one: its prefix and the message in binary
 * (gRPC over HTTP/2, "Length-Prefixed-Message"). Unknown fields are left out.
 *
 * @throws TypeError, RangeError for values that the fields cannot hold: a bug of a handler.
 */
export function encodeFrame(desc: DescMessage, answer: object): Buffer {
  beginFrame();
  messageWriter(desc)(answer);
  return takeFrame();
}

// What is written goes to the scratch buffer, from its end to its beginning.
const messageWriter = createMessageCompiler<Write, void>({
  order: "descending",
  message: (fields) => (value) => {
    for (let i = 0; i < fields.length; i++) (fields[i] as WriteField<void>)(value as Fields);
  },
  field: fieldWriter,
});

function fieldWriter(field: DescField): WriteField<void> {
  if (hasOwnForm(field)) return libraryWriter(field);
  if (field.fieldKind === "map") return mapWriter(field);
  const write = taggedWriter(field, field.number);
  if (field.fieldKind === "list") return listWriter(field, write);
  const access = fieldAccess(field);
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
  return (message) => {
    const value = Object.hasOwn(message, property) ? message[property] : undefined;
    if (value !== undefined && value !== null) write(value);
  };
}

// Wrappers are kept as the bare value and Structs as JSON; groups are of another encoding.
function hasOwnForm(field: DescField): boolean {
  const { message } = field;
  if (message === undefined) return false;
  if (field.fieldKind !== "map" && field.delimitedEncoding) return true;
  return isWrapperDesc(message) || message.typeName === "google.protobuf.Struct";
}

// Rare enough to be made a message of that one field.
function libraryWriter({ parent, oneof, localName }: DescField): WriteField<void> {
  const property = oneof?.localName ?? localName;
  return (message) => {
    const value = message[property];
    if (value === undefined || (oneof && (value as { readonly case?: string }).case !== localName)) return;
    writeRaw(toBinary(parent, create(parent, { [property]: value } as MessageInitShape<DescMessage>)));
  };
}

// Writes a value and the tag before it.
function taggedWriter(
  { message, scalar = ScalarType.INT32 }: Pick<DescField, "message" | "scalar">,
  number: number,
): Write {
  if (message !== undefined) {
    const write = messageWriter(message);
    return (value) => delimited(number, write, value);
  }
  const write = scalarWriter(scalar);
  const tag = ((number << 3) | wireTypeOf(scalar)) >>> 0;
  return (value) => {
    write(value);
    writeVarint(tag);
  };
}

function delimited(number: number, write: Write, value: unknown): void {
  const before = bytesWritten();
  write(value);
  writeVarint(bytesWritten() - before);
  writeVarint(((number << 3) | LENGTH_DELIMITED) >>> 0);
}

function listWriter(field: DescField & { readonly fieldKind: "list" }, write: Write): WriteField<void> {
  const { localName: name, number } = field;
  const itemsOf = (message: Fields) => (message[name] ?? []) as readonly unknown[];
  if (field.listKind === "message" || !field.packed) {
    return (message) => {
      const items = itemsOf(message);
      for (let i = items.length - 1; i >= 0; i--) write(items[i]);
    };
  }
  const writeBare = scalarWriter(field.scalar ?? ScalarType.INT32);
  const writeAll = (items: unknown) => {
    for (let i = (items as unknown[]).length - 1; i >= 0; i--) writeBare((items as unknown[])[i]);
  };
  return (message) => {
    const items = itemsOf(message);
    if (items.length > 0) delimited(number, writeAll, items);
  };
}

function mapWriter(field: DescField & { readonly fieldKind: "map" }): WriteField<void> {
  const { localName: name, number } = field;
  const writeKey = taggedWriter({ message: undefined, scalar: field.mapKey }, 1);
  const writeValue = taggedWriter(field, 2);
  const keyOf = keyReader(field.mapKey);
  const writeEntry = (entry: unknown) => {
    const [key, value] = entry as [string, unknown];
    writeValue(value);
    writeKey(keyOf(key));
  };
  return (message) => {
    for (const entry of Object.entries(message[name] ?? {}).reverse()) delimited(number, writeEntry, entry);
  };
}

// Keys of objects are texts, whatever the keys of the map are.
function keyReader(type: ScalarType): (key: string) => unknown {
  if (type === ScalarType.STRING) return (key) => key;
  if (type === ScalarType.BOOL) return (key) => key === "true";
  return wireTypeOf(type) === 1 || LONG_VARINTS.has(type) ? BigInt : Number;
}

const LONG_VARINTS: ReadonlySet<ScalarType> = new Set([ScalarType.INT64, ScalarType.UINT64, ScalarType.SINT64]);
