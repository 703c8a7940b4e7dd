import { eq, sql } from "drizzle-orm";
import { done } from "./first.js";
import { placeholdersFor } from "./placeholders.js";
import type { Awaitable, TermsAcceptanceRow, TermsStore } from "./port.js";
import { type Executor, statement } from "./statement.js";

const accept = statement<TermsAcceptanceRow>((q, t) =>
  q.insert(t.termsAcceptances).values(placeholdersFor(t.termsAcceptances)).onConflictDoNothing(),
);
const of = statement<{ groupUid: string }, TermsAcceptanceRow>((q, t) =>
  q
    .select()
    .from(t.termsAcceptances)
    .where(eq(t.termsAcceptances.groupUid, sql.placeholder("groupUid"))),
);
const removeOf = statement<{ groupUid: string }>((q, t) =>
  q.delete(t.termsAcceptances).where(eq(t.termsAcceptances.groupUid, sql.placeholder("groupUid"))),
);

/** Acceptances of terms; see {@link TermsStore}. */
export class Terms implements TermsStore {
  readonly #tx: Executor;

  constructor(tx: Executor) {
    this.#tx = tx;
  }

  accept(row: TermsAcceptanceRow): Awaitable<void> {
    return done(this.#tx.rows(accept, row));
  }

  of(groupUid: string): Awaitable<TermsAcceptanceRow[]> {
    return this.#tx.rows(of, { groupUid });
  }

  deleteOf(groupUid: string): Awaitable<void> {
    return done(this.#tx.rows(removeOf, { groupUid }));
  }
}
