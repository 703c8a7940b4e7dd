// Lists over many subtrees. Their cost depends on the number of subtrees and on the length of the page, not
// on the number of rows in the subtrees, and no step blocks the event loop for long.
import { AFTER_ALL, positionBelow } from "../kernel/uidp.js";
import {
  CHUNK,
  comparePositions,
  endsBefore,
  filterAfter,
  positionOf,
  readByUids,
  readSegment,
  type Segment,
  sortRows,
  startsAfter,
} from "./list-segment.js";
import type { ListParams } from "./list-statements.js";
import type { ListPosition, ListQuery } from "./port.js";
import { findList, type IndexedRow, type ResourceIndex } from "./resource-index.js";
import type { Executor } from "./statement.js";
import {
  entriesStatement,
  headsStatement,
  type ManyShape,
  manyCountStatement,
  manyPageStatement,
  totalsStatement,
} from "./subtrees-statements.js";

/** Rows of a list, and the number of matching rows on all pages. */
export interface ListRows {
  readonly rows: IndexedRow[];
  readonly total: number;
}

/** How many entries of one subtree the merge reads first, and at most, at a time. */
const FIRST_ENTRIES = 8;
const MAX_ENTRIES = 256;

/** The number of rows in each of several subtrees, by scope; empty subtrees are absent. */
export async function readCounts(
  tx: Executor,
  kind: ResourceIndex,
  segments: readonly Segment[],
): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const chunk of splitChunks(segments)) {
    const params = { tops: formatTops(chunk.map(({ scope }) => scope)), counter: kind.counter };
    for (const { scope, total } of await tx.rows(totalsStatement, params)) if (total > 0) counts.set(scope, total);
    await tx.pause?.();
  }
  return counts;
}

// The parameter `tops`: each subtree with the bytes of the position below it.
function formatTops(scopes: readonly string[], after?: ListPosition): string {
  const lowerBoundOf = (scope: string) => {
    const bound = after && positionBelow(after.uid, scope);
    return bound === AFTER_ALL ? "-" : (bound?.toString("hex") ?? "");
  };
  return JSON.stringify(Object.fromEntries(scopes.map((scope) => [scope, lowerBoundOf(scope)])));
}

/** Reads a page in the order of uids: subtree after subtree, since they do not overlap. */
export async function readUidPage(
  tx: Executor,
  kind: ResourceIndex,
  query: ListQuery,
  segments: readonly Segment[],
  byUid: ListRows,
  rowLimit: number,
): Promise<ListRows> {
  const { order, after, uncounted } = query;
  const sign = order.descending ? -1 : 1;
  const ordered = [...segments].sort((a, b) => (a.scope < b.scope ? -sign : sign));
  const separate = sortRows([...byUid.rows], kind, order);
  const rows: IndexedRow[] = [];
  let { total } = byUid;
  let skip = query.skip;
  // Rows that were read by uid belong between the subtrees. That of a top itself comes before what is below it, and
  // after that in descending order.
  const isBefore = (uid: string, scope: string) => (order.descending ? uid > scope : uid <= scope);
  const takeSeparate = (scope?: string) => {
    while (separate[0] !== undefined && (scope === undefined || isBefore(separate[0].uid, scope))) {
      const row = separate.shift() as IndexedRow;
      if (skip > 0) skip--;
      else if (rows.length < rowLimit) rows.push(row);
    }
  };
  for (const chunk of splitChunks(ordered)) {
    if (uncounted && rows.length >= rowLimit) break;
    const counts = await readCounts(tx, kind, chunk);
    for (const segment of chunk) {
      const count = counts.get(segment.scope) ?? 0;
      total += count;
      if (count === 0 || rows.length >= rowLimit || (after && endsBefore(after, order, segment))) continue;
      takeSeparate(segment.scope);
      if (skip >= count && (after === undefined || startsAfter(after, order, segment))) {
        skip -= count;
        continue;
      }
      const found = await readFrom(tx, kind, query, segment, { skip, limit: rowLimit - rows.length });
      rows.push(...found.rows);
      skip -= found.skipped;
      await tx.pause?.();
    }
  }
  takeSeparate();
  return { rows, total };
}

// Reads rows of a segment after `skip`, and tells how many of those to skip the segment had.
async function readFrom(
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
    const skipped = await readSegment(tx, kind, from, segment, { skip: 0, limit: step });
    left -= skipped.length;
    const last = skipped.at(-1);
    if (skipped.length < step || last === undefined) return { rows: [], skipped: skip - left };
    from = { ...from, after: positionOf(last, kind, query.order) };
    await tx.pause?.();
  }
  return { rows: await readSegment(tx, kind, from, segment, { skip: 0, limit }), skipped: skip };
}

