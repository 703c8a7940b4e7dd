// The version of this software, and the oldest version that may open a database.
import { failedPrecondition } from "../kernel/errors.js";
import { VERSION } from "../kernel/version.js";
import { assertFinished } from "./copy-mark.js";

export { VERSION };

/** The row of the table `settings` that names the oldest version that may open the database. */
export const OLDEST_VERSION = "oldest_version";

/** Whether `version` comes before `other`. Suffixes such as `-rc.1` are ignored. */
export function isOlder(version: string, other: string): boolean {
  const others = splitNumbers(other);
  for (const [i, number] of splitNumbers(version).entries()) {
    const otherNumber = others[i] ?? 0;
    if (number !== otherNumber) return number < otherNumber;
  }
  return false;
}

function splitNumbers(version: string): number[] {
  return version.split(/[.+-]/, 3).map(Number);
}

/**
 * Rejects a database that this version cannot use.
 *
 * @param oldest the oldest version that may open it; undefined where none is stored
 * @throws ApiError FAILED_PRECONDITION with both versions, or with the command that finishes a copy
 */
export function assertMayOpen(oldest: string | undefined): void {
  assertFinished(oldest);
  if (oldest === undefined || !isOlder(VERSION, oldest)) return;
  throw failedPrecondition(
    "DATABASE_VERSION",
    `the database needs version ${oldest} of arbor or a newer one, and this is version ${VERSION}: ` +
      `run version ${oldest} or newer, or restore a backup from before the upgrade`,
  );
}
