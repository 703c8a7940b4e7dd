// Reads pages of lists of every kind, in any declared order, by cursor and by skip, and their totals. The indexes of the
// database have the orders, and counters the totals (docs/adr/0018-plain-indexes.md).
//
// A query (query.ts) has the subtrees that the caller may see, filters, an order, and where the page begins. plan.ts makes
// parts of it: what is below a group, or its children, each with its number of rows from counters.ts. It says how to read
// each part: in the order of an index (walk.ts), or all its rows, to sort or filter them (scan.ts). Several parts are read
// one after another or merged (merge.ts). statements.ts has a statement for each shape of query. No statement takes longer
// than some milliseconds, and other calls run between.

import type { Executor } from "../statement.js";
import { concatenate, merge } from "./merge.js";
import {
  createRowFilter,
  isUidOrder,
  type ListLimits,
  measureSegments,
  type Part,
  planList,
  planScan,
  type Reading,
  type Segment,
} from "./plan.js";
import type { ListQuery, Page } from "./query.js";
import { familiesOf, type ListedKind, type ListedRow } from "./resource.js";
import { readPart, readSorted } from "./scan.js";
import { countPart, type Found, isAfter, positionOf, readByUids, readRows, sortFound } from "./walk.js";

/** Each of them takes one to five milliseconds. */
const LIMITS: ListLimits = { step: 5_000, slice: 4_000 };
/** A search is given at most so many segments. */
const MAX_SEARCHED = 64;

/** Rows of a list, and the number of matching rows on all pages. */
export interface ListRows {
  readonly rows: ListedRow[];
  readonly total: number;
}

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

/** Where the list of a kind differs from those of others. */
export interface ListOptions {
  /** Of a kind with families: those that the list shows; all unless set. */
  readonly families?: readonly number[];
  /** For a kind with an index of filters. */
  readonly search?: Search;
  /** Smaller ones in tests. */
  readonly limits?: ListLimits;
}

/** Reads the page of `kind` that `query` describes, and counts the rows on all pages. */
export async function listPage<Row extends ListedRow>(
  tx: Executor,
  kind: ListedKind,
  query: ListQuery,
  { families = familiesOf(kind), search, limits = LIMITS }: ListOptions = {},
): Promise<Page<Row>> {
  const { limit, order } = query;
  // One row more than the page holds shows whether another page follows.
  const { rows, total } = await readList({ tx, kind, query, families, limits }, limit + 1, search);
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  const next = rows.length > page.length && last ? positionOf(last, kind, order) : undefined;
  return { rows: page as unknown as Row[], next, total: query.uncounted ? 0 : total };
}

async function readList(reading: Reading, rowLimit: number, search: Search | undefined): Promise<ListRows> {
  const { tx, kind, query } = reading;
  // To find many visible groups and to plan for them takes long, so other calls run between.
  if (query.visible.length > MAX_SEARCHED) await tx.pause?.();
  const plan = planList(query, kind);
  const separate = await readUids(reading, plan.uids);
  if (plan.from === "uids") return { rows: rowsOf(separate.found).slice(query.skip), total: separate.total };
  if (search && hasFilters(query) && plan.segments.length <= MAX_SEARCHED) {
    const readMore = async (uids: readonly string[]) => {
      const { found, total } = await readUids(reading, [...plan.uids, ...uids]);
      return { rows: rowsOf(found), total };
    };
    const found = await search(tx, query, plan.segments, rowLimit, readMore);
    if (found) return found;
  }
  const parts = await measureSegments(reading, plan.segments);
  const found = await readParts(reading, parts, separate.found, rowLimit);
  const total = query.uncounted ? 0 : separate.total + (await countParts(reading, parts));
  return { rows: await readRows(reading, found), total };
}

// Reads the rows with given uids that are part of the list and come after the position of the query, in the order of the
// list, and counts those of all pages.
async function readUids(reading: Reading, uids: readonly string[]) {
  const { tx, kind, query } = reading;
  const isListed = createRowFilter(reading);
  const rows = (await readByUids(tx, kind, uids, query.filter.equals)).filter(isListed);
  const found = rows
    .map((row): Found => ({ at: positionOf(row, kind, query.order), row }))
    .filter(({ at }) => isAfter(at, query));
  return { found: sortFound(found, query), total: rows.length };
}

function rowsOf(found: readonly Found[]): ListedRow[] {
  return found.flatMap(({ row }) => row ?? []);
}

async function readParts(
  reading: Reading,
  parts: readonly Part[],
  separate: readonly Found[],
  limit: number,
): Promise<Found[]> {
  const { query, families } = reading;
  const { after, skip } = query;
  const [only] = parts;
  if (only && parts.length === 1 && separate.length === 0) {
    return readPart(reading, only, { after, skip, limit, whole: true });
  }
  if (isUidOrder(query)) {
    // The families of one segment overlap.
    const read = families.length > 1 ? merge : concatenate;
    return read(reading, parts, separate, { skip, limit });
  }
  if (!isFiltered(query)) return merge(reading, parts, separate, { skip, limit });
  const found = await readSorted(reading, parts, { after, skip: 0, limit: skip + limit, whole: false });
  return sortFound([...separate, ...found], query).slice(skip, skip + limit);
}

async function countParts(reading: Reading, parts: readonly Part[]): Promise<number> {
  if (!isFiltered(reading.query)) return parts.reduce((sum, { count }) => sum + count, 0);
  let total = 0;
  for (const part of parts) {
    total += await countPart(reading, part, planScan(reading, part));
    await reading.tx.pause?.();
  }
  return total;
}

// Whether rows of the parts may not match.
function isFiltered({ filter }: Pick<ListQuery, "filter">): boolean {
  return filter.name !== undefined || hasFilters({ filter });
}

function hasFilters({ filter }: Pick<ListQuery, "filter">): boolean {
  return Object.keys(filter.equals ?? {}).length > 0;
}
