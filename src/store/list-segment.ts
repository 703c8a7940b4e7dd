// One segment of a list: rows that a single statement can answer for.
import {
  counterTotal,
  countStatement,
  type ListParams,
  pageStatement,
  type RowShape,
  rowsByUid,
} from "./list-statements.js";
import type { ListPosition, ListQuery } from "./port.js";
import { columnValue, type IndexedRow, type ResourceIndex } from "./resource-index.js";
import type { Executor } from "./statement.js";

/** How a list is ordered. */
export type Order = ListQuery["order"];

/** The rows of a subtree, of a range of uids in one, or directly below a group. */
export interface Segment {
  readonly from: RowShape["from"];
  /** The top of the subtree, the first uid of the range, or the group. */
  readonly scope: string;
  /** The first uid beyond a range; that beyond the subtree unless set. */
  readonly end?: string;
  readonly withSelf: boolean;
}

/** The rows of `segment` that `query` asks for: at most `limit` after the first `skip`. */
export function segmentRows(
  tx: Executor,
  kind: ResourceIndex,
  query: ListQuery,
  segment: Segment,
  { skip, limit }: { readonly skip: number; readonly limit: number },
) {
  const { order, filter } = query;
  const after = query.after && isBeyond(query.after, order, segment) ? undefined : query.after;
  const shape = { ...shapeOf(kind, query, segment), ...order, after: after !== undefined };
  const params: ListParams = { ...paramsOf(query, segment), ...after, skip, limit };
  const sort = kind.sorts[filter.name === undefined ? order.field : "name"];
  if (sort) params.list = sort.list;
  return tx.rows(pageStatement(shape), params);
}

/** How many rows of `segment` pass the filters of `query`. */
export async function segmentTotal(
  tx: Executor,
  kind: ResourceIndex,
  query: ListQuery,
  segment: Segment,
): Promise<number> {
  const shape = shapeOf(kind, query, segment);
  if (shape.named || shape.equals.length > 0) {
    const list = kind.sorts.name?.list ?? 0;
    const [row] = await tx.rows(countStatement(shape), { ...paramsOf(query, segment), list });
    return row?.total ?? 0;
  }
  const ofChildren = segment.from === "children";
  const [row] = await tx.rows(counterTotal, { counter: kind.counter + (ofChildren ? 1 : 0), scope: segment.scope });
  const total = row?.total ?? 0;
  return ofChildren || segment.withSelf || !kind.listsItself ? total : Math.max(0, total - 1);
}

function shapeOf(kind: ResourceIndex, { filter }: ListQuery, { from, withSelf }: Segment): RowShape {
  return { kind, from, withSelf, named: filter.name !== undefined, equals: Object.keys(filter.equals ?? {}) };
}

function paramsOf({ filter }: ListQuery, { scope, end = `${scope}0` }: Segment): ListParams {
  const params: ListParams = { ...filter.equals, scope, end };
  if (filter.name !== undefined) params.name = filter.name;
  return params;
}

/** Whether all of a segment comes after a position because of where it lies: in uid order that can be told. */
export function isBeyond({ uid }: ListPosition, { field, descending }: Order, segment: Segment): boolean {
  const { from, scope, end = `${scope}0` } = segment;
  if (field !== "uid" || from !== "subtree") return false;
  return descending ? uid >= end : uid < scope;
}

/** Whether all of a segment comes before a position, or at it, because of where it lies. */
export function isPassed({ uid }: ListPosition, { field, descending }: Order, segment: Segment): boolean {
  const { from, scope, end = `${scope}0` } = segment;
  if (field !== "uid" || from !== "subtree") return false;
  return descending ? uid <= scope : uid >= end;
}

/** The rows with these uids, in no order. Padded to powers of two so that few statements serve all sizes. */
export async function rowsByUids(
  tx: Executor,
  kind: ResourceIndex,
  uids: readonly string[],
  equals: ListQuery["filter"]["equals"] = {},
): Promise<IndexedRow[]> {
  const rows: IndexedRow[] = [];
  for (let start = 0; start < uids.length; start += CHUNK) {
    rows.push(...(await chunkByUids(tx, kind, uids.slice(start, start + CHUNK), equals)));
    await tx.pause?.();
  }
  return rows;
}

/** How many uids one statement names at most. */
export const CHUNK = 128;

/** As {@link rowsByUids}, for at most {@link CHUNK} uids. */
export async function chunkByUids(
  tx: Executor,
  kind: ResourceIndex,
  uids: readonly string[],
  equals: ListQuery["filter"]["equals"] = {},
): Promise<IndexedRow[]> {
  if (uids.length === 0) return [];
  const filters = Object.keys(equals).filter((name) => kind.filters?.[name] !== undefined);
  let size = 1;
  while (size < uids.length) size *= 2;
  const params: ListParams = { ...equals };
  for (let i = 0; i < size; i++) params[`uid${i}`] = uids[Math.min(i, uids.length - 1)] ?? "";
  return tx.rows(rowsByUid({ kind, size, filters }), params);
}

/** `rows` in the order of the list; changes the array. */
export function sorted(rows: IndexedRow[], kind: ResourceIndex, order: Order): IndexedRow[] {
  const sign = order.descending ? -1 : 1;
  return rows.sort((a, b) => sign * compare(positionOf(a, kind, order), positionOf(b, kind, order)));
}

/** Those of `rows` that come after the position of the query. */
export function behind(rows: readonly IndexedRow[], kind: ResourceIndex, { order, after }: ListQuery): IndexedRow[] {
  if (!after) return [...rows];
  const sign = order.descending ? -1 : 1;
  return rows.filter((row) => sign * compare(positionOf(row, kind, order), after) > 0);
}

/** Where a row stands in the order of the list. */
export function positionOf(row: IndexedRow, kind: ResourceIndex, order: Order): ListPosition {
  const sort = kind.sorts[order.field];
  return { key: sort ? columnValue(row, sort.column) : row.uid, uid: row.uid };
}

/** Compares positions. Keys and uids are ASCII, so comparing code units is comparing bytes, as the databases do. */
export function compare(a: ListPosition, b: ListPosition): number {
  if (a.key !== b.key) return a.key < b.key ? -1 : 1;
  return a.uid === b.uid ? 0 : a.uid < b.uid ? -1 : 1;
}
