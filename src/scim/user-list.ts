// Lists of the people of a directory (RFC 7644, section 3.4.2). What is asked for by an index is read by it: a user name, an
// external id, an id, changes since a time, and pages in the order of ids, user names or changes. Everything else reads people in
// slices, up to a bound, because a directory may have a hundred thousand.
import { buildUserNameKey, type ScimUserOrder, type ScimUserRow, scimUserKind } from "../store/iam/scim-users.js";
import type { Tx } from "../store/transaction.js";
import { buildMeta, idOf, type Page, uidOf } from "./collection.js";
import { changedSince, equalityOf } from "./protocol/conditions.js";
import { ScimError } from "./protocol/error.js";
import type { Filter } from "./protocol/filter-tree.js";
import type { ListParameters } from "./protocol/list.js";
import { matches } from "./protocol/match.js";
import type { Resource } from "./protocol/resource.js";
import { type AttributeChain, formatChain, userType } from "./protocol/schemas.js";
import { createComparison, type SortOrder } from "./protocol/sort.js";
import { toResource } from "./user-row.js";

/** How many people a list without an index reads at most. */
const MAX_SCANNED = 10_000;
/** How many it reads at a time; between two slices other requests run. */
const SLICE = 50;

// What filters and orders see.
function toWhole(row: ScimUserRow): Resource {
  // No filter can name the address of the endpoint.
  return { ...toResource(row), id: idOf(row), meta: buildMeta(row, userType, "") };
}

/**
 * Reads a page of the people of a provider.
 *
 * @throws ScimError 400 `tooMany` where more people would have to be read than a list may
 */
export async function listUsers(
  tx: Tx,
  providerUid: string,
  { filter, sortBy, sortOrder, startIndex, count }: ListParameters,
): Promise<Page<ScimUserRow>> {
  const offset = startIndex - 1;
  const known = filter && (await findByIndex(tx, providerUid, filter));
  if (known !== undefined) {
    const rows = known.filter((row) => filter === undefined || matches(filter, toWhole(row), userType));
    return { rows: rows.slice(offset, offset + count), total: rows.length };
  }
  const order = filter === undefined ? findOrder(sortBy, sortOrder) : undefined;
  if (order !== undefined) {
    const total = await tx.table(scimUserKind).countOfProvider(providerUid);
    const rows =
      count === 0 || offset >= total ? [] : await tx.table(scimUserKind).findPage(providerUid, order, offset, count);
    return { rows, total };
  }
  return scan(tx, providerUid, { filter, sortBy, sortOrder, offset, count });
}

// The people that a filter may match, where an index finds them: at most one.
async function findByIndex(tx: Tx, providerUid: string, filter: Filter): Promise<ScimUserRow[] | undefined> {
  const users = tx.table(scimUserKind);
  const [userName, externalId, id] = ["userName", "externalId", "id"].map((name) => equalityOf(filter, name));
  let row: ScimUserRow | undefined;
  if (userName !== undefined) row = await users.findByUserName(providerUid, buildUserNameKey(userName));
  else if (externalId !== undefined)
    row = externalId === "" ? undefined : await users.findByExternalId(providerUid, externalId);
  else if (id !== undefined) row = await findById(tx, providerUid, id);
  else return undefined;
  return row === undefined ? [] : [row];
}

async function findById(tx: Tx, providerUid: string, id: string): Promise<ScimUserRow | undefined> {
  const uid = uidOf(providerUid, id);
  return uid === undefined ? undefined : tx.table(scimUserKind).find(uid);
}

function findOrder(sortBy: AttributeChain | undefined, sortOrder: SortOrder): ScimUserOrder | undefined {
  const descending = sortOrder === "descending";
  switch (sortBy && formatChain(sortBy)) {
    case undefined:
      return { by: "uid", descending: false };
    case "id":
      return { by: "uid", descending };
    case "userName":
      return { by: "userNameKey", descending };
    case "meta.lastModified":
      return { by: "updateTimeMs", descending };
    default:
      return undefined;
  }
}

interface Scan {
  readonly filter: Filter | undefined;
  readonly sortBy: AttributeChain | undefined;
  readonly sortOrder: SortOrder;
  readonly offset: number;
  readonly count: number;
}

// Only what the order needs is kept of each match: people are large.
async function scan(
  tx: Tx,
  providerUid: string,
  { filter, sortBy, sortOrder, offset, count }: Scan,
): Promise<Page<ScimUserRow>> {
  const users = tx.table(scimUserKind);
  const compare = sortBy && createComparison(sortBy, sortOrder);
  const found: { readonly uid: string; readonly key: Resource }[] = [];
  const page: ScimUserRow[] = [];
  let total = 0;
  for await (const row of readSlices(tx, providerUid, filter)) {
    const whole = toWhole(row);
    if (filter !== undefined && !matches(filter, whole, userType)) continue;
    total++;
    if (sortBy !== undefined) found.push({ uid: row.uid, key: pick(whole, sortBy) });
    else if (total > offset && page.length < count) page.push(row);
  }
  if (compare === undefined) return { rows: page, total };
  found.sort((a, b) => compare(a.key, b.key) || (a.uid < b.uid ? -1 : 1));
  for (const { uid } of found.slice(offset, offset + count)) {
    const row = await users.find(uid);
    if (row !== undefined) page.push(row);
  }
  return { rows: page, total };
}

// The attribute that a comparison reads.
function pick(resource: Resource, [{ name }]: AttributeChain): Resource {
  return { [name]: resource[name] };
}

// In the order of ids, or of changes where the filter names the first of them.
async function* readSlices(tx: Tx, providerUid: string, filter: Filter | undefined): AsyncGenerator<ScimUserRow> {
  const users = tx.table(scimUserKind);
  const since = filter && changedSince(filter);
  let after = { uid: "", timeMs: since?.timeMs ?? 0 };
  for (let read = 0; ; ) {
    const rows =
      since === undefined
        ? await users.findAfter(providerUid, after.uid, SLICE)
        : await users.findChanged(providerUid, after, SLICE);
    read += rows.length;
    if (read > MAX_SCANNED) throw tooMany();
    yield* rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < SLICE) return;
    after = { uid: last.uid, timeMs: last.updateTimeMs };
  }
}

function tooMany(): ScimError {
  const rule = `the directory has more than ${MAX_SCANNED} people, so lists must filter by userName, externalId, id or meta.lastModified`;
  return new ScimError(400, rule, "tooMany");
}
