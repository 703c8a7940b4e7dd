// Reads rows of one part of a list in the order of an index. The rows to skip are passed over in the index, a few thousand
// per statement.
import { rootOf } from "../../kernel/uidp.js";
import { padParams } from "../statement.js";
import { splitChunks } from "./counters.js";
import type { Part, Reading, ReadPlan } from "./plan.js";
import type { ListPosition, ListQuery } from "./query.js";
import { columnValue, type ListedKind, type ListedRow } from "./resource.js";
import {
  countStatement,
  entriesStatement,
  firstEntriesStatement,
  type ListParams,
  param,
  rowsByUid,
  rowsStatement,
  type Shape,
} from "./statements.js";

/** A row of a list: its position, and the row itself unless it has yet to be read. */
export interface Found {
  readonly at: ListPosition;
  readonly row?: ListedRow;
}

/** Which rows of a list are read. */
export interface Wanted {
  /** The position after which they begin. */
  readonly after?: ListPosition | undefined;
  readonly skip: number;
  readonly limit: number;
  /** Whether the rows are read, or their positions alone. */
  readonly whole: boolean;
}

/** Reads rows in the order of an index that has few entries of others. */
export async function walk(reading: Reading, part: Part, plan: ReadPlan, wanted: Wanted): Promise<Found[]> {
  const { tx, limits, query } = reading;
  const { descending } = query.order;
  let { after, skip } = wanted;
  while (skip > limits.step) {
    const last = await findLast(reading, part, plan, { after, descending }, limits.step);
    if (last === undefined) return [];
    after = last;
    skip -= limits.step;
    await tx.pause?.();
  }
  return readOnce(reading, part, plan, { ...wanted, skip, range: { after, descending } });
}

/**
 * Reads rows in the order of an index of which most entries may be of others.
 *
 * @param budget how many entries may be passed over
 * @param first how many of them the first slice has, where that is known to suffice mostly
 * @returns undefined where the budget was not enough
 */
export async function walkSlices(
  reading: Reading,
  part: Part,
  plan: ReadPlan,
  { after, skip, limit, whole }: Wanted,
  { budget, first }: { readonly budget: number; readonly first?: number | undefined },
): Promise<Found[] | undefined> {
  const found: Found[] = [];
  let rest = skip;
  let passed = 0;
  const all = { after, descending: reading.query.order.descending };
  for await (const range of readSlices(reading, part, plan, all, first)) {
    if (passed > budget) return undefined;
    passed += reading.limits.slice;
    if (rest > 0) {
      const count = await countOnce(reading, part, plan, range);
      if (count <= rest) {
        rest -= count;
        continue;
      }
    }
    found.push(...(await readOnce(reading, part, plan, { range, skip: rest, limit: limit - found.length, whole })));
    rest = 0;
    if (found.length >= limit) break;
  }
  return found;
}

/** Counts the rows of a part that match the filters, after a position in the order of uids if there is one. */
export async function countPart(
  reading: Reading,
  part: Part,
  plan: ReadPlan,
  after?: ListPosition | undefined,
): Promise<number> {
  let total = 0;
  const { descending } = reading.query.order;
  for await (const range of readSlices(reading, part, plan, { after, descending }))
    total += await countOnce(reading, part, plan, range);
  return total;
}

// An index has an order of its own: of uids, or that of the list where it is read by it (ReadPlan.by).

/** The entries of an index between two positions in its order: after the first, and up to the second. */
export interface Range {
  readonly descending: boolean;
  readonly after?: ListPosition | undefined;
  readonly until?: ListPosition | undefined;
}

/**
 * Divides the entries of an index into slices of bounded length, one after the other.
 *
 * @param first how many entries the first slice has at most
 */
export async function* readSlices(
  reading: Reading,
  part: Part,
  plan: ReadPlan,
  { after, descending }: Range,
  first = reading.limits.slice,
): AsyncGenerator<Range> {
  const { tx, limits } = reading;
  let size = Math.min(first, limits.slice);
  const isShort = (plan.by === "sort" ? part.rootCount : part.count) <= limits.slice;
  // An index with the order of the list has all rows of the organisation.
  const every: ReadPlan = { ...plan, filters: [], childrenOnly: false, inRange: plan.by !== "sort" };
  for (let from = after; ; ) {
    const until = isShort ? undefined : await findLast(reading, part, every, { after: from, descending }, size);
    yield { after: from, until, descending };
    if (until === undefined) return;
    size = limits.slice;
    await tx.pause?.();
    from = until;
  }
}

