import { eq, sql } from "drizzle-orm";
import { any, done, first } from "./first.js";
import { placeholdersFor } from "./placeholders.js";
import type { Awaitable, IdentityRow, IdentityStore } from "./port.js";
import { type Executor, statement } from "./statement.js";

const get = statement<{ uid: string }, IdentityRow>((q, t) =>
  q
    .select()
    .from(t.identities)
    .where(eq(t.identities.uid, sql.placeholder("uid"))),
);
const insert = statement<IdentityRow>((q, t) => q.insert(t.identities).values(placeholdersFor(t.identities)));
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

  insert(row: IdentityRow): Awaitable<void> {
    return done(this.#tx.rows(insert, row));
  }

  delete(uid: string): Awaitable<void> {
    return done(this.#tx.rows(remove, { uid }));
  }

  anyIn(groupUid: string): Awaitable<boolean> {
    return any(this.#tx.rows(anyIn, { group: groupUid }));
  }
}
