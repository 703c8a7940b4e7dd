// The stores of identities and of identity providers.
import { and, asc, eq, lt, sql } from "drizzle-orm";
import type { Awaitable } from "../awaitable.js";
import { IndexedTable } from "../lists/indexed-table.js";
import type { ListQuery, Page } from "../lists/query.js";
import { defineListedKind, identityProviderKind, usualSorts } from "../lists/resource.js";
import { buildEquals, discardRows, type Executor, mapRows, statement } from "../statement.js";
import type { IdentityProviderRow, IdentityRow } from "../tables/identities.js";

/** Identities as they are listed. */
export const identityKind = defineListedKind(2, {
  table: (t) => t.identities,
  parent: "groupUid",
  quota: "identities",
  sorts: usualSorts,
});

const updateLastSeen = statement<{ uid: string; lastSeenTimeMs: number }>((q, t) =>
  q
    .update(t.identities)
    .set({ lastSeenTimeMs: sql`${sql.placeholder("lastSeenTimeMs")}` })
    .where(
      and(
        eq(t.identities.uid, sql.placeholder("uid")),
        lt(t.identities.lastSeenTimeMs, sql.placeholder("lastSeenTimeMs")),
      ),
    ),
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
export class Identities extends IndexedTable<IdentityRow> {
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
    return discardRows(this.tx.rows(mark, { uid }));
  }

  /** Does the same to all people of a provider. */
  markDeletedOf(providerUid: string): Awaitable<void> {
    return discardRows(this.tx.rows(markByProvider, { providerUid }));
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
  async hasAnyIn(groupUid: string): Promise<boolean> {
    return (await this.findUidsWhere("groupUid", groupUid, 1)).length > 0;
  }

  /** Sets the last seen time unless the stored one is later. */
  updateLastSeen(uid: string, lastSeenTimeMs: number): Awaitable<void> {
    return discardRows(this.tx.rows(updateLastSeen, { uid, lastSeenTimeMs }));
  }
}

function mapRow<T>(row: Awaitable<IdentityRow | undefined>, map: (row: IdentityRow | undefined) => T): Awaitable<T> {
  return row instanceof Promise ? row.then(map) : map(row);
}

const unchangedSince = statement<{ timeMs: number; limit: number }, { uid: string }>((q, t) =>
  q
    .select({ uid: t.identityProviders.uid })
    .from(t.identityProviders)
    .where(lt(t.identityProviders.updateTimeMs, sql.placeholder("timeMs")))
    .orderBy(asc(t.identityProviders.uid))
    .limit(sql.placeholder("limit")),
);

/** Identity providers. */
export class IdentityProviders extends IndexedTable<IdentityProviderRow> {
  constructor(tx: Executor) {
    super(tx, identityProviderKind);
  }

  /** The uids of up to `limit` providers last changed before `timeMs`; scans the whole table. */
  findUnchangedSince(timeMs: number, limit: number): Awaitable<string[]> {
    return mapRows(this.tx.rows(unchangedSince, { timeMs, limit }), (rows) => rows.map(({ uid }) => uid));
  }
}