// The position of the last one of `count` entries; undefined where there are fewer.
async function findLast(
  reading: Reading,
  part: Part,
  plan: ReadPlan,
  range: Range,
  count: number,
): Promise<ListPosition | undefined> {
  const inOrder = { ...plan, sorts: false };
  const [last] = await readOnce(reading, part, inOrder, { range, skip: count - 1, limit: 1, whole: false });
  return last?.at;
}

/** How many parts one statement reads the first rows of. */
const PARTS = 64;

/**
 * Reads the positions of the first rows of several parts, which the plan reads in the order of the same index.
 *
 * @returns those of each part, in the order of the parts
 */
export async function readFirst(
  { tx, kind, query }: Reading,
  parts: readonly Part[],
  plan: ReadPlan,
  { after, limit }: Pick<Wanted, "after" | "limit">,
): Promise<Found[][]> {
  const range = { after, descending: query.order.descending };
  const shape = buildShape(kind, query, plan, range);
  const all: Found[][] = [];
  for (let start = 0; start < parts.length; start += PARTS) {
    const some = parts.slice(start, start + PARTS);
    // Few statements serve all numbers of parts: the last part is repeated.
    let size = 1;
    while (size < some.length) size *= 2;
    const params: ListParams = { [param.limit]: limit };
    for (let i = 0; i < size; i++) {
      const own = buildParams(query, some[Math.min(i, some.length - 1)] as Part, plan, range);
      for (const name in own) params[PLACES.has(name) ? name + i : name] = own[name] as string | number;
    }
    const found: Found[][] = some.map(() => []);
    for (const { part, key, uid } of await tx.rows(firstEntriesStatement({ shape, parts: size }), params)) {
      found[part]?.push({ at: { key: key ?? uid, uid } });
    }
    for (const one of found) all.push(one);
    await tx.pause?.();
  }
  return all;
}

/** The parameters that say where a part is. */
const PLACES: ReadonlySet<string> = new Set([
  param.root,
  param.family,
  param.parent,
  param.length,
  param.low,
  param.end,
]);

/** Reads rows of a range by one statement: in the order of the index, or sorted into that of the list. */
export async function readOnce(
  { tx, kind, query }: Reading,
  part: Part,
  plan: ReadPlan,
  { range, after, skip, limit, whole }: Wanted & { readonly range: Range },
): Promise<Found[]> {
  const { order, filter } = query;
  const shape: Shape = {
    ...buildShape(kind, query, plan, range),
    ...(plan.sorts && { field: order.field, descending: order.descending, after: after !== undefined }),
  };
  const params = buildParams(query, part, plan, range);
  if (plan.sorts && after) Object.assign(params, { [param.afterKey]: after.key, [param.afterUid]: after.uid });
  Object.assign(params, { [param.skip]: skip, [param.limit]: limit });
  if (whole) {
    const rows = await tx.rows(rowsStatement(shape), params);
    return rows.map((row) => ({ at: positionOf(row, kind, order), row }));
  }
  const entries = await tx.rows(entriesStatement(shape), params);
  // All rows of one name have the same key in the order of names.
  const name = order.field === "uid" ? undefined : filter.name;
  return entries.map(({ key, uid }) => ({ at: { key: key ?? name ?? uid, uid } }));
}

async function countOnce({ tx, kind, query }: Reading, part: Part, plan: ReadPlan, range: Range): Promise<number> {
  const shape = buildShape(kind, query, plan, range);
  const [row] = await tx.rows(countStatement(shape), buildParams(query, part, plan, range));
  return row?.total ?? 0;
}

