// Reads the JSON of single values: scalars, enums, keys of maps, and the well-known types that are written like scalars.

import {
  create,
  type DescEnum,
  type DescField,
  type DescMessage,
  fromJson,
  type JsonObject,
  type JsonValue,
  type Message,
  type Registry,
  ScalarType,
} from "@bufbuild/protobuf";
import { base64Decode } from "@bufbuild/protobuf/wire";
import { TimestampSchema } from "@bufbuild/protobuf/wkt";
import { type FieldViolation, formatViolation, invalidArgument } from "../kernel/errors.js";
import { isJsonObject } from "../kernel/strict-json.js";
import { toJsonMaskPath } from "./field-mask.js";
import { findWellKnownName } from "./fields.js";
import { formatEnumRule, formatMessageRule, formatScalarRule, getIntegerRange, isLong } from "./value-rules.js";

/** The position of a reader, and its options. */
export interface ReadContext {
  /** The path of the current value: names of fields, keys of maps, indices of lists. */
  readonly path: (string | number)[];
  /** The types that an Any may contain. */
  readonly registry: Registry;
  readonly ignoreUnknown: boolean;
  depth: number;
}

/** Reads a value, in the form of protobuf-es. */
export type ReadValue<T = unknown> = (json: JsonValue, context: ReadContext) => T;

/** JSON that cannot be read as a message. */
export class JsonReadError extends Error {
  readonly violation: FieldViolation;

  constructor(violation: FieldViolation) {
    super(formatViolation(violation));
    this.violation = violation;
  }
}

/** Reads JSON of a request; a JsonReadError becomes ApiError INVALID_ARGUMENT. */
export function readOrReject<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof JsonReadError ? invalidArgument(error.violation) : error;
  }
}

/** The longest part of a caller's name or key in an error, in characters. */
const MAX_NAME = 100;
const MAX_DEPTH = 100;
/** The longest accepted integer, in characters: the time to parse one grows faster than its length. */
const MAX_NUMBER = 100;

const DECIMAL = /^-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/;
const DIGITS = /^-?[0-9]+$/;
const DURATION = /^-?[0-9]+(?:\.[0-9]{1,9})?s$/;

/** Rejects the value at the path of `context`; `rule` completes the sentence "<field> ...". */
export function reject({ path }: ReadContext, rule: string): never {
  let field = "";
  for (const part of path) {
    if (typeof part === "number") field += `[${part}]`;
    else field += `${field === "" ? "" : "."}${part.slice(0, MAX_NAME)}`;
  }
  if (field === "") field = "body";
  throw new JsonReadError({ field, rule });
}

/** Rejects the value at `part`, one step below the path of `context`. */
export function rejectAt(context: ReadContext, part: string, rule: string): never {
  context.path.push(part);
  return reject(context, rule);
}

/** Counts a message that is nested in another. */
export function enterMessage(context: ReadContext): void {
  if (++context.depth > MAX_DEPTH) reject(context, `must not nest deeper than ${MAX_DEPTH} messages`);
}

/** Creates the reader of a scalar; with `longAsString`, 64-bit integers become strings. */
export function createScalarReader(type: ScalarType, longAsString: boolean): ReadValue {
  const rule = formatScalarRule(type);
  switch (type) {
    case ScalarType.STRING:
      return (json, context) => (typeof json === "string" && json.isWellFormed() ? json : reject(context, rule));
    case ScalarType.BOOL:
      return (json, context) => (typeof json === "boolean" ? json : reject(context, rule));
    case ScalarType.BYTES:
      return (json, context) => (typeof json === "string" ? decode(json) : undefined) ?? reject(context, rule);
    case ScalarType.DOUBLE:
      return (json, context) => parseDouble(json) ?? reject(context, rule);
    case ScalarType.FLOAT:
      return (json, context) => {
        const value = parseDouble(json);
        const isTooLarge = value !== undefined && Number.isFinite(value) && !Number.isFinite(Math.fround(value));
        return value === undefined || isTooLarge ? reject(context, rule) : value;
      };
    default:
      return isLong(type) ? createLongReader(type, longAsString) : createIntegerReader(type);
  }
}

function decode(text: string): Uint8Array | undefined {
  try {
    return base64Decode(text);
  } catch {
    return undefined;
  }
}

function parseDouble(json: JsonValue): number | undefined {
  if (json === "NaN" || json === "Infinity" || json === "-Infinity") return Number(json);
  const value = parseDecimal(json);
  return Number.isFinite(value) ? value : undefined;
}

function parseDecimal(json: JsonValue): number {
  if (typeof json === "number") return json;
  const isDecimal = typeof json === "string" && json.length <= MAX_NUMBER && DECIMAL.test(json);
  return isDecimal ? Number(json) : Number.NaN;
}

function createIntegerReader(type: ScalarType): ReadValue<number> {
  const [least, greatest] = getIntegerRange(type);
  const rule = formatScalarRule(type);
  return (json, context) => {
    const value = parseDecimal(json);
    if (!Number.isInteger(value) || value < least || value > greatest) reject(context, rule);
    // Converts -0 to 0.
    return value + 0;
  };
}

function createLongReader(type: ScalarType, longAsString: boolean): ReadValue<bigint | string> {
  const [least, greatest] = getIntegerRange(type);
  const rule = formatScalarRule(type);
  return (json, context) => {
    let value: bigint | undefined;
    if (typeof json === "number" && Number.isInteger(json)) {
      // JSON.parse may have lost digits.
      if (!Number.isSafeInteger(json)) reject(context, "must be a string of digits, as it is beyond 2^53");
      value = BigInt(json);
    } else if (typeof json === "string" && json.length <= MAX_NUMBER && DIGITS.test(json)) value = BigInt(json);
    if (value === undefined || value < least || value > greatest) return reject(context, rule);
    return longAsString ? value.toString() : value;
  };
}

