// Writes well-known types that are not objects with their fields in JSON. Values may be messages or init objects.
import { type DescMessage, fromBinary, isMessage, type Registry } from "@bufbuild/protobuf";
import { type Any, hasCustomJsonRepresentation, type ListValue, type Struct, type Value } from "@bufbuild/protobuf/wkt";
import { type Fields, findWellKnownName, isPlainObject, isWrapper } from "./fields.js";
import { formatDuration, formatFieldMask, formatTimestamp, quote, type TimestampDigits } from "./json-scalar.js";
import { assertMessage } from "./message-walk.js";
import { checkBoolean, checkBytes, checkList, rejectValue } from "./scalar-check.js";
import { findType } from "./type-registry.js";

/** Writes one value as JSON; throws for a value that the type cannot have. */
export type ValueWriter = (value: unknown) => string;

/** The writers that those of well-known types use. */
export interface MessageWriters {
  readonly registry: Registry;
  readonly timestamps: TimestampDigits;
  /** The writer of a message that is nested in another. */
  writerOf(desc: DescMessage): ValueWriter;
  /** The writer of the value of a wrapper; undefined stands for the zero value. */
  scalar(desc: DescMessage): ValueWriter;
}

/** Creates the writer of a well-known type; undefined for messages that are objects with their fields in JSON. */
export function createWellKnownWriter(desc: DescMessage, writers: MessageWriters): ValueWriter | undefined {
  const write = createTextWriter(desc, writers);
  if (write === undefined) return isWrapper(desc) ? createWrapperWriter(writers.scalar(desc)) : undefined;
  return (value) => {
    assertMessage(value, desc.typeName);
    return write(value);
  };
}

// The writer takes a message or an init object of one.
function createTextWriter(desc: DescMessage, writers: MessageWriters): ((value: Fields) => string) | undefined {
  switch (findWellKnownName(desc)) {
    case "Timestamp": {
      const { timestamps } = writers;
      return ({ seconds = NO_SECONDS, nanos = 0 }) => formatTimestamp(seconds, nanos, timestamps);
    }
    case "Duration":
      return ({ seconds = NO_SECONDS, nanos = 0 }) => formatDuration(seconds, nanos);
    case "FieldMask":
      return ({ paths = [] }) => formatFieldMask(checkList(paths));
    case "Struct":
      return structText;
    case "Value":
      return valueText;
    case "ListValue":
      return listText;
    case "Any":
      return (value) => formatAny(value, writers);
    default:
      return undefined;
  }
}

const NO_SECONDS = 0n;

// A wrapper is a message in lists, maps and oneofs, and the bare value elsewhere.
function createWrapperWriter(write: ValueWriter): ValueWriter {
  return (value) =>
    isWrapperMessage(value) ? write(value.value) : value === undefined ? rejectValue(value, "wrapper") : write(value);
}

/** Whether the value of a wrapper is given as a message. */
export function isWrapperMessage(value: unknown): value is { value?: unknown } {
  return typeof value === "object" && value !== null && !(value instanceof Uint8Array);
}

/** Formats a google.protobuf.Struct in a field, which stores it as JSON. */
export function formatStructField(value: unknown): string {
  if (isMessage(value)) return structText(value as Struct);
  return isPlainObject(value) ? jsonText(value) : rejectValue(value, "object of JSON");
}

// JSON.stringify would write NaN as null and omit undefined.
function jsonText(value: unknown): string {
  if (typeof value === "string") return quote(value);
  if (typeof value === "boolean" || value === null) return String(value);
  if (typeof value === "number") return finiteText(value);
  if (Array.isArray(value)) return `[${value.map(jsonText).join(",")}]`;
  if (!isPlainObject(value)) return rejectValue(value, "JSON");
  return `{${Object.keys(value)
    .map((key) => `${quote(key)}:${jsonText(value[key])}`)
    .join(",")}}`;
}

function finiteText(value: number): string {
  return Number.isFinite(value) ? String(value) : rejectValue(value, "number in JSON");
}

function structText({ fields = {} }: Partial<Struct>): string {
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
      return finiteText(kind.value);
    case "boolValue":
      return checkBoolean(kind.value) ? "true" : "false";
    case "structValue":
      return structText(kind.value);
    case "listValue":
      return listText(kind.value);
    case "nullValue":
      return "null";
    default:
      return rejectValue(kind?.case, "kind of google.protobuf.Value");
  }
}

function listText({ values = [] }: Partial<ListValue>): string {
  return `[${checkList(values).map(valueText).join(",")}]`;
}

/**
 * Formats an Any as JSON, with `@type` first.
 *
 * @throws Error when the registry does not have its type, or its bytes are not a message of that type
 */
export function formatAny(any: Partial<Any>, writers: MessageWriters): string {
  const { typeUrl = "", value = new Uint8Array() } = any;
  if (typeUrl === "")
    return checkBytes(value).length === 0 ? "{}" : rejectValue("google.protobuf.Any", "message of a type");
  const desc = findType(writers.registry, typeUrl);
  if (desc === undefined) return rejectValue(typeUrl, "known type");
  return formatWithType(typeUrl, desc, fromBinary(desc, checkBytes(value)), writers);
}

/** Formats a message as JSON with `@type` first, as in an Any. */
export function formatWithType(typeUrl: string, desc: DescMessage, value: object, writers: MessageWriters): string {
  const text = writers.writerOf(desc)(value);
  const type = `{"@type":${quote(typeUrl)}`;
  if (hasCustomJsonRepresentation(desc)) return `${type},"value":${text}}`;
  return text === "{}" ? `${type}}` : `${type},${text.slice(1)}`;
}
