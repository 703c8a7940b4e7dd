import { and, eq, sql } from "drizzle-orm";
import { done, first } from "./first.js";
import { placeholdersFor } from "./placeholders.js";
import type { AccessRequestStore, Awaitable } from "./port.js";
import { type Executor, statement } from "./statement.js";

type Row = { groupUid: string; identityUid: string; timeMs: number };

const last = statement<Omit<Row, "timeMs">, Pick<Row, "timeMs">>((q, t) =>
  q
    .select({ timeMs: t.accessRequests.timeMs })
    .from(t.accessRequests)
    .where(
      and(
        eq(t.accessRequests.groupUid, sql.placeholder("groupUid")),
        eq(t.accessRequests.identityUid, sql.placeholder("identityUid")),
      ),
    ),
);
const put = statement<Row>((q, t) =>
  q
    .insert(t.accessRequests)
    .values(placeholdersFor(t.accessRequests))
    .onConflictDoUpdate({
      target: [t.accessRequests.groupUid, t.accessRequests.identityUid],
      set: { timeMs: sql`excluded.time_ms` },
    }),
);
const removeOf = statement<{ groupUid: string }>((q, t) =>
  q.delete(t.accessRequests).where(eq(t.accessRequests.groupUid, sql.placeholder("groupUid"))),
);

/** Requests to be let into a group; see {@link AccessRequestStore}. */
export class AccessRequests implements AccessRequestStore {
  readonly #tx: Executor;

  constructor(tx: Executor) {
    this.#tx = tx;
  }

  async lastMs(groupUid: string, identityUid: string): Promise<number | undefined> {
    return (await first(this.#tx.rows(last, { groupUid, identityUid })))?.timeMs;
  }

  put(groupUid: string, identityUid: string, timeMs: number): Awaitable<void> {
    return done(this.#tx.rows(put, { groupUid, identityUid, timeMs }));
  }

  deleteOf(groupUid: string): Awaitable<void> {
    return done(this.#tx.rows(removeOf, { groupUid }));
  }
}
