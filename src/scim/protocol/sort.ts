// The order of a list (RFC 7644, section 3.4.2.3).
import { isJsonObject } from "../../kernel/strict-json.js";
import { badRequest, quote } from "./error.js";
import { type Resource, toComparable } from "./resource.js";
import { type Attribute, type AttributeChain, findAttribute, type ResourceType, resolveName } from "./schemas.js";

export type SortOrder = "ascending" | "descending";

/**
 * Finds the attribute that `sortBy` means.
 *
 * @throws ScimError 400 invalidPath for one that the schema does not have or whose values have no order
 */
export function parseSortBy(sortBy: string, type: ResourceType): AttributeChain {
  const chain = resolveName(type, sortBy);
  const leaf = chain?.at(-1);
  if (chain === undefined || leaf === undefined) {
    throw badRequest("invalidPath", `sortBy: there is no attribute ${quote(sortBy)}`);
  }
  if (leaf.type !== "complex") return chain;
  const value = findAttribute(leaf.subAttributes, "value");
  if (value === undefined) throw badRequest("invalidPath", `sortBy: ${quote(sortBy)} has no order; name a part of it`);
  return [...chain, value];
}

/**
 * Creates the comparison of two resources. Of several values the primary one counts, otherwise the first. Resources without a
 * value come last in ascending order and first in descending order.
 */
export function createComparison(
  chain: AttributeChain,
  order: SortOrder,
): (one: Resource, other: Resource) => -1 | 0 | 1 {
  const [less, more] = order === "ascending" ? ([-1, 1] as const) : ([1, -1] as const);
  return (one, other) => {
    const [left, right] = [findValue(one, chain), findValue(other, chain)];
    if (left === right) return 0;
    if (left === undefined || right === undefined) return left === undefined ? more : less;
    return left < right ? less : more;
  };
}

function findValue(resource: Resource, chain: AttributeChain): string | number | boolean | undefined {
  let value: unknown = resource;
  let last: Attribute = chain[0];
  for (const attribute of chain) {
    const found: unknown = isJsonObject(value) ? value[attribute.name] : undefined;
    value = Array.isArray(found)
      ? (found.find((one: unknown) => isJsonObject(one) && one.primary === true) ?? found[0])
      : found;
    last = attribute;
  }
  return (toComparable(last, value) ?? undefined) as string | number | boolean | undefined;
}
