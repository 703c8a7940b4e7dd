// What happens as a SQLite database is opened for use: an empty one is created, one that this version cannot use is
// rejected, and from then on older versions cannot use it.

import { runMigrationStatement } from "../sqlite/connection.js";
import { holdServeLock, noInstallation } from "../sqlite/data-directory.js";
import type { SqliteDatabase } from "../sqlite/driver.js";
import { assertMayOpen } from "../version.js";
import type { DataMigration, SqlRow } from "./data-migration.js";
import {
  admitsOlderVersions,
  buildCreation,
  buildVersionChange,
  expansionNeeded,
  needsContracting,
  needsExpanding,
  readState,
  readStateSync,
} from "./state.js";

/** Where the database is, and how it is opened. */
export interface PrepareOptions {
  readonly directory: string;
  /** Whether an empty database gets its tables. */
  readonly create: boolean;
  readonly migrations: readonly DataMigration[];
  /** Whether the caller holds `serve.lock`, so that no other server runs. */
  readonly holdsServeLock: boolean;
}

/**
 * Prepares a database for use.
 *
 * This version writes rows only in their new form. Nothing copies them back into the old form on SQLite, where one
 * server runs at a time, so older versions are kept out from the first use on.
 *
 * @throws ApiError FAILED_PRECONDITION when it is empty and may not be created, needs a newer version, must be expanded
 * first, or a server of an older version uses it
 */
export function prepareSqlite(db: SqliteDatabase, options: PrepareOptions): void {
  const { directory, create, migrations, holdsServeLock } = options;
  const read = () => readStateSync(readState("sqlite", migrations), (sql) => db.prepare(sql).all() as SqlRow[]);
  const state = read();
  assertMayOpen(state.oldestVersion);
  if (state.isEmpty) {
    if (!create) throw noInstallation(directory, "its database is empty");
    // `arbor migrate`, which does not hold the lock of openSqlite, may have created it meanwhile.
    runInTransaction(db, () => (read().isEmpty ? buildCreation("sqlite", migrations) : []));
    return;
  }
  if (needsExpanding(state)) throw expansionNeeded();
  if (!needsContracting(state) || !admitsOlderVersions(state)) return;
  const release = holdsServeLock ? () => {} : holdOlderServers(directory);
  try {
    runInTransaction(db, () => [buildVersionChange()]);
  } finally {
    release();
  }
}

/**
 * Keeps servers out of a data directory.
 *
 * @returns a function that lets them in again
 * @throws ApiError FAILED_PRECONDITION when a server uses it
 */
export function holdOlderServers(directory: string): () => void {
  return holdServeLock(directory, "OLDER_SERVER", (path) => `a server of an older version uses ${path}: stop it first`);
}

function runInTransaction(db: SqliteDatabase, statements: () => readonly string[]): void {
  db.transaction(() => {
    for (const statement of statements()) runMigrationStatement(db, statement);
  }).immediate();
}
