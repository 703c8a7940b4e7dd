// Lists of the resources of a directory (RFC 7644, section 3.4.2). What is asked for by an index is read by it: single resources
// by what is unique, changes since a time, and pages in the orders that have an index. Everything else reads resources in slices,
// up to a bound, because a directory may have a hundred thousand.
import type { SentOrder } from "../store/iam/sent-rows.js";
import type { Tx } from "../store/transaction.js";
import { buildMeta, idOf, type Page, type StoredResource } from "./collection.js";
import { changedSince } from "./protocol/conditions.js";
import { ScimError } from "./protocol/error.js";
import type { Filter } from "./protocol/filter-tree.js";
import type { ListParameters } from "./protocol/list.js";
import { matches } from "./protocol/match.js";
import type { Resource } from "./protocol/resource.js";
import { type AttributeChain, formatChain, type ResourceType } from "./protocol/schemas.js";
import { createComparison, type SortOrder } from "./protocol/sort.js";

/** How many resources a list without an index reads at most. */
const MAX_SCANNED = 10_000;
/** How many it reads at a time; between two slices other requests run. */
const SLICE = 50;

/** The rows of a kind, as lists read them. */
export interface StoredRows<Row, Column extends string> {
  find(uid: string): Promise<Row | undefined>;
  countOfProvider(providerUid: string): Promise<number>;
  findPage(providerUid: string, order: SentOrder<Column>, offset: number, limit: number): Promise<Row[]>;
  findAfter(providerUid: string, after: string, limit: number): Promise<Row[]>;
  findChanged(
    providerUid: string,
    after: { readonly timeMs: number; readonly uid: string },
    limit: number,
  ): Promise<Row[]>;
}

/** What lists need of a type of resources. */
export interface ListedResources<Row extends StoredResource, Column extends string> {
  readonly type: ResourceType;
  readonly rows: (tx: Tx) => StoredRows<Row, Column>;
  /** The column of each order that has an index, by the name of its attribute. */
  readonly orders: Readonly<Record<string, Column>>;
  /** Reads the resources that a filter may match, where an index finds them, and they are few. */
  findByIndex(tx: Tx, providerUid: string, filter: Filter): Promise<readonly Row[] | undefined>;
  /** What filters and orders see, without `id` and `meta`. */
  toResource(tx: Tx, row: Row, filter: Filter | undefined): Resource | Promise<Resource>;
}

/**
 * Reads a page of the resources of a provider.
 *
 * @throws ScimError 400 `tooMany` where more resources would have to be read than a list may
 */
export async function listRows<Row extends StoredResource, Column extends string>(
  listed: ListedResources<Row, Column>,
  tx: Tx,
  providerUid: string,
  { filter, sortBy, sortOrder, startIndex, count }: ListParameters,
): Promise<Page<Row>> {
  const offset = startIndex - 1;
  const known = filter && (await listed.findByIndex(tx, providerUid, filter));
  if (known !== undefined) {
    const matching: Row[] = [];
    for (const row of known) if (await isMatch(listed, tx, row, filter)) matching.push(row);
    return { rows: matching.slice(offset, offset + count), total: matching.length };
  }
  const order = filter === undefined ? findOrder(listed, sortBy, sortOrder) : undefined;
  if (order === undefined) return scan(listed, tx, providerUid, { filter, sortBy, sortOrder, offset, count });
  const stored = listed.rows(tx);
  const total = await stored.countOfProvider(providerUid);
  const isEmpty = count === 0 || offset >= total;
  return { rows: isEmpty ? [] : await stored.findPage(providerUid, order, offset, count), total };
}

function findOrder<Column extends string>(
  { orders }: Pick<ListedResources<never, Column>, "orders">,
  sortBy: AttributeChain | undefined,
  sortOrder: SortOrder,
): SentOrder<Column> | undefined {
  const by = orders[sortBy === undefined ? "id" : formatChain(sortBy)];
  return by && { by, descending: sortBy !== undefined && sortOrder === "descending" };
}

async function isMatch<Row extends StoredResource>(
  listed: ListedResources<Row, string>,
  tx: Tx,
  row: Row,
  filter: Filter | undefined,
): Promise<boolean> {
  return filter === undefined || matches(filter, await toWhole(listed, tx, row, filter), listed.type);
}

async function toWhole<Row extends StoredResource>(
  { type, toResource }: ListedResources<Row, string>,
  tx: Tx,
  row: Row,
  filter: Filter | undefined,
): Promise<Resource> {
  // No filter can name the address of the endpoint.
  return { ...(await toResource(tx, row, filter)), id: idOf(row), meta: buildMeta(row, type, "") };
}

interface Scan {
  readonly filter: Filter | undefined;
  readonly sortBy: AttributeChain | undefined;
  readonly sortOrder: SortOrder;
  readonly offset: number;
  readonly count: number;
}

// Only what the order needs is kept of each match: resources are large.
async function scan<Row extends StoredResource>(
  listed: ListedResources<Row, string>,
  tx: Tx,
  providerUid: string,
  { filter, sortBy, sortOrder, offset, count }: Scan,
): Promise<Page<Row>> {
  const compare = sortBy && createComparison(sortBy, sortOrder);
  const found: { readonly uid: string; readonly key: Resource }[] = [];
  const page: Row[] = [];
  let total = 0;
  for await (const row of readSlices(listed, tx, providerUid, filter)) {
    const whole = await toWhole(listed, tx, row, filter);
    if (filter !== undefined && !matches(filter, whole, listed.type)) continue;
    total++;
    if (sortBy !== undefined) found.push({ uid: row.uid, key: pick(whole, sortBy) });
    else if (total > offset && page.length < count) page.push(row);
  }
  if (compare === undefined) return { rows: page, total };
  found.sort((a, b) => compare(a.key, b.key) || (a.uid < b.uid ? -1 : 1));
  for (const { uid } of found.slice(offset, offset + count)) {
    const row = await listed.rows(tx).find(uid);
    if (row !== undefined) page.push(row);
  }
  return { rows: page, total };
}

// The attribute that a comparison reads.
function pick(resource: Resource, [{ name }]: AttributeChain): Resource {
  return { [name]: resource[name] };
}

// In the order of ids, or of changes where the filter names the first of them.
async function* readSlices<Row extends StoredResource>(
  { rows, type }: ListedResources<Row, string>,
  tx: Tx,
  providerUid: string,
  filter: Filter | undefined,
): AsyncGenerator<Row> {
  const stored = rows(tx);
  const since = filter && changedSince(filter);
  let after = { uid: "", timeMs: since?.timeMs ?? 0 };
  for (let read = 0; ; ) {
    const slice =
      since === undefined
        ? await stored.findAfter(providerUid, after.uid, SLICE)
        : await stored.findChanged(providerUid, after, SLICE);
    read += slice.length;
    if (read > MAX_SCANNED) throw tooMany(type);
    yield* slice;
    const last = slice.at(-1);
    if (last === undefined || slice.length < SLICE) return;
    after = { uid: last.uid, timeMs: last.updateTimeMs };
  }
}

function tooMany({ name }: ResourceType): ScimError {
  const rule = `there are more than ${MAX_SCANNED} of type ${name}, so lists must filter by what is unique, or by meta.lastModified`;
  return new ScimError(400, rule, "tooMany");
}