/** Creates the reader of the keys of a map, which are names of properties in protobuf-es. */
export function createKeyReader(type: ScalarType): (key: string, context: ReadContext) => string {
  if (type === ScalarType.STRING) {
    return (key, context) => {
      // Setting this property would set the prototype of the object.
      if (key === "__proto__") reject(context, "must not be called __proto__");
      return key.isWellFormed() ? key : reject(context, "must have a key of whole characters");
    };
  }
  if (type === ScalarType.BOOL) {
    return (key, context) =>
      key === "true" || key === "false" ? key : reject(context, `has a key that ${formatScalarRule(type)}`);
  }
  const read = createScalarReader(type, false);
  return (key, context) => {
    try {
      return String(read(key, context));
    } catch {
      return reject(context, `has a key that ${formatScalarRule(type)}`);
    }
  };
}

/** Creates the reader of an enum by name or number. Numbers of an open enum need no name. */
export function createEnumReader(desc: DescEnum): ReadValue<number> {
  const numbers = new Map<string, number>();
  for (const { jsonName, number } of desc.values) numbers.set(jsonName, number);
  for (const { name, number } of desc.values) numbers.set(name, number);
  const known = new Set(desc.values.map(({ number }) => number));
  const rule = formatEnumRule(desc);
  // For all other enums null means that the field is not set.
  const isNull = desc.typeName === "google.protobuf.NullValue";
  return (json, context) => {
    if (typeof json === "string") return numbers.get(json) ?? reject(context, rule);
    if (json === null && isNull) return 0;
    if (typeof json !== "number" || !(desc.open ? isInt32(json) : known.has(json))) return reject(context, rule);
    return json + 0;
  };
}

function isInt32(value: number): boolean {
  return Object.is(value | 0, value + 0);
}

/** Creates the reader of a well-known type without nested messages; undefined for all other messages. */
export function createLeafReader(desc: DescMessage): ReadValue<Message> | undefined {
  switch (findWellKnownName(desc)) {
    case "Timestamp":
      return readTimestamp;
    case "Duration":
      return createLibraryReader(desc, (json) => (typeof json === "string" && DURATION.test(json) ? json : undefined));
    case "FieldMask":
      // JSON has camelCase names, but callers may use either form (docs/api-rules.md#masks).
      return createLibraryReader(desc, (json) =>
        typeof json === "string" ? json.split(",").map(toJsonMaskPath).join(",") : undefined,
      );
    case "Struct":
    case "Value":
    case "ListValue":
      return createLibraryReader(desc, (json) => json);
    default:
      return undefined;
  }
}

// protobuf-es accepts more values than these types have, so `check` excludes them first.
function createLibraryReader(desc: DescMessage, check: (json: JsonValue) => JsonValue | undefined): ReadValue<Message> {
  const rule = formatMessageRule(desc);
  return (json, context) => {
    const checked = check(json);
    if (checked === undefined) return reject(context, rule);
    try {
      return fromJson(desc, checked, { recursionLimit: MAX_DEPTH - context.depth });
    } catch {
      return reject(context, rule);
    }
  };
}

const TIME =
  /^([0-9]{4}-[0-9]{2}-([0-9]{2}))T([0-9]{2}):([0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?(Z|[+-][0-9]{2}:[0-9]{2})$/;
const MIN_TIME = Date.parse("0001-01-01T00:00:00Z");
const MAX_TIME = Date.parse("9999-12-31T23:59:59Z");

// Date.parse accepts 30 February as 1 March, and 24:00 as the next day.
function readTimestamp(json: JsonValue, context: ReadContext): Message {
  const [, date = "", day, hour = "", rest = "", fraction = "", zone = ""] =
    (typeof json === "string" && TIME.exec(json)) || [];
  const midnight = new Date(`${date}T00:00:00Z`);
  const ms =
    midnight.getUTCDate() === Number(day) && hour < "24" ? Date.parse(`${date}T${hour}:${rest}${zone}`) : Number.NaN;
  if (!(ms >= MIN_TIME && ms <= MAX_TIME)) reject(context, formatMessageRule(TimestampSchema));
  return create(TimestampSchema, { seconds: BigInt(ms / 1000), nanos: Number(fraction.padEnd(9, "0")) });
}

/** Creates the reader of a wrapper as a message. Here null means its zero value. */
export function createWrapperReader(desc: DescMessage, value: DescField & { scalar: ScalarType }): ReadValue<Message> {
  const read = createScalarReader(value.scalar, false);
  return (json, context) => create(desc, json === null ? {} : { [value.localName]: read(json, context) });
}

/** Copies a google.protobuf.Struct, which fields store as JSON. */
export function readStruct(json: JsonValue, context: ReadContext): JsonObject {
  if (!isJsonObject(json)) return reject(context, "must be a JSON object");
  return copyJson(json, context, context.depth) as JsonObject;
}

function copyJson(json: JsonValue, context: ReadContext, depth: number): JsonValue {
  if (typeof json !== "object" || json === null) return json;
  if (depth >= MAX_DEPTH) reject(context, `must not nest deeper than ${MAX_DEPTH} messages`);
  if (Array.isArray(json)) return json.map((item) => copyJson(item, context, depth + 1));
  const copy: JsonObject = {};
  for (const [key, value] of Object.entries(json)) {
    if (key === "__proto__") rejectAt(context, key, "is not allowed as a name");
    copy[key] = copyJson(value, context, depth + 1);
  }
  return copy;
}
