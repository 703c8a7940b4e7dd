// Reads the body of a POST or PUT against its schema (RFC 7643, section 2).
import { isJsonObject } from "../../kernel/strict-json.js";
import { badRequest, quote } from "./error.js";
import { parseDateTime, type Resource } from "./resource.js";
import { type Attribute, findAttribute, type ResourceType } from "./schemas.js";

const MAX_TEXT = 8_192;
const MAX_IDENTIFIER = 256;

/**
 * Reads a resource.
 *
 * Names may be in any case of their letters. Attributes that the schema does not have are dropped, since directories send
 * attributes of their own; so are those that are read-only (`id`, `meta`, `groups`) and the password. `schemas` is not
 * read: the attributes say which schemas a resource has. null, an empty list and an object without values are no value. Of several
 * primary values the last one stays primary, as RFC 7644, section 3.5.2, has it for PATCH.
 *
 * @throws ScimError 400
 */
export function readResource(body: unknown, type: ResourceType): Resource {
  if (!isJsonObject(body)) throw badRequest("invalidSyntax", "the body must be a JSON object");
  const resource = readAttributes(body, type.attributes, "");
  const missing = findMissing(type.attributes, resource);
  if (missing !== undefined) throw badRequest("invalidValue", `${missing.name} is required`);
  if (JSON.stringify(resource).length > type.maxSize) {
    throw badRequest("invalidValue", `the resource has more than ${type.maxSize} characters`);
  }
  return resource;
}

/** A required attribute, other than those that the service sets, that has no value. */
export function findMissing(attributes: readonly Attribute[], holder: Resource): Attribute | undefined {
  return attributes.find(
    (attribute) => attribute.required && isWritable(attribute) && holder[attribute.name] === undefined,
  );
}

/** Whether values of requests are stored. */
export function isWritable({ mutability }: Attribute): boolean {
  return mutability === "readWrite" || mutability === "immutable";
}

// Every property has a name of the schema, never one of the body.
function readAttributes(body: Resource, attributes: readonly Attribute[], prefix: string): Record<string, unknown> {
  const given = new Map<Attribute, unknown>();
  for (const name of Object.keys(body)) {
    const attribute = findAttribute(attributes, name);
    if (attribute === undefined || !isWritable(attribute)) continue;
    if (given.has(attribute)) throw badRequest("invalidSyntax", `${prefix}${attribute.name} is given twice`);
    given.set(attribute, body[name]);
  }
  const result: Record<string, unknown> = {};
  for (const attribute of attributes) {
    const value = given.has(attribute) ? readValue(attribute, given.get(attribute), prefix) : undefined;
    if (value !== undefined) result[attribute.name] = value;
  }
  return result;
}

/**
 * Reads the value, or the values, of an attribute.
 *
 * @param prefix what precedes the name of the attribute in errors
 * @returns undefined for no value
 */
export function readValue(attribute: Attribute, value: unknown, prefix = ""): unknown {
  if (!attribute.multiValued) return readSingle(attribute, value, prefix);
  const values = readValues(attribute, value, prefix);
  return values.length === 0 ? undefined : keepOnePrimary(values, values);
}

/** Reads the values of a multi-valued attribute. One value without a list is a list of one, as SCIM's libraries accept it. */
export function readValues(attribute: Attribute, value: unknown, prefix = ""): unknown[] {
  const given = Array.isArray(value) ? value : [value];
  if (given.length > attribute.maxValues) {
    throw badRequest("invalidValue", `${prefix}${attribute.name} has more than ${attribute.maxValues} values`);
  }
  return given.map((one) => readSingle(attribute, one, prefix)).filter((one) => one !== undefined);
}

/** Reads one value of an attribute. */
export function readSingle(attribute: Attribute, value: unknown, prefix = ""): unknown {
  if (value === null || value === undefined) return undefined;
  const name = `${prefix}${attribute.name}`;
  const reject = (rule: string) => badRequest("invalidValue", `${name} must be ${rule}`);
  switch (attribute.type) {
    case "complex": {
      const object = toObject(attribute, value);
      if (object === undefined) throw reject("an object");
      const result = readAttributes(object, attribute.subAttributes, `${name}${name.startsWith("urn:") ? ":" : "."}`);
      return Object.keys(result).length === 0 ? undefined : result;
    }
    case "boolean": {
      const read = toBoolean(value);
      if (read === undefined) throw reject("true or false");
      return read;
    }
    case "integer":
    case "decimal":
      if (typeof value !== "number" || (attribute.type === "integer" && !Number.isSafeInteger(value))) {
        throw reject(attribute.type === "integer" ? "a whole number" : "a number");
      }
      return value;
    default:
      if (typeof value !== "string") throw reject("a string");
      checkText(attribute, name, value);
      return value;
  }
}

/**
 * A value of a complex attribute as an object. Entra ID sends a manager as the text of its id, and single values in a list
 * (application-provisioning-config-problem-scim-compatibility).
 */
export function toObject(attribute: Attribute, value: unknown): Resource | undefined {
  if (attribute.multiValued) return isJsonObject(value) ? value : undefined;
  const single = Array.isArray(value) && value.length === 1 ? value[0] : value;
  if (typeof single === "string" && findAttribute(attribute.subAttributes, "value")) return { value: single };
  return isJsonObject(single) ? single : undefined;
}

/** A boolean. Entra ID sends `"True"` and `"False"` (application-provisioning-config-problem-scim-compatibility). */
export function toBoolean(value: unknown): boolean | undefined {
  if (typeof value === "boolean") return value;
  if (typeof value !== "string") return undefined;
  const lower = value.toLowerCase();
  return lower === "true" ? true : lower === "false" ? false : undefined;
}

function checkText({ type, isIdentifier }: Attribute, name: string, value: string): void {
  if (!value.isWellFormed() || value.includes("\0")) {
    throw badRequest("invalidValue", `${name} must be text without U+0000 and halves of surrogate pairs`);
  }
  const longest = isIdentifier ? MAX_IDENTIFIER : MAX_TEXT;
  if (value.length > longest && (value.length > 2 * longest || [...value].length > longest)) {
    throw badRequest("invalidValue", `${name} must have at most ${longest} characters`);
  }
  if (isIdentifier && (value === "" || /\p{Cc}/u.test(value))) {
    throw badRequest("invalidValue", `${name} must have 1 to ${longest} characters without control characters`);
  }
  if (type === "dateTime" && Number.isNaN(parseDateTime(value))) {
    throw badRequest("invalidValue", `${name} must be a time such as 2026-01-31T08:00:00Z, not ${quote(value)}`);
  }
}

/** Lets the last primary value of `changed` alone be primary among `values`, which stay as they are if none is. */
export function keepOnePrimary(values: readonly unknown[], changed: readonly unknown[]): readonly unknown[] {
  const isPrimary = (value: unknown) => isJsonObject(value) && value.primary === true;
  const primary = changed.findLast(isPrimary);
  if (primary === undefined) return values;
  return values.map((value) =>
    value !== primary && isPrimary(value) ? { ...(value as Resource), primary: false } : value,
  );
}