function buildShape(kind: ListedKind, { order }: ListQuery, plan: ReadPlan, range: Range): Shape {
  const { by, inRange, childrenOnly, filters } = plan;
  const isByField = by === "sort";
  return {
    ...{ kind, by, inRange, childrenOnly, filters, descending: range.descending },
    field: isByField ? order.field : "uid",
    after: isByField && range.after !== undefined,
    until: isByField && range.until !== undefined,
  };
}

function buildParams({ filter }: ListQuery, part: Part, { by }: ReadPlan, range: Range): ListParams {
  const { after, until, descending } = range;
  const params: ListParams = {
    ...filter.equals,
    ...(filter.name !== undefined && { name: filter.name }),
    ...buildPartParams(part),
  };
  if (by === "sort") {
    if (after) Object.assign(params, { [param.afterKey]: after.key, [param.afterUid]: after.uid });
    if (until) Object.assign(params, { [param.untilKey]: until.key, [param.untilUid]: until.uid });
    return params;
  }
  let low = String(params[param.low]);
  let end = String(params[param.end]);
  const [first, last] = descending ? [until, after] : [after, until];
  if (first) low = maxOf(low, descending ? first.uid : behind(first.uid));
  if (last) end = minOf(end, descending ? last.uid : behind(last.uid));
  return { ...params, [param.low]: low, [param.end]: end };
}

/** The parameters that say where a part is. */
export function buildPartParams({ scope, includesSelf, family }: Part): ListParams {
  return {
    [param.root]: rootOf(scope),
    [param.family]: family,
    [param.parent]: scope,
    // A segment has a slash and 16 digits.
    [param.length]: scope.length + 17,
    [param.low]: includesSelf ? scope : `${scope}/`,
    [param.end]: `${scope}0`,
  };
}

// The first text after a uid: what can follow in a longer uid comes later.
function behind(uid: string): string {
  return `${uid}!`;
}

function maxOf(a: string, b: string): string {
  return a < b ? b : a;
}

function minOf(a: string, b: string): string {
  return a < b ? a : b;
}

/** The position of a row in a list. */
export function positionOf(row: ListedRow, kind: ListedKind, { field }: ListQuery["order"]): ListPosition {
  const column = kind.sorts[field];
  return { key: column ? columnValue(row, column) : row.uid, uid: row.uid };
}

/** Compares positions. Keys and uids are ASCII, so comparing code units is comparing bytes, as the databases do. */
export function comparePositions(a: ListPosition, b: ListPosition): number {
  if (a.key !== b.key) return a.key < b.key ? -1 : 1;
  return a.uid === b.uid ? 0 : a.uid < b.uid ? -1 : 1;
}

/** Sorts in place into the order of the list. */
export function sortFound(found: Found[], { order }: ListQuery): Found[] {
  const sign = order.descending ? -1 : 1;
  return found.sort((a, b) => sign * comparePositions(a.at, b.at));
}

/** Whether a position comes after that of the query. */
export function isAfter(at: ListPosition, { order, after }: ListQuery): boolean {
  return after === undefined || (order.descending ? -1 : 1) * comparePositions(at, after) > 0;
}

/** Reads the rows that have yet to be read. */
export async function readRows({ tx, kind }: Reading, found: readonly Found[]): Promise<ListedRow[]> {
  const missing = found.filter(({ row }) => row === undefined).map(({ at }) => at.uid);
  const rows = new Map((await readByUids(tx, kind, missing)).map((row) => [row.uid, row]));
  return found.flatMap(({ at, row }) => row ?? rows.get(at.uid) ?? []);
}

/** The rows with these uids, in no order, that pass the filters of the kind among `equals`. */
export async function readByUids(
  tx: Reading["tx"],
  kind: ListedKind,
  uids: readonly string[],
  equals: ListQuery["filter"]["equals"] = {},
): Promise<ListedRow[]> {
  const filters = Object.keys(equals).filter((name) => kind.filters?.[name] !== undefined);
  const rows: ListedRow[] = [];
  for (const chunk of splitChunks(uids)) {
    const { size, params } = padParams("uid", chunk);
    rows.push(...(await tx.rows(rowsByUid({ kind, size, filters }), { ...equals, ...params })));
    await tx.pause?.();
  }
  return rows;
}
