// Lists over many subtrees. What they cost follows from how many subtrees there
// are and how long the page is, never from how much the subtrees hold, and no
// part of the work keeps the event loop for long.
import { createHeap } from "./heap.js";
import {
  behind,
  CHUNK,
  compare,
  isBeyond,
  isPassed,
  positionOf,
  rowsByUids,
  type Segment,
  segmentRows,
  sorted,
} from "./list-segment.js";
import type { ListParams } from "./list-statements.js";
import type { ListPosition, ListQuery } from "./port.js";
import type { IndexedRow, ResourceIndex } from "./resource-index.js";
import type { Executor } from "./statement.js";
import {
  countersStatement,
  entriesStatement,
  headsStatement,
  type ManyShape,
  manyCountStatement,
  manyPageStatement,
} from "./subtrees-statements.js";

/** Rows of a list, and how many rows match on all pages. */
export interface Found {
  readonly rows: IndexedRow[];
  readonly total: number;
}

/** How many entries of one subtree are read at first, and at most, when the merge needs more of them. */
const FIRST_ENTRIES = 8;
const MAX_ENTRIES = 256;

/** How many rows each of several subtrees holds, by its top; those with none are absent. */
export async function countsOf(
  tx: Executor,
  kind: ResourceIndex,
  scopes: readonly string[],
): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const chunk of chunksOf(scopes)) {
    const params = { scopes: JSON.stringify(chunk), counter: kind.counter };
    for (const { scope, total } of await tx.rows(countersStatement, params)) if (total > 0) counts.set(scope, total);
    await tx.pause?.();
  }
  return counts;
}

/** The page in the order of uids: subtree after subtree, since none overlaps another. */
export async function uidPage(
  tx: Executor,
  kind: ResourceIndex,
  query: ListQuery,
  segments: readonly Segment[],
  single: Found,
  wanted: number,
): Promise<Found> {
  const { order, after, uncounted } = query;
  const sign = order.descending ? -1 : 1;
  const ordered = [...segments].sort((a, b) => (a.scope < b.scope ? -sign : sign));
  const apart = sorted([...single.rows], kind, order);
  const rows: IndexedRow[] = [];
  let { total } = single;
  let skip = query.skip;
  // Rows that are named by themselves stand between the subtrees.
  const takeApart = (before?: string) => {
    while (apart[0] !== undefined && (before === undefined || sign * (apart[0].uid < before ? -1 : 1) < 0)) {
      const row = apart.shift() as IndexedRow;
      if (skip > 0) skip--;
      else if (rows.length < wanted) rows.push(row);
    }
  };
  for (const chunk of chunksOf(ordered)) {
    if (uncounted && rows.length >= wanted) break;
    const counts = await countsOf(
      tx,
      kind,
      chunk.map(({ scope }) => scope),
    );
    for (const segment of chunk) {
      const count = counts.get(segment.scope) ?? 0;
      total += count;
      if (count === 0 || rows.length >= wanted || (after && isPassed(after, order, segment))) continue;
      takeApart(segment.scope);
      if (skip >= count && (after === undefined || isBeyond(after, order, segment))) {
        skip -= count;
        continue;
      }
      const part = await rowsFrom(tx, kind, query, segment, { skip, limit: wanted - rows.length });
      rows.push(...part.rows);
      skip -= part.skipped;
      await tx.pause?.();
    }
  }
  takeApart();
  return { rows, total };
}

// As many of a segment as there are behind `skip`, and how much of that it had.
async function rowsFrom(
  tx: Executor,
  kind: ResourceIndex,
  query: ListQuery,
  segment: Segment,
  { skip, limit }: { readonly skip: number; readonly limit: number },
) {
  let from = query;
  let left = skip;
  while (left > 0) {
    const step = Math.min(left, MAX_ENTRIES);
    const passed = await segmentRows(tx, kind, from, segment, { skip: 0, limit: step });
    left -= passed.length;
    const last = passed.at(-1);
    if (passed.length < step || last === undefined) return { rows: [], skipped: skip - left };
    from = { ...from, after: positionOf(last, kind, query.order) };
    await tx.pause?.();
  }
  return { rows: await segmentRows(tx, kind, from, segment, { skip: 0, limit }), skipped: skip };
}

