// Opens the store in SQLite: one connection writes, others read, and a lock keeps other servers out.
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { drizzle } from "drizzle-orm/better-sqlite3";
import { migrate } from "drizzle-orm/better-sqlite3/migrator";
import { unavailable } from "../kernel/errors.js";
import { type Clock, systemClock } from "../kernel/time.js";
import { createPrivateFile, holdFileLock, secureDataDirectory } from "./data-directory.js";
import { type NativeStatement, prepareNative } from "./native-statement.js";
import type { Awaitable, Store, Tx } from "./port.js";
import * as schema from "./schema-sqlite.js";
import { createSnapshotReader } from "./snapshot-reader.js";
import { openDatabase, type SqliteDatabase, type SqliteStatement } from "./sqlite-driver.js";
import type { Executor, Sql, Statement } from "./statement.js";
import type { Tables } from "./tables.js";
import { createWriteQueue, type WriterConnection } from "./write-queue.js";

/** The application id in the database file, by which files of other programs are recognised. "Arbo" in ASCII. */
const APPLICATION_ID = 0x4172626f;
const MIGRATIONS = fileURLToPath(new URL("./migrations/sqlite", import.meta.url));

/** How to open a SQLite store. */
export interface SqliteOptions {
  /** The data directory; created if missing, with access for its owner alone. */
  readonly directory: string;
  readonly clock?: Clock;
  /** Fail while another process has opened the store with this option; set by servers. */
  readonly exclusive?: boolean;
}

/**
 * Opens the store in a data directory, bringing its schema up to date.
 *
 * One connection writes, through a queue with group commit; the others only read. All are checked to sync
 * every commit to disk: with the library's default a power cut would lose acknowledged writes.
 *
 * @throws Error when another server uses the directory, other users can access it or a file in it and this
 * cannot be changed, the file is the database of another program, or the linked SQLite is older than 3.51.3,
 * which has a race in WAL reset.
 */
export function openSqlite(options: SqliteOptions): Store {
  const { directory, clock = systemClock } = options;
  secureDataDirectory(directory);
  const release = options.exclusive ? holdFileLock(join(directory, "serve.lock"), 0) : () => {};
  const { reading, writing, openReading } = openOrRelease(release, () => openConnections(directory));

  let first: SqliteDatabase | undefined = reading;
  const reader = createSnapshotReader(() => {
    const db = first ?? openReading();
    first = undefined;
    return Object.assign(createExecutor(db), { control: createControl(db), close: () => void db.close() });
  });
  const control = createControl(writing);
  const writer: WriterConnection = Object.assign(createExecutor(writing), { control, inTransaction: false });
  Object.defineProperty(writer, "inTransaction", { get: () => writing.inTransaction });
  const queue = createWriteQueue(writer, clock, reader.endSnapshot);

  return {
    read: <T>(unit: (tx: Tx) => Awaitable<T>) => reader.read(unit),
    write: (unit, units) => queue.submit(unit, units),
    lateCommitMs: 0,
    async check() {
      reading.prepare("SELECT 1 FROM settings LIMIT 1").all();
    },
    async close() {
      await queue.close();
      await reader.close();
      writing.close();
      release();
    },
  };
}

function openConnections(directory: string) {
  const file = join(directory, "arbor.db");
  createPrivateFile(file);
  const writing = openDatabase(file);
  return openOrRelease(
    () => writing.close(),
    () => {
      withMigrationLock(directory, () => {
        claimDatabase(writing, file);
        migrate(drizzle(writing), { migrationsFolder: MIGRATIONS });
      });
      // From here on the write queue waits for other processes. SQLite would block the event loop.
      writing.pragma("busy_timeout = 0");
      // In KiB, used only as pages are read. The first connection, which runs nearly all reads, can cache the
      // upper levels of all trees and many leaves; additional connections cache less.
      const openReading = (cache = 8_192) => {
        const reading = openDatabase(file, { readonly: true });
        configure(reading);
        reading.pragma(`cache_size = -${cache}`);
        return reading;
      };
      return { reading: openReading(65_536), writing, openReading };
    },
  );
}

function claimDatabase(db: SqliteDatabase, file: string): void {
  const version = String(db.prepare("SELECT sqlite_version()").pluck().get());
  if (!isAtLeast(version, [3, 51, 3])) throw new Error(`SQLite ${version} may corrupt WAL files; 3.51.3 is needed`);
  const id = db.pragma("application_id", { simple: true });
  const isNew = id === 0 && db.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get() === undefined;
  if (!isNew && id !== APPLICATION_ID) throw new Error(`${file} is not a database of this program`);
  db.pragma("journal_mode = WAL");
  db.pragma(`application_id = ${APPLICATION_ID}`);
  configure(db);
}

function configure(db: SqliteDatabase): void {
  db.pragma("synchronous = FULL");
  db.pragma("foreign_keys = ON");
  db.pragma("trusted_schema = OFF");
  db.pragma("mmap_size = 0");
  // Long enough for another process to open, close or recover the database.
  db.pragma("busy_timeout = 100");
  if (db.pragma("synchronous", { simple: true }) !== 2) throw new Error("SQLite refused synchronous = FULL");
  if (db.pragma("journal_mode", { simple: true }) !== "wal") throw new Error("SQLite refused journal_mode = WAL");
}

// Statements are prepared once per connection and cached by their id.
function createExecutor(db: SqliteDatabase): Executor {
  const sql = drizzle(db) as unknown as Sql;
  const tables = schema as unknown as Tables;
  const prepared: (NativeStatement | undefined)[] = [];
  return {
    counterSlots: 1,
    rows<Params extends object, Row>(statement: Statement<Params, Row>, params: Params): Row[] {
      let ready = prepared[statement.id];
      if (ready === undefined) {
        ready = prepareNative(db, statement.build(sql, tables));
        prepared[statement.id] = ready;
      }
      try {
        return ready(params) as Row[];
      } catch (error) {
        throw toApiError(error);
      }
    },
  };
}

function createControl(db: SqliteDatabase) {
  const known = new Map<string, SqliteStatement>();
  return (statement: string): void => {
    let ready = known.get(statement);
    if (ready === undefined) {
      ready = db.prepare(statement);
      known.set(statement, ready);
    }
    try {
      ready.run();
    } catch (error) {
      throw toApiError(error);
    }
  };
}

// Temporary failures are UNAVAILABLE. All others are defects and are thrown unchanged.
function toApiError(error: unknown): unknown {
  const code = String((error as { code?: unknown }).code ?? "");
  if (/^SQLITE_(BUSY|FULL|IOERR|CANTOPEN|READONLY)/.test(code)) {
    return unavailable("the database cannot be used at the moment", 1000, error);
  }
  return error;
}

function openOrRelease<T>(release: () => void, open: () => T): T {
  try {
    return open();
  } catch (error) {
    release();
    throw error;
  }
}

// Two processes may start on an empty directory at the same time.
function withMigrationLock(directory: string, run: () => void): void {
  const release = holdFileLock(join(directory, "migrate.lock"), 10_000);
  try {
    run();
  } finally {
    release();
  }
}

function isAtLeast(version: string, minimum: readonly number[]): boolean {
  const actual = version.split(".").map(Number);
  for (const [i, least] of minimum.entries()) {
    const number = actual[i] ?? 0;
    if (number !== least) return number > least;
  }
  return true;
}
