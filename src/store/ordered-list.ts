// Reads pages of lists of every kind, in any declared order, by cursor and by skip, and their totals, at a
// cost that does not grow with the number of rows (docs/adr/0014-compact-order-index.md). Nothing here depends
// on a kind.
import { isBelow, isWithin, lineageOf, parentOf, positionBelow, uidBelow } from "../kernel/uidp.js";
import {
  CHUNK,
  countSegment,
  filterAfter,
  positionOf,
  readChunk,
  readSegment,
  type Segment,
  sortRows,
} from "./list-segment.js";
import { scopeNumber } from "./list-statements.js";
import type { ListFilter, ListPosition, ListQuery, Page } from "./port.js";
import type { RankPosition } from "./rank-statements.js";
import { type RankedList, seekRank } from "./ranks.js";
import { columnValue, findList, type IndexedRow, type ResourceIndex } from "./resource-index.js";
import type { Executor } from "./statement.js";
import { countLargest, MAX_SCAN, readFilteredPage } from "./subtrees-filtered.js";
import { createTop, type ListRows, readMergedPage, readNamedPage, readUidPage } from "./subtrees-page.js";

/** With more subtrees than this, each statement reads many of them. */
const MANY = 64;

/**
 * Finds the rows in any of the segments that pass the filters of a query without examining others.
 *
 * @param rowLimit how many rows to return after those to skip
 * @param readUids reads those of some rows that are part of the list
 * @returns undefined where not all of the filters are indexed, so that all rows must be examined
 */
export type Search = (
  tx: Executor,
  query: ListQuery,
  segments: readonly Segment[],
  rowLimit: number,
  readUids: (uids: readonly string[]) => Promise<ListRows>,
) => Promise<ListRows | undefined>;

/**
 * Reads the page of `kind` that `query` describes, and counts the rows on all pages.
 *
 * @param search for a kind with an index of filters
 */
export async function listPage<Row extends IndexedRow>(
  tx: Executor,
  kind: ResourceIndex,
  query: ListQuery,
  search?: Search,
): Promise<Page<Row>> {
  const { limit, order } = query;
  // One row more than the page holds shows whether another page follows.
  const { rows, total } = await readRows(tx, kind, query, limit + 1, search);
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  const next = rows.length > page.length && last ? positionOf(last, kind, order) : undefined;
  return { rows: page as unknown as Row[], next, total: query.uncounted ? 0 : total };
}

async function readRows(
  tx: Executor,
  kind: ResourceIndex,
  query: ListQuery,
  rowLimit: number,
  search: Search | undefined,
): Promise<ListRows> {
  // To find many visible groups and to plan for them takes long, so other calls run between.
  if (query.visible.length > MANY) await tx.pause?.();
  const plan = planList(query, kind);
  const uids = plan.from === "children" ? [] : plan.uids;
  const byUid = await readUids(tx, kind, query, uids, rowLimit);
  if (plan.from === "uids") return { rows: byUid.rows.slice(query.skip), total: byUid.total };
  const segments: readonly Segment[] =
    plan.from === "children"
      ? [{ from: "children", scope: plan.parent }]
      : plan.scopes.map((scope) => ({ from: "subtree", scope }));
  const { name, equals = {} } = query.filter;
  const many = segments.length > MANY;
  if (search && Object.keys(equals).length > 0 && !many) {
    const readMore = (more: readonly string[]) => readUids(tx, kind, query, [...uids, ...more], rowLimit);
    const found = await search(tx, query, segments, rowLimit, readMore);
    if (found) return found;
  }
  if (plan.from === "children") return readFew(tx, kind, query, segments, byUid, rowLimit);
  if (Object.keys(equals).length > 0) {
    return many || (await countLargest(tx, kind, segments)) > MAX_SCAN
      ? readFilteredPage(tx, kind, query, segments, byUid, rowLimit)
      : readFew(tx, kind, query, segments, byUid, rowLimit);
  }
  // To merge several subtrees, all rows to skip are read from each of them.
  if (!many && (segments.length === 1 || query.skip <= SKIP_STEP)) {
    return readFew(tx, kind, query, segments, byUid, rowLimit);
  }
  const readPage = name !== undefined ? readNamedPage : query.order.field === "uid" ? readUidPage : readMergedPage;
  return readPage(tx, kind, query, segments, byUid, rowLimit);
}

