// Encrypts everything again with the first key of the master key file, while servers run.
import { formatSecretContext } from "../../iam/identity-providers/identity-provider.js";
import type { Awaitable, Store, Tx } from "../../store/port.js";
import { formatTicketContext } from "../oauth/state.js";
import { formatKeyContext } from "./key-generation.js";
import { MASTER_KEY_CHECK, type MasterKeyFile } from "./master-key.js";

/** Values per transaction. On SQLite they block other writers for a few ms. */
const BATCH = 50;

/** How many values were encrypted again. */
export interface ResealedCounts {
  readonly keys: number;
  readonly clientSecrets: number;
  readonly logins: number;
  /** Whether the check value was, which is the last one. */
  readonly check: boolean;
}

/**
 * Encrypts every value again that another key than the first has encrypted. Interrupted, it is repeated: the check value comes
 * last, in the transaction of `onLast`, so it tells whether all the others were done.
 *
 * @param onLast runs in the last transaction, where the check value is encrypted again
 * @throws Error when a value is encrypted with a key that the file does not have; what was encrypted before is kept
 */
export async function resealAll(
  store: Store,
  masterKey: MasterKeyFile,
  onLast: (tx: Tx) => Awaitable<void>,
): Promise<ResealedCounts> {
  const keys = await store.write(async (tx) => {
    let count = 0;
    for (const row of await tx.keys.list()) {
      const sealed = masterKey.reseal(row.sealed, formatKeyContext(row));
      if (sealed === undefined) continue;
      await tx.sealed.setKey(row.kid, sealed);
      count++;
    }
    return count;
  });
  const clientSecrets = await inBatches(store, async (tx, after) => {
    const rows = await tx.sealed.listClientSecrets(after, BATCH);
    let count = 0;
    for (const { uid, sealed: before } of rows) {
      const sealed = masterKey.reseal(before, formatSecretContext(uid));
      if (sealed === undefined) continue;
      await tx.sealed.setClientSecret(uid, sealed);
      count++;
    }
    return { count, last: rows.length === BATCH ? rows.at(-1)?.uid : undefined };
  });
  const logins = await inBatches(store, async (tx, after) => {
    const rows = await tx.sealed.listTickets(after, BATCH);
    let count = 0;
    for (const row of rows) {
      // Some kinds hold what the client encrypted.
      const { sealed: before } = row.data as { readonly sealed?: string };
      const sealed = before && masterKey.reseal(before, formatTicketContext(row.kind, row.hash));
      if (!sealed) continue;
      await tx.tickets.put({ ...row, data: { ...(row.data as object), sealed } });
      count++;
    }
    return { count, last: rows.length === BATCH ? rows.at(-1)?.hash : undefined };
  });
  const check = await store.write(async (tx) => {
    const stored = await tx.settings.get(MASTER_KEY_CHECK);
    const sealed = stored && masterKey.reseal(stored, MASTER_KEY_CHECK);
    if (!sealed) return false;
    await tx.settings.put(MASTER_KEY_CHECK, sealed);
    await onLast(tx);
    return true;
  });
  return { keys, clientSecrets, logins, check };
}

async function inBatches(
  store: Store,
  reseal: (tx: Tx, after: string) => Promise<{ readonly count: number; readonly last: string | undefined }>,
): Promise<number> {
  let total = 0;
  for (let after: string | undefined = ""; after !== undefined; ) {
    const from: string = after;
    const { count, last } = await store.write((tx) => reseal(tx, from));
    total += count;
    after = last;
  }
  return total;
}
