// What protobuf-es leaves open when it reads JSON: which field of a body it
// was that broke, unknown fields, and whole numbers of which JSON.parse has
// already lost digits. Walked only when something is wrong.
import {
  type DescField,
  type DescMessage,
  fromJson,
  type JsonObject,
  type JsonValue,
  type Registry,
} from "@bufbuild/protobuf";
import type { FieldViolation } from "../kernel/errors.js";
import { fieldsByName, isWrapper, wellKnownName } from "./fields.js";
import { isLong, messageRule, valueRule } from "./value-rules.js";

/** `json` as it would be had the caller left out all fields that `desc` and the messages in it do not have. */
export function withoutUnknown(desc: DescMessage, json: JsonValue): JsonValue {
  if (!isObject(json) || !isPlain(desc)) return json;
  const known: JsonObject = Object.create(null);
  for (const [key, value] of Object.entries(json)) {
    const field = fieldsByName(desc).get(key);
    if (field !== undefined) known[key] = fieldWithoutUnknown(field, value);
  }
  return known;
}

/** As {@link withoutUnknown} for the value of a field. */
export function fieldWithoutUnknown({ fieldKind, message }: DescField, value: JsonValue): JsonValue {
  if (message === undefined) return value;
  if (fieldKind === "list") return Array.isArray(value) ? value.map((item) => withoutUnknown(message, item)) : value;
  if (fieldKind !== "map" || !isObject(value)) return withoutUnknown(message, value);
  const map: JsonObject = Object.create(null);
  for (const [key, item] of Object.entries(value)) map[key] = withoutUnknown(message, item);
  return map;
}

/** What is wrong with a JSON value that protobuf-es refused to read as `desc`. `path` leads to it. */
export function violationIn(desc: DescMessage, json: JsonValue, path: string, registry: Registry): FieldViolation {
  if (!isPlain(desc) || !isObject(json)) return violation(path, messageRule(desc));
  const keys = new Map<DescField, string>();
  const members = new Map<string, string>();
  for (const [key, value] of Object.entries(json)) {
    const field = fieldsByName(desc).get(key);
    if (field === undefined) return violation(join(path, key.slice(0, 100)), "is not a field of this request");
    const at = join(path, field.jsonName);
    const before = keys.get(field);
    if (before !== undefined) return violation(at, `is given twice, as ${before} and as ${key}`);
    keys.set(field, key);
    if (field.oneof !== undefined && value !== null) {
      const conflicting = members.get(field.oneof.name);
      if (conflicting !== undefined) return violation(at, `cannot be given together with ${conflicting}`);
      members.set(field.oneof.name, field.jsonName);
    }
    if (!reads(field, value, registry)) return violationInField(field, value, at, registry);
  }
  return violation(path, "cannot be read");
}

/** As {@link violationIn} for the value of a field. */
export function violationInField(field: DescField, json: JsonValue, path: string, registry: Registry): FieldViolation {
  const { message } = field;
  if (field.fieldKind === "message" && message !== undefined) return violationIn(message, json, path, registry);
  let parts: [path: string, whole: JsonValue, part: JsonValue][] = [];
  if (field.fieldKind === "list" && Array.isArray(json)) {
    parts = json.map((item, i) => [`${path}[${i}]`, [item], item]);
  } else if (field.fieldKind === "map" && isObject(json)) {
    parts = Object.entries(json).map(([key, item]) => [join(path, key.slice(0, 100)), { [key]: item }, item]);
  } else {
    return violation(path, valueRule(field, "whole"));
  }
  for (const [at, whole, part] of parts) {
    if (reads(field, whole, registry)) continue;
    if (message !== undefined && isObject(part)) return violationIn(message, part, at, registry);
    return violation(at, valueRule(field, "element"));
  }
  return violation(path, "cannot be read");
}

/**
 * The path of a 64-bit field that is given as a number beyond 2^53, of which digits may be lost;
 * such numbers are written as strings. Undefined when there is none.
 */
export function unsafeIntegerIn(desc: DescMessage, json: JsonValue, path: string): string | undefined {
  if (isWrapper(desc)) {
    const value = desc.fields[0];
    return value && unsafeIntegerInField(value, json, path);
  }
  if (!isPlain(desc) || !isObject(json)) return undefined;
  for (const [key, value] of Object.entries(json)) {
    const field = fieldsByName(desc).get(key);
    const found = field && unsafeIntegerInField(field, value, join(path, field.jsonName));
    if (found !== undefined) return found;
  }
  return undefined;
}

/** As {@link unsafeIntegerIn} for the value of a field. */
export function unsafeIntegerInField(field: DescField, json: JsonValue, path: string): string | undefined {
  const { message, scalar } = field;
  const within = (value: JsonValue, at: string): string | undefined => {
    if (message !== undefined) return unsafeIntegerIn(message, value, at);
    const unsafe = scalar !== undefined && isLong(scalar) && typeof value === "number" && !Number.isSafeInteger(value);
    return unsafe ? at : undefined;
  };
  if (field.fieldKind === "list" && Array.isArray(json)) {
    for (let i = 0; i < json.length; i++) {
      const found = within(json[i] ?? null, `${path}[${i}]`);
      if (found !== undefined) return found;
    }
    return undefined;
  }
  if (field.fieldKind === "map" && isObject(json)) {
    for (const [key, value] of Object.entries(json)) {
      const found = within(value, join(path, key));
      if (found !== undefined) return found;
    }
    return undefined;
  }
  return within(json, path);
}

/** Whether a JSON value is an object. */
export function isObject(json: JsonValue): json is JsonObject {
  return typeof json === "object" && json !== null && !Array.isArray(json);
}

// Well-known types have a JSON form of their own, with no fields in it.
function isPlain(desc: DescMessage): boolean {
  return wellKnownName(desc) === undefined;
}

function reads(field: DescField, value: JsonValue, registry: Registry): boolean {
  try {
    fromJson(field.parent, { [field.jsonName]: value }, { registry });
    return true;
  } catch {
    return false;
  }
}

function violation(path: string, rule: string): FieldViolation {
  const field = path === "" ? "body" : path;
  return { field, description: `${field} ${rule}` };
}

function join(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}
