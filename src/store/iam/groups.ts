// The stores of groups, and of what belongs to a group: invites, accepted terms and access requests.
import { and, eq, gt, isNull, lte, sql } from "drizzle-orm";
import { rootOf } from "../../kernel/uidp.js";
import type { Awaitable } from "../awaitable.js";
import { countRow } from "../lists/counters.js";
import { IndexedTable } from "../lists/indexed-table.js";
import { listPage } from "../lists/page.js";
import type { ListQuery, Page } from "../lists/query.js";
import { defineListedKind, groupInviteKind, ownColumns, usualSorts } from "../lists/resource.js";
import {
  buildEquals,
  buildInsertValues,
  buildUpdateValues,
  buildUpsertValues,
  discardRows,
  type Executor,
  hasRows,
  statement,
  statementFamily,
  takeFirst,
} from "../statement.js";
import type { AccessRequestRow, GroupRow, TermsAcceptanceRow } from "../tables/groups.js";
import type { GroupInviteRow } from "../tables/roles.js";

/** The columns of a group that change after its creation. */
export type GroupPatch = Partial<Pick<GroupRow, "name" | "description" | "verified" | "kind" | "resourceLimits">>;

/** Groups as they are listed. */
export const groupKind = defineListedKind(1, {
  table: (t) => t.groups,
  parent: "parentUid",
  quota: "groups",
  includesSelf: true,
  hasRowsBelow: true,
  sorts: usualSorts,
});

const get = statement<{ uid: string }, GroupRow>((q, t) =>
  q.select(ownColumns(t.groups)).from(t.groups).where(buildEquals(t.groups, "uid")),
);
const insert = statement<GroupRow & { readonly rootUid: string }>((q, t) =>
  q.insert(t.groups).values(buildInsertValues(t.groups)),
);
const update = statement<Required<GroupPatch> & { uid: string; updateTimeMs: number }>((q, t) =>
  q
    .update(t.groups)
    .set(buildUpdateValues(t.groups, "name", "description", "verified", "kind", "resourceLimits", "updateTimeMs"))
    .where(buildEquals(t.groups, "uid")),
);
const remove = statement<{ uid: string }>((q, t) => q.delete(t.groups).where(buildEquals(t.groups, "uid")));
const child = statement<{ uid: string }, object>((q, t) =>
  q
    .select({ uid: t.groups.uid })
    .from(t.groups)
    .where(eq(t.groups.parentUid, sql.placeholder("uid")))
    .limit(1),
);
// Any number of roots may share a name: neither statement may scan all of them.
const verifiedRoot = statement<{ name: string }, GroupRow>((q, t) =>
  q
    .select(ownColumns(t.groups))
    .from(t.groups)
    .where(and(eq(t.groups.name, sql.placeholder("name")), isNull(t.groups.parentUid), eq(t.groups.verified, true)))
    .limit(1),
);
const rootNamed = statement<{ name: string }, object>((q, t) =>
  q
    .select({ uid: t.groups.uid })
    .from(t.groups)
    .where(and(eq(t.groups.name, sql.placeholder("name")), isNull(t.groups.parentUid)))
    .limit(1),
);

/** Groups. */
export class Groups {
  readonly #tx: Executor;

  constructor(tx: Executor) {
    this.#tx = tx;
  }

