// Decides how a list is answered, from uids alone: as whole subtrees in stored
// order, as the children of one group, or as a handful of named rows. A caller
// sees subtrees, so every filter on place comes down to one of these.
import { isBelow, isWithin, lineageOf, parentOf } from "../kernel/uidp.js";
import type { ListFilter, ListQuery } from "./port.js";

/** Where the rows of a list come from. */
export type ListPlan =
  | { readonly from: "subtrees"; readonly scopes: readonly Subtree[] }
  | { readonly from: "children"; readonly parent: string }
  | { readonly from: "uids"; readonly uids: readonly string[] };

/** Everything below a group, with or without the group itself. */
export interface Subtree {
  readonly scope: string;
  readonly withSelf: boolean;
}

/** The plan for `query`. Rows of a `uids` plan must still pass {@link admits}. */
export function planList({ visible, filter }: Pick<ListQuery, "visible" | "filter">): ListPlan {
  if (filter.uids) return { from: "uids", uids: [...new Set(filter.uids)] };
  if (filter.ancestorsOf !== undefined) return { from: "uids", uids: lineageOf(filter.ancestorsOf) };
  if (filter.inRoot || filter.childrenOf === "/") return { from: "uids", uids: visible.filter(isRoot) };
  const { childrenOf: parent, descendantsOf: top } = filter;
  if (parent !== undefined) {
    if (!sees(visible, parent)) return { from: "uids", uids: visible.filter((uid) => parentOf(uid) === parent) };
    if (top !== undefined && !isWithin(parent, top)) return { from: "uids", uids: [] };
    return { from: "children", parent };
  }
  if (top === undefined) return { from: "subtrees", scopes: visible.map((scope) => ({ scope, withSelf: true })) };
  if (sees(visible, top)) return { from: "subtrees", scopes: [{ scope: top, withSelf: false }] };
  const below = visible.filter((uid) => isBelow(uid, top));
  return { from: "subtrees", scopes: below.map((scope) => ({ scope, withSelf: true })) };
}

/** Whether a row may be seen and passes every filter. */
export function admits(query: Pick<ListQuery, "visible" | "filter">, row: { uid: string; name: string }): boolean {
  return sees(query.visible, row.uid) && passes(query.filter, row);
}

function passes(filter: ListFilter, { uid, name }: { uid: string; name: string }): boolean {
  return (
    (filter.name === undefined || name === filter.name) &&
    (filter.uids === undefined || filter.uids.includes(uid)) &&
    (filter.ancestorsOf === undefined || isBelow(filter.ancestorsOf, uid)) &&
    (filter.descendantsOf === undefined || isBelow(uid, filter.descendantsOf)) &&
    (filter.childrenOf === undefined || (parentOf(uid) ?? "/") === filter.childrenOf) &&
    (!filter.inRoot || isRoot(uid))
  );
}

function sees(visible: readonly string[], uid: string): boolean {
  return visible.some((top) => isWithin(uid, top));
}

function isRoot(uid: string): boolean {
  return !uid.includes("/");
}