// Reads the rows with given uids, as many as the page may contain, and counts those that match.
async function readUids(
  tx: Executor,
  kind: ResourceIndex,
  query: ListQuery,
  uids: readonly string[],
  rowLimit: number,
): Promise<ListRows> {
  const isMatch = createRowFilter(query, kind);
  const top = createTop(kind, query, query.skip + rowLimit);
  let total = 0;
  for (let start = 0; start < uids.length; start += CHUNK) {
    const rows = await readChunk(tx, kind, uids.slice(start, start + CHUNK), query.filter.equals);
    const matching = rows.filter(isMatch);
    total += matching.length;
    top.add(filterAfter(matching, kind, query));
    await tx.pause?.();
  }
  return { rows: top.rows(), total };
}

// Reads each of a few segments with a statement of its own.
async function readFew(
  tx: Executor,
  kind: ResourceIndex,
  query: ListQuery,
  segments: readonly Segment[],
  byUid: ListRows,
  rowLimit: number,
): Promise<ListRows> {
  let { total } = byUid;
  if (!query.uncounted) for (const segment of segments) total += await countSegment(tx, kind, query, segment);
  const [only] = segments;
  if (only && segments.length === 1) return { rows: await readOne(tx, kind, query, only, byUid.rows, rowLimit), total };
  // Segments do not overlap: the page is part of the merged first rows of all of them.
  const rows = [...byUid.rows];
  for (const segment of segments) {
    rows.push(...(await readSegment(tx, kind, query, segment, { skip: 0, limit: query.skip + rowLimit })));
    await tx.pause?.();
  }
  return { rows: sortRows(rows, kind, query.order).slice(query.skip, query.skip + rowLimit), total };
}

// Reads the page from one segment and from `separate`, sorted rows outside it. Each of these replaces at most one row
// of the segment. So the skip within the segment is shortened by their number, and as many rows are cut off after
// merging.
async function readOne(
  tx: Executor,
  kind: ResourceIndex,
  query: ListQuery,
  segment: Segment,
  separate: readonly IndexedRow[],
  rowLimit: number,
): Promise<IndexedRow[]> {
  const skip = Math.max(0, query.skip - separate.length);
  const cut = query.skip - skip;
  const start = await skipRows(tx, kind, { ...query, skip }, segment);
  const rows = start ? await readSegment(tx, kind, start, segment, { skip: start.skip, limit: cut + rowLimit }) : [];
  return separate.length === 0 ? rows : sortRows([...rows, ...separate], kind, query.order).slice(cut, cut + rowLimit);
}

// A plan is made from uids alone. The visible rows of a caller are subtrees, so every filter on the hierarchy leads to
// one of these plans.

/**
 * Where the rows of a list are read: by uid, and from what is below some groups, in stored order; from the children of
 * one group; or by uid alone.
 */
type ListPlan =
  | { readonly from: "subtrees"; readonly scopes: readonly string[]; readonly uids: readonly string[] }
  | { readonly from: "children"; readonly parent: string }
  | { readonly from: "uids"; readonly uids: readonly string[] };

/** The fields of a query that a plan depends on. */
type PlanInput = Pick<ListQuery, "visible" | "also" | "filter">;