  find(uid: string): Awaitable<GroupRow | undefined> {
    return takeFirst(this.#tx.rows(get, { uid }));
  }

  async insert(row: GroupRow): Promise<void> {
    await this.#tx.rows(insert, { ...row, rootUid: rootOf(row.uid) });
    await countRow(this.#tx, groupKind, row, 1);
  }

  /** Applies `patch` to the row and returns it, or undefined when it does not exist. */
  async update(uid: string, patch: GroupPatch, nowMs: number): Promise<GroupRow | undefined> {
    const before = await this.find(uid);
    if (before === undefined) return undefined;
    const after = { ...before, ...patch, updateTimeMs: nowMs };
    await this.#tx.rows(update, after);
    return after;
  }

  async delete(row: GroupRow): Promise<void> {
    await countRow(this.#tx, groupKind, row, -1);
    await this.#tx.rows(remove, { uid: row.uid });
  }

  list(query: ListQuery): Promise<Page<GroupRow>> {
    return listPage<GroupRow>(this.#tx, groupKind, query);
  }

  hasChildren(uid: string): Awaitable<boolean> {
    return hasRows(this.#tx.rows(child, { uid }));
  }

  /** The verified root group with this name: there is at most one. */
  findVerifiedRoot(name: string): Awaitable<GroupRow | undefined> {
    return takeFirst(this.#tx.rows(verifiedRoot, { name }));
  }

  /** Whether any root group has this name. */
  hasRootNamed(name: string): Awaitable<boolean> {
    return hasRows(this.#tx.rows(rootNamed, { name }));
  }
}

const invitesByExpiry = statementFamily<boolean, { groupUid: string; nowMs: number; limit: number }, { uid: string }>(
  String,
  (live) => (q, t) =>
    q
      .select({ uid: t.groupInvites.uid })
      .from(t.groupInvites)
      .where(
        and(
          eq(t.groupInvites.groupUid, sql.placeholder("groupUid")),
          (live ? gt : lte)(t.groupInvites.expireTimeMs, sql.placeholder("nowMs")),
        ),
      )
      .limit(sql.placeholder("limit")),
);

/** Group invites. */
export class GroupInvites extends IndexedTable<GroupInviteRow> {
  constructor(tx: Executor) {
    super(tx, groupInviteKind);
  }

  /** The uids of the group's invites that expire after `nowMs` (`live`) or do not, at most `limit`. */
  async findByExpiry(groupUid: string, nowMs: number, live: boolean, limit: number): Promise<string[]> {
    const rows = await this.tx.rows(invitesByExpiry(live), { groupUid, nowMs, limit });
    return rows.map(({ uid }) => uid);
  }
}

const acceptTerms = statement<TermsAcceptanceRow>((q, t) =>
  q.insert(t.termsAcceptances).values(buildInsertValues(t.termsAcceptances)).onConflictDoNothing(),
);
const termsOf = statement<{ groupUid: string }, TermsAcceptanceRow>((q, t) =>
  q.select().from(t.termsAcceptances).where(buildEquals(t.termsAcceptances, "groupUid")),
);
const deleteTermsOf = statement<{ groupUid: string }>((q, t) =>
  q.delete(t.termsAcceptances).where(buildEquals(t.termsAcceptances, "groupUid")),
);

/** Acceptances of terms. */
export class Terms {
  readonly #tx: Executor;

  constructor(tx: Executor) {
    this.#tx = tx;
  }

  /** Records the acceptance unless it is already recorded. */
  accept(row: TermsAcceptanceRow): Awaitable<void> {
    return discardRows(this.#tx.rows(acceptTerms, row));
  }

  findByGroup(groupUid: string): Awaitable<TermsAcceptanceRow[]> {
    return this.#tx.rows(termsOf, { groupUid });
  }

  deleteOf(groupUid: string): Awaitable<void> {
    return discardRows(this.#tx.rows(deleteTermsOf, { groupUid }));
  }
}

const lastAccessRequest = statement<Omit<AccessRequestRow, "timeMs">, Pick<AccessRequestRow, "timeMs">>((q, t) =>
  q
    .select({ timeMs: t.accessRequests.timeMs })
    .from(t.accessRequests)
    .where(buildEquals(t.accessRequests, "groupUid", "identityUid")),
);
const putAccessRequest = statement<AccessRequestRow>((q, t) =>
  q
    .insert(t.accessRequests)
    .values(buildInsertValues(t.accessRequests))
    .onConflictDoUpdate({
      target: [t.accessRequests.groupUid, t.accessRequests.identityUid],
      set: buildUpsertValues(t.accessRequests, "timeMs"),
    }),
);
const deleteAccessRequestsOf = statement<{ groupUid: string }>((q, t) =>
  q.delete(t.accessRequests).where(buildEquals(t.accessRequests, "groupUid")),
);

/** When identities last requested access to a group. */
export class AccessRequests {
  readonly #tx: Executor;

  constructor(tx: Executor) {
    this.#tx = tx;
  }

  async findLastMs(groupUid: string, identityUid: string): Promise<number | undefined> {
    return (await takeFirst(this.#tx.rows(lastAccessRequest, { groupUid, identityUid })))?.timeMs;
  }

  put(groupUid: string, identityUid: string, timeMs: number): Awaitable<void> {
    return discardRows(this.#tx.rows(putAccessRequest, { groupUid, identityUid, timeMs }));
  }

  deleteOf(groupUid: string): Awaitable<void> {
    return discardRows(this.#tx.rows(deleteAccessRequestsOf, { groupUid }));
  }
}
