// The indexes of all kinds, which `arbor check`, ranks and quotas read.
import { and, eq, gt, lt, sql } from "drizzle-orm";
import type { QuotaKind } from "../kernel/quotas.js";
import { advisoryIndex } from "./advisory-store.js";
import { groupIndex } from "./group-store.js";
import { identityIndex } from "./identity-store.js";
import { counterTotal } from "./list-statements.js";
import type { UsageStore } from "./port.js";
import { repoIndex } from "./registry-store.js";
import {
  accountAssociationIndex,
  groupInviteIndex,
  groupMappingIndex,
  type IndexedQuota,
  identityProviderIndex,
  type ResourceIndex,
  subscriptionIndex,
} from "./resource-index.js";
import { bindingsInRange } from "./role-binding-statements.js";
import { roleBindingIndex, roleIndex } from "./role-store.js";
import { type Executor, statement, sumTotals } from "./statement.js";
import { tagIndex, usualTagIndex } from "./tag-store.js";

/** The indexes of all kinds. */
export const resourceIndexes: readonly ResourceIndex[] = [
  groupIndex,
  identityIndex,
  roleIndex,
  roleBindingIndex,
  identityProviderIndex,
  accountAssociationIndex,
  groupInviteIndex,
  groupMappingIndex,
  repoIndex,
  tagIndex,
  usualTagIndex,
  advisoryIndex,
  subscriptionIndex,
];

/** The indexes whose totals count the resources of a kind in the subtree of a root group. */
export const quotaIndexes: ReadonlyMap<IndexedQuota, ResourceIndex> = new Map(
  resourceIndexes.flatMap((index) => (index.quota === undefined ? [] : [[index.quota, index] as const])),
);

// Counts resources for quotas, mostly by the totals that lists keep.

// The index of creators is used only where the statement itself contains its condition; a parameter would not do.
const rootsOf = statement<{ createdBy: string; cap: number }, { uid: string }>((q, t) =>
  q
    .select({ uid: t.groups.uid })
    .from(t.groups)
    .where(and(eq(t.groups.createdBy, sql.placeholder("createdBy")), sql`${t.groups.createdBy} <> ''`))
    .limit(sql.placeholder("cap")),
);

// The uids of an organisation's providers begin with the uid of its root group.
const peopleOf = statement<{ from: string; to: string; cap: number }, { total: number }>((q, t) => {
  const people = q
    .select({ providerUid: t.identities.providerUid })
    .from(t.identities)
    .where(
      and(gt(t.identities.providerUid, sql.placeholder("from")), lt(t.identities.providerUid, sql.placeholder("to"))),
    )
    .limit(sql.placeholder("cap"))
    .as("people");
  return q.select({ total: sql<number>`count(*)`.mapWith(Number) }).from(people);
});

/** Counts what quotas limit; see {@link UsageStore}. */
export class Usage implements UsageStore {
  readonly #tx: Executor;

  constructor(tx: Executor) {
    this.#tx = tx;
  }

  async count(kind: QuotaKind, ownerUid: string, cap: number, rootUid = ""): Promise<number> {
    if (kind === "identityBindings") {
      const range = { from: rootUid, to: `${rootUid}0`, cap };
      return sumTotals(this.#tx.rows(bindingsInRange, { identityUid: ownerUid, ...range }));
    }
    if (kind === "roots") return (await this.#tx.rows(rootsOf, { createdBy: ownerUid, cap })).length;
    const index = quotaIndexes.get(kind);
    if (index === undefined) throw new TypeError(`no index counts the quota ${kind}`);
    const stored = await sumTotals(this.#tx.rows(counterTotal, { counter: index.counter, scope: ownerUid }));
    if (kind !== "identities" || stored >= cap) return stored;
    // People belong to no group, so no counter of a group includes those who log in through its providers.
    const range = { from: `${ownerUid}/`, to: `${ownerUid}0`, cap: cap - stored };
    return stored + (await sumTotals(this.#tx.rows(peopleOf, range)));
  }
}
