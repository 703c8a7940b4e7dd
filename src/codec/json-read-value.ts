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
import { type FieldViolation, invalidArgument } from "../kernel/errors.js";
import { isJsonObject } from "../kernel/strict-json.js";
import { toJsonMaskPath } from "./field-mask.js";
import { wellKnownName } from "./fields.js";
import { enumRule, integerRange, isLong, messageRule, scalarRule } from "./value-rules.js";

/** Where a reader is, and what it may read. */
export interface ReadContext {
  /** Leads to the value that is read: names of fields, keys of maps, indices of lists. */
  readonly path: (string | number)[];
  /** The types that may stand in an Any. */
  readonly registry: Registry;
  readonly ignoreUnknown: boolean;
  depth: number;
}

/** Reads a value in the form protobuf-es keeps it in. */
export type ReadValue<T = unknown> = (json: JsonValue, context: ReadContext) => T;

/** JSON that cannot be read as a message. */
export class JsonReadError extends Error {
  readonly violation: FieldViolation;

  constructor(violation: FieldViolation) {
    super(violation.description);
    this.violation = violation;
  }
}

/** Reads JSON of a request: what cannot be read is ApiError INVALID_ARGUMENT. */
export function orInvalidArgument<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof JsonReadError ? invalidArgument(error.violation) : error;
  }
}

/** Names of fields and keys that callers send may be long. */
const MAX_NAME = 100;
const MAX_DEPTH = 100;
/** The time it takes to parse an integer grows faster than its text. */
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
  throw new JsonReadError({ field, description: `${field} ${rule}` });
}

/** Rejects what is one step below the path of `context`. */
export function rejectAt(context: ReadContext, part: string, rule: string): never {
  context.path.push(part);
  return reject(context, rule);
}

/** Counts a message that is nested in another. */
export function deepen(context: ReadContext): void {
  if (++context.depth > MAX_DEPTH) reject(context, `must not nest deeper than ${MAX_DEPTH} messages`);
}

/** Makes the reader of a scalar; 64-bit integers become texts where `longAsString` says so. */
export function createScalarReader(type: ScalarType, longAsString: boolean): ReadValue {
  const rule = scalarRule(type);
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
  const [least, greatest] = integerRange(type);
  const rule = scalarRule(type);
  return (json, context) => {
    const value = parseDecimal(json);
    if (!Number.isInteger(value) || value < least || value > greatest) reject(context, rule);
    // Without the sign of minus zero.
    return value + 0;
  };
}

function createLongReader(type: ScalarType, longAsString: boolean): ReadValue<bigint | string> {
  const [least, greatest] = integerRange(type);
  const rule = scalarRule(type);
  return (json, context) => {
    let value: bigint | undefined;
    if (typeof json === "number" && Number.isInteger(json)) {
      // JSON.parse may have lost digits of it.
      if (!Number.isSafeInteger(json)) reject(context, "must be a string of digits, as it is beyond 2^53");
      value = BigInt(json);
    } else if (typeof json === "string" && json.length <= MAX_NUMBER && DIGITS.test(json)) value = BigInt(json);
    if (value === undefined || value < least || value > greatest) return reject(context, rule);
    return longAsString ? value.toString() : value;
  };
}

/** Makes the reader of the keys of a map, which protobuf-es keeps as names of properties. */
export function createKeyReader(type: ScalarType): (key: string, context: ReadContext) => string {
  if (type === ScalarType.STRING) {
    return (key, context) => {
      // On most objects, setting this property sets the prototype.
      if (key === "__proto__") reject(context, "must not be called __proto__");
      return key.isWellFormed() ? key : reject(context, "must have a key of whole characters");
    };
  }
  if (type === ScalarType.BOOL) {
    return (key, context) =>
      key === "true" || key === "false" ? key : reject(context, `has a key that ${scalarRule(type)}`);
  }
  const read = createScalarReader(type, false);
  return (key, context) => {
    try {
      return String(read(key, context));
    } catch {
      return reject(context, `has a key that ${scalarRule(type)}`);
    }
  };
}

/** Makes the reader of an enum: of names, and of numbers. Those of an open enum need no name. */
export function createEnumReader(desc: DescEnum): ReadValue<number> {
  const numbers = new Map<string, number>();
  for (const { jsonName, number } of desc.values) numbers.set(jsonName, number);
  for (const { name, number } of desc.values) numbers.set(name, number);
  const known = new Set(desc.values.map(({ number }) => number));
  const rule = enumRule(desc);
  // For all others, null means that the field is not set.
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

/** Makes the reader of a well-known type without messages in it; undefined for all other messages. */
export function createLeafReader(desc: DescMessage): ReadValue<Message> | undefined {
  switch (wellKnownName(desc)) {
    case "Timestamp":
      return readTimestamp;
    case "Duration":
      return createLibraryReader(desc, (json) => (typeof json === "string" && DURATION.test(json) ? json : undefined));
    case "FieldMask":
      // In JSON the names are camelCase; callers may use either (docs/api-rules.md#masks).
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

// protobuf-es reads more than these types are, so that is excluded first.
function createLibraryReader(desc: DescMessage, check: (json: JsonValue) => JsonValue | undefined): ReadValue<Message> {
  const rule = messageRule(desc);
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

// Date.parse makes the first of March of 30 February, and the next day of 24:00.
function readTimestamp(json: JsonValue, context: ReadContext): Message {
  const [, date = "", day, hour = "", rest = "", fraction = "", zone = ""] =
    (typeof json === "string" && TIME.exec(json)) || [];
  const midnight = new Date(`${date}T00:00:00Z`);
  const ms =
    midnight.getUTCDate() === Number(day) && hour < "24" ? Date.parse(`${date}T${hour}:${rest}${zone}`) : Number.NaN;
  if (!(ms >= MIN_TIME && ms <= MAX_TIME)) reject(context, messageRule(TimestampSchema));
  return create(TimestampSchema, { seconds: BigInt(ms / 1000), nanos: Number(fraction.padEnd(9, "0")) });
}

/** Makes the reader of a wrapper as a message; null is its zero, as it has no other form where it stands alone. */
export function createWrapperReader(desc: DescMessage, value: DescField & { scalar: ScalarType }): ReadValue<Message> {
  const read = createScalarReader(value.scalar, false);
  return (json, context) => create(desc, json === null ? {} : { [value.localName]: read(json, context) });
}

/** A copy of a google.protobuf.Struct, which fields keep as JSON. */
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
