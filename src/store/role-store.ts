import { eq, sql } from "drizzle-orm";
import { any, done, first } from "./first.js";
import { placeholdersFor } from "./placeholders.js";
import type { Awaitable, RoleRow, RoleStore } from "./port.js";
import { type Executor, statement } from "./statement.js";

const get = statement<{ uid: string }, RoleRow>((q, t) =>
  q
    .select()
    .from(t.roles)
    .where(eq(t.roles.uid, sql.placeholder("uid"))),
);
const put = statement<RoleRow>((q, t) =>
  q
    .insert(t.roles)
    .values(placeholdersFor(t.roles))
    .onConflictDoUpdate({
      target: t.roles.uid,
      set: {
        name: sql`excluded.name`,
        description: sql`excluded.description`,
        capabilities: sql`excluded.capabilities`,
        updateTimeMs: sql`excluded.update_time_ms`,
      },
    }),
);
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

  put(row: RoleRow): Awaitable<void> {
    return done(this.#tx.rows(put, row));
  }

  anyIn(groupUid: string): Awaitable<boolean> {
    return any(this.#tx.rows(anyIn, { group: groupUid }));
  }
}
