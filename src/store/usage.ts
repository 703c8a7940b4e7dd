// How many resources there are of what quotas limit, mostly from the counters of the root group.
import { and, gt, gte, lt, sql } from "drizzle-orm";
import type { QuotaKind } from "../kernel/quotas.js";
import { countedKinds } from "./kinds.js";
import { countBelow } from "./lists/counters.js";
import { buildEquals, rowLimit, statement, sumOf, TransactionPart, toNumber, value } from "./statement.js";

// The index of creators is used only where the statement itself contains its condition; a parameter would not do.
const rootsOf = statement<{ createdBy: string; cap: number }, { uid: string }>((q, t) =>
  q
    .select({ uid: t.groups.uid })
    .from(t.groups)
    .where(and(buildEquals(t.groups, "createdBy"), sql`${t.groups.createdBy} <> ''`))
    .limit(rowLimit("cap")),
);

// The uids of an organisation's providers begin with the uid of its root group.
const peopleOf = statement<{ from: string; to: string; cap: number }, { total: number }>((q, t) => {
  const people = q
    .select({ providerUid: t.identities.providerUid })
    .from(t.identities)
    .where(and(gt(t.identities.providerUid, value("from")), lt(t.identities.providerUid, value("to"))))
    .limit(rowLimit("cap"))
    .as("people");
  return q.select({ total: toNumber(sql`count(*)`) }).from(people);
});

// How many bindings an identity has at groups from `from` to before `to`; counts up to `cap`.
const bindingsOf = statement<{ identityUid: string; from: string; to: string; cap: number }, { total: number }>(
  (q, t) => {
    const found = q
      .select({ uid: t.roleBindings.uid })
      .from(t.roleBindings)
      .where(
        and(
          buildEquals(t.roleBindings, "identityUid"),
          gte(t.roleBindings.groupUid, value("from")),
          lt(t.roleBindings.groupUid, value("to")),
        ),
      )
      .limit(rowLimit("cap"))
      .as("found");
    return q.select({ total: toNumber(sql`count(*)`) }).from(found);
  },
);

/** Counts what quotas limit. */
export class Usage extends TransactionPart {
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
      return this.all(bindingsOf, { identityUid: ownerUid, ...range }, sumOf);
    }
    if (kind === "roots") return (await this.all(rootsOf, { createdBy: ownerUid, cap })).length;
    const listed = countedKinds.get(kind);
    if (listed === undefined) throw new TypeError(`no counter counts the quota ${kind}`);
    const stored = await countBelow(this.tx, listed, ownerUid);
    if (kind !== "identities" || stored >= cap) return stored;
    // People belong to no group, so no counter of a group includes those who log in through its providers.
    const range = { from: `${ownerUid}/`, to: `${ownerUid}0`, cap: cap - stored };
    return stored + (await this.all(peopleOf, range, sumOf));
  }
}
