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
} from "./plan.js";
import type { ListQuery, Page } from "./query.js";
import { familiesOf, type ListedKind, type ListedRow } from "./resource.js";
import { readPart, readSorted } from "./scan.js";
import { countPart, type Found, isAfter, positionOf, readByUids, readRows, sortFound } from "./walk.js";

/** Each of them takes one to five milliseconds. */
const LIMITS: ListLimits = { step: 5_000, slice: 4_000 };
/** A search is given at most so many parts. */
const MAX_SEARCHED = 64;

/** What a search found of a list. */
export interface Searched {
  /** The positions of rows that match, in no order. */
  readonly found: Found[];
  /** The parts whose rows are not among those, with the numbers of their matching rows. */
  readonly parts: Part[];
}

/** Finds or counts the rows of parts of a list that pass the filters of its query. */
export type Search = (reading: Reading, parts: readonly Part[]) => Promise<Searched>;

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

async function readList(reading: Reading, rowLimit: number, search: Search | undefined) {
  const { tx, kind, query } = reading;
  // To find many visible groups and to plan for them takes long, so other calls run between.
  if (query.visible.length > MAX_SEARCHED) await tx.pause?.(true);
  const plan = planList(query, kind);
  const separate = await readUids(reading, plan.uids);
  if (plan.from === "uids") return { rows: rowsOf(separate.found).slice(query.skip), total: separate.total };
  const parts = await measureSegments(reading, plan.segments);
  const isSearched = search !== undefined && hasFilters(query) && parts.length <= MAX_SEARCHED;
  const searched = isSearched ? await search(reading, parts) : { found: [], parts };
  const known = [...separate.found, ...searched.found.filter(({ at }) => isAfter(at, query))];
  const found = await readParts(reading, searched.parts, sortFound(known, query), rowLimit);
  const countAll = async () => separate.total + searched.found.length + (await countParts(reading, searched.parts));
  const total = query.uncounted ? 0 : await countAll();
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
  if (only === undefined) return separate.slice(skip, skip + limit);
  if (parts.length === 1 && separate.length === 0) {
    return readPart(reading, only, { after, skip, limit, whole: true });
  }
  if (isUidOrder(query)) {
    // The families of one segment overlap.
    const read = families.length > 1 ? merge : concatenate;
    return read(reading, parts, separate, { skip, limit });
  }
  if (!isFiltered(query) || parts.every(({ matches }) => matches !== undefined))
    return merge(reading, parts, separate, { skip, limit });
  const found = await readSorted(reading, parts, { after, skip: 0, limit: skip + limit, whole: false });
  return sortFound([...separate, ...found], query).slice(skip, skip + limit);
}

async function countParts(reading: Reading, parts: readonly Part[]): Promise<number> {
  if (!isFiltered(reading.query)) return parts.reduce((sum, { count }) => sum + count, 0);
  let total = 0;
  for (const part of parts) {
    total += part.matches ?? (await countPart(reading, part, planScan(reading, part)));
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
