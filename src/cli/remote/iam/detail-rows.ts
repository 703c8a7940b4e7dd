// One resource as a table of its fields, with the names of enums that flags take.
import type { DescField, DescMessage, JsonObject, JsonValue } from "@bufbuild/protobuf";
import { isObject } from "../../../codec/body-check.js";
import { fieldsByName, wellKnownName } from "../../../codec/fields.js";
import { enumValueOf, shortName } from "./enum-names.js";

/** A line of the table: the path of a field, and its value. */
export type DetailRow = readonly [field: string, value: string];

/** The lines for the fields of `json` that hold anything. A list has a line for each element. */
export function detailRows(desc: DescMessage, json: JsonObject): DetailRow[] {
  return messageRows(desc, json, "");
}

function messageRows(desc: DescMessage, json: JsonObject, prefix: string): DetailRow[] {
  return Object.entries(json).flatMap(([name, value]) => {
    const field = fieldsByName(desc).get(name);
    return field === undefined ? [] : fieldRows(field, value, prefix + name);
  });
}

function fieldRows(field: DescField, value: JsonValue, path: string): DetailRow[] {
  const { message } = field;
  if (field.fieldKind === "message" && isObject(value) && message && wellKnownName(message) === undefined) {
    return messageRows(message, value, `${path}.`);
  }
  if (field.fieldKind === "list" && Array.isArray(value)) {
    return value.map((element): DetailRow => [path, elementText(field, element)]);
  }
  if (field.fieldKind === "map" && isObject(value)) {
    return Object.entries(value).map(([key, element]): DetailRow => [`${path}.${key}`, elementText(field, element)]);
  }
  return value === "" ? [] : [[path, elementText(field, value)]];
}

function elementText(field: DescField, value: JsonValue): string {
  if (typeof value !== "string") return JSON.stringify(value);
  const named = field.enum && enumValueOf(field.enum, value);
  return named ? shortName(named) : value;
}
