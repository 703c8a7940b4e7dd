// What servers of older versions would ignore is stored only once none of them can use the database.
import { failedPrecondition } from "../../kernel/errors.js";
import type { Tx } from "../../store/transaction.js";

/**
 * Makes sure that no server of a version without a feature can use the database: it would go on as if the feature were
 * not there.
 *
 * @param what what would be stored, as the error names it, such as "a role binding that ends"
 * @param since the first version that knows it
 * @throws ApiError FAILED_PRECONDITION that names the command to run
 */
export async function requireContracted(tx: Tx, what: string, since: string): Promise<void> {
  if (!(await tx.settings.admitsOlderThan(since))) return;
  const rule = "servers of older versions may still use the database, and would ignore it";
  const remedy = "the operator runs `arbor migrate --contract` first (docs/upgrade.md)";
  throw failedPrecondition("DATABASE_NOT_CONTRACTED", `${what}: ${rule}: ${remedy}`);
}
