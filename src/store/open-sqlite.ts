import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { drizzle } from "drizzle-orm/better-sqlite3";
import { migrate } from "drizzle-orm/better-sqlite3/migrator";
import { type Clock, systemClock } from "../kernel/clock.js";
import { unavailable } from "../kernel/errors.js";
import { createPrivateFile, holdFileLock, secureDataDirectory } from "./data-directory.js";
import { type NativeStatement, nativeStatement } from "./native-statement.js";
import type { Awaitable, Store, Tx } from "./port.js";
import * as schema from "./schema-sqlite.js";
import { createSnapshotReader } from "./snapshot-reader.js";
import { openDatabase, type SqliteDatabase, type SqliteStatement } from "./sqlite-driver.js";
import type { Executor, Sql, Statement } from "./statement.js";
import type { Tables } from "./tables.js";
import { createWriteQueue, type WriterConnection } from "./write-queue.js";

/** Written into the database file, so that no other file is taken for one. "Arbo". */
const APPLICATION_ID = 0x4172626f;
const MIGRATIONS = fileURLToPath(new URL("./migrations/sqlite", import.meta.url));

/** How to open a SQLite store. */
export interface SqliteOptions {
  /** The data directory; made if missing, and closed to all but its owner. */
  readonly directory: string;
  readonly clock?: Clock;
  /** Refuse to open while another process does the same; what a server asks for. */
  readonly exclusive?: boolean;
}

/**
 * Opens the store in a data directory, bringing its schema up to date.
 *
 * One connection writes, behind a queue with group commit; another only reads. Both are asserted to
 * sync every commit to disk: the library's own default would lose acknowledged writes to a power cut.
 *
 * @throws Error when the directory belongs to another server, it or a file in it is open to other users
 * and cannot be closed, the file is not one of Arbor's, or the linked SQLite has the WAL-reset race
 * (before 3.51.3).
 */
export function openSqlite(options: SqliteOptions): Store {
  const { directory, clock = systemClock } = options;
  secureDataDirectory(directory);
  const release = options.exclusive ? holdFileLock(join(directory, "serve.lock"), 0) : () => {};
  const { reading, writing, openReading } = releasingOnFailure(release, () => openConnections(directory));

  let first: SqliteDatabase | undefined = reading;
  const reader = createSnapshotReader(() => {
    const db = first ?? openReading();
    first = undefined;
    return Object.assign(connectionTo(db), { frame: framing(db), close: () => void db.close() });
  });
  const frame = framing(writing);
  const writer: WriterConnection = Object.assign(connectionTo(writing), { frame, inTransaction: false });
  Object.defineProperty(writer, "inTransaction", { get: () => writing.inTransaction });
  const queue = createWriteQueue(writer, clock, reader.endTurn);

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
  return releasingOnFailure(
    () => writing.close(),
    () => {
      withMigrationLock(directory, () => {
        becomeOurs(writing, file);
        migrate(drizzle(writing), { migrationsFolder: MIGRATIONS });
      });
      // From here on the write queue waits for other processes: SQLite would let the event loop wait.
      writing.pragma("busy_timeout = 0");
      // In KiB, taken only as far as pages are read: the upper levels of all trees and many leaves for the
      // connection that nearly all reads go through, and less for those that help it out.
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

function becomeOurs(db: SqliteDatabase, file: string): void {
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
  // Covers the moments in which another process opens, closes or recovers the database.
  db.pragma("busy_timeout = 100");
  if (db.pragma("synchronous", { simple: true }) !== 2) throw new Error("SQLite refused synchronous = FULL");
  if (db.pragma("journal_mode", { simple: true }) !== "wal") throw new Error("SQLite refused journal_mode = WAL");
}

// Statements are prepared once per connection and kept by their number.
function connectionTo(db: SqliteDatabase): Executor {
  const sql = drizzle(db) as unknown as Sql;
  const tables = schema as unknown as Tables;
  const prepared: (NativeStatement | undefined)[] = [];
  return {
    counterSlots: 1,
    rows<Params extends object, Row>(statement: Statement<Params, Row>, params: Params): Row[] {
      let ready = prepared[statement.id];
      if (ready === undefined) {
        ready = nativeStatement(db, statement.build(sql, tables));
        prepared[statement.id] = ready;
      }
      try {
        return ready(params) as Row[];
      } catch (error) {
        throw translated(error);
      }
    },
  };
}

function framing(db: SqliteDatabase) {
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
      throw translated(error);
    }
  };
}

// Whatever may pass by itself is UNAVAILABLE; the rest are defects and stay as they are.
function translated(error: unknown): unknown {
  const code = String((error as { code?: unknown }).code ?? "");
  if (/^SQLITE_(BUSY|FULL|IOERR|CANTOPEN|READONLY)/.test(code)) {
    return unavailable("the database cannot be used at the moment", 1000, error);
  }
  return error;
}

function releasingOnFailure<T>(release: () => void, open: () => T): T {
  try {
    return open();
  } catch (error) {
    release();
    throw error;
  }
}

// Two processes may be started on an empty directory at once.
function withMigrationLock(directory: string, run: () => void): void {
  const release = holdFileLock(join(directory, "migrate.lock"), 10_000);
  try {
    run();
  } finally {
    release();
  }
}

function isAtLeast(version: string, minimum: readonly number[]): boolean {
  const parts = version.split(".").map(Number);
  for (const [i, least] of minimum.entries()) {
    const part = parts[i] ?? 0;
    if (part !== least) return part > least;
  }
  return true;
}
