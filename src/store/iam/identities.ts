// The stores of identities and of identity providers.
import { and, asc, eq, lt, sql } from "drizzle-orm";
import { IndexedTable } from "../lists/indexed-table.js";
import { defineListedKind, identityProviderKind, usualSorts } from "../lists/resource.js";
import type {
  Awaitable,
  IdentityProviderRow,
  IdentityProviderStore,
  IdentityRow,
  IdentityStore,
  ListQuery,
  Page,
} from "../port.js";
import { buildEquals, discardRows, type Executor, mapRows, statement } from "../statement.js";

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

/** Identities; see {@link IdentityStore}. */
export class Identities extends IndexedTable<IdentityRow> implements IdentityStore {
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

  markDeleted(uid: string): Awaitable<void> {
    return discardRows(this.tx.rows(mark, { uid }));
  }

  markDeletedOf(providerUid: string): Awaitable<void> {
    return discardRows(this.tx.rows(markByProvider, { providerUid }));
  }

  findMarked(limit: number): Promise<string[]> {
    return this.findUidsWhere("providerUid", DELETED, limit);
  }

  isMarked(uid: string): Awaitable<boolean> {
    return mapRow(this.findStored(uid), (row) => row?.providerUid === DELETED);
  }

  async hasAnyIn(groupUid: string): Promise<boolean> {
    return (await this.findUidsWhere("groupUid", groupUid, 1)).length > 0;
  }

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

/** Identity providers; see {@link IdentityProviderStore}. */
export class IdentityProviders extends IndexedTable<IdentityProviderRow> implements IdentityProviderStore {
  constructor(tx: Executor) {
    super(tx, identityProviderKind);
  }

  findUnchangedSince(timeMs: number, limit: number): Awaitable<string[]> {
    return mapRows(this.tx.rows(unchangedSince, { timeMs, limit }), (rows) => rows.map(({ uid }) => uid));
  }
}
