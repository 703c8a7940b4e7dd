// Decides from uids alone where the rows of a list are read: from subtrees in stored order, from the
// children of one group, or by uid. The visible rows of a caller are subtrees, so every filter on the
// hierarchy leads to one of these plans.
import { isBelow, isWithin, lineageOf, parentOf } from "../kernel/uidp.js";
import type { ListFilter, ListQuery } from "./port.js";
import { columnValue, type IndexedRow, type ResourceIndex } from "./resource-index.js";

/** Where the rows of a list are read. */
export type ListPlan =
  | { readonly from: "subtrees"; readonly scopes: readonly Subtree[]; readonly also: readonly string[] }
  | { readonly from: "children"; readonly parent: string }
  | { readonly from: "uids"; readonly uids: readonly string[] };

/** The descendants of a group, with or without the group itself. */
export interface Subtree {
  readonly scope: string;
  readonly withSelf: boolean;
}

/** The fields of a query that a plan depends on. */
export type PlanInput = Pick<ListQuery, "visible" | "also" | "filter">;

/** Plans a query. Rows of a `uids` plan must still pass {@link createRowFilter}. */
export function planList({ visible, also = [], filter }: PlanInput): ListPlan {
  if (filter.uids) return { from: "uids", uids: [...new Set(filter.uids)] };
  if (filter.ancestorsOf !== undefined) return { from: "uids", uids: lineageOf(filter.ancestorsOf) };
  if (filter.inRoot || filter.childrenOf === "/") return { from: "uids", uids: [...visible.filter(isRoot), ...also] };
  const { childrenOf: parent, descendantsOf: top } = filter;
  if (parent !== undefined) {
    if (!isVisible(visible, parent)) return { from: "uids", uids: visible.filter((uid) => parentOf(uid) === parent) };
    if (top !== undefined && !isWithin(parent, top)) return { from: "uids", uids: [] };
    return { from: "children", parent };
  }
  const withSelf = (scopes: readonly string[]) => scopes.map((scope) => ({ scope, withSelf: true }));
  if (top === undefined) return { from: "subtrees", scopes: withSelf(visible), also };
  if (isVisible(visible, top)) return { from: "subtrees", scopes: [{ scope: top, withSelf: false }], also: [] };
  return { from: "subtrees", scopes: withSelf(visible.filter((uid) => isBelow(uid, top))), also: [] };
}

/** Creates the test whether a row is visible and passes every filter that the database did not evaluate. */
export function createRowFilter(
  { visible, also = [], filter }: PlanInput,
  kind: Pick<ResourceIndex, "filters">,
): (row: IndexedRow) => boolean {
  const tops = new Set(visible);
  return (row) =>
    (lineageOf(row.uid).some((uid) => tops.has(uid)) || also.includes(row.uid)) && matches(filter, row, kind);
}

function matches(filter: ListFilter, row: IndexedRow, { filters }: Pick<ResourceIndex, "filters">): boolean {
  const { uid } = row;
  return (
    (filter.name === undefined || columnValue(row, "name") === filter.name) &&
    (filter.uids === undefined || filter.uids.includes(uid)) &&
    (filter.ancestorsOf === undefined || isBelow(filter.ancestorsOf, uid)) &&
    (filter.descendantsOf === undefined || isBelow(uid, filter.descendantsOf)) &&
    (filter.childrenOf === undefined || (parentOf(uid) ?? "/") === filter.childrenOf) &&
    (!filter.inRoot || isRoot(uid)) &&
    Object.entries(filter.equals ?? {}).every(
      ([name, value]) => filters?.[name] !== undefined || columnValue(row, name) === value,
    )
  );
}

function isVisible(visible: readonly string[], uid: string): boolean {
  return visible.some((top) => isWithin(uid, top));
}

function isRoot(uid: string): boolean {
  return !uid.includes("/");
}