/** The page in the order of a field: a merge that reads on only in subtrees whose turn comes. */
export async function orderedPage(
  tx: Executor,
  kind: ResourceIndex,
  query: ListQuery,
  segments: readonly Segment[],
  single: Found,
  wanted: number,
): Promise<Found> {
  const { order, after } = query;
  const shape = shapeOf(kind, query);
  const list = kind.sorts[order.field]?.list ?? 0;
  const counts = await countsOf(
    tx,
    kind,
    segments.map(({ scope }) => scope),
  );
  let { total } = single;
  for (const count of counts.values()) total += count;

  const sign = order.descending ? -1 : 1;
  const heap = createHeap<Cursor>((a, b) => sign * compare(a.head, b.head));
  for (const row of single.rows)
    heap.push({ head: positionOf(row, kind, order), left: 0, ahead: [], scope: "", size: 0 });
  for (const chunk of chunksOf([...counts.keys()])) {
    const params = { ...after, scopes: JSON.stringify(chunk), list };
    for (const { scope, key, uid } of await tx.rows(headsStatement(shape), params)) {
      if (uid === null) continue;
      heap.push({ head: { key, uid }, left: (counts.get(scope) ?? 0) - 1, ahead: [], scope, size: FIRST_ENTRIES });
    }
    await tx.pause?.();
  }

  const uids: string[] = [];
  let skip = query.skip;
  for (let cursor = heap.pop(); cursor !== undefined && uids.length < wanted; cursor = heap.pop()) {
    if (skip > 0) skip--;
    else uids.push(cursor.head.uid);
    if (skip % CHUNK === 0) await tx.pause?.();
    const next = await advance(tx, shape, list, cursor);
    if (next) heap.push(next);
  }
  const rows = new Map((await rowsByUids(tx, kind, uids)).map((row) => [row.uid, row]));
  return { rows: uids.flatMap((uid) => rows.get(uid) ?? []), total };
}

// How far the merge is in one subtree.
interface Cursor {
  readonly head: ListPosition;
  /** What has been read behind it. */
  readonly ahead: ListPosition[];
  /** How many entries the subtree may have that have not been read. */
  readonly left: number;
  readonly scope: string;
  /** How many to read when `ahead` is empty. */
  readonly size: number;
}

async function advance(tx: Executor, shape: ManyShape, list: number, cursor: Cursor): Promise<Cursor | undefined> {
  const { head, left, scope, size } = cursor;
  let { ahead } = cursor;
  let unread = left;
  if (ahead.length === 0 && left > 0) {
    const found = await tx.rows(entriesStatement(shape), { ...head, scope, list, limit: size });
    await tx.pause?.();
    ahead = found.map(({ key, uid }) => ({ key, uid: uid ?? "" })).reverse();
    unread = found.length < size ? 0 : left - found.length;
  }
  const next = ahead.pop();
  return next && { head: next, ahead, left: unread, scope, size: Math.min(size * 2, MAX_ENTRIES) };
}

/** The page of the rows with one name, at a cost that grows with how many share it. */
export async function namedPage(
  tx: Executor,
  kind: ResourceIndex,
  query: ListQuery,
  segments: readonly Segment[],
  single: Found,
  wanted: number,
): Promise<Found> {
  const top = createTop(kind, query, query.skip + wanted);
  top.add(behind(single.rows, kind, query));
  let { total } = single;
  for (const chunk of chunksOf(segments)) {
    const found = await manyRows(tx, kind, query, chunk, wanted);
    top.add(found.rows);
    total += found.total;
    await tx.pause?.();
  }
  return { rows: top.rows().slice(query.skip), total };
}

/** The first rows of several subtrees that have the name or the values of the filter, and how many have. */
export async function manyRows(
  tx: Executor,
  kind: ResourceIndex,
  query: ListQuery,
  segments: readonly Segment[],
  wanted: number,
): Promise<Found> {
  const { filter, after, skip, uncounted } = query;
  const shape = shapeOf(kind, query);
  const params: ListParams = {
    ...filter.equals,
    ...(filter.name !== undefined && { name: filter.name }),
    scopes: JSON.stringify(segments.map(({ scope }) => scope)),
    list: kind.sorts.name?.list ?? 0,
  };
  const [row] = uncounted ? [] : await tx.rows(manyCountStatement(shape), params);
  const rows = await tx.rows(manyPageStatement(shape), { ...params, ...after, limit: skip + wanted });
  return { rows, total: row?.total ?? 0 };
}

function shapeOf(kind: ResourceIndex, { order, after, filter }: ListQuery): ManyShape {
  const equals = Object.keys(filter.equals ?? {});
  return { kind, ...order, after: after !== undefined, named: filter.name !== undefined, equals };
}

/** Collects rows and keeps the first `size` of them in the order of the list. */
export function createTop(kind: ResourceIndex, { order }: ListQuery, size: number) {
  let kept: IndexedRow[] = [];
  const cut = () => {
    kept = sorted(kept, kind, order).slice(0, size);
  };
  return {
    add(rows: readonly IndexedRow[]): void {
      for (const row of rows) kept.push(row);
      if (kept.length > 2 * size + CHUNK) cut();
    },
    rows(): IndexedRow[] {
      cut();
      return kept;
    },
  };
}

/** `items` by as many as one statement names. */
export function* chunksOf<T>(items: readonly T[]): Generator<T[]> {
  for (let start = 0; start < items.length; start += CHUNK) yield items.slice(start, start + CHUNK);
}
