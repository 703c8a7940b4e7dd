// How a list is read. The plan depends on uids and counters alone. The visible rows of a caller are subtrees, so every
// filter on the hierarchy leads to one of these plans.
import { isBelow, isWithin, lineageOf, parentOf, rootOf } from "../../kernel/uidp.js";
import { type Executor, padParams } from "../statement.js";
import { readCounters, splitChunks } from "./counters.js";
import type { ListFilter, ListPosition, ListQuery } from "./query.js";
import { columnValue, counterOf, type ListedKind, type ListedRow } from "./resource.js";
import { type Access, existingUids } from "./statements.js";

/** The bounds of the work of one statement, which holds the event loop. */
export interface ListLimits {
  /** How many entries of an index one statement passes over. */
  readonly step: number;
  /** How many rows one statement examines or sorts. */
  readonly slice: number;
}

/** What all parts of the reader of one list need. */
export interface Reading {
  readonly tx: Executor;
  readonly kind: ListedKind;
  readonly query: ListQuery;
  /** Of a kind with families: those that the list shows. */
  readonly families: readonly number[];
  readonly limits: ListLimits;
}

/** Rows of a list: what is below a group, with or without the row that has the group's own uid, or its children. */
export interface Segment {
  readonly from: "subtree" | "children";
  readonly scope: string;
  readonly includesSelf: boolean;
}

/** Where the rows of a list are: by uid and in segments, or by uid alone. */
export type ListPlan =
  | { readonly from: "segments"; readonly segments: readonly Segment[]; readonly uids: readonly string[] }
  | { readonly from: "uids"; readonly uids: readonly string[] };

/** Plans a query. The rows that are read by uid must still pass {@link createRowFilter}. */
export function planList(
  { visible, also = [], filter }: Pick<ListQuery, "visible" | "also" | "filter">,
  { includesSelf }: Pick<ListedKind, "includesSelf">,
): ListPlan {
  if (filter.uids) return { from: "uids", uids: [...new Set(filter.uids)] };
  if (filter.ancestorsOf !== undefined) return { from: "uids", uids: lineageOf(filter.ancestorsOf) };
  if (filter.inRoot || filter.childrenOf === "/") return { from: "uids", uids: [...visible.filter(isRoot), ...also] };
  const { childrenOf: parent, descendantsOf: top } = filter;
  if (parent !== undefined) {
    if (!isVisible(visible, parent)) return { from: "uids", uids: visible.filter((uid) => parentOf(uid) === parent) };
    if (top !== undefined && !isWithin(parent, top)) return { from: "uids", uids: [] };
    return { from: "segments", segments: [{ from: "children", scope: parent, includesSelf: false }], uids: [] };
  }
  const subtrees = (scopes: readonly string[]) =>
    scopes.map((scope): Segment => ({ from: "subtree", scope, includesSelf }));
  if (top === undefined) return { from: "segments", segments: subtrees(visible), uids: also };
  if (isVisible(visible, top)) {
    return { from: "segments", segments: [{ from: "subtree", scope: top, includesSelf: false }], uids: [] };
  }
  return { from: "segments", segments: subtrees(visible.filter((uid) => isBelow(uid, top))), uids: [] };
}

/** Creates the test whether a row that was read by uid is visible and passes every filter. */
export function createRowFilter({ kind, query, families }: Reading): (row: ListedRow) => boolean {
  const { visible, also = [], filter } = query;
  const tops = new Set(visible);
  return (row) =>
    (lineageOf(row.uid).some((uid) => tops.has(uid)) || also.includes(row.uid)) &&
    (kind.families === undefined || families.includes(Number(columnValue(row, kind.families.column)))) &&
    matches(filter, row, kind);
}

