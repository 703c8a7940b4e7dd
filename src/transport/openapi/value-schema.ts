// Schemas of scalars, enums and well-known types, which are the same in every message.
import { type DescEnum, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { isWrapper } from "../../codec/fields.js";
import type { Comments } from "../../codec/proto-comments.js";
import { getIntegerRange, isLong, isSignedLong } from "../../codec/value-rules.js";
import { UIDP_PATTERN } from "../../kernel/uidp.js";

/** Whether a value is in a request, in any of its forms, or in a response, in exactly one. */
export type Direction = "in" | "out";

/** The schema of a scalar. */
export function buildScalarSchema(type: ScalarType, direction: Direction): Schema {
  switch (type) {
    case ScalarType.STRING:
      return { type: "string" };
    case ScalarType.BOOL:
      return { type: "boolean" };
    case ScalarType.BYTES: {
      const pattern =
        direction === "in" ? "^[A-Za-z0-9+/_-]*={0,2}$" : "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2,3}={1,2})?$";
      return { type: "string", contentEncoding: "base64", pattern };
    }
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return { anyOf: [{ type: "number" }, { type: "string", enum: ["NaN", "Infinity", "-Infinity"] }] };
    default:
      return isLong(type) ? buildLongSchema(type) : buildIntegerSchema(type);
  }
}

// JavaScript's numbers cannot represent all 64-bit integers, so they are written as strings.
function buildLongSchema(type: ScalarType): Schema {
  const isSigned = isSignedLong(type);
  return {
    type: "string",
    format: isSigned ? "int64" : "uint64",
    pattern: isSigned ? "^-?[0-9]{1,19}$" : "^[0-9]{1,20}$",
  };
}

function buildIntegerSchema(type: ScalarType): Schema {
  const [minimum, maximum] = getIntegerRange(type);
  if (minimum === 0) return { type: "integer", minimum, maximum: Number(maximum) };
  return { type: "integer", format: "int32" };
}

/**
 * Builds the schema of a uid (docs/api-rules.md#uids).
 *
 * @param others other accepted values, such as the empty string
 */
export function buildUidSchema(...others: readonly ("" | "/")[]): Schema {
  const forms = [...others.filter((text) => text !== ""), UIDP_PATTERN].join("|");
  return { type: "string", pattern: `^(?:${forms})${others.includes("") ? "?" : ""}$` };
}

/** Builds the schema of a value that may also be null, which means absent. */
export function buildNullableSchema(schema: Schema): Schema {
  const { $ref, anyOf, type, additionalProperties } = schema;
  if (Array.isArray(anyOf)) return { ...schema, anyOf: [...anyOf, { type: "null" }] };
  // Generators that build a type of a map do not accept two types for it.
  if ($ref !== undefined || additionalProperties !== undefined) return { anyOf: [schema, { type: "null" }] };
  // A schema without a type allows null already.
  return typeof type !== "string" || type === "null" ? schema : { ...schema, type: [type, "null"] };
}

/** Builds the schema of a map; all keys are strings in JSON. */
export function buildMapSchema(key: ScalarType, values: Schema): Schema {
  const keys = key === ScalarType.STRING ? {} : { propertyNames: buildKeySchema(key) };
  return { type: "object", ...keys, additionalProperties: values };
}

function buildKeySchema(type: ScalarType): Schema {
  return type === ScalarType.BOOL ? { enum: ["true", "false"] } : { pattern: "^-?[0-9]{1,20}$" };
}

/** Builds the schema of the names of an enum, with a description of each. */
export function buildEnumSchema(desc: DescEnum, comments: Comments): Schema {
  return {
    type: "string",
    ...buildDescription(describeEnum(desc, comments)),
    enum: desc.values.map(({ name }) => name),
  };
}

/** Describes an enum and each of its values, in Markdown. */
export function describeEnum(desc: DescEnum, comments: Comments): string {
  const values = desc.values.flatMap(({ name }) => {
    const comment = comments(`${desc.typeName}.${name}`);
    return comment === "" ? [] : [`- \`${name}\`: ${comment}`];
  });
  return [comments(desc.typeName), values.join("\n")].filter((part) => part !== "").join("\n\n");
}

/** Builds the schema of a well-known type; undefined for messages that are JSON objects with fields. */
export function buildWellKnownSchema(desc: DescMessage, direction: Direction): Schema | undefined {
  if (isWrapper(desc)) return buildScalarSchema(desc.fields[0]?.scalar ?? ScalarType.STRING, direction);
  switch (desc.typeName) {
    case "google.protobuf.Timestamp":
      // Without a pattern: generated clients convert it to a time, which a pattern would not match.
      return { type: "string", format: "date-time" };
    case "google.protobuf.Duration":
      return { type: "string", pattern: "^-?[0-9]{1,12}(?:\\.[0-9]{1,9})?s$" };
    case "google.protobuf.FieldMask":
      return { type: "string", pattern: "^[A-Za-z0-9_.,*]*$" };
    case "google.protobuf.Struct":
      return { type: "object", additionalProperties: true };
    case "google.protobuf.ListValue":
      return { type: "array", items: {} };
    case "google.protobuf.Value":
      return {};
    case "google.protobuf.Any":
      return { type: "object", properties: { "@type": { type: "string" } }, additionalProperties: true };
    default:
      return undefined;
  }
}

/** A JSON value of a document. */
export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

/** A JSON object of a document, such as a schema (JSON Schema 2020-12, as OpenAPI 3.1 uses it). */
export type Schema = { [key: string]: Json };

/** Builds a `description`, unless it is empty. */
export function buildDescription(description: string): Schema {
  return description === "" ? {} : { description };
}
