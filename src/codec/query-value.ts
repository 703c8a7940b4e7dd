// Parses query parameters and path variables to values of fields. Everything that is not exactly a value of the type is
// rejected: a wrongly guessed filter would return the wrong resources.
import {
  create,
  createRegistry,
  type DescEnum,
  type DescField,
  type DescMessage,
  type JsonValue,
  ScalarType,
} from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { invalidArgument } from "../kernel/errors.js";
import { parseStrictJson } from "../kernel/strict-json.js";
import { parseMaskPath, splitMask } from "./field-mask.js";
import { findWellKnownName, isWrapper } from "./fields.js";
import { readOrReject } from "./json-read-value.js";
import { readElement, readValue } from "./json-reader.js";
import { formatEnumRule, formatMessageRule, formatScalarRule, getIntegerRange, isLong } from "./value-rules.js";

/**
 * Parses `text` to a value, in the form of protobuf-es.
 *
 * @throws ApiError INVALID_ARGUMENT naming `field`, the JSON path of the parameter
 */
export type TextReader = (text: string, field: string) => unknown;

const INTEGER = /^-?[0-9]{1,20}$/;
const NUMBER = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/;
const BASE64 = /^(?:[A-Za-z0-9+/]*|[A-Za-z0-9_-]*)={0,2}$/;
const MAX_FLOAT = 3.4028234663852886e38;

/**
 * Creates the reader of one value of a field, or of an element or map value. Undefined for messages without a textual
 * form.
 *
 * @param resource the message that the paths of a field mask are about, if known; see {@link parseMaskPath}
 */
export function createTextReader(field: DescField, resource?: DescMessage): TextReader | undefined {
  if (field.message !== undefined) return createMessageReader(field, field.message, resource);
  if (field.enum !== undefined) return createEnumReader(field.enum);
  if (field.scalar === undefined) return undefined;
  return createScalarReader(field.scalar, field.fieldKind !== "map" && field.longAsString);
}

/** Creates the reader of the keys of a map, which are names of properties in protobuf-es. */
export function createKeyReader(type: ScalarType): (text: string, field: string) => string {
  const read = createScalarReader(type, false);
  return (text, field) => String(read(text, field));
}

/** Creates the reader of one path of a field mask; see {@link parseMaskPath}. */
export function createMaskPathReader(mask: DescMessage, resource?: DescMessage): TextReader {
  const rule = formatMessageRule(mask);
  return (text, field) => parseMaskPath(text, resource) ?? reject(field, rule);
}

function reject(field: string, rule: string): never {
  throw invalidArgument({ field, rule });
}

function createScalarReader(type: ScalarType, longAsString: boolean): TextReader {
  const rule = formatScalarRule(type);
  switch (type) {
    case ScalarType.STRING:
      return (text, field) => (text.includes("\0") ? reject(field, "must not hold U+0000") : text);
    case ScalarType.BOOL:
      return (text, field) => {
        const word = text.toLowerCase();
        if (word === "true" || word === "1") return true;
        if (word === "false" || word === "0") return false;
        return reject(field, rule);
      };
    case ScalarType.BYTES:
      return (text, field) => {
        const digits = text.replace(/=+$/, "").length;
        if (!BASE64.test(text) || digits % 4 === 1) reject(field, rule);
        return new Uint8Array(Buffer.from(text, "base64"));
      };
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return (text, field) => {
        if (text === "NaN" || text === "Infinity" || text === "-Infinity") return Number(text);
        const value = NUMBER.test(text) ? Number(text) : Number.NaN;
        const limit = type === ScalarType.FLOAT ? MAX_FLOAT : Number.MAX_VALUE;
        return Math.abs(value) <= limit ? value : reject(field, rule);
      };
    default:
      return createIntegerReader(type, longAsString, rule);
  }
}

function createIntegerReader(type: ScalarType, longAsString: boolean, rule: string): TextReader {
  const [least, greatest] = getIntegerRange(type);
  if (!isLong(type)) {
    return (text, field) => {
      const value = INTEGER.test(text) ? Number(text) : Number.NaN;
      return value >= least && value <= greatest ? value + 0 : reject(field, rule);
    };
  }
  return (text, field) => {
    const value = INTEGER.test(text) ? BigInt(text) : undefined;
    if (value === undefined || value < least || value > greatest) return reject(field, rule);
    return longAsString ? value.toString() : value;
  };
}

function createEnumReader(desc: DescEnum): TextReader {
  const numbers = new Map<string, number>();
  for (const value of desc.values) numbers.set(String(value.number), value.number);
  for (const value of desc.values) numbers.set(value.name, value.number);
  const rule = formatEnumRule(desc);
  return (text, field) => numbers.get(text) ?? reject(field, rule);
}

function createMessageReader(field: DescField, desc: DescMessage, resource?: DescMessage): TextReader | undefined {
  const rule = formatMessageRule(desc);
  switch (findWellKnownName(desc)) {
    case "FieldMask":
      return (text, name) => {
        const paths = text.trim() === "" ? [] : splitMask(text).map((path) => parseMaskPath(path, resource));
        const known = paths.filter((path) => path !== undefined);
        return known.length === paths.length ? create(FieldMaskSchema, { paths: known }) : reject(name, rule);
      };
    case "Timestamp":
    case "Duration":
      return (text, name) => fromText(field, text, name);
    case "Struct":
    case "Value":
    case "ListValue":
      return (text, name) => fromText(field, parseStrictJson(text, name), name);
    default: {
      if (!isWrapper(desc)) return undefined;
      const value = desc.fields[0];
      const read = value === undefined ? undefined : createTextReader(value);
      if (read === undefined || value === undefined) return undefined;
      // protobuf-es stores the bare value instead of the wrapper in a singular field.
      if (field.fieldKind === "message" && field.oneof === undefined) return read;
      return (text, name) => create(desc, { [value.localName]: read(text, name) });
    }
  }
}

const NO_TYPES = { registry: createRegistry(), ignoreUnknown: false };

// Reads the value as in a body, in the form of protobuf-es.
function fromText(field: DescField, json: JsonValue, name: string): unknown {
  const read = field.fieldKind === "message" ? readValue : readElement;
  return readOrReject(() => read(field, json, name, NO_TYPES));
}
