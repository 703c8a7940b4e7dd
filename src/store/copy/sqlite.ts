// Reads and writes copies in a SQLite data directory.
import { join, resolve } from "node:path";
import type { SqlRow } from "../migrate/data-migration.js";
import { dataMigrations } from "../migrate/data-migrations.js";
import { readState, readStateSync } from "../migrate/state.js";
import { openReading, openWriting, runMigrationStatement } from "../sqlite/connection.js";
import {
  createPrivateFile,
  findSqliteInstallation,
  holdServeLock,
  secureDataDirectory,
} from "../sqlite/data-directory.js";
import type { SqliteDatabase, SqliteStatement } from "../sqlite/driver.js";
import { type CopiedRow, readSqliteRow, type SqliteValue, toSqliteRow } from "./cells.js";
import { type CopyReader, type CopySource, type CopyTarget, createBatch } from "./databases.js";
import type { CopiedTable } from "./tables.js";

const SERVER_RUNS = [
  "SERVER_RUNS",
  (directory: string) => `a server or another copy uses ${directory}: stop it, then copy`,
] as const;

/** How to open the database that is copied. */
export interface SqliteSourceOptions {
  readonly directory: string;
  /** Whether to keep servers out while it is open. */
  readonly exclusive: boolean;
}

/**
 * Opens a snapshot of the database in a data directory.
 *
 * @throws ApiError FAILED_PRECONDITION when there is no database, or a server uses it
 */
export function openSqliteSource({ directory, exclusive }: SqliteSourceOptions): CopySource {
  const file = findSqliteInstallation(directory);
  const release = exclusive ? holdServeLock(directory, ...SERVER_RUNS) : () => {};
  const opened: SqliteDatabase[] = [];
  const close = async () => {
    for (const db of opened) db.close();
    release();
  };
  try {
    // Its version of the data is read before the snapshot begins and after it was read. The snapshot itself never changes.
    const watching = openReading(file);
    opened.push(watching);
    const readVersion = () => Number(watching.pragma("data_version", { simple: true }));
    const before = readVersion();
    const db = openReading(file);
    opened.push(db);
    // Another process may be recovering the database.
    db.pragma("busy_timeout = 5000");
    db.exec("BEGIN");
    const query = (statement: string) => db.prepare(statement).all() as SqlRow[];
    const state = readStateSync(readState("sqlite", dataMigrations), query);
    const setting = state.isEmpty ? undefined : db.prepare("SELECT value FROM settings WHERE name = ?").pluck();
    return {
      ...createReader(db, file),
      state,
      query: async (statement) => query(statement),
      setting: async (name) => setting?.get(name) as string | undefined,
      // The lock is held.
      async assertNotServed() {},
      hasChanged: async () => readVersion() !== before,
      close,
    };
  } catch (error) {
    void close();
    throw error;
  }
}

/**
 * Opens the database of a data directory to copy to it, creates the directory and the file where there are none, and keeps
 * servers and other copies out.
 *
 * @throws ApiError FAILED_PRECONDITION when a server or another copy uses it
 */
export function openSqliteTarget(directory: string): CopyTarget {
  const file = join(directory, "arbor.db");
  secureDataDirectory(directory);
  const release = holdServeLock(directory, ...SERVER_RUNS);
  try {
    createPrivateFile(file);
    return createTarget(openWriting(file), file, release);
  } catch (error) {
    release();
    throw error;
  }
}

function createTarget(db: SqliteDatabase, file: string, release: () => void): CopyTarget {
  db.pragma("busy_timeout = 5000");
  const inserts = new Map<string, SqliteStatement>();

  function insertRows(table: CopiedTable, rows: readonly CopiedRow[]): void {
    let insert = inserts.get(table.name);
    if (insert === undefined) {
      insert = db.prepare(
        `INSERT INTO ${table.name} (${nameColumns(table)}) VALUES (${table.columns.map(() => "?").join(", ")})`,
      );
      inserts.set(table.name, insert);
    }
    for (const row of rows) insert.run(toSqliteRow(table, row));
  }

  return {
    ...createReader(db, file),
    query: async (statement) => db.prepare(statement).all() as SqlRow[],
    async changeSchema(statements) {
      db.transaction(() => {
        for (const statement of statements) runMigrationStatement(db, statement);
      }).immediate();
    },
    async insert(table, rows) {
      if (db.inTransaction) insertRows(table, rows);
      else db.transaction(() => insertRows(table, rows)).immediate();
    },
    async clear(tables) {
      const names = tables.map(({ name }) => name).reverse();
      const deleteAll = () => {
        for (const name of names) db.exec(`DELETE FROM ${name}`);
      };
      if (db.inTransaction) deleteAll();
      else db.transaction(deleteAll).immediate();
    },
    // Other numbers follow from the rows.
    async setLastNumber({ name }, last) {
      if (!hasSequence(db, name)) return;
      db.prepare("DELETE FROM sqlite_sequence WHERE name = ?").run(name);
      db.prepare("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)").run(name, last);
    },
    async transaction(work) {
      db.exec("BEGIN IMMEDIATE");
      try {
        const value = await work();
        db.exec("COMMIT");
        return value;
      } catch (error) {
        if (db.inTransaction) db.exec("ROLLBACK");
        throw error;
      }
    },
    async vacuum() {},
    async close() {
      db.close();
      release();
    },
  };
}

function createReader(db: SqliteDatabase, file: string): CopyReader {
  const readNumber = (statement: string, ...values: readonly string[]) =>
    db
      .prepare(statement)
      .pluck()
      .safeIntegers()
      .get(...values) as bigint | null | undefined;
  return {
    dialect: "sqlite",
    name: resolve(file),
    async *rows(table) {
      const order = table.key.map(({ name }) => `"${name}"`).join(", ");
      const select = db.prepare(`SELECT ${nameColumns(table)} FROM ${table.name} ORDER BY ${order}`);
      const batch = createBatch();
      for (const values of select.raw().safeIntegers().iterate()) {
        if (batch.add(readSqliteRow(table, values as SqliteValue[]))) yield batch.take();
      }
      yield batch.take();
    },
    count: async ({ name }) => Number(readNumber(`SELECT count(*) FROM ${name}`)),
    async lastNumber({ name, numbered }) {
      const highest = readNumber(`SELECT max("${numbered}") FROM ${name}`) ?? 0n;
      if (!hasSequence(db, name)) return highest;
      const assigned = readNumber("SELECT seq FROM sqlite_sequence WHERE name = ?", name) ?? 0n;
      return assigned > highest ? assigned : highest;
    },
    async close() {
      db.close();
    },
  };
}

// Whether a number is never assigned twice.
function hasSequence(db: SqliteDatabase, table: string): boolean {
  const created = db.prepare("SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?").pluck().get(table);
  return /\bAUTOINCREMENT\b/i.test(String(created));
}

function nameColumns({ columns }: CopiedTable): string {
  return columns.map(({ name }) => `"${name}"`).join(", ");
}
