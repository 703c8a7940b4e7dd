// The stores of identities and of identity providers.
import { and, asc, eq, lt, sql } from "drizzle-orm";
import { IndexedTable } from "./indexed-table.js";
import type { Awaitable, IdentityProviderRow, IdentityProviderStore, IdentityRow, IdentityStore } from "./port.js";
import { defineResourceIndex, identityProviderIndex, usualSorts } from "./resource-index.js";
import { discardRows, type Executor, mapRows, statement } from "./statement.js";

/** The index of identities. */
export const identityIndex = defineResourceIndex(2, {
  table: (t) => t.identities,
  parent: "groupUid",
  quota: "identities",
  sorts: usualSorts,
});

// No list is ordered by this column, so the index does not change.
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

/** Identities; see {@link IdentityStore}. */
export class Identities extends IndexedTable<IdentityRow> implements IdentityStore {
  constructor(tx: Executor) {
    super(tx, identityIndex);
  }

  async hasAnyIn(groupUid: string): Promise<boolean> {
    return (await this.findUidsWhere("groupUid", groupUid, 1)).length > 0;
  }

  findByProvider(providerUid: string, limit: number): Promise<string[]> {
    return this.findUidsWhere("providerUid", providerUid, limit);
  }

  updateLastSeen(uid: string, lastSeenTimeMs: number): Awaitable<void> {
    return discardRows(this.tx.rows(updateLastSeen, { uid, lastSeenTimeMs }));
  }
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
    super(tx, identityProviderIndex);
  }

  findUnchangedSince(timeMs: number, limit: number): Awaitable<string[]> {
    return mapRows(this.tx.rows(unchangedSince, { timeMs, limit }), (rows) => rows.map(({ uid }) => uid));
  }
}
