// Identities.
import { and, lt } from "drizzle-orm";
import type { Awaitable } from "../awaitable.js";
import { ListedTable } from "../lists/listed-table.js";
import type { ListQuery, Page } from "../lists/query.js";
import { defineListedKind, type PatchOf, usualSorts } from "../lists/resource.js";
import { selectAny } from "../rows.js";
import { buildEquals, buildUpdateValues, type Executor, statement, value } from "../statement.js";
import type { IdentityRow } from "../tables/identities.js";

/** Identities as they are listed. */
export const identityKind = defineListedKind(2, {
  table: "identities",
  parent: "groupUid",
  fixed: ["issuer", "subject", "providerUid", "lastSeenTimeMs"],
  quota: "identities",
  sorts: usualSorts,
});

const child = selectAny("identities", "groupUid");
const updateLastSeen = statement<{ uid: string; lastSeenTimeMs: number }>((q, t) =>
  q
    .update(t.identities)
    .set(buildUpdateValues(t.identities, "lastSeenTimeMs"))
    .where(and(buildEquals(t.identities, "uid"), lt(t.identities.lastSeenTimeMs, value("lastSeenTimeMs")))),
);

/**
 * The provider of an identity that is being deleted. Grants outside the organisation of a provider do not count, so
 * servers of every version that share the database find no rights of such an identity, and no owner in it.
 */
export const DELETED = "deleted";

// Every token was issued before that second.
const marks = { providerUid: DELETED, notBefore: Number.MAX_SAFE_INTEGER };
const mark = statement<{ uid: string }>((q, t) =>
  q.update(t.identities).set(marks).where(buildEquals(t.identities, "uid")),
);
const markByProvider = statement<{ providerUid: string }>((q, t) =>
  q.update(t.identities).set(marks).where(buildEquals(t.identities, "providerUid")),
);

/** Identities. Those that are being deleted are neither found nor listed, but their rows are there. */
export class Identities extends ListedTable<IdentityRow, PatchOf<typeof identityKind>> {
  constructor(tx: Executor) {
    super(tx, identityKind);
  }

  override find(uid: string): Awaitable<IdentityRow | undefined> {
    return mapRow(this.findStored(uid), (row) => (row?.providerUid === DELETED ? undefined : row));
  }

  override async list(query: ListQuery): Promise<Page<IdentityRow>> {
    const page = await super.list(query);
    return { ...page, rows: page.rows.filter(({ providerUid }) => providerUid !== DELETED) };
  }

  /**
   * Takes all rights and tokens of an identity away, before its bindings and its row are deleted in several units of
   * work.
   */
  markDeleted(uid: string): Awaitable<void> {
    return this.run(mark, { uid });
  }

  /** Does the same to all people of a provider. */
  markDeletedOf(providerUid: string): Awaitable<void> {
    return this.run(markByProvider, { providerUid });
  }

  /** The uids of identities that are being deleted, at most `limit`. */
  findMarked(limit: number): Promise<string[]> {
    return this.findUidsWhere("providerUid", DELETED, limit);
  }

  /** Whether the identity is being deleted. */
  isMarked(uid: string): Awaitable<boolean> {
    return mapRow(this.findStored(uid), (row) => row?.providerUid === DELETED);
  }

  /** Whether any identity is a child of the group. */
  hasChildren(groupUid: string): Awaitable<boolean> {
    return this.has(child, { groupUid });
  }

  /** Sets the last seen time unless the stored one is later. */
  updateLastSeen(uid: string, lastSeenTimeMs: number): Awaitable<void> {
    return this.run(updateLastSeen, { uid, lastSeenTimeMs });
  }
}

function mapRow<T>(row: Awaitable<IdentityRow | undefined>, map: (row: IdentityRow | undefined) => T): Awaitable<T> {
  return row instanceof Promise ? row.then(map) : map(row);
}
