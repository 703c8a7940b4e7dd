// Reads pages of lists of every kind, in any declared order, by cursor and by skip, and their totals, at a
// cost that does not grow with the number of rows (docs/adr/0004-order-tables.md). Nothing here depends
// on a kind.
import { isBelow, isWithin, lineageOf, parentOf } from "../kernel/uidp.js";
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
import type { ListFilter, ListQuery, Page } from "./port.js";
import { columnValue, type IndexedRow, type ResourceIndex } from "./resource-index.js";
import type { Executor } from "./statement.js";
import { countLargest, MAX_SCAN, readFilteredPage } from "./subtrees-filtered.js";
import { createTop, type ListRows, readMergedPage, readNamedPage, readUidPage } from "./subtrees-page.js";

/** With more subtrees than this, each statement reads many of them. */
const MANY = 64;
/** How many rows one statement skips at most. */
const SKIP_STEP = 5_000;

/** Reads the page of `kind` that `query` describes, and counts the rows on all pages. */
export async function listPage<Row extends IndexedRow>(
  tx: Executor,
  kind: ResourceIndex,
  query: ListQuery,
): Promise<Page<Row>> {
  const { limit, order } = query;
  // One row more than the page holds shows whether another page follows.
  const { rows, total } = await readRows(tx, kind, query, limit + 1);
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  const next = rows.length > page.length && last ? positionOf(last, kind, order) : undefined;
  return { rows: page as unknown as Row[], next, total: query.uncounted ? 0 : total };
}

async function readRows(tx: Executor, kind: ResourceIndex, query: ListQuery, rowLimit: number): Promise<ListRows> {
  // Finding many visible groups took time, and so does planning for them.
  if (query.visible.length > MANY) await tx.pause?.();
  const plan = planList(query);
  const uids = plan.from === "uids" ? plan.uids : plan.from === "subtrees" ? plan.also : [];
  const byUid = await readUids(tx, kind, query, uids, rowLimit);
  if (plan.from === "uids") return { rows: byUid.rows.slice(query.skip), total: byUid.total };
  if (plan.from === "children") {
    return readFew(tx, kind, query, [{ from: "children", scope: plan.parent, withSelf: true }], byUid, rowLimit);
  }
  const segments = plan.scopes.map((subtree): Segment => ({ from: "subtree", ...subtree }));
  const { name, equals = {} } = query.filter;
  const many = segments.length > MANY;
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
  if (only && segments.length === 1 && byUid.total === 0) {
    const start = await skipInSteps(tx, kind, query, only);
    return { rows: await readSegment(tx, kind, start, only, { skip: start.skip, limit: rowLimit }), total };
  }
  // Segments do not overlap: the page is part of the merged first rows of all of them.
  const rows = [...byUid.rows];
  for (const segment of segments) {
    rows.push(...(await readSegment(tx, kind, query, segment, { skip: 0, limit: query.skip + rowLimit })));
    await tx.pause?.();
  }
  return { rows: sortRows(rows, kind, query.order).slice(query.skip, query.skip + rowLimit), total };
}

// Replaces most of a long skip by the position it leads to, which is found in steps.
async function skipInSteps(tx: Executor, kind: ResourceIndex, query: ListQuery, segment: Segment): Promise<ListQuery> {
  let start = query;
  while (start.skip > SKIP_STEP && Object.keys(query.filter.equals ?? {}).length === 0) {
    const [last] = await readSegment(tx, kind, start, segment, { skip: SKIP_STEP - 1, limit: 1 });
    if (last === undefined) break;
    start = { ...start, skip: start.skip - SKIP_STEP, after: positionOf(last, kind, query.order) };
    await tx.pause?.();
  }
  return start;
}

// A plan is made from uids alone. The visible rows of a caller are subtrees, so every filter on the hierarchy leads to
// one of these plans.

/** Where the rows of a list are read: from subtrees in stored order, from the children of one group, or by uid. */
type ListPlan =
  | { readonly from: "subtrees"; readonly scopes: readonly Subtree[]; readonly also: readonly string[] }
  | { readonly from: "children"; readonly parent: string }
  | { readonly from: "uids"; readonly uids: readonly string[] };

/** The descendants of a group, with or without the group itself. */
interface Subtree {
  readonly scope: string;
  readonly withSelf: boolean;
}

/** The fields of a query that a plan depends on. */
type PlanInput = Pick<ListQuery, "visible" | "also" | "filter">;

/** Plans a query. Rows of a `uids` plan must still pass {@link createRowFilter}. */
function planList({ visible, also = [], filter }: PlanInput): ListPlan {
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
