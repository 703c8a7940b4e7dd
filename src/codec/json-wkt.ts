// JSON of the well-known types whose form is not that of their fields. Values
// may be messages or the init objects that protobuf-es makes messages of.
import { type DescMessage, fromBinary, isMessage, type Registry } from "@bufbuild/protobuf";
import { type Any, AnySchema, type ListValue, type Struct, type Value } from "@bufbuild/protobuf/wkt";
import { isWrapper, wellKnownName } from "./fields.js";
import { formatBytes, formatDuration, formatFieldMask, formatTimestamp, quote } from "./json-scalar.js";

/** Writes one value as JSON. */
export type ValueWriter = (value: unknown) => string;

/** What the writers of well-known types need of the writer of messages. */
export interface MessageWriters {
  readonly registry: Registry;
  /** The writer of a message that is nested in another. */
  nested(desc: DescMessage): ValueWriter;
  /** The writer of the value a wrapper holds; undefined stands for the zero value. */
  scalar(desc: DescMessage): ValueWriter;
}

type Seconds = { readonly seconds?: bigint; readonly nanos?: number };

/** The writer of a well-known type; undefined for every message with fields of its own in JSON. */
export function wellKnownWriter(desc: DescMessage, writers: MessageWriters): ValueWriter | undefined {
  switch (wellKnownName(desc)) {
    case "Timestamp":
      return (value) => formatTimestamp((value as Seconds).seconds ?? 0n, (value as Seconds).nanos ?? 0);
    case "Duration":
      return (value) => formatDuration((value as Seconds).seconds ?? 0n, (value as Seconds).nanos ?? 0);
    case "FieldMask":
      return (value) => formatFieldMask((value as { paths?: string[] }).paths ?? []);
    case "Struct":
      return structText;
    case "Value":
      return valueText;
    case "ListValue":
      return (value) => listText(value as Partial<ListValue>);
    case "Any":
      return (value) => anyText(value as Partial<Any>, writers);
    default:
      if (!isWrapper(desc)) return undefined;
      return wrapperWriter(writers.scalar(desc));
  }
}

// A wrapper is a message in lists, maps and oneofs, and the bare value elsewhere.
function wrapperWriter(write: ValueWriter): ValueWriter {
  return (value) => write(isWrapperMessage(value) ? value.value : value);
}

function isWrapperMessage(value: unknown): value is { value?: unknown } {
  return typeof value === "object" && value !== null && !(value instanceof Uint8Array);
}

// As a field a Struct is a plain JSON object, anywhere else a message.
function structText(value: unknown): string {
  return isMessage(value) ? structMessageText(value as Struct) : JSON.stringify(value);
}

function structMessageText({ fields = {} }: Partial<Struct>): string {
  return `{${Object.entries(fields)
    .map(([key, item]) => `${quote(key)}:${valueText(item)}`)
    .join(",")}}`;
}

function valueText(value: unknown): string {
  const kind = (value as Partial<Value>).kind;
  switch (kind?.case) {
    case "stringValue":
      return quote(kind.value);
    case "numberValue":
      if (!Number.isFinite(kind.value)) throw new RangeError("google.protobuf.Value cannot hold a number without end");
      return String(kind.value);
    case "boolValue":
      return kind.value ? "true" : "false";
    case "structValue":
      return structMessageText(kind.value);
    case "listValue":
      return listText(kind.value);
    default:
      return "null";
  }
}

function listText(list: Partial<ListValue>): string {
  return `[${(list.values ?? []).map(valueText).join(",")}]`;
}

/**
 * An Any as JSON, with `@type` first. What cannot be unpacked is kept as base64 under `value`, as an
 * answer with something unreadable in it is better than none.
 */
export function anyText(any: Partial<Any>, writers: MessageWriters): string {
  const { typeUrl = "", value = new Uint8Array() } = any;
  if (typeUrl === "") return "{}";
  const desc = writers.registry.getMessage(typeUrl.slice(typeUrl.lastIndexOf("/") + 1));
  if (desc !== undefined) {
    try {
      return typedText(typeUrl, desc, fromBinary(desc, value), writers);
    } catch {
      // Not what its type says: kept below.
    }
  }
  return `{"@type":${quote(typeUrl)},"value":${formatBytes(value)}}`;
}

/** A message as JSON with `@type` first, the form it has within an Any. */
export function typedText(typeUrl: string, desc: DescMessage, value: object, writers: MessageWriters): string {
  const text = writers.nested(desc)(value);
  const type = `{"@type":${quote(typeUrl)}`;
  const special = desc.typeName === AnySchema.typeName || isSpecial(desc, writers);
  if (special) return `${type},"value":${text}}`;
  return text === "{}" ? `${type}}` : `${type},${text.slice(1)}`;
}

function isSpecial(desc: DescMessage, writers: MessageWriters): boolean {
  return wellKnownWriter(desc, writers) !== undefined;
}
