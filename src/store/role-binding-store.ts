import { and, eq, isNull, sql } from "drizzle-orm";
import { any, done, first } from "./first.js";
import { placeholdersFor } from "./placeholders.js";
import type { Awaitable, RoleBindingRow, RoleBindingStore } from "./port.js";
import { type Executor, statement } from "./statement.js";

const get = statement<{ uid: string }, RoleBindingRow>((q, t) =>
  q
    .select()
    .from(t.roleBindings)
    .where(eq(t.roleBindings.uid, sql.placeholder("uid"))),
);
const insert = statement<RoleBindingRow>((q, t) => q.insert(t.roleBindings).values(placeholdersFor(t.roleBindings)));
const remove = statement<{ uid: string }>((q, t) =>
  q.delete(t.roleBindings).where(eq(t.roleBindings.uid, sql.placeholder("uid"))),
);
const granted = statement<{ group: string }, object>((q, t) =>
  q
    .select({ uid: t.roleBindings.uid })
    .from(t.roleBindings)
    .where(and(eq(t.roleBindings.groupUid, sql.placeholder("group")), eq(t.roleBindings.automatic, false)))
    .limit(1),
);
const atRoot = statement<{ identity: string; role: string }, object>((q, t) =>
  q
    .select({ uid: t.roleBindings.uid })
    .from(t.roleBindings)
    .innerJoin(t.groups, eq(t.groups.uid, t.roleBindings.groupUid))
    .where(
      and(
        eq(t.roleBindings.identityUid, sql.placeholder("identity")),
        eq(t.roleBindings.roleUid, sql.placeholder("role")),
        isNull(t.groups.parentUid),
      ),
    )
    .limit(1),
);
const removeAutomatic = statement<{ group: string }>((q, t) =>
  q
    .delete(t.roleBindings)
    .where(and(eq(t.roleBindings.groupUid, sql.placeholder("group")), eq(t.roleBindings.automatic, true))),
);

/** Role bindings; see {@link RoleBindingStore}. */
export class RoleBindings implements RoleBindingStore {
  readonly #tx: Executor;

  constructor(tx: Executor) {
    this.#tx = tx;
  }

  get(uid: string): Awaitable<RoleBindingRow | undefined> {
    return first(this.#tx.rows(get, { uid }));
  }

  insert(row: RoleBindingRow): Awaitable<void> {
    return done(this.#tx.rows(insert, row));
  }

  delete(uid: string): Awaitable<void> {
    return done(this.#tx.rows(remove, { uid }));
  }

  anyGranted(groupUid: string): Awaitable<boolean> {
    return any(this.#tx.rows(granted, { group: groupUid }));
  }

  holdsAtRoot(identityUid: string, roleUid: string): Awaitable<boolean> {
    return any(this.#tx.rows(atRoot, { identity: identityUid, role: roleUid }));
  }

  deleteAutomatic(groupUid: string): Awaitable<void> {
    return done(this.#tx.rows(removeAutomatic, { group: groupUid }));
  }
}
