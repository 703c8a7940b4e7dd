// What the master key has encrypted, for its rotation: the same columns that `arbor check` opens.
import { and, gt, ne } from "drizzle-orm";
import type { Awaitable, SealedStore, TicketRow } from "./port.js";
import { buildEquals, discardRows, type Executor, statement, value } from "./statement.js";

const setKey = statement<{ kid: string; sealed: string }>((q, t) =>
  q
    .update(t.keys)
    .set({ sealed: value("sealed") as never })
    .where(buildEquals(t.keys, "kid")),
);
const listClientSecrets = statement<{ after: string; limit: number }, { uid: string; sealed: string }>((q, t) => {
  const { uid, sealedSecret } = t.identityProviders;
  return q
    .select({ uid, sealed: sealedSecret })
    .from(t.identityProviders)
    .where(and(ne(sealedSecret, ""), gt(uid, value("after"))))
    .orderBy(uid)
    .limit(value("limit"));
});
const setClientSecret = statement<{ uid: string; sealed: string }>((q, t) =>
  q
    .update(t.identityProviders)
    .set({ sealedSecret: value("sealed") as never })
    .where(buildEquals(t.identityProviders, "uid")),
);
const listTickets = statement<{ after: string; limit: number }, TicketRow>((q, t) =>
  q
    .select()
    .from(t.tickets)
    .where(gt(t.tickets.hash, value("after")))
    .orderBy(t.tickets.hash)
    .limit(value("limit")),
);

/** Sealed values; see {@link SealedStore}. */
export class SealedValues implements SealedStore {
  readonly #tx: Executor;

  constructor(tx: Executor) {
    this.#tx = tx;
  }

  setKey(kid: string, sealed: string): Awaitable<void> {
    return discardRows(this.#tx.rows(setKey, { kid, sealed }));
  }

  listClientSecrets(after: string, limit: number): Awaitable<{ uid: string; sealed: string }[]> {
    return this.#tx.rows(listClientSecrets, { after, limit });
  }

  setClientSecret(uid: string, sealed: string): Awaitable<void> {
    return discardRows(this.#tx.rows(setClientSecret, { uid, sealed }));
  }

  listTickets(after: string, limit: number): Awaitable<TicketRow[]> {
    return this.#tx.rows(listTickets, { after, limit });
  }
}
