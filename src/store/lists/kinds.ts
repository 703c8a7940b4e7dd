// All kinds of rows that are listed, which `arbor check` and quotas read.
import { and, eq, gt, lt, sql } from "drizzle-orm";
import type { QuotaKind } from "../../kernel/quotas.js";
import { advisoryKind } from "../advisories/advisories.js";
import { groupKind } from "../iam/groups.js";
import { identityKind } from "../iam/identities.js";
import { bindingsInRange } from "../iam/role-binding-statements.js";
import { roleBindingKind, roleKind } from "../iam/roles.js";

import { repoKind } from "../registry/repos.js";
import { tagKind } from "../registry/tags.js";
import { type Executor, statement, sumTotals } from "../statement.js";
import { countBelow } from "./counters.js";
import {
  accountAssociationKind,
  type CountedQuota,
  groupInviteKind,
  groupMappingKind,
  identityProviderKind,
  type ListedKind,
  subscriptionKind,
} from "./resource.js";

/** All kinds. */
export const listedKinds: readonly ListedKind[] = [
  groupKind,
  identityKind,
  roleKind,
  roleBindingKind,
  identityProviderKind,
  accountAssociationKind,
  groupInviteKind,
  groupMappingKind,
  repoKind,
  tagKind,
  advisoryKind,
  subscriptionKind,
];

/** The kinds that quotas limit, by the names of the quotas. */
export const countedKinds: ReadonlyMap<CountedQuota, ListedKind> = new Map(
  listedKinds.flatMap((kind) => (kind.quota === undefined ? [] : [[kind.quota, kind] as const])),
);

// Counts resources for quotas, mostly by the counters of the root.

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

/** Counts what quotas limit. */
export class Usage {
  readonly #tx: Executor;

  constructor(tx: Executor) {
    this.#tx = tx;
  }

  /**
   * How many resources of a kind belong to an owner. A unit of work that writes conflicts by it, on PostgreSQL, with all
   * others that create something in the same organisation.
   *
   * @param ownerUid the root group of the organisation, or the person or the identity where the quota is theirs
   * @param cap where no counter is stored, counting stops here
   * @param rootUid the root group in whose organisation the quota of an identity counts
   */
  async count(kind: QuotaKind, ownerUid: string, cap: number, rootUid = ""): Promise<number> {
    if (kind === "identityBindings") {
      const range = { from: rootUid, to: `${rootUid}0`, cap };
      return sumTotals(this.#tx.rows(bindingsInRange, { identityUid: ownerUid, ...range }));
    }
    if (kind === "roots") return (await this.#tx.rows(rootsOf, { createdBy: ownerUid, cap })).length;
    const listed = countedKinds.get(kind);
    if (listed === undefined) throw new TypeError(`no counter counts the quota ${kind}`);
    const stored = await countBelow(this.#tx, listed, ownerUid);
    if (kind !== "identities" || stored >= cap) return stored;
    // People belong to no group, so no counter of a group includes those who log in through its providers.
    const range = { from: `${ownerUid}/`, to: `${ownerUid}0`, cap: cap - stored };
    return stored + (await sumTotals(this.#tx.rows(peopleOf, range)));
  }
}
