// Matches resources with filters.
import type { CompareFilter, Filter } from "./filter-tree.js";
import { buildSchemasList, type Resource, toComparable } from "./resource.js";
import type { Attribute, ResourceType } from "./schemas.js";

/**
 * Whether a resource satisfies a filter of its type.
 *
 * An attribute without value equals null alone (RFC 7643, section 2.5): `ne` is true of it, every other comparison false. A
 * condition on a multi-valued attribute is true if it is true of one of the values, and on one without values as if of no value.
 *
 * @param resource with its `id` and `meta`; `schemas` may be left out
 */
export function matches(filter: Filter, resource: Resource, type: ResourceType): boolean {
  const needsSchemas = resource.schemas === undefined && namesSchemas(filter);
  return isMatch(filter, needsSchemas ? { ...resource, schemas: buildSchemasList(resource, type) } : resource);
}

function namesSchemas(filter: Filter): boolean {
  if ("filters" in filter) return filter.filters.some(namesSchemas);
  return filter.op === "not" ? namesSchemas(filter.filter) : filter.attribute[0].name === "schemas";
}

/** Whether an element of a multi-valued attribute satisfies the filter of a value path. */
export function isMatch(filter: Filter, holder: unknown): boolean {
  switch (filter.op) {
    case "and":
      return filter.filters.every((one) => isMatch(one, holder));
    case "or":
      return filter.filters.some((one) => isMatch(one, holder));
    case "not":
      return !isMatch(filter.filter, holder);
    case "pr":
      return someValue(holder, filter.attribute, 0, isPresent);
    case "element":
      return someValue(holder, filter.attribute, 0, (value) => value !== undefined && isMatch(filter.filter, value));
    default:
      return someValue(holder, filter.attribute, 0, (value) => compare(filter, value));
  }
}

function someValue(
  holder: unknown,
  chain: readonly Attribute[],
  at: number,
  test: (value: unknown) => boolean,
): boolean {
  const attribute = chain[at];
  if (attribute === undefined) return test(holder);
  const value = (holder as Resource | undefined)?.[attribute.name] ?? undefined;
  if (!Array.isArray(value)) return someValue(value, chain, at + 1, test);
  if (value.length === 0) return someValue(undefined, chain, at + 1, test);
  return value.some((one) => someValue(one, chain, at + 1, test));
}

function isPresent(value: unknown): boolean {
  if (value === undefined || value === null || value === "") return false;
  return typeof value !== "object" || Object.values(value).some(isPresent);
}

function compare({ op, attribute, operand }: CompareFilter, value: unknown): boolean {
  if (operand === null) return (value === undefined) === (op === "eq");
  if (value === undefined) return op === "ne";
  const comparable = toComparable(attribute.at(-1) ?? attribute[0], value) as string | number | boolean;
  switch (op) {
    case "eq":
      return comparable === operand;
    case "ne":
      return comparable !== operand;
    case "gt":
      return comparable > operand;
    case "ge":
      return comparable >= operand;
    case "lt":
      return comparable < operand;
    case "le":
      return comparable <= operand;
    default: {
      const [text, part] = [String(comparable), String(operand)];
      return op === "co" ? text.includes(part) : op === "sw" ? text.startsWith(part) : text.endsWith(part);
    }
  }
}
