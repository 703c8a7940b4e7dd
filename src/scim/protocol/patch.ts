// PATCH (RFC 7644, section 3.5.2), and what directories make of it.
import { isJsonObject } from "../../kernel/strict-json.js";
import { equalitiesOf } from "./conditions.js";
import { badRequest, quote } from "./error.js";
import type { Filter } from "./filter-tree.js";
import {
  findMissing,
  isWritable,
  keepOnePrimary,
  readResource,
  readSingle,
  readValue,
  readValues,
  toObject,
} from "./input.js";
import { isMatch } from "./match.js";
import { findPath, type Path, parsePath } from "./path.js";
import { type Resource, toComparable } from "./resource.js";
import { type Attribute, findAttribute, formatChain, type ResourceType } from "./schemas.js";

export interface PatchOperation {
  readonly op: "add" | "remove" | "replace";
  readonly path: Path;
  /** As it was sent. */
  readonly value: unknown;
}

/** The most operations of a request. Each attribute of the value of one without a path is an operation. */
export const MAX_OPERATIONS = 1_000;
/** The most values of multi-valued attributes that the operations of a request examine. */
export const MAX_EXAMINED = 30_000;

/**
 * Reads the body of a PATCH. An operation without a path becomes one for each attribute of its value. Of these, attributes
 * that the schema does not have or that are read-only are dropped, as in the body of a PUT: Okta sends `id` with the name of a group.
 *
 * @throws ScimError 400
 */
export function readPatch(body: unknown, type: ResourceType): readonly PatchOperation[] {
  const given = isJsonObject(body) ? ownValue(body, "operations") : undefined;
  if (!Array.isArray(given) || given.length === 0) {
    throw badRequest("invalidSyntax", "the body must have Operations, a list of at least one");
  }
  let count = 0;
  return given.flatMap((one: unknown) => {
    const operation = readOperation(one);
    const { op, path, value } = operation;
    const names = path === undefined ? Object.keys(value) : [path];
    count += Math.max(names.length, 1);
    if (count > MAX_OPERATIONS) {
      throw badRequest("invalidSyntax", `there are more than ${MAX_OPERATIONS} operations`);
    }
    if (path !== undefined) return readTarget(op, path, value, type);
    return names.flatMap((name) => {
      const found = findPath(name, type);
      return found?.chain.every(isWritable) ? [{ op, path: found, value: value[name] }] : [];
    });
  });
}

type GivenOperation =
  | { readonly op: Operator; readonly path: string; readonly value: unknown }
  | { readonly op: Operator; readonly path: undefined; readonly value: Resource };

function readOperation(given: unknown): GivenOperation {
  if (!isJsonObject(given)) throw badRequest("invalidSyntax", "an operation must be an object");
  const name = ownValue(given, "op");
  const op = typeof name === "string" ? name.toLowerCase() : "";
  if (op !== "add" && op !== "remove" && op !== "replace") {
    throw badRequest("invalidSyntax", `op must be add, remove or replace, not ${quote(op)}`);
  }
  const path = ownValue(given, "path") ?? "";
  const value = ownValue(given, "value");
  if (typeof path !== "string") throw badRequest("invalidPath", "path must be a string");
  if (op !== "remove" && value === undefined) throw badRequest("invalidValue", `${op} needs a value`);
  if (path !== "") return { op, path, value };
  if (op === "remove") throw badRequest("noTarget", "remove needs a path");
  if (!isJsonObject(value)) throw badRequest("invalidValue", `without a path the value of ${op} must be an object`);
  return { op, path: undefined, value };
}

// The password is accepted and dropped.
function readTarget(op: Operator, text: string, value: unknown, type: ResourceType): PatchOperation[] {
  const path = parsePath(text, type);
  if (path.chain.some(({ mutability }) => mutability === "readOnly")) {
    throw badRequest("mutability", `${formatChain(path.chain)} is read-only`);
  }
  return path.chain.every(isWritable) ? [{ op, path, value }] : [];
}

// The value of a property with a name in any case of its letters.
function ownValue(object: Resource, name: string): unknown {
  const found = Object.keys(object).filter((key) => key.toLowerCase() === name);
  if (found.length > 1) throw badRequest("invalidSyntax", `${name} is given twice`);
  return found[0] === undefined ? undefined : object[found[0]];
}

