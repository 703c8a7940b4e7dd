import { and, eq, isNull, sql } from "drizzle-orm";
import { any, first } from "./first.js";
import { addToIndex, reindex, removeFromIndex } from "./index-maintenance.js";
import { listPage } from "./ordered-list.js";
import { placeholderSet, placeholdersFor } from "./placeholders.js";
import type { Awaitable, GroupPatch, GroupRow, GroupStore, ListQuery, Page } from "./port.js";
import { defineResourceIndex, usualSorts } from "./resource-index.js";
import { type Executor, statement } from "./statement.js";

/** How groups are kept in lists. */
export const groupLists = defineResourceIndex(1, {
  table: (t) => t.groups,
  place: "parentUid",
  listsItself: true,
  sorts: usualSorts,
});

const get = statement<{ uid: string }, GroupRow>((q, t) =>
  q
    .select()
    .from(t.groups)
    .where(eq(t.groups.uid, sql.placeholder("uid"))),
);
const insert = statement<GroupRow>((q, t) => q.insert(t.groups).values(placeholdersFor(t.groups)));
const update = statement<Required<GroupPatch> & { uid: string; updateTimeMs: number }>((q, t) =>
  q
    .update(t.groups)
    .set(placeholderSet(t.groups, "name", "description", "verified", "kind", "resourceLimits", "updateTimeMs"))
    .where(eq(t.groups.uid, sql.placeholder("uid"))),
);
const remove = statement<{ uid: string }>((q, t) => q.delete(t.groups).where(eq(t.groups.uid, sql.placeholder("uid"))));
const child = statement<{ uid: string }, object>((q, t) =>
  q
    .select({ uid: t.groups.uid })
    .from(t.groups)
    .where(eq(t.groups.parentUid, sql.placeholder("uid")))
    .limit(1),
);
// Anybody may give a root any name: neither may look through all that have it.
const verifiedRoot = statement<{ name: string }, GroupRow>((q, t) =>
  q
    .select()
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

/** Groups; see {@link GroupStore}. */
export class Groups implements GroupStore {
  readonly #tx: Executor;

  constructor(tx: Executor) {
    this.#tx = tx;
  }

  get(uid: string): Awaitable<GroupRow | undefined> {
    return first(this.#tx.rows(get, { uid }));
  }

  async insert(row: GroupRow): Promise<void> {
    await this.#tx.rows(insert, row);
    await addToIndex(this.#tx, groupLists, row);
  }

  async update(uid: string, patch: GroupPatch, nowMs: number): Promise<GroupRow | undefined> {
    const before = await this.get(uid);
    if (before === undefined) return undefined;
    const after = { ...before, ...patch, updateTimeMs: nowMs };
    await this.#tx.rows(update, after);
    await reindex(this.#tx, groupLists, before, after);
    return after;
  }

  async delete(row: GroupRow): Promise<void> {
    await removeFromIndex(this.#tx, groupLists, row);
    await this.#tx.rows(remove, { uid: row.uid });
  }

  list(query: ListQuery): Promise<Page<GroupRow>> {
    return listPage<GroupRow>(this.#tx, groupLists, query);
  }

  hasChildren(uid: string): Awaitable<boolean> {
    return any(this.#tx.rows(child, { uid }));
  }

  verifiedRoot(name: string): Awaitable<GroupRow | undefined> {
    return first(this.#tx.rows(verifiedRoot, { name }));
  }

  anyRootNamed(name: string): Awaitable<boolean> {
    return any(this.#tx.rows(rootNamed, { name }));
  }
}