function matches(filter: ListFilter, row: ListedRow, { filters }: ListedKind): boolean {
  const { uid } = row;
  return (
    (filter.name === undefined || columnValue(row, "name") === filter.name) &&
    (filter.uids === undefined || filter.uids.includes(uid)) &&
    (filter.ancestorsOf === undefined || isBelow(filter.ancestorsOf, uid)) &&
    (filter.descendantsOf === undefined || isBelow(uid, filter.descendantsOf)) &&
    (filter.childrenOf === undefined || (parentOf(uid) ?? "/") === filter.childrenOf) &&
    (!filter.inRoot || isRoot(uid)) &&
    // The database evaluated the filters of the kind.
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

/** A segment, in one of the families that the list shows, with what the counters say of it. */
export interface Part extends Segment {
  readonly family: number;
  /** How many rows it has, without any filter. */
  readonly count: number;
  /** How many of them pass the filters; absent where that is not known. */
  readonly matches?: number;
  /** How many rows the organisation has at most; they are in the same index. */
  readonly rootCount: number;
}

/** Reads how many rows the segments have. Those without rows are left out. */
export async function measureSegments(reading: Reading, segments: readonly Segment[]): Promise<Part[]> {
  const isBehind = createIsBehind(reading.query);
  const parts: Part[] = [];
  // To measure thousands of segments takes long, so other calls run between.
  for (const chunk of splitChunks(segments)) {
    const remaining = chunk.filter((segment) => !isBehind(segment));
    for (const part of await measureChunk(reading, remaining)) parts.push(part);
    await reading.tx.pause?.();
  }
  return parts;
}

async function measureChunk(reading: Reading, segments: readonly Segment[]): Promise<Part[]> {
  const { tx, kind, families } = reading;
  const scopes = segments.flatMap(({ scope }) => (isRoot(scope) ? scope : [scope, rootOf(scope)]));
  const hasChildren = segments.some(({ from }) => from === "children");
  const counters = families.flatMap((family) => [
    counterOf(kind, "below", family),
    ...(hasChildren ? [counterOf(kind, "children", family)] : []),
  ]);
  const count = await readCounters(tx, scopes, counters);
  const ownRows = await readOwnRows(reading, segments);
  const parts: Part[] = [];
  for (const { from, scope, includesSelf } of segments) {
    for (const family of families) {
      const below = counterOf(kind, "below", family);
      const own = ownRows.has(scope) ? 1 : 0;
      const found = count(scope, from === "children" ? counterOf(kind, "children", family) : below) + own;
      if (found === 0) continue;
      const rootCount = count(rootOf(scope), below) + (kind.includesSelf ? 1 : 0);
      parts.push({ from, scope, includesSelf, family, count: found, rootCount });
    }
  }
  return parts;
}

// Without a total, segments before the position of the query need no counts. Only order by uid can tell them.
function createIsBehind({ uncounted, order, after }: ListQuery): (segment: Segment) => boolean {
  if (!uncounted || !after || order.field !== "uid") return () => false;
  return (segment) => segment.from === "subtree" && endsBefore(after, order, segment);
}

// The scopes whose own rows are in their segments and exist. No counter of a scope counts its own row.
async function readOwnRows({ tx, kind }: Reading, segments: readonly Segment[]): Promise<ReadonlySet<string>> {
  const scopes = segments.filter((one) => one.includesSelf).map(({ scope }) => scope);
  if (scopes.length === 0) return new Set();
  const { size, params } = padParams("uid", scopes);
  return new Set((await tx.rows(existingUids({ kind, size }), params)).map(({ uid }) => uid));
}

/** Whether all rows of a segment come after a position in the order of uids. */
export function startsAfter({ uid }: ListPosition, { descending }: ListQuery["order"], { scope }: Segment): boolean {
  return descending ? uid >= `${scope}0` : uid < scope;
}

/** Whether all rows of a segment come before a position in the order of uids, or at it. */
export function endsBefore({ uid }: ListPosition, { descending }: ListQuery["order"], { scope }: Segment): boolean {
  return descending ? uid <= scope : uid >= `${scope}0`;
}

/** How the rows of a part are read. */
export interface ReadPlan {
  readonly by: Access;
  /** Whether the uids of the part are a range of those in the index. */
  readonly inRange: boolean;
  readonly childrenOnly: boolean;
  readonly filters: readonly string[];
  /** Whether the index has another order than the list, so that rows are sorted. */
  readonly sorts: boolean;
  /** Whether so many entries of the index may belong to no row of the part that it is read in slices. */
  readonly isSparse: boolean;
}

// Relative costs, as measured on SQLite: an entry of an index that is passed over; a row that is read and sorted, and
// one that an index leads to first.
const ENTRY_COST = 0.15;
const ROW_COST = 0.6;
const CHILD_COST = 1.6;

/** Whether the list is in the order of uids: rows of one name are so in the order of names. */
export function isUidOrder({ order, filter }: ListQuery): boolean {
  return order.field === "uid" || (order.field === "name" && filter.name !== undefined);
}

/** Plans to read a part where rows are sorted unless the list is in the order of uids. */
export function planScan({ query, limits }: Reading, { from, count }: Part): ReadPlan {
  const { name, equals = {} } = query.filter;
  const filters = Object.keys(equals);
  const sorts = !isUidOrder(query);
  const isLarge = count > limits.slice;
  // A few children are faster found than the rows of one name in a whole subtree.
  if (name !== undefined && (from === "subtree" || isLarge)) {
    const childrenOnly = from === "children";
    return {
      by: "name",
      inRange: true,
      childrenOnly,
      filters,
      sorts,
      isSparse: isLarge && (childrenOnly || filters.length > 0),
    };
  }
  const all = name === undefined ? filters : ["name", ...filters];
  const by = from === "children" ? "parent" : "uid";
  return { by, inRange: true, childrenOnly: false, filters: all, sorts, isSparse: isLarge && all.length > 0 };
}

/**
 * Plans to read a part, in the order of the list where that is cheaper than to sort.
 *
 * @param wanted how many rows are needed, those to skip included
 */
export function planPart(reading: Reading, part: Part, wanted: number): ReadPlan {
  const scan = planScan(reading, part);
  const { from, matches, rootCount } = part;
  const { filters } = scan;
  if (!scan.sorts || scan.by === "name" || (filters.length > 0 && matches === undefined)) return scan;
  if (countPassed(part, wanted) * ENTRY_COST >= costOfSorting(part)) return scan;
  const isSparse = rootCount - sizeOf(part) > reading.limits.step;
  const inRange = !isRoot(part.scope) || from === "children" || part.includesSelf !== reading.kind.includesSelf;
  return { by: "sort", inRange, childrenOnly: from === "children", filters, sorts: false, isSparse };
}

/** How many rows of a part are listed, as far as that is known. */
export function sizeOf({ matches, count }: Part): number {
  return matches ?? count;
}

/** How many entries of the index of an organisation are passed over until some rows of a part are found, by chance. */
export function countPassed(part: Part, wanted: number): number {
  return Math.min(part.rootCount, (wanted * part.rootCount) / sizeOf(part));
}

/** How many entries of an index may be passed over for what it costs to sort a part. */
export function entriesForSorting(part: Part): number {
  return costOfSorting(part) / ENTRY_COST;
}

function costOfSorting({ from, count }: Part): number {
  return count * (from === "children" ? CHILD_COST : ROW_COST);
}