/**
 * Applies all operations to a copy of the resource, or fails.
 *
 * - A value path that matches nothing creates an element where its filter only joins equalities by `and`, as Entra ID
 *   expects of `add` and `replace`. With other filters it is noTarget.
 * - `replace` with null removes, and so does `remove` without a target: that is no error.
 * - `remove` of a multi-valued attribute with a value removes the elements with the same `value`, or without that equal elements.
 * - What `add` adds to a multi-valued attribute and has the `value` and `type` of an element changes that element; without
 *   `value`, what equals an element is not added.
 * - A primary value takes that from the others.
 *
 * @throws ScimError 400
 */
export function applyPatch(resource: Resource, operations: readonly PatchOperation[], type: ResourceType): Resource {
  const result = structuredClone(resource) as Holder;
  const patcher = new Patcher();
  for (const { op, path, value } of operations) {
    patcher.apply(op, result, path.chain, path.filter, value);
    const missing = findMissing(type.attributes, result);
    if (missing !== undefined) throw badRequest("mutability", `${missing.name} is required`);
  }
  return readResource(result, type);
}

/** An object whose properties have names of the schema. */
type Holder = Record<string, unknown>;
type Operator = PatchOperation["op"];

class Patcher {
  #examined = 0;

  apply(op: Operator, holder: Holder, chain: readonly Attribute[], filter: Filter | undefined, value: unknown): void {
    const [attribute, ...rest] = chain;
    if (attribute === undefined) return;
    if (attribute.multiValued && (rest.length > 0 || filter !== undefined)) {
      this.#changeElements(op, holder, attribute, rest[0], filter, value);
    } else if (rest.length > 0) {
      this.#changeParts(holder, attribute, (parts) => this.apply(op, parts, rest, filter, value));
    } else if (op === "remove") {
      this.#remove(holder, attribute, value);
    } else {
      this.#assign(op, holder, attribute, value);
    }
  }