/** Plans a query. Rows of a `uids` plan must still pass {@link createRowFilter}. */
function planList({ visible, also = [], filter }: PlanInput, kind: Pick<ResourceIndex, "includesSelf">): ListPlan {
  if (filter.uids) return { from: "uids", uids: [...new Set(filter.uids)] };
  if (filter.ancestorsOf !== undefined) return { from: "uids", uids: lineageOf(filter.ancestorsOf) };
  if (filter.inRoot || filter.childrenOf === "/") return { from: "uids", uids: [...visible.filter(isRoot), ...also] };
  const { childrenOf: parent, descendantsOf: top } = filter;
  if (parent !== undefined) {
    if (!isVisible(visible, parent)) return { from: "uids", uids: visible.filter((uid) => parentOf(uid) === parent) };
    if (top !== undefined && !isWithin(parent, top)) return { from: "uids", uids: [] };
    return { from: "children", parent };
  }
  // What is below a group is read from its lists; a row with the group's own uid is not in them.
  const tops = (scopes: readonly string[]) => (kind.includesSelf ? scopes : []);
  if (top === undefined) return { from: "subtrees", scopes: visible, uids: [...tops(visible), ...also] };
  if (isVisible(visible, top)) return { from: "subtrees", scopes: [top], uids: [] };
  const below = visible.filter((uid) => isBelow(uid, top));
  return { from: "subtrees", scopes: below, uids: tops(below) };
}

/** Creates the test whether a row is visible and passes every filter that the database did not evaluate. */
function createRowFilter(
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

// Replaces a long skip in one segment of a list by the position that it leads to.

/** How many rows one statement skips at most. */
const SKIP_STEP = 5_000;
/** To skip so many rows costs less than to find their rank. */
const MIN_SEEK = 1_000;

/**
 * Shortens the skip of a query: by ranks, or in steps where a list has none. A page may have to be read in steps at any
 * time, because ranks are built in the background.
 *
 * @returns the query to read, or undefined when the segment has no rows after those to skip
 */
async function skipRows(
  tx: Executor,
  kind: ResourceIndex,
  query: ListQuery,
  segment: Segment,
): Promise<ListQuery | undefined> {
  const { name, equals = {} } = query.filter;
  if (query.skip <= MIN_SEEK || Object.keys(equals).length > 0) return query;
  if (name === undefined) {
    const last = await findRank(tx, kind, query, segment);
    if (last === "end") return undefined;
    if (last) return { ...query, skip: 0, after: last };
  }
  return skipInSteps(tx, kind, query, segment);
}

async function findRank(
  tx: Executor,
  kind: ResourceIndex,
  { order: { field, descending }, after, skip }: ListQuery,
  { from, scope: scopeUid }: Segment,
): Promise<ListPosition | "end" | undefined> {
  const [row] = await tx.rows(scopeNumber, { scope: scopeUid });
  if (row === undefined) return undefined;
  const byUid = field === "uid";
  const list: RankedList | undefined =
    byUid && from === "subtree"
      ? { type: "text", list: kind.descendantsByUid, scope: row.id, rows: { kind, scopeUid } }
      : withScope(findList(kind, from, field), row.id);
  if (list === undefined) return undefined;
  const position = after && { key: byUid ? "" : after.key, below: positionBelow(after.uid, scopeUid) };
  const last = await seekRank(tx, list, { after: position, skip, descending });
  return typeof last === "object" ? toListPosition(last, scopeUid, byUid) : last;
}

function withScope(list: Omit<RankedList, "scope"> | undefined, scope: number): RankedList | undefined {
  return list && { ...list, scope };
}

function toListPosition({ key, below }: RankPosition, scopeUid: string, byUid: boolean): ListPosition {
  const uid = uidBelow(below, scopeUid);
  return { key: byUid ? uid : key, uid };
}

async function skipInSteps(tx: Executor, kind: ResourceIndex, query: ListQuery, segment: Segment): Promise<ListQuery> {
  let start = query;
  while (start.skip > SKIP_STEP) {
    const [last] = await readSegment(tx, kind, start, segment, { skip: SKIP_STEP - 1, limit: 1 });
    if (last === undefined) break;
    start = { ...start, skip: start.skip - SKIP_STEP, after: positionOf(last, kind, query.order) };
    await tx.pause?.();
  }
  return start;
}
