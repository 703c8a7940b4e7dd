// Opens a SQLite database for migrations. Servers may use it at the same time.
import { statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { unavailable } from "../../kernel/errors.js";
import { requireSpace } from "../backup/files.js";
import {
  createExecutor,
  DATABASE_FILE,
  openExisting,
  openWriting,
  runMigrationStatement,
} from "../sqlite/connection.js";
import {
  assertNothingLost,
  createPrivateFile,
  findSqliteInstallation,
  secureDataDirectory,
} from "../sqlite/data-directory.js";
import { openDatabase, type SqliteDatabase } from "../sqlite/driver.js";
import { MAX_WAIT_MS, type MigrationDatabase, type MigrationTx, type SqlRow } from "./data-migration.js";
import { holdOlderServers } from "./prepare-sqlite.js";

/** How often to try while another process writes, in milliseconds. */
const BUSY_RETRY_MS = 5;

export interface SqliteMigrationOptions {
  readonly directory: string;
  /**
   * Whether to create a missing database or to change only one that exists. `read` changes nothing: not the file, and not the
   * access to its directory either. `plan` does so as well, and takes a missing database for an empty one.
   */
  readonly mode: "create" | "update" | "read" | "plan";
}

/**
 * Opens the database of a data directory for migrations.
 *
 * @throws Error when it is the database of another program
 * @throws ApiError FAILED_PRECONDITION when there is no installation and none may be created, or its database was lost
 */
export function openSqliteMigration({ directory, mode }: SqliteMigrationOptions): MigrationDatabase {
  const file = join(directory, DATABASE_FILE);
  if (mode === "plan" && !hasContent(file) && !hasContent(`${file}-wal`)) {
    return toMigrationDatabase(openDatabase(":memory:"), directory);
  }
  if (mode === "plan" || mode === "read") {
    return toMigrationDatabase(openExisting(findSqliteInstallation(directory)), directory);
  }
  if (mode === "update") findSqliteInstallation(directory);
  else assertNothingLost(directory);
  secureDataDirectory(directory);
  createPrivateFile(file);
  const db = openWriting(file);
  // A wait within SQLite would also keep this process from being stopped.
  db.pragma("busy_timeout = 0");
  return toMigrationDatabase(db, directory);
}

function hasContent(file: string): boolean {
  return (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0;
}

function toMigrationDatabase(db: SqliteDatabase, directory: string): MigrationDatabase {
  const tx: MigrationTx = {
    ...createExecutor(db),
    dialect: "sqlite",
    run: async (statement, values) => runMigrationStatement(db, statement, values),
    query: async (statement, values = []) => db.prepare(statement).all(...values) as SqlRow[],
  };

  return {
    dialect: "sqlite",
    name: directory,
    read: (unit) => runTransaction("BEGIN", unit),
    write: (unit) => runTransaction("BEGIN IMMEDIATE", unit),
    async findOlderServers() {
      try {
        holdOlderServers(directory)();
        return [];
      } catch (error) {
        return [(error as Error).message];
      }
    },
    async vacuum() {
      requireSpaceOfVacuum(db, directory);
      await retryBusy(db.name, () => db.exec("VACUUM"));
      await retryBusy(db.name, () => db.pragma("wal_checkpoint(TRUNCATE)"));
    },
    async close() {
      db.close();
    },
  };

  async function runTransaction<T>(begin: string, unit: (tx: MigrationTx) => Promise<T>): Promise<T> {
    await retryBusy(db.name, () => db.exec(begin));
    try {
      const value = await unit(tx);
      db.exec("COMMIT");
      return value;
    } catch (error) {
      if (db.inTransaction) db.exec("ROLLBACK");
      throw error;
    }
  }
}

/**
 * SQLite writes what is not free first to a temporary file, and from there to the write-ahead log, before the database
 * becomes smaller.
 *
 * @throws ApiError FAILED_PRECONDITION with the directory that has too little room, and how much is needed
 */
function requireSpaceOfVacuum(db: SqliteDatabase, directory: string): void {
  const read = (pragma: string) => Number(db.pragma(pragma, { simple: true }));
  const bytes = (read("page_count") - read("freelist_count")) * read("page_size");
  const temporary = process.env.SQLITE_TMPDIR ?? directory;
  const isShared = statSync(temporary, { throwIfNoEntry: false })?.dev === statSync(directory).dev;
  requireSpace(directory, isShared ? 2 * bytes : bytes);
  if (!isShared) requireSpace(temporary, bytes);
}

async function retryBusy(file: string, run: () => unknown): Promise<void> {
  const deadlineMs = performance.now() + MAX_WAIT_MS;
  for (;;) {
    try {
      run();
      return;
    } catch (error) {
      const isBusy = String((error as { code?: unknown }).code).startsWith("SQLITE_BUSY");
      if (!isBusy) throw error;
      if (performance.now() > deadlineMs) {
        const advice = `fuser -v ${file} names those that have it open`;
        throw unavailable(
          `another process has been using ${file} for ${MAX_WAIT_MS / 1000} s: ${advice}`,
          undefined,
          error,
        );
      }
    }
    await sleep(BUSY_RETRY_MS);
  }
}
