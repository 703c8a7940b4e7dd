// Answers lists of every kind: pages in any declared order, by cursor and by
// skip, and totals, at a cost that does not grow with the number of rows
// (architecture, section 7). Nothing here knows what a group is.
import { createAdmits, planList } from "./list-plan.js";
import {
  behind,
  CHUNK,
  chunkByUids,
  positionOf,
  type Segment,
  segmentRows,
  segmentTotal,
  sorted,
} from "./list-segment.js";
import type { ListQuery, Page } from "./port.js";
import type { IndexedRow, ResourceIndex } from "./resource-index.js";
import type { Executor } from "./statement.js";
import { filteredPage, LARGE, largestOf } from "./subtrees-filtered.js";
import { createTop, type Found, namedPage, orderedPage, uidPage } from "./subtrees-page.js";

/** With more subtrees than this a list is answered for many of them at a time. */
const MANY = 64;
/** What is passed over in one statement. */
const SKIP_STEP = 5_000;

/** The page of `kind` that `query` asks for, and how many rows match on all pages. */
export async function listPage<Row extends IndexedRow>(
  tx: Executor,
  kind: ResourceIndex,
  query: ListQuery,
): Promise<Page<Row>> {
  const { limit, order } = query;
  const { rows, total } = await find(tx, kind, query, limit + 1);
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  const next = rows.length > shown.length && last ? positionOf(last, kind, order) : undefined;
  return { rows: shown as unknown as Row[], next, total: query.uncounted ? 0 : total };
}

// One row more than the page holds tells whether another page follows: `wanted` rows are looked for.
async function find(tx: Executor, kind: ResourceIndex, query: ListQuery, wanted: number): Promise<Found> {
  // To plan for many takes its time, and so did whoever found out that there are many.
  if (query.visible.length > MANY) await tx.pause?.();
  const plan = planList(query);
  const named = plan.from === "uids" ? plan.uids : plan.from === "subtrees" ? plan.also : [];
  const single = await namedRows(tx, kind, query, named, wanted);
  if (plan.from === "uids") return { rows: single.rows.slice(query.skip), total: single.total };
  if (plan.from === "children") {
    return few(tx, kind, query, [{ from: "children", scope: plan.parent, withSelf: true }], single, wanted);
  }
  const segments = plan.scopes.map((subtree): Segment => ({ from: "subtree", ...subtree }));
  const { name, equals = {} } = query.filter;
  const many = segments.length > MANY;
  if (Object.keys(equals).length > 0) {
    return many || (await largestOf(tx, kind, segments)) > LARGE
      ? filteredPage(tx, kind, query, segments, single, wanted)
      : few(tx, kind, query, segments, single, wanted);
  }
  // Few subtrees are merged from their beginnings, which would have to hold all that is passed over.
  if (!many && (segments.length === 1 || query.skip <= SKIP_STEP)) {
    return few(tx, kind, query, segments, single, wanted);
  }
  const answer = name !== undefined ? namedPage : query.order.field === "uid" ? uidPage : orderedPage;
  return answer(tx, kind, query, segments, single, wanted);
}

// The rows that are named one by one, as many as may be on the page, and how many there are.
async function namedRows(
  tx: Executor,
  kind: ResourceIndex,
  query: ListQuery,
  uids: readonly string[],
  wanted: number,
): Promise<Found> {
  const admits = createAdmits(query, kind);
  const top = createTop(kind, query, query.skip + wanted);
  let total = 0;
  for (let start = 0; start < uids.length; start += CHUNK) {
    const rows = await chunkByUids(tx, kind, uids.slice(start, start + CHUNK), query.filter.equals);
    const admitted = rows.filter(admits);
    total += admitted.length;
    top.add(behind(admitted, kind, query));
    await tx.pause?.();
  }
  return { rows: top.rows(), total };
}

async function few(
  tx: Executor,
  kind: ResourceIndex,
  query: ListQuery,
  segments: readonly Segment[],
  single: Found,
  wanted: number,
): Promise<Found> {
  let { total } = single;
  if (!query.uncounted) for (const segment of segments) total += await segmentTotal(tx, kind, query, segment);
  const [only] = segments;
  if (only && segments.length === 1 && single.total === 0) {
    const start = await passOver(tx, kind, query, only);
    return { rows: await segmentRows(tx, kind, start, only, { skip: start.skip, limit: wanted }), total };
  }
  // Segments do not overlap: the page is in the merged beginnings of all of them.
  const rows = [...single.rows];
  for (const segment of segments) {
    rows.push(...(await segmentRows(tx, kind, query, segment, { skip: 0, limit: query.skip + wanted })));
    await tx.pause?.();
  }
  return { rows: sorted(rows, kind, query.order).slice(query.skip, query.skip + wanted), total };
}

// What a long skip passes over is passed over in steps, each from the position that the last has reached.
async function passOver(tx: Executor, kind: ResourceIndex, query: ListQuery, segment: Segment): Promise<ListQuery> {
  let start = query;
  while (start.skip > SKIP_STEP && Object.keys(query.filter.equals ?? {}).length === 0) {
    const [last] = await segmentRows(tx, kind, start, segment, { skip: SKIP_STEP - 1, limit: 1 });
    if (last === undefined) break;
    start = { ...start, skip: start.skip - SKIP_STEP, after: positionOf(last, kind, query.order) };
    await tx.pause?.();
  }
  return start;
}
