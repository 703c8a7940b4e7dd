import { and, eq, lt, sql } from "drizzle-orm";
import { done } from "./first.js";
import { IndexedTable } from "./indexed-table.js";
import type { Awaitable, IdentityRow, IdentityStore } from "./port.js";
import { defineResourceIndex, usualSorts } from "./resource-index.js";
import { type Executor, statement } from "./statement.js";

/** How identities are kept in lists. */
export const identityLists = defineResourceIndex(2, {
  table: (t) => t.identities,
  place: "groupUid",
  sorts: usualSorts,
});

// No list is in this order, so nothing but the row changes.
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
  readonly #executor: Executor;

  constructor(tx: Executor) {
    super(tx, identityLists);
    this.#executor = tx;
  }

  async anyIn(groupUid: string): Promise<boolean> {
    return (await this.uidsWhere("groupUid", groupUid, 1)).length > 0;
  }

  ofProvider(providerUid: string, limit: number): Promise<string[]> {
    return this.uidsWhere("providerUid", providerUid, limit);
  }

  updateLastSeen(uid: string, lastSeenTimeMs: number): Awaitable<void> {
    return done(this.#executor.rows(updateLastSeen, { uid, lastSeenTimeMs }));
  }
}
