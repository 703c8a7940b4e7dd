import { BetterSQLiteSession } from "drizzle-orm/better-sqlite3/session";
import { BaseSQLiteDatabase, SQLiteSyncDialect } from "drizzle-orm/sqlite-core";
import { type Clock, systemClock } from "../../kernel/time.js";
import type { Executor, Sql, Statement, Take } from "../statement.js";
import { schema as tables } from "../tables/schema-sqlite.js";
import { isOlder } from "../version.js";
import { openDatabase, type SqliteDatabase, type SqliteResult, type SqliteStatement } from "./driver.js";
import { createFaultMonitor, type FaultMonitor } from "./faults.js";
import { type NativeStatement, prepareNative } from "./native-statement.js";

/** The name of the database in a data directory. */
export const DATABASE_FILE = "arbor.db";

/** The application id in the database file, by which files of other programs are recognised. "Arb2" in ASCII. */
const APPLICATION_ID = 0x41726232;
/** That of versions up to 0.4.0, whose databases are named in errors. "Arbo" in ASCII. */
const OLD_APPLICATION_ID = 0x4172626f;

/** Whether a database file with this application id is one of this program. */
export function isOwnId(id: unknown): boolean {
  return id === APPLICATION_ID || id === OLD_APPLICATION_ID;
}

/**
 * Opens the connection that writes, and creates an empty database where the file is empty.
 *
 * @param file the path of an existing file
 * @throws Error when the file is the database of another program, or the linked SQLite is older than 3.51.3, which has
 * a race in WAL reset
 */
export function openWriting(file: string): SqliteDatabase {
  const db = openDatabase(file);
  try {
    const version = String(db.prepare("SELECT sqlite_version()").pluck().get());
    if (isOlder(version, "3.51.3")) throw new Error(`SQLite ${version} may corrupt WAL files; 3.51.3 is needed`);
    const isNew = assertOwn(db, file);
    db.pragma("journal_mode = WAL");
    if (isNew) db.pragma(`application_id = ${APPLICATION_ID}`);
    configure(db);
    assertLogged(db);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Opens a connection that only reads a database that {@link openWriting} opened before. */
export function openReading(file: string): SqliteDatabase {
  const db = openExisting(file);
  try {
    assertLogged(db);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Opens a connection that only reads. The database may be one that no server has opened, such as that of a backup. */
export function openExisting(file: string): SqliteDatabase {
  const db = openDatabase(file, { readonly: true, fileMustExist: true });
  try {
    assertOwn(db, file);
    configure(db);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function assertOwn(db: SqliteDatabase, file: string): boolean {
  const id = db.pragma("application_id", { simple: true });
  const isNew = id === 0 && db.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get() === undefined;
  if (!isNew && !isOwnId(id)) {
    throw new Error(`${file} is not a database of this program`);
  }
  return isNew;
}

function configure(db: SqliteDatabase): void {
  db.pragma("synchronous = FULL");
  db.pragma("foreign_keys = ON");
  db.pragma("trusted_schema = OFF");
  db.pragma("mmap_size = 0");
  // Long enough for another process to open, close or recover the database.
  db.pragma("busy_timeout = 100");
  if (db.pragma("synchronous", { simple: true }) !== 2) throw new Error("SQLite refused synchronous = FULL");
}

function assertLogged(db: SqliteDatabase): void {
  if (db.pragma("journal_mode", { simple: true }) !== "wal") throw new Error("SQLite refused journal_mode = WAL");
}

/**
 * Creates the query builder of a connection, for queries that run once and need no prepared statement. It is what
 * `drizzle` returns, whose module also loads the driver, and on Node 20 that is not the driver in use.
 */
export function createQueries(db: SqliteDatabase) {
  const dialect = new SQLiteSyncDialect();
  const session = new BetterSQLiteSession<Record<string, never>, Record<string, never>>(db, dialect, undefined);
  return new BaseSQLiteDatabase<"sync", SqliteResult>("sync", dialect, session, undefined);
}

interface ExecutorOptions {
  /** The clock of the database. */
  readonly clock?: Clock;
  /** Notes errors and converts them to those for callers. */
  readonly faults?: Pick<FaultMonitor, "toCallError">;
}

/** Creates the executor of a connection. Statements are prepared once per connection and cached by their id. */
export function createExecutor(
  db: SqliteDatabase,
  { clock = systemClock, faults = createFaultMonitor(db.name) }: ExecutorOptions = {},
): Executor {
  const sql = createQueries(db) as unknown as Sql;
  const prepared: (NativeStatement | undefined)[] = [];
  let changedRows = 0;
  const noteChanges = (rows: number) => {
    changedRows += rows;
  };
  return {
    counterSlots: 1,
    get changedRows() {
      return changedRows;
    },
    nowMs: async () => clock(),
    clockMs: () => clock(),
    async rows<Params extends object, Row, T>(
      statement: Statement<Params, Row>,
      params: Params,
      take?: Take<Row, T>,
    ): Promise<T> {
      let rows: Row[];
      try {
        let ready = prepared[statement.id];
        if (ready === undefined) {
          ready = prepareNative(db, statement.build(sql, tables), noteChanges);
          prepared[statement.id] = ready;
        }
        rows = ready(params) as Row[];
      } catch (error) {
        throw faults.toCallError(error);
      }
      return take === undefined ? (rows as T) : take(rows);
    },
  };
}

/**
 * Runs a statement of a migration within a transaction.
 *
 * SQLite cannot remove a constraint from a table. A statement that begins with `UPDATE sqlite_schema` does that by
 * changing the stored text of the table; the rows must agree with both texts (https://sqlite.org/lang_altertable.html).
 *
 * @returns how many rows it changed
 */
export function runMigrationStatement(db: SqliteDatabase, statement: string, values: readonly unknown[] = []): number {
  if (!/^UPDATE sqlite_schema\b/i.test(statement)) {
    const prepared = db.prepare(statement);
    return prepared.reader ? prepared.all(...values).length : prepared.run(...values).changes;
  }
  db.unsafeMode(true);
  try {
    db.pragma("writable_schema = ON");
    const { changes } = db.prepare(statement).run();
    // All connections read the schema again.
    db.pragma(`schema_version = ${Number(db.pragma("schema_version", { simple: true })) + 1}`);
    return changes;
  } finally {
    db.pragma("writable_schema = RESET");
    db.unsafeMode(false);
  }
}

/** Prepares the statements that control transactions, and returns the function that runs them. */
export function createControl(db: SqliteDatabase, faults: Pick<FaultMonitor, "toCallError">) {
  const known = new Map<string, SqliteStatement>();
  return (statement: string): void => {
    try {
      let ready = known.get(statement);
      if (ready === undefined) {
        ready = db.prepare(statement);
        known.set(statement, ready);
      }
      ready.run();
    } catch (error) {
      throw faults.toCallError(error);
    }
  };
}

/**
 * Prepares the statement that tells whether something was committed, by this process or by another one.
 *
 * @param db a connection that is never in a transaction and writes nothing
 * @returns reads a number that every commit of another connection changes
 */
export function createDataVersion(db: SqliteDatabase, faults: Pick<FaultMonitor, "toCallError">): () => unknown {
  const version = db.prepare("PRAGMA data_version").pluck();
  return () => {
    try {
      return version.get();
    } catch (error) {
      throw faults.toCallError(error);
    }
  };
}
