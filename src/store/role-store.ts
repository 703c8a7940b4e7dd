import { eq, sql } from "drizzle-orm";
import { any, first } from "./first.js";
import { list, relist, unlist } from "./list-upkeep.js";
import { listedKind, usualSorts } from "./listed-kind.js";
import { listPage } from "./ordered-list.js";
import { placeholderSet, placeholdersFor } from "./placeholders.js";
import type { Awaitable, ListQuery, Page, RolePatch, RoleRow, RoleStore } from "./port.js";
import { type Executor, statement } from "./statement.js";

/** How custom roles are kept in lists; the built-in ones lie in no group. */
export const roleLists = listedKind(3, { table: (t) => t.roles, place: "groupUid", sorts: usualSorts });

const get = statement<{ uid: string }, RoleRow>((q, t) =>
  q
    .select()
    .from(t.roles)
    .where(eq(t.roles.uid, sql.placeholder("uid"))),
);
const insert = statement<RoleRow>((q, t) => q.insert(t.roles).values(placeholdersFor(t.roles)));
const update = statement<RoleRow>((q, t) =>
  q
    .update(t.roles)
    .set(placeholderSet(t.roles, "name", "description", "capabilities", "updateTimeMs"))
    .where(eq(t.roles.uid, sql.placeholder("uid"))),
);
const remove = statement<{ uid: string }>((q, t) => q.delete(t.roles).where(eq(t.roles.uid, sql.placeholder("uid"))));
const anyIn = statement<{ group: string }, object>((q, t) =>
  q
    .select({ uid: t.roles.uid })
    .from(t.roles)
    .where(eq(t.roles.groupUid, sql.placeholder("group")))
    .limit(1),
);

/** Roles; see {@link RoleStore}. */
export class Roles implements RoleStore {
  readonly #tx: Executor;

  constructor(tx: Executor) {
    this.#tx = tx;
  }

  get(uid: string): Awaitable<RoleRow | undefined> {
    return first(this.#tx.rows(get, { uid }));
  }

  async insert(row: RoleRow): Promise<void> {
    await this.#tx.rows(insert, row);
    await list(this.#tx, roleLists, row);
  }

  async update(uid: string, patch: RolePatch, nowMs: number): Promise<RoleRow | undefined> {
    const before = await this.get(uid);
    if (before === undefined) return undefined;
    const after = { ...before, ...patch, updateTimeMs: nowMs };
    await this.#tx.rows(update, after);
    await relist(this.#tx, roleLists, before, after);
    return after;
  }

  async delete(uid: string): Promise<void> {
    const row = await this.get(uid);
    if (row === undefined) return;
    await unlist(this.#tx, roleLists, row);
    await this.#tx.rows(remove, { uid });
  }

  list(query: ListQuery): Promise<Page<RoleRow>> {
    return listPage<RoleRow>(this.#tx, roleLists, query);
  }

  anyIn(groupUid: string): Awaitable<boolean> {
    return any(this.#tx.rows(anyIn, { group: groupUid }));
  }
}
