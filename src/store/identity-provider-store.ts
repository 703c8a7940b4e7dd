import { asc, lt, sql } from "drizzle-orm";
import { IndexedTable } from "./indexed-table.js";
import { identityProviderLists } from "./kinds.js";
import type { Awaitable, IdentityProviderRow, IdentityProviderStore } from "./port.js";
import { type Executor, statement } from "./statement.js";

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
  readonly #tx: Executor;

  constructor(tx: Executor) {
    super(tx, identityProviderLists);
    this.#tx = tx;
  }

  unchangedSince(timeMs: number, limit: number): Awaitable<string[]> {
    const rows = this.#tx.rows(unchangedSince, { timeMs, limit });
    return rows instanceof Promise ? rows.then((found) => found.map(({ uid }) => uid)) : rows.map(({ uid }) => uid);
  }
}
