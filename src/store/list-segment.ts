// One segment of a list: rows that one statement reads; and the positions of rows in the list.
import { positionBelow } from "../kernel/uidp.js";
import {
  counterTotal,
  countStatement,
  findShapeList,
  type ListParams,
  pageStatement,
  type RowShape,
  rowsByUid,
} from "./list-statements.js";
import type { ListPosition, ListQuery } from "./port.js";
import { columnValue, type IndexedRow, type ResourceIndex } from "./resource-index.js";
import { type Executor, padParams, sumTotals } from "./statement.js";

/** How a list is ordered. */
export type Order = ListQuery["order"];

/** The rows below a group, the rows of a range of uids among them, or the children of a group. */
export interface Segment {
  readonly from: RowShape["from"];
  /** The group, or the uid before the first one of the range. */
  readonly scope: string;
  /** The first uid after the range; by default the first one after the subtree. */
  readonly end?: string;
}

/** The rows of `segment` that match `query`: at most `limit` after the first `skip`. */
export function readSegment(
  tx: Executor,
  kind: ResourceIndex,
  query: ListQuery,
  segment: Segment,
  { skip, limit }: { readonly skip: number; readonly limit: number },
) {
  const { order } = query;
  const after = query.after && startsAfter(query.after, order, segment) ? undefined : query.after;
  const shape = { ...buildShape(kind, query, segment), ...order, after: after !== undefined };
  const params: ListParams = { ...buildParams(query, segment), ...after, skip, limit };
  const list = findShapeList(shape, order.field);
  if (list) {
    params.list = list.list;
    // The key of all entries of children in the order of uids.
    if (list.list === kind.childrenByUid) params.key = "";
    if (after) params.below = positionBelow(after.uid, segment.scope);
  }
  return tx.rows(pageStatement(shape), params);
}

/** How many rows of `segment` match the filters of `query`. */
export async function countSegment(
  tx: Executor,
  kind: ResourceIndex,
  query: ListQuery,
  segment: Segment,
): Promise<number> {
  const shape = buildShape(kind, query, segment);
  if (shape.named || shape.equals.length > 0) {
    const list = findShapeList(shape, "name")?.list ?? 0;
    return sumTotals(tx.rows(countStatement(shape), { ...buildParams(query, segment), list }));
  }
  const counter = kind.counter + (segment.from === "children" ? 1 : 0);
  return sumTotals(tx.rows(counterTotal, { counter, scope: segment.scope }));
}

function buildShape(kind: ResourceIndex, { filter }: ListQuery, { from }: Segment): RowShape {
  return { kind, from, named: filter.name !== undefined, equals: Object.keys(filter.equals ?? {}) };
}

function buildParams({ filter }: ListQuery, { scope, end = `${scope}0` }: Segment): ListParams {
  const params: ListParams = { ...filter.equals, scope, end };
  if (filter.name !== undefined) params.name = filter.name;
  return params;
}

/** Whether all rows of a segment come after a position. Only order by uid can tell; otherwise false. */
export function startsAfter({ uid }: ListPosition, { field, descending }: Order, segment: Segment): boolean {
  const { from, scope, end = `${scope}0` } = segment;
  if (field !== "uid" || from !== "subtree") return false;
  return descending ? uid >= end : uid <= scope;
}

/** Whether all rows of a segment come before a position or at it. Only order by uid can tell; otherwise false. */
export function endsBefore({ uid }: ListPosition, { field, descending }: Order, segment: Segment): boolean {
  const { from, scope, end = `${scope}0` } = segment;
  if (field !== "uid" || from !== "subtree") return false;
  return descending ? uid <= scope : uid >= end;
}

/** The rows with these uids, in no order. */
export async function readByUids(
  tx: Executor,
  kind: ResourceIndex,
  uids: readonly string[],
  equals: ListQuery["filter"]["equals"] = {},
): Promise<IndexedRow[]> {
  const rows: IndexedRow[] = [];
  for (let start = 0; start < uids.length; start += CHUNK) {
    rows.push(...(await readChunk(tx, kind, uids.slice(start, start + CHUNK), equals)));
    await tx.pause?.();
  }
  return rows;
}

/** How many uids one statement reads at most. */
export const CHUNK = 128;

/** As {@link readByUids}, for at most {@link CHUNK} uids. */
export async function readChunk(
  tx: Executor,
  kind: ResourceIndex,
  uids: readonly string[],
  equals: ListQuery["filter"]["equals"] = {},
): Promise<IndexedRow[]> {
  if (uids.length === 0) return [];
  const filters = Object.keys(equals).filter((name) => kind.filters?.[name] !== undefined);
  const { size, params } = padParams("uid", uids);
  return tx.rows(rowsByUid({ kind, size, filters }), { ...equals, ...params });
}

/** Sorts `rows` in place into the order of the list. */
export function sortRows(rows: IndexedRow[], kind: ResourceIndex, order: Order): IndexedRow[] {
  const sign = order.descending ? -1 : 1;
  return rows.sort((a, b) => sign * comparePositions(positionOf(a, kind, order), positionOf(b, kind, order)));
}

/** The rows that come after the position of the query. */
export function filterAfter(
  rows: readonly IndexedRow[],
  kind: ResourceIndex,
  { order, after }: ListQuery,
): IndexedRow[] {
  if (!after) return [...rows];
  const sign = order.descending ? -1 : 1;
  return rows.filter((row) => sign * comparePositions(positionOf(row, kind, order), after) > 0);
}

/** The position of a row in the list. */
export function positionOf(row: IndexedRow, kind: ResourceIndex, order: Order): ListPosition {
  const sort = kind.sorts[order.field];
  return { key: sort ? columnValue(row, sort.column) : row.uid, uid: row.uid };
}

/** Compares positions. Keys and uids are ASCII, so comparing code units is comparing bytes, as the databases do. */
export function comparePositions(a: ListPosition, b: ListPosition): number {
  if (a.key !== b.key) return a.key < b.key ? -1 : 1;
  return a.uid === b.uid ? 0 : a.uid < b.uid ? -1 : 1;
}
