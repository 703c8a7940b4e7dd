// Rights that servers of the version before do not know of: they would ignore them, and grant more.
import { failedPrecondition } from "../kernel/errors.js";
import type { Tx } from "../store/transaction.js";

/**
 * Requires that no server of a version before this one may use the database.
 *
 * @param version the first version that knows what is to be stored
 * @param what it, in the plural, as the beginning of a sentence
 * @throws ApiError FAILED_PRECONDITION that names the command to run
 */
export async function requireNoVersionsBefore(tx: Tx, version: string, what: string): Promise<void> {
  if (!(await tx.settings.admitsVersionsBefore(version))) return;
  const rule = `${what} can be set once no server of an older version may use the database: run \`arbor migrate --contract\``;
  throw failedPrecondition("DATABASE_VERSION", rule);
}