  #assign(op: "add" | "replace", holder: Holder, attribute: Attribute, value: unknown): void {
    if (attribute.multiValued) {
      if (op === "add") this.#unite(holder, attribute, value);
      else setOrRemove(holder, attribute, readValue(attribute, value));
    } else if (value === null) {
      if (op === "replace") setOrRemove(holder, attribute, undefined);
    } else if (attribute.type === "complex") {
      const object = toObject(attribute, value);
      if (object === undefined) throw badRequest("invalidValue", `${attribute.name} must be an object`);
      this.#changeParts(holder, attribute, (parts) => this.#assignParts(op, parts, attribute, object));
    } else {
      setOrRemove(holder, attribute, readSingle(attribute, value));
    }
  }

  // Parts that the value does not name stay as they are.
  #assignParts(op: "add" | "replace", parts: Holder, attribute: Attribute, value: Resource): void {
    for (const name of Object.keys(value)) {
      const sub = findAttribute(attribute.subAttributes, name);
      if (sub !== undefined && isWritable(sub)) this.#assign(op, parts, sub, value[name]);
    }
  }

  #changeParts(holder: Holder, attribute: Attribute, change: (parts: Holder) => void): void {
    const parts = { ...(holder[attribute.name] as Holder | undefined) };
    change(parts);
    setOrRemove(holder, attribute, Object.keys(parts).length === 0 ? undefined : parts);
  }

  #remove(holder: Holder, attribute: Attribute, value: unknown): void {
    if (!attribute.multiValued || value === undefined || value === null) {
      setOrRemove(holder, attribute, undefined);
      return;
    }
    const values = this.#valuesOf(holder, attribute);
    const keyOf = createKey(attribute, ["value"]);
    const removed = new Set(readValues(attribute, value).map(keyOf));
    const kept = values.filter((one) => !removed.has(keyOf(one)));
    setValues(holder, attribute, kept);
  }

  #unite(holder: Holder, attribute: Attribute, value: unknown): void {
    const values = [...this.#valuesOf(holder, attribute)];
    const added = readValues(attribute, value);
    this.#examine(added.length);
    const keyOf = createKey(attribute, ["value", "type"]);
    const places = new Map<string, number>();
    for (const [index, one] of values.entries()) {
      const key = keyOf(one);
      if (!places.has(key)) places.set(key, index);
    }
    const primary: unknown[] = [];
    for (const one of added) {
      const key = keyOf(one);
      const index = places.get(key) ?? values.length;
      places.set(key, index);
      values[index] = isJsonObject(one) ? { ...(values[index] as Holder | undefined), ...one } : one;
      if (isJsonObject(one) && one.primary === true) primary.push(values[index]);
    }
    setValues(holder, attribute, keepOnePrimary(values, primary));
  }

  #changeElements(
    op: Operator,
    holder: Holder,
    attribute: Attribute,
    sub: Attribute | undefined,
    filter: Filter | undefined,
    value: unknown,
  ): void {
    const values = [...this.#valuesOf(holder, attribute)];
    const found = values.flatMap((one, index) => (filter === undefined || isMatch(filter, one) ? [index] : []));
    const isNew = found.length === 0 && op !== "remove" && value !== null;
    if (isNew) found.push(values.push(createElement(attribute, filter)) - 1);
    // What a new element has by its filter stays, also where its value is replaced.
    const change = isNew ? "add" : op;
    const changed = found.map((index) => {
      values[index] = this.#changeElement(change, values[index] as Holder, attribute, sub, value);
      return values[index];
    });
    setValues(holder, attribute, keepOnePrimary(values, changed));
  }

  // undefined for an element that is no more.
  #changeElement(
    op: Operator,
    element: Holder,
    attribute: Attribute,
    sub: Attribute | undefined,
    value: unknown,
  ): unknown {
    if (sub === undefined) {
      if (op === "remove") return undefined;
      const [given, ...more] = readValues(attribute, value);
      if (more.length > 0) throw badRequest("invalidValue", `${attribute.name} must be one value`);
      return op === "replace" || given === undefined ? given : { ...element, ...given };
    }
    const parts = { ...element };
    if (op === "remove") setOrRemove(parts, sub, undefined);
    else this.#assign(op, parts, sub, value);
    if (sub.mutability === "immutable" && element[sub.name] !== undefined && element[sub.name] !== parts[sub.name]) {
      throw badRequest("mutability", `${attribute.name}.${sub.name} cannot change`);
    }
    return Object.keys(parts).length === 0 ? undefined : parts;
  }

  #valuesOf(holder: Holder, attribute: Attribute): readonly unknown[] {
    const values = (holder[attribute.name] ?? []) as readonly unknown[];
    this.#examine(values.length);
    return values;
  }

  #examine(count: number): void {
    this.#examined += count;
    if (this.#examined > MAX_EXAMINED) {
      throw badRequest("invalidValue", "the operations examine too many values; send fewer in a request");
    }
  }
}

function setOrRemove(holder: Holder, { name }: Attribute, value: unknown): void {
  if (value === undefined) delete holder[name];
  else holder[name] = value;
}

function setValues(holder: Holder, attribute: Attribute, values: readonly unknown[]): void {
  const present = values.filter((value) => value !== undefined);
  setOrRemove(holder, attribute, present.length === 0 ? undefined : present);
}

/** A new element that satisfies the filter of a value path. */
function createElement(attribute: Attribute, filter: Filter | undefined): Holder {
  const equalities = filter === undefined ? {} : equalitiesOf(filter);
  const element = equalities && (readSingle(attribute, equalities) ?? {});
  if (element === undefined || (filter !== undefined && !isMatch(filter, element))) {
    throw badRequest("noTarget", `no value of ${attribute.name} matches the filter of the path`);
  }
  return element as Holder;
}

/**
 * Creates the key of elements: the same for those with the same sub-attributes of these names, or without `value` for equal
 * elements.
 */
function createKey(attribute: Attribute, names: readonly string[]): (element: unknown) => string {
  const all = attribute.subAttributes;
  const some = all.filter(({ name }) => names.includes(name));
  return (element) => {
    if (!isJsonObject(element)) return JSON.stringify(toComparable(attribute, element));
    const compared = element.value === undefined ? all : some;
    return JSON.stringify(compared.map((sub) => toComparable(sub, element[sub.name]) ?? null));
  };
}
