// Conditions on claims in files, in which a value may be written as it is: `equals: 123` in place of
// `equals: {intValue: "123"}`.
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { isJsonObject } from "../../../kernel/strict-json.js";

/**
 * Expands the values of a condition to those of the API. What is no condition stays as it is.
 *
 * @param rejectNumber throws the error of a number that is no whole one, or too large
 */
export function expandValues(condition: unknown, rejectNumber: (value: number) => never): unknown {
  if (!isJsonObject(condition)) return condition;
  const { equals, contains, oneOf, ...rest } = condition;
  const expand = (value: unknown) => expandValue(value, rejectNumber);
  return {
    ...rest,
    ...(equals !== undefined && { equals: expand(equals) }),
    ...(contains !== undefined && { contains: expand(contains) }),
    ...(oneOf !== undefined && { oneOf: Array.isArray(oneOf) ? { values: oneOf.map(expand) } : oneOf }),
  };
}

function expandValue(value: unknown, rejectNumber: (value: number) => never): unknown {
  if (typeof value === "string") return { stringValue: value };
  if (typeof value === "boolean") return { boolValue: value };
  if (typeof value !== "number") return value;
  // YAML has rounded a larger one already.
  if (!Number.isSafeInteger(value)) return rejectNumber(value);
  return { intValue: String(value) };
}

/** The rule that {@link expandValues} rejects a number by. */
export const NUMBER_RULE = "is not from -(2^53 - 1) to 2^53 - 1";

/** Shortens the values of a condition of the API to those of files. */
export function shortenValues({ equals, contains, oneOf, ...rest }: JsonObject): JsonObject {
  return {
    ...rest,
    ...(equals !== undefined && { equals: shortenValue(equals) }),
    ...(contains !== undefined && { contains: shortenValue(contains) }),
    ...(isJsonObject(oneOf) && { oneOf: ((oneOf.values ?? []) as JsonValue[]).map(shortenValue) }),
  };
}

function shortenValue(value: JsonValue): JsonValue {
  const { stringValue, boolValue, intValue } = value as JsonObject;
  return stringValue ?? boolValue ?? Number(intValue);
}
