import { asc, lt } from "drizzle-orm";
import { ListedTable } from "../lists/listed-table.js";
import { defineListedKind, usualSorts } from "../lists/resource.js";
import { type Executor, rowLimit, statement, value } from "../statement.js";
import type { IdentityProviderRow } from "../tables/identities.js";

export const identityProviderKind = defineListedKind(5, {
  table: "identityProviders",
  parent: "groupUid",
  quota: "providers",
  hasRowsBelow: true,
  sorts: usualSorts,
});

const unchangedSince = statement<{ timeMs: number; limit: number }, { uid: string }>((q, t) =>
  q
    .select({ uid: t.identityProviders.uid })
    .from(t.identityProviders)
    .where(lt(t.identityProviders.updateTimeMs, value("timeMs")))
    .orderBy(asc(t.identityProviders.uid))
    .limit(rowLimit("limit")),
);

export class IdentityProviders extends ListedTable<IdentityProviderRow> {
  constructor(tx: Executor) {
    super(tx, identityProviderKind);
  }

  /** The uids of up to `limit` providers last changed before `timeMs`; scans the whole table. */
  findUnchangedSince(timeMs: number, limit: number): Promise<string[]> {
    return this.all(unchangedSince, { timeMs, limit }, (rows) => rows.map(({ uid }) => uid));
  }
}
