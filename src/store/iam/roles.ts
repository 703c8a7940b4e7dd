// The stores of roles and of role bindings.
import { asc, isNull } from "drizzle-orm";
import { rootOf } from "../../kernel/uidp.js";
import type { Awaitable } from "../awaitable.js";
import { countRow } from "../lists/counters.js";
import { IndexedTable } from "../lists/indexed-table.js";
import { listPage } from "../lists/page.js";
import type { ListQuery, Page } from "../lists/query.js";
import { defineListedKind, ownColumns, usualSorts } from "../lists/resource.js";
import { readByUids } from "../lists/walk.js";
import { discardRows, type Executor, hasRows, statement, sumTotals, takeFirst } from "../statement.js";
import type { RoleBindingRow, RoleRow } from "../tables/roles.js";
import { DELETED } from "./identities.js";
import type { BindingChange, HydratedBinding } from "./role-binding-statements.js";
import * as statements from "./role-binding-statements.js";

/** Custom roles as they are listed; built-in roles belong to no group. */
export const roleKind = defineListedKind(3, {
  table: (t) => t.roles,
  parent: "groupUid",
  quota: "roles",
  sorts: usualSorts,
});

// They are few: one for each built-in role, and what the operator made.
const outsideGroups = statement<Record<string, never>, RoleRow>((q, t) =>
  q.select(ownColumns(t.roles)).from(t.roles).where(isNull(t.roles.groupUid)).orderBy(asc(t.roles.uid)),
);

/** Roles. */
export class Roles extends IndexedTable<RoleRow> {
  constructor(tx: Executor) {
    super(tx, roleKind);
  }

  /** Whether any role is a child of the group. */
  async hasAnyIn(groupUid: string): Promise<boolean> {
    return (await this.findUidsWhere("groupUid", groupUid, 1)).length > 0;
  }

  /** The roles that belong to no group, in the order of uids: those built in, and those of the operator. */
  listOutsideGroups(): Awaitable<RoleRow[]> {
    return this.tx.rows(outsideGroups, {});
  }
}

/** Role bindings as they are listed; they have no names. */
export const roleBindingKind = defineListedKind(4, {
  table: (t) => t.roleBindings,
  parent: "groupUid",
  quota: "bindings",
  sorts: { created_at: "createTimeMs" },
  join: statements.join,
});

/** A limit that no number of bindings reaches. */
const NO_LIMIT = 2 ** 31 - 1;
/** Greater than every uid: uids are hex digits and slashes. */
const MAX_UID = "g";

// The bindings of an identity that is being deleted grant nothing.
function withoutDeleted(rows: HydratedBinding[]): HydratedBinding[] {
  return rows.filter(({ identityProvider }) => identityProvider !== DELETED);
}

/** Role bindings. */
export class RoleBindings {
  readonly #tx: Executor;

  constructor(tx: Executor) {
    this.#tx = tx;
  }

