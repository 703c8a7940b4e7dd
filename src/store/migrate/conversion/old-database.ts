// What a database of a version before 1.0 is. Version 1.0 has a schema of its own, and converts the databases of the two
// versions before it in one step (docs/upgrade.md).
import { type ApiError, failedPrecondition } from "../../../kernel/errors.js";
import type { Dialect, SqlRow } from "../data-migration.js";

/** A database that version 1.0 has not created or converted. */
export interface OldDatabase {
  /** Whether it can be converted: version 0.10 or 0.11 has contracted it. */
  readonly isReady: boolean;
}

// When the last changes of the schema of versions 0.10 and 0.11 were generated, in epoch milliseconds. No version after 0.11
// has added one.
const lastChanges: Readonly<Record<Dialect, readonly number[]>> = {
  sqlite: [1795442764234, 1795735454243],
  pg: [1795442765181, 1795735458573],
};

/**
 * Describes a database whose record of changes lacks the first one of version 1.0.
 *
 * @param lastMs when its last change was generated
 * @param oldestVersion as it is stored
 * @param migrations the rows of `data_migrations`
 */
export function describeOldDatabase(
  dialect: Dialect,
  lastMs: number,
  oldestVersion: string | undefined,
  migrations: readonly SqlRow[],
): OldDatabase {
  return {
    isReady:
      lastChanges[dialect].includes(lastMs) &&
      /^0\.1[01]\./.test(oldestVersion ?? "") &&
      migrations.every(({ phase }) => phase === "contracted"),
  };
}

/** FAILED_PRECONDITION: what to run before this version can use the database. */
export function conversionNeeded(old: OldDatabase): ApiError {
  return failedPrecondition("DATABASE_VERSION", describeConversion(old));
}

/** Says what to run before this version can use the database. */
export function describeConversion({ isReady }: OldDatabase): string {
  return isReady
    ? "the database is that of version 0.10 or 0.11: stop its servers and run `arbor migrate` with the same settings, and " +
        "with no other flags (docs/upgrade.md)"
    : "the database is that of a version before 0.10, or version 0.10 or 0.11 has not contracted it: run `arbor migrate " +
        "--expand --contract` of version 0.11.0 with the same settings, then `arbor migrate` of this version " +
        "(docs/upgrade.md)";
}

/** The tables of versions 0.10 and 0.11 that version 1.0 does not have. */
export const goneTables: readonly string[] = [
  ...["scopes", "text_entries", "text_ranks", "time_entries", "time_ranks", "totals"],
  ...[
    "advisory_aliases",
    "advisory_changes",
    "advisory_entries",
    "advisory_facets",
    "advisory_postings",
    "advisory_roots",
  ],
];
