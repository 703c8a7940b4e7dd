// The version of this software, and the oldest version that may open a database.
import { failedPrecondition } from "../kernel/errors.js";
import { VERSION } from "../kernel/version.js";

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

// The mark of a database that `arbor copy` has not finished. It is stored as the oldest version that may open the
// database, in the form of a version that will never exist, so that versions without this mark reject the database too.

const PREFIX = "99999.0.0+copy.";

export interface CopyMark {
  /** Identifies the installation that is copied; see `identifySource`. */
  readonly source: string;
  /** What holds that installation, for people: a file, or the name of a database. */
  readonly from: string;
  /** The version that began the copy. */
  readonly version: string;
}

/** Creates the mark of a copy that this version begins. */
export function createMark(source: string, from: string): CopyMark {
  return { source, from, version: VERSION };
}

/** Formats the mark as the database stores it. */
export function formatMark(mark: CopyMark): string {
  return PREFIX + JSON.stringify(mark);
}

/**
 * Reads the mark of a database.
 *
 * @param oldest the oldest version that may open it, as it is stored
 * @returns undefined where the database is no unfinished copy
 */
export function parseMark(oldest: string | undefined): CopyMark | undefined {
  return oldest?.startsWith(PREFIX) ? (JSON.parse(oldest.slice(PREFIX.length)) as CopyMark) : undefined;
}

/**
 * Rejects a database that lacks rows because its copy was not finished.
 *
 * @param oldest the oldest version that may open it, as it is stored
 * @throws ApiError FAILED_PRECONDITION with the command that continues the copy
 */
export function assertFinished(oldest: string | undefined): void {
  const mark = parseMark(oldest);
  if (mark === undefined) return;
  throw failedPrecondition(
    "UNFINISHED_COPY",
    `the database is an unfinished copy of ${mark.from}: run \`arbor copy\` again with the settings of that ` +
      "installation and --to this database (docs/copy.md)",
  );
}
