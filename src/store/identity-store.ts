import { eq, sql } from "drizzle-orm";
import { any, first } from "./first.js";
import { list, relist, unlist } from "./list-upkeep.js";
import { listedKind, usualSorts } from "./listed-kind.js";
import { listPage } from "./ordered-list.js";
import { placeholderSet, placeholdersFor } from "./placeholders.js";
import type { Awaitable, IdentityPatch, IdentityRow, IdentityStore, ListQuery, Page } from "./port.js";
import { type Executor, statement } from "./statement.js";

/** How identities are kept in lists. */
export const identityLists = listedKind(2, { table: (t) => t.identities, place: "groupUid", sorts: usualSorts });

const get = statement<{ uid: string }, IdentityRow>((q, t) =>
  q
    .select()
    .from(t.identities)
    .where(eq(t.identities.uid, sql.placeholder("uid"))),
);
const insert = statement<IdentityRow>((q, t) => q.insert(t.identities).values(placeholdersFor(t.identities)));
const update = statement<IdentityRow>((q, t) =>
  q
    .update(t.identities)
    .set(
      placeholderSet(
        t.identities,
        "name",
        "description",
        "company",
        "relation",
        "relationship",
        "metadata",
        "updateTimeMs",
      ),
    )
    .where(eq(t.identities.uid, sql.placeholder("uid"))),
);
const remove = statement<{ uid: string }>((q, t) =>
  q.delete(t.identities).where(eq(t.identities.uid, sql.placeholder("uid"))),
);
const anyIn = statement<{ group: string }, object>((q, t) =>
  q
    .select({ uid: t.identities.uid })
    .from(t.identities)
    .where(eq(t.identities.groupUid, sql.placeholder("group")))
    .limit(1),
);

/** Identities; see {@link IdentityStore}. */
export class Identities implements IdentityStore {
  readonly #tx: Executor;

  constructor(tx: Executor) {
    this.#tx = tx;
  }

  get(uid: string): Awaitable<IdentityRow | undefined> {
    return first(this.#tx.rows(get, { uid }));
  }

  async insert(row: IdentityRow): Promise<void> {
    await this.#tx.rows(insert, row);
    await list(this.#tx, identityLists, row);
  }

  async update(uid: string, patch: IdentityPatch, nowMs: number): Promise<IdentityRow | undefined> {
    const before = await this.get(uid);
    if (before === undefined) return undefined;
    const after = { ...before, ...patch, updateTimeMs: nowMs };
    await this.#tx.rows(update, after);
    await relist(this.#tx, identityLists, before, after);
    return after;
  }

  async delete(uid: string): Promise<void> {
    const row = await this.get(uid);
    if (row === undefined) return;
    await unlist(this.#tx, identityLists, row);
    await this.#tx.rows(remove, { uid });
  }

  list(query: ListQuery): Promise<Page<IdentityRow>> {
    return listPage<IdentityRow>(this.#tx, identityLists, query);
  }

  anyIn(groupUid: string): Awaitable<boolean> {
    return any(this.#tx.rows(anyIn, { group: groupUid }));
  }
}