  find(uid: string): Awaitable<RoleBindingRow | undefined> {
    return takeFirst(this.#tx.rows(statements.get, { uid }));
  }

  /** The binding of this identity to this role at this group. */
  findSame(groupUid: string, identityUid: string, roleUid: string): Awaitable<RoleBindingRow | undefined> {
    return takeFirst(this.#tx.rows(statements.same, { groupUid, identityUid, roleUid }));
  }

  /** Those of `uids` that exist, in no order; one query. */
  async findHydrated(uids: readonly string[]): Promise<HydratedBinding[]> {
    return withoutDeleted((await readByUids(this.#tx, roleBindingKind, uids)) as HydratedBinding[]);
  }

  async insert(row: RoleBindingRow): Promise<void> {
    await this.#tx.rows(statements.insert, { ...row, rootUid: rootOf(row.uid) });
    await countRow(this.#tx, roleBindingKind, row, 1);
  }

  /** Changes the identity or the role; a changed binding is no longer automatic. */
  update(uid: string, change: BindingChange, nowMs: number): Awaitable<void> {
    return discardRows(this.#tx.rows(statements.update, { uid, ...change, automatic: false, updateTimeMs: nowMs }));
  }

  /** Does nothing when the binding does not exist. */
  async delete(uid: string): Promise<void> {
    const row = await this.find(uid);
    if (row === undefined) return;
    await countRow(this.#tx, roleBindingKind, row, -1);
    await this.#tx.rows(statements.remove, { uid });
  }

  async list(query: ListQuery): Promise<Page<HydratedBinding>> {
    const page = await listPage<HydratedBinding>(this.#tx, roleBindingKind, query);
    return { ...page, rows: withoutDeleted(page.rows) };
  }

  /** Bindings of an identity, at most `limit`; all of them by default. */
  findByIdentity(identityUid: string, limit = NO_LIMIT): Awaitable<RoleBindingRow[]> {
    return this.#tx.rows(statements.ofIdentity, { identityUid, limit });
  }

  /** The roles of an identity, each once; one statement, however many bindings there are. */
  findRolesOf(identityUid: string): Awaitable<Pick<RoleRow, "uid" | "capabilities">[]> {
    return this.#tx.rows(statements.rolesOfIdentity, { identityUid });
  }

  /** The groups and roles of an identity's bindings, at most `limit`. */
  findGrantsOf(identityUid: string, limit: number): Awaitable<Pick<RoleBindingRow, "groupUid" | "roleUid">[]> {
    return this.#tx.rows(statements.grantsOfIdentity, { identityUid, limit });
  }

  /** Whether the identity has a binding outside the subtree of a group. */
  isBoundOutside(identityUid: string, groupUid: string): Awaitable<boolean> {
    return hasRows(this.#tx.rows(statements.ofIdentityOutside, { identityUid, groupUid }));
  }

  /** A root group whose only holder of the role is this identity; undefined where there is none. */
  async findSoleRoot(identityUid: string, roleUid: string): Promise<string | undefined> {
    const [row] = await this.#tx.rows(statements.soleRoot, { identityUid, roleUid });
    return row?.root;
  }

  /** The bindings of an identity that are pending, or are not, with uids greater than `after`, in the order of uids. */
  async findByPending(identityUid: string, pending: boolean, after: string, limit: number): Promise<HydratedBinding[]> {
    const rows = await this.#tx.rows(statements.byPending(pending), { identityUid, after, end: MAX_UID, limit });
    const found = new Map((await this.findHydrated(rows.map(({ uid }) => uid))).map((row) => [row.uid, row]));
    return rows.flatMap(({ uid }) => found.get(uid) ?? []);
  }

  /** How many bindings of an identity are pending, or are not. */
  countPending(identityUid: string, pending: boolean): Awaitable<number> {
    return sumTotals(this.#tx.rows(statements.countPending(pending), { identityUid }));
  }

  /** The root groups in whose subtrees bindings of an identity are pending, in the order of uids. */
  async findPendingRoots(identityUid: string, limit: number): Promise<string[]> {
    const rows = await this.#tx.rows(statements.pendingRoots, { identityUid, limit });
    return rows.map(({ root }) => root);
  }

  /** Whether the identity has a binding that is not pending in the subtree of a root group. */
  hasAccepted(identityUid: string, rootUid: string): Awaitable<boolean> {
    const range = { after: rootUid, end: `${rootUid}0`, limit: 1 };
    return hasRows(this.#tx.rows(statements.byPending(false), { identityUid, ...range }));
  }

  /** Accepts pending bindings of the identity in the subtree of the root group, at most `limit`; returns their uids. */
  async accept(identityUid: string, rootUid: string, limit: number): Promise<string[]> {
    const range = { after: rootUid, end: `${rootUid}0`, limit };
    const rows = await this.#tx.rows(statements.byPending(true), { identityUid, ...range });
    for (const { uid } of rows) await this.acceptOne(uid);
    return rows.map(({ uid }) => uid);
  }

  /** Accepts one binding. */
  acceptOne(uid: string): Awaitable<void> {
    return discardRows(this.#tx.rows(statements.accept, { uid }));
  }

  /** Whether the identity has the role at any group. */
  hasRole(identityUid: string, roleUid: string): Awaitable<boolean> {
    return hasRows(this.#tx.rows(statements.anyOf, { identityUid, roleUid }));
  }

  /** The bindings of a role, in the order of uids. */
  findByRole(roleUid: string): Awaitable<RoleBindingRow[]> {
    return this.#tx.rows(statements.ofRole, { roleUid });
  }

  /** Whether the role is bound anywhere. */
  isBound(roleUid: string): Awaitable<boolean> {
    return hasRows(this.#tx.rows(statements.anyOfRole, { roleUid }));
  }

  /** Whether the role is bound outside the subtree of a group. */
  isRoleBoundOutside(roleUid: string, groupUid: string): Awaitable<boolean> {
    return hasRows(this.#tx.rows(statements.ofRoleOutside, { roleUid, groupUid }));
  }

  /** Whether the group has a binding besides the automatic ones. */
  hasGranted(groupUid: string): Awaitable<boolean> {
    return hasRows(this.#tx.rows(statements.notAutomatic, { groupUid }));
  }

  /**
   * How many existing identities have the role at the group, without `anonymous`; counts up to two.
   *
   * @param except a provider whose people do not count
   */
  async countHolders(groupUid: string, roleUid: string, except = ""): Promise<number> {
    return (await this.#tx.rows(statements.holders, { groupUid, roleUid, except })).length;
  }

  /** Whether the identity has the role at any root group. */
  hasRoleAtRoot(identityUid: string, roleUid: string): Awaitable<boolean> {
    return hasRows(this.#tx.rows(statements.atRoot, { identityUid, roleUid }));
  }

  async deleteAutomatic(groupUid: string): Promise<void> {
    for (const row of await this.#tx.rows(statements.automatic, { groupUid })) await this.delete(row.uid);
  }
}
