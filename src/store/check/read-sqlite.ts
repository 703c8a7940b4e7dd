// Opens a snapshot of a SQLite store, beside a server or without one. Opening the store itself would create a missing
// database, bring an older one up to date and change permissions.
import { accessSync, constants, copyFileSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { type Clock, systemClock } from "../../kernel/time.js";
import { findSqliteInstallation } from "../find-installation.js";
import { createExecutor, createQueries } from "../sqlite-connection.js";
import { openDatabase, type SqliteDatabase } from "../sqlite-driver.js";
import type { CheckDatabase } from "./database.js";
import { createSnapshotStore } from "./database.js";

/**
 * Opens a snapshot of the database in a data directory. While it is open, the write-ahead log of a running server
 * cannot become shorter. Where nobody can write to the directory, a temporary copy of the database is read.
 *
 * @throws ApiError FAILED_PRECONDITION when there is no installation
 * @throws Error when the database cannot be read
 */
export function readSqlite(directory: string, clock: Clock = systemClock): CheckDatabase {
  const file = findSqliteInstallation(directory);
  const { db, close } = openSnapshotOf(file);
  const queries = createQueries(db);
  const all: CheckDatabase["all"] = async (query) => queries.all(query);
  return {
    dialect: "sqlite",
    name: file,
    store: createSnapshotStore(createExecutor(db, { clock })),
    all,
    tryAll: all,
    async close() {
      close();
    },
  };
}

interface OpenSnapshot {
  readonly db: SqliteDatabase;
  close(): void;
}

function openSnapshotOf(file: string): OpenSnapshot {
  try {
    return open(file);
  } catch (error) {
    if (!isDirectoryTheCause(file, error)) throw error;
  }
  const directory = copyDatabase(file);
  const remove = () => rmSync(directory, { recursive: true, force: true });
  process.once("exit", remove);
  const removeNow = () => {
    process.off("exit", remove);
    remove();
  };
  try {
    const { db, close } = open(join(directory, basename(file)));
    return {
      db,
      close() {
        close();
        removeNow();
      },
    };
  } catch (error) {
    removeNow();
    throw error;
  }
}

function open(file: string): OpenSnapshot {
  const db = openDatabase(file, { readonly: true, fileMustExist: true });
  try {
    db.pragma("query_only = ON");
    db.pragma("trusted_schema = OFF");
    // In KiB. The walks over the lists look up rows in all parts of the file.
    db.pragma("cache_size = -65536");
    // Another process may be recovering the database.
    db.pragma("busy_timeout = 5000");
    db.exec("BEGIN");
    // The snapshot begins with the first read, which also needs the shared memory of the write-ahead log.
    db.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get();
  } catch (error) {
    db.close();
    throw error;
  }
  return { db, close: () => void db.close() };
}

// A reader of a database with a write-ahead log creates files beside it unless they exist.
function isDirectoryTheCause(file: string, error: unknown): boolean {
  if (!/^SQLITE_(CANTOPEN|READONLY)/.test(String((error as { code?: unknown }).code))) return false;
  try {
    accessSync(dirname(file), constants.W_OK);
    return false;
  } catch {
    return true;
  }
}

/**
 * Copies the database and its write-ahead log to a new directory that only this user can read.
 *
 * @throws Error when another machine or mount writes to it meanwhile: the copy would mix two states
 */
function copyDatabase(file: string): string {
  const names = [file, `${file}-wal`].filter((name) => statSync(name, { throwIfNoEntry: false }));
  const describe = () => names.map((name) => statSync(name)).map(({ mtimeMs, size }) => `${mtimeMs} ${size}`);
  const before = describe().join();
  const directory = mkdtempSync(join(tmpdir(), "arbor-snapshot-"));
  try {
    for (const name of names) copyFileSync(name, join(directory, basename(name)), constants.COPYFILE_FICLONE);
    if (describe().join() !== before) throw new Error(`${file} changed while it was copied; try again`);
    return directory;
  } catch (error) {
    rmSync(directory, { recursive: true, force: true });
    throw error;
  }
}
