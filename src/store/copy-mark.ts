// The mark of a database that `arbor copy` has not finished. It is stored as the oldest version that may open the
// database, in the form of a version that will never exist, so that versions without this mark reject the database too.
import { failedPrecondition } from "../kernel/errors.js";
import { VERSION } from "../kernel/version.js";

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
