// What a filter says of all its matches, for those who look them up in an index.
import type { CompareFilter, Filter } from "./filter-tree.js";
import { formatChain } from "./schemas.js";

/** The conditions that a filter joins by `and`; one alone for another filter. */
function conjuncts(filter: Filter): readonly Filter[] {
  return filter.op === "and" ? filter.filters.flatMap(conjuncts) : [filter];
}

/**
 * The text with which every match has an attribute: from `attribute eq "text"`, alone or joined with others by `and`. Whether
 * a resource matches is still to be found by `matches`.
 *
 * @param name such as `userName`, `externalId` or `id`
 */
export function equalityOf(filter: Filter, name: string): string | undefined {
  for (const condition of conjuncts(filter)) {
    if (condition.op !== "eq" || typeof condition.value !== "string") continue;
    if (formatChain(condition.attribute) === name) return condition.value;
  }
  return undefined;
}

/**
 * The time since which every match was changed: from `meta.lastModified gt` or `ge`, alone or joined with others by `and`, the
 * latest of several.
 */
export function changedSince(filter: Filter): { readonly timeMs: number; readonly inclusive: boolean } | undefined {
  let found: { timeMs: number; inclusive: boolean } | undefined;
  for (const { op, attribute, operand } of conjuncts(filter).filter(isCompare)) {
    if ((op !== "gt" && op !== "ge") || formatChain(attribute) !== "meta.lastModified") continue;
    const timeMs = Number(operand);
    if (found !== undefined && (found.timeMs > timeMs || (found.timeMs === timeMs && !found.inclusive))) continue;
    found = { timeMs, inclusive: op === "ge" };
  }
  return found;
}

function isCompare(filter: Filter): filter is CompareFilter {
  return "operand" in filter;
}

/** What an element must have, by a filter that joins equalities by `and`: undefined for other filters. */
export function equalitiesOf(filter: Filter): Record<string, unknown> | undefined {
  const result: Record<string, unknown> = {};
  for (const condition of conjuncts(filter)) {
    if (condition.op !== "eq" || condition.attribute.length !== 1) return undefined;
    const [attribute] = condition.attribute;
    if (condition.operand === null) continue;
    result[attribute.name] = attribute.type === "boolean" ? condition.operand : condition.value;
  }
  return result;
}
