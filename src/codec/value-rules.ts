// The rules for values of fields, as texts of errors, which are the same for bodies and query strings.
import { type DescEnum, type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { findWellKnownName, isWrapper } from "./fields.js";

const INT32_RANGE: readonly [number, number] = [-2147483648, 2147483647];
const UINT32_RANGE: readonly [number, number] = [0, 4294967295];
/** The least and greatest value of the signed integer types of 64 bits. */
export const INT64_RANGE: readonly [bigint, bigint] = [-(2n ** 63n), 2n ** 63n - 1n];
/** The least and greatest value of the unsigned integer types of 64 bits. */
export const UINT64_RANGE: readonly [bigint, bigint] = [0n, 2n ** 64n - 1n];

const MAX_NAMES = 20;

/** Formats the end of the sentence "<field> ..." for a scalar. */
export function formatScalarRule(type: ScalarType): string {
  switch (type) {
    case ScalarType.STRING:
      return "must be a string";
    case ScalarType.BOOL:
      return "must be true or false";
    case ScalarType.BYTES:
      return "must be base64";
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return "must be a number";
    default: {
      const [least, greatest] = getIntegerRange(type);
      return `must be an integer between ${least} and ${greatest}`;
    }
  }
}

/** The least and greatest value of an integer type. */
export function getIntegerRange(type: ScalarType): readonly [number | bigint, number | bigint] {
  switch (type) {
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return INT32_RANGE;
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return UINT32_RANGE;
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return UINT64_RANGE;
    default:
      return INT64_RANGE;
  }
}

/** Whether a scalar has 64 bits and is an integer. */
export function isLong(type: ScalarType): boolean {
  switch (type) {
    case ScalarType.INT64:
    case ScalarType.UINT64:
    case ScalarType.SINT64:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return true;
    default:
      return false;
  }
}

/** Whether a 64-bit integer has a sign. */
export function isSignedLong(type: ScalarType): boolean {
  return type !== ScalarType.UINT64 && type !== ScalarType.FIXED64;
}

/** Formats the end of the sentence "<field> ..." for an enum. */
export function formatEnumRule(desc: DescEnum): string {
  const names = desc.values.slice(0, MAX_NAMES).map((value) => value.name);
  return `must be one of ${names.join(", ")}${desc.values.length > MAX_NAMES ? ", ..." : ""}`;
}

/** Formats the end of the sentence "<field> ..." for a message. */
export function formatMessageRule(desc: DescMessage): string {
  switch (findWellKnownName(desc)) {
    case "Timestamp":
      return "must be a time of RFC 3339 such as 2026-01-31T09:30:00Z";
    case "Duration":
      return "must be seconds with the suffix s such as 1.5s";
    case "FieldMask":
      return "must be field paths separated by commas";
    case "ListValue":
      return "must be a JSON array";
    case "Value":
      return "must be JSON";
    case "Any":
      return "must be an object whose @type is known";
    default: {
      const value = isWrapper(desc) ? desc.fields[0] : undefined;
      return value?.fieldKind === "scalar" ? formatScalarRule(value.scalar) : "must be a JSON object";
    }
  }
}

/** Formats the end of the sentence "<field> ..." for the value of a field, or of an element of it. */
export function formatValueRule(field: DescField, part: "whole" | "element"): string {
  if (part === "whole" && field.fieldKind === "list") return "must be a JSON array";
  if (part === "whole" && field.fieldKind === "map") return "must be a JSON object";
  if (field.message !== undefined) return formatMessageRule(field.message);
  if (field.enum !== undefined) return formatEnumRule(field.enum);
  return formatScalarRule(field.scalar ?? ScalarType.STRING);
}
