// Decides how a list is answered, from uids alone: as whole subtrees in stored
// order, as the children of one group, or as a handful of named rows. A caller
// sees subtrees, so every filter on place comes down to one of these.
import { isBelow, isWithin, lineageOf, parentOf } from "../kernel/uidp.js";
import type { ListFilter, ListQuery } from "./port.js";
import { columnValue, type IndexedRow, type ResourceIndex } from "./resource-index.js";

/** Where the rows of a list come from. */
export type ListPlan =
  | { readonly from: "subtrees"; readonly scopes: readonly Subtree[]; readonly also: readonly string[] }
  | { readonly from: "children"; readonly parent: string }
  | { readonly from: "uids"; readonly uids: readonly string[] };

/** Everything below a group, with or without the group itself. */
export interface Subtree {
  readonly scope: string;
  readonly withSelf: boolean;
}

/** The parts of a list's question that plans are made from. */
export type Question = Pick<ListQuery, "visible" | "also" | "filter">;

/** The plan for `query`. Rows of a `uids` plan must still pass {@link createAdmits}. */
export function planList({ visible, also = [], filter }: Question): ListPlan {
  if (filter.uids) return { from: "uids", uids: [...new Set(filter.uids)] };
  if (filter.ancestorsOf !== undefined) return { from: "uids", uids: lineageOf(filter.ancestorsOf) };
  if (filter.inRoot || filter.childrenOf === "/") return { from: "uids", uids: [...visible.filter(isRoot), ...also] };
  const { childrenOf: parent, descendantsOf: top } = filter;
  if (parent !== undefined) {
    if (!sees(visible, parent)) return { from: "uids", uids: visible.filter((uid) => parentOf(uid) === parent) };
    if (top !== undefined && !isWithin(parent, top)) return { from: "uids", uids: [] };
    return { from: "children", parent };
  }
  const whole = (scopes: readonly string[]) => scopes.map((scope) => ({ scope, withSelf: true }));
  if (top === undefined) return { from: "subtrees", scopes: whole(visible), also };
  if (sees(visible, top)) return { from: "subtrees", scopes: [{ scope: top, withSelf: false }], also: [] };
  return { from: "subtrees", scopes: whole(visible.filter((uid) => isBelow(uid, top))), also: [] };
}

/** Makes the test whether a row may be seen and passes every filter that its kind does not leave to the database. */
export function createAdmits(
  { visible, also = [], filter }: Question,
  kind: Pick<ResourceIndex, "filters">,
): (row: IndexedRow) => boolean {
  const tops = new Set(visible);
  return (row) =>
    (lineageOf(row.uid).some((uid) => tops.has(uid)) || also.includes(row.uid)) && passes(filter, row, kind);
}

function passes(filter: ListFilter, row: IndexedRow, { filters }: Pick<ResourceIndex, "filters">): boolean {
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

function sees(visible: readonly string[], uid: string): boolean {
  return visible.some((top) => isWithin(uid, top));
}

function isRoot(uid: string): boolean {
  return !uid.includes("/");
}
