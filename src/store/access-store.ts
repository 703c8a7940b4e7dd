import { and, eq, inArray, sql } from "drizzle-orm";
import type { AccessRow, AccessStore, Awaitable } from "./port.js";
import { type Executor, statement, statementFamily } from "./statement.js";
import type { Tables } from "./tables.js";

const columns = (t: Tables) => ({
  identityUid: t.identities.uid,
  notBefore: t.identities.notBefore,
  groupUid: t.roleBindings.groupUid,
  capabilities: t.roles.capabilities,
});

// One query answers whether the identity exists and what it holds at the groups
// that matter. Sizes are rounded up so that a few shapes serve every depth.
const grantsAt = statementFamily<number, Record<string, string>, AccessRow>(String, (size) => (q, t) => {
  const groupUids = Array.from({ length: size }, (_, i) => sql.placeholder(`group${i}`));
  return q
    .select(columns(t))
    .from(t.identities)
    .leftJoin(
      t.roleBindings,
      and(eq(t.roleBindings.identityUid, t.identities.uid), inArray(t.roleBindings.groupUid, groupUids)),
    )
    .leftJoin(t.roles, eq(t.roles.uid, t.roleBindings.roleUid))
    .where(eq(t.identities.uid, sql.placeholder("identity")));
});

const grantsEverywhere = statement<{ identity: string }, AccessRow>((q, t) =>
  q
    .select(columns(t))
    .from(t.identities)
    .leftJoin(t.roleBindings, eq(t.roleBindings.identityUid, t.identities.uid))
    .leftJoin(t.roles, eq(t.roles.uid, t.roleBindings.roleUid))
    .where(eq(t.identities.uid, sql.placeholder("identity"))),
);

/** Answers the authorization question; see {@link AccessStore}. */
export class Access implements AccessStore {
  readonly #tx: Executor;

  constructor(tx: Executor) {
    this.#tx = tx;
  }

  at(identityUid: string, groupUids: readonly string[]): Awaitable<AccessRow[]> {
    let size = 2;
    while (size < groupUids.length) size *= 2;
    const params: Record<string, string> = { identity: identityUid };
    for (let i = 0; i < size; i++) params[`group${i}`] = groupUids[Math.min(i, groupUids.length - 1)] ?? "";
    return this.#tx.rows(grantsAt(size), params);
  }

  everywhere(identityUid: string): Awaitable<AccessRow[]> {
    return this.#tx.rows(grantsEverywhere, { identity: identityUid });
  }
}
