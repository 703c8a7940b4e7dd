// The database as `arbor check` reads it: one snapshot, and no statement that writes, beside servers or without them.
// Opening the store itself would create a missing database, bring an older one up to date and change permissions.
import { accessSync, constants, copyFileSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { is, type SQL, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import { type AnySQLiteColumn, getTableConfig, SQLiteTable } from "drizzle-orm/sqlite-core";
import { type Clock, systemClock } from "../../kernel/time.js";
import { connectForCommand, createExecutor as createPgExecutor, type PgTls } from "../pg/connection.js";
import { createExecutor, createQueries } from "../sqlite/connection.js";
import { findSqliteInstallation } from "../sqlite/data-directory.js";
import { openDatabase, type SqliteDatabase } from "../sqlite/driver.js";
import type { Executor } from "../statement.js";
import type { Store } from "../store.js";
import { schema } from "../tables/schema-sqlite.js";
import { Transaction } from "../transaction.js";
import { createStoreCounts } from "../work-gate.js";

/** Plans that read a whole table for each of many scopes. */
export const AVOIDED_PLANS = [
  "enable_seqscan",
  "enable_bitmapscan",
  "enable_hashjoin",
  "enable_mergejoin",
  "enable_material",
];

/** On SQLite, what the index of the texts of advisories has: a temporary table with a row for each occurrence of a trigram. */
export const TERMS = "temp.advisory_terms";

/** An open snapshot of a database. */
export interface CheckDatabase {
  readonly dialect: "sqlite" | "pg";
  /** What holds the database, as findings about all of it name it: the file, or the database of the server. */
  readonly name: string;
  /** The same snapshot for readers of the store. Its `write` throws. */
  readonly store: Store;
  /** Runs a query. Integers beyond 32 bits are texts on PostgreSQL. */
  all<Row extends object>(query: SQL): Promise<Row[]>;
  /**
   * Runs a query that the server may reject, for want of a right or of a function, without an end of the snapshot.
   *
   * @throws Error of the driver
   */
  tryAll<Row extends object>(query: SQL): Promise<Row[]>;
  close(): Promise<void>;
}

/** Creates a store whose units of work all read one open snapshot. */
function createSnapshotStore(connection: Executor): Store {
  return {
    read: async (unit) => unit(new Transaction(connection)),
    write() {
      throw new TypeError("the store was opened to be read");
    },
    lateCommitMs: 0,
    stats: () => createStoreCounts(),
    check: async () => "ok",
    async close() {},
  };
}

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
    db.exec(`CREATE VIRTUAL TABLE ${TERMS} USING fts5vocab ('main', 'advisory_texts', 'instance')`);
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

/**
 * Opens a snapshot of a database. While it is open, the server keeps the rows that others delete.
 *
 * @param url `postgres://user:password@host:port/database`
 * @param tls TLS, where the URL does not say it
 * @throws Error when the server cannot be reached
 */
export async function readPg(url: string, tls?: PgTls): Promise<CheckDatabase> {
  const client = await connectForCommand({ url, tls, name: "arbor check" });
  const db = drizzle(client);
  const all: CheckDatabase["all"] = async <Row extends object>(query: Parameters<typeof db.execute>[0]) =>
    (await db.execute(query)).rows as unknown as Row[];
  try {
    await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    for (const plan of AVOIDED_PLANS) await client.query(`SET LOCAL ${plan} = off`);
    return {
      dialect: "pg",
      name: `the database ${client.database ?? ""}`,
      store: createSnapshotStore(createPgExecutor(client)),
      all,
      // After an error PostgreSQL rejects all statements up to the savepoint.
      async tryAll(query) {
        await db.execute(sql`savepoint attempt`);
        try {
          return await all(query);
        } catch (error) {
          await db.execute(sql`rollback to savepoint attempt`);
          throw error;
        }
      },
      close: () => client.end(),
    };
  } catch (error) {
    await client.end();
    throw error;
  }
}

// SQL that checks share. The tables of the SQLite schema stand for those of both databases: all names are the same.

/** All tables of the schema. */
export const tables: readonly SQLiteTable[] = Object.values(schema as object).filter((one): one is SQLiteTable =>
  is(one, SQLiteTable),
);

/** The column of a table that a query calls `alias`. */
export function at(alias: string, column: AnySQLiteColumn): SQL {
  return sql`${sql.identifier(alias)}.${sql.identifier(column.name)}`;
}

/** The columns of the primary key, in its order. */
export function primaryKeyOf(table: SQLiteTable): readonly AnySQLiteColumn[] {
  const { columns, primaryKeys } = getTableConfig(table);
  return primaryKeys[0]?.columns ?? columns.filter(({ primary }) => primary);
}

/** A row's primary key as text: its value, or `column=value` for each column. */
export function formatKey(table: SQLiteTable, row: Readonly<Record<string, unknown>>): string {
  const columns = primaryKeyOf(table);
  const [only] = columns;
  if (only !== undefined && columns.length === 1) return String(row[only.name]);
  return columns.map(({ name }) => `${name}=${row[name]}`).join(", ");
}

/** The condition of SQL that selects the row with this key. */
export function formatRowCondition(table: SQLiteTable, row: Readonly<Record<string, unknown>>): string {
  const literal = (value: unknown) =>
    typeof value === "number" ? String(value) : `'${String(value).replaceAll("'", "''")}'`;
  return primaryKeyOf(table)
    .map(({ name }) => `${name} = ${literal(row[name])}`)
    .join(" AND ");
}

/** Whether the uid `column` begins with the uid `scope`, a slash and at least one character: "0" follows the slash. */
export function isBelowSql(column: SQL, scope: SQL): SQL {
  return sql`(${column} > ${scope} || '/' and ${column} < ${scope} || '0')`;
}