/** Reads a page in the order of a field: a k-way merge that reads more entries of a subtree when it needs them. */
export async function readMergedPage(
  tx: Executor,
  kind: ResourceIndex,
  query: ListQuery,
  segments: readonly Segment[],
  byUid: ListRows,
  rowLimit: number,
): Promise<ListRows> {
  const { order, after } = query;
  const shape = buildShape(kind, query);
  const list = findList(kind, "subtree", order.field)?.list ?? 0;
  const counts = await readCounts(tx, kind, segments);
  let { total } = byUid;
  for (const count of counts.values()) total += count;

  const sign = order.descending ? -1 : 1;
  const heap = createHeap<Cursor>((a, b) => sign * comparePositions(a.head, b.head));
  for (const row of byUid.rows)
    heap.push({ head: positionOf(row, kind, order), left: 0, ahead: [], scope: "", size: 0 });
  for (const chunk of splitChunks([...counts.keys()])) {
    const params = { tops: formatTops(chunk, after), list, ...(after && { key: after.key }) };
    for (const { scope = "", key, uid } of await tx.rows(headsStatement(shape), params)) {
      if (uid === null) continue;
      heap.push({ head: { key, uid }, left: (counts.get(scope) ?? 0) - 1, ahead: [], scope, size: FIRST_ENTRIES });
    }
    await tx.pause?.();
  }

  const uids: string[] = [];
  let skip = query.skip;
  for (let cursor = heap.pop(); cursor !== undefined && uids.length < rowLimit; cursor = heap.pop()) {
    if (skip > 0) skip--;
    else uids.push(cursor.head.uid);
    if (skip % CHUNK === 0) await tx.pause?.();
    const next = await advance(tx, shape, list, cursor);
    if (next) heap.push(next);
  }
  const rows = new Map((await readByUids(tx, kind, uids)).map((row) => [row.uid, row]));
  return { rows: uids.flatMap((uid) => rows.get(uid) ?? []), total };
}

// The state of the merge in one subtree.
interface Cursor {
  readonly head: ListPosition;
  /** The entries after it that were read, the last one first. */
  readonly ahead: ListPosition[];
  /** How many entries of the subtree were not read, at most. */
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
    const params = { scope, list, key: head.key, below: positionBelow(head.uid, scope), limit: size };
    const found = await tx.rows(entriesStatement(shape), params);
    await tx.pause?.();
    ahead = found.map(({ key, uid }) => ({ key, uid: uid ?? "" })).reverse();
    unread = found.length < size ? 0 : left - found.length;
  }
  const next = ahead.pop();
  return next && { head: next, ahead, left: unread, scope, size: Math.min(size * 2, MAX_ENTRIES) };
}

// A priority queue.
interface Heap<T> {
  push(item: T): void;
  /** Removes and returns the least item; undefined when there is none. */
  pop(): T | undefined;
}

// Creates a binary heap; `compare` is negative where `a` comes before `b`.
function createHeap<T>(compare: (a: T, b: T) => number): Heap<T> {
  const items: T[] = [];
  const at = (i: number) => items[i] as T;
  const isBefore = (i: number, j: number) => compare(at(i), at(j)) < 0;
  const swap = (i: number, j: number) => {
    [items[i], items[j]] = [at(j), at(i)];
  };
  return {
    push(item) {
      let i = items.push(item) - 1;
      for (let parent = (i - 1) >> 1; i > 0 && isBefore(i, parent); parent = (i - 1) >> 1) {
        swap(i, parent);
        i = parent;
      }
    },
    pop() {
      const last = items.pop();
      if (items.length === 0 || last === undefined) return last;
      const least = at(0);
      items[0] = last;
      for (let i = 0; ; ) {
        const left = 2 * i + 1;
        if (left >= items.length) return least;
        const child = left + 1 < items.length && isBefore(left + 1, left) ? left + 1 : left;
        if (!isBefore(child, i)) return least;
        swap(i, child);
        i = child;
      }
    },
  };
}

/** Reads a page of the rows with one name, at a cost that grows with their number. */
export async function readNamedPage(
  tx: Executor,
  kind: ResourceIndex,
  query: ListQuery,
  segments: readonly Segment[],
  byUid: ListRows,
  rowLimit: number,
): Promise<ListRows> {
  const top = createTop(kind, query, query.skip + rowLimit);
  top.add(filterAfter(byUid.rows, kind, query));
  let { total } = byUid;
  for (const chunk of splitChunks(segments)) {
    const found = await readMany(tx, kind, query, chunk, rowLimit);
    top.add(found.rows);
    total += found.total;
    await tx.pause?.();
  }
  return { rows: top.rows().slice(query.skip), total };
}

/** Reads the first rows of several subtrees that match the name or the values of the filter, and counts them. */
export async function readMany(
  tx: Executor,
  kind: ResourceIndex,
  query: ListQuery,
  segments: readonly Segment[],
  rowLimit: number,
): Promise<ListRows> {
  const { filter, after, skip, uncounted } = query;
  const shape = buildShape(kind, query);
  const params: ListParams = {
    ...filter.equals,
    ...(filter.name !== undefined && { name: filter.name }),
    tops: formatTops(segments.map(({ scope }) => scope)),
    list: findList(kind, "subtree", "name")?.list ?? 0,
  };
  const [row] = uncounted ? [] : await tx.rows(manyCountStatement(shape), params);
  const rows = await tx.rows(manyPageStatement(shape), { ...params, ...after, limit: skip + rowLimit });
  return { rows, total: row?.total ?? 0 };
}

function buildShape(kind: ResourceIndex, { order, after, filter }: ListQuery): ManyShape {
  const equals = Object.keys(filter.equals ?? {});
  return { kind, ...order, after: after !== undefined, named: filter.name !== undefined, equals };
}

/** Collects rows and keeps the first `size` of them in the order of the list (top-N). */
export function createTop(kind: ResourceIndex, { order }: ListQuery, size: number) {
  let kept: IndexedRow[] = [];
  const cut = () => {
    kept = sortRows(kept, kind, order).slice(0, size);
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

/** Splits `items` into chunks of at most {@link CHUNK}. */
export function* splitChunks<T>(items: readonly T[]): Generator<T[]> {
  for (let start = 0; start < items.length; start += CHUNK) yield items.slice(start, start + CHUNK);
}
