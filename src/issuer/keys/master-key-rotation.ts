// Encrypts everything again with the first key of the master key file, while servers run.
import { formatSecretContext } from "../../iam/identity-providers/identity-provider.js";
import type { Store } from "../../store/store.js";
import type { Tx } from "../../store/transaction.js";
import { formatTicketContext } from "../oauth/tickets.js";
import { formatKeyContext } from "./key-generation.js";
import { MASTER_KEY_CHECK, type MasterKeyFile, resealForStore } from "./master-key.js";

/** Values per transaction. On SQLite they block other writers for a few ms. */
const BATCH = 50;

/** How many values were encrypted again. */
export interface ResealedCounts {
  readonly keys: number;
  readonly clientSecrets: number;
  readonly logins: number;
  /** Whether the check value was encrypted again, which begins a rotation. */
  readonly check: boolean;
}

/**
 * Encrypts every value again that another key than the first has encrypted. The check value comes first: from that
 * transaction on all processes encrypt what they store with the same key ({@link resealForStore}), so nothing that is
 * stored meanwhile needs an old key. After an interruption, call it again.
 *
 * @param onCheck runs in the transaction that encrypts the check value again
 * @throws Error when a value is encrypted with a key that the file does not have; what was encrypted before is kept
 */
export async function resealAll(
  store: Store,
  masterKey: MasterKeyFile,
  onCheck: (tx: Tx) => Promise<void>,
): Promise<ResealedCounts> {
  const check = await store.write(async (tx) => {
    const stored = await tx.settings.find(MASTER_KEY_CHECK);
    if (stored === undefined) return false;
    const first = masterKey.seal(Buffer.from(MASTER_KEY_CHECK), MASTER_KEY_CHECK);
    const sealed = masterKey.resealLike(first, stored, MASTER_KEY_CHECK);
    if (sealed === stored) return false;
    await tx.settings.put(MASTER_KEY_CHECK, sealed);
    await onCheck(tx);
    return true;
  });
  const keys = await store.write(async (tx) => {
    let count = 0;
    for (const { kid, sealed, ...row } of await tx.keys.list()) {
      const changed = await resealForStore(tx, masterKey, sealed, formatKeyContext({ kid, ...row }));
      if (changed === sealed) continue;
      await tx.sealed.setKey(kid, changed);
      count++;
    }
    return count;
  });
  const clientSecrets = await inBatches(store, async (tx, after) => {
    const rows = await tx.sealed.listClientSecrets(after, BATCH);
    let count = 0;
    for (const { uid, sealed } of rows) {
      const changed = await resealForStore(tx, masterKey, sealed, formatSecretContext(uid));
      if (changed === sealed) continue;
      await tx.sealed.setClientSecret(uid, changed);
      count++;
    }
    return { count, last: rows.length === BATCH ? rows.at(-1)?.uid : undefined };
  });
  const logins = await inBatches(store, async (tx, after) => {
    const rows = await tx.sealed.listTickets(after, BATCH);
    let count = 0;
    for (const row of rows) {
      // Headless sessions have no sealed value: their outcome is encrypted for the terminal.
      const { sealed } = row.data as { readonly sealed?: string };
      if (!sealed) continue;
      const changed = await resealForStore(tx, masterKey, sealed, formatTicketContext(row.kind, row.hash));
      if (changed === sealed) continue;
      await tx.tickets.put({ ...row, data: { ...(row.data as object), sealed: changed } });
      count++;
    }
    return { count, last: rows.length === BATCH ? rows.at(-1)?.hash : undefined };
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
