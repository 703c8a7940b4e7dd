// What the master key has encrypted, for its rotation: the same columns that `arbor check` opens.
import { and, gt, ne } from "drizzle-orm";
import { updateRows } from "../rows.js";
import { rowLimit, statement, TransactionPart, value } from "../statement.js";
import type { TicketRow } from "../tables/tokens.js";

const setKey = updateRows("keys", ["kid"], ["sealed"]);
const setClientSecret = updateRows("identityProviders", ["uid"], ["sealedSecret"]);
const listClientSecrets = statement<{ after: string; limit: number }, { uid: string; sealed: string }>((q, t) => {
  const { uid, sealedSecret } = t.identityProviders;
  return q
    .select({ uid, sealed: sealedSecret })
    .from(t.identityProviders)
    .where(and(ne(sealedSecret, ""), gt(uid, value("after"))))
    .orderBy(uid)
    .limit(rowLimit("limit"));
});
const listTickets = statement<{ after: string; limit: number }, TicketRow>((q, t) =>
  q
    .select()
    .from(t.tickets)
    .where(gt(t.tickets.hash, value("after")))
    .orderBy(t.tickets.hash)
    .limit(rowLimit("limit")),
);

/** What the master key has encrypted, besides the check value of the settings. Only its rotation writes here. */
export class SealedValues extends TransactionPart {
  /** Does nothing when the key does not exist. */
  setKey(kid: string, sealed: string): Promise<void> {
    return this.run(setKey, { kid, sealed });
  }

  /** Client secrets of identity providers with uids after `after`, in their order. */
  listClientSecrets(after: string, limit: number): Promise<{ uid: string; sealed: string }[]> {
    return this.all(listClientSecrets, { after, limit });
  }

  setClientSecret(uid: string, sealedSecret: string): Promise<void> {
    return this.run(setClientSecret, { uid, sealedSecret });
  }

  /** Tickets with hashes after `after`, in their order. */
  listTickets(after: string, limit: number): Promise<TicketRow[]> {
    return this.all(listTickets, { after, limit });
  }
}
