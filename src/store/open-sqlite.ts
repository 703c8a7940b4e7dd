// Opens the store in SQLite: one connection writes, others read, and a lock keeps other servers out.
import { statfsSync, statSync } from "node:fs";
import { join } from "node:path";
import { type Clock, systemClock } from "../kernel/time.js";
import { watchAuditVersion } from "./audit-version.js";
import { createPrivateFile, holdFileLock, secureDataDirectory } from "./data-directory.js";
import { findSqliteInstallation } from "./find-installation.js";
import type { DataMigration } from "./migrate/data-migration.js";
import { dataMigrations } from "./migrate/data-migrations.js";
import { prepareSqlite } from "./migrate/prepare-sqlite.js";
import type { Awaitable, Store, Tx } from "./port.js";
import { createSnapshotReader } from "./snapshot-reader.js";
import { createControl, createExecutor, DATABASE_FILE, openReading, openWriting } from "./sqlite-connection.js";
import type { SqliteDatabase } from "./sqlite-driver.js";
import { createStoreCounts } from "./store-counts.js";
import { assertMayOpen, OLDEST_VERSION } from "./version.js";
import { createWriteQueue, type WriterConnection } from "./write-queue.js";

/** How to open a SQLite store. */
export interface SqliteOptions {
  /** The data directory; its access is for its owner alone. */
  readonly directory: string;
  /** Whether the directory and the database are created where there are none; by default they are. */
  readonly create?: boolean;
  readonly clock?: Clock;
  /** Fail while another process has opened the store with this option; set by servers. */
  readonly exclusive?: boolean;
  /** The migrations of stored rows; tests replace them. */
  readonly migrations?: readonly DataMigration[];
}

/**
 * Opens the store in a data directory.
 *
 * One connection writes, through a queue with group commit; the others only read. All are checked to sync
 * every commit to disk: with the library's default a power cut would lose acknowledged writes.
 *
 * @throws Error when another server uses the directory, other users can access it or a file in it and this
 * cannot be changed, the file is the database of another program, or the linked SQLite is older than 3.51.3,
 * which has a race in WAL reset.
 * @throws ApiError FAILED_PRECONDITION when there is no database and none may be created, or it needs a newer version; as
 * `isExpansionNeeded` recognises it, when the database is that of an older version and must be expanded first.
 */
export function openSqlite(options: SqliteOptions): Store {
  const { directory, clock = systemClock, create = true } = options;
  if (!create) findSqliteInstallation(directory);
  secureDataDirectory(directory);
  const release = options.exclusive ? holdFileLock(join(directory, "serve.lock"), 0) : () => {};
  const { reading, writing, openReader } = openOrRelease(release, () => openConnections(options));

  const setting = reading.prepare("SELECT value FROM settings WHERE name = ?").pluck();
  const readOldest = () => setting.get(OLDEST_VERSION) as string | undefined;
  const auditVersion = watchAuditVersion(readOldest, clock);
  let first: SqliteDatabase | undefined = reading;
  const reader = createSnapshotReader(() => {
    const db = first ?? openReader();
    first = undefined;
    return Object.assign(createExecutor(db, { auditVersion: auditVersion.current, clock }), {
      control: createControl(db),
      close: () => void db.close(),
    });
  });
  const control = createControl(writing);
  const writer: WriterConnection = Object.assign(
    createExecutor(writing, { auditVersion: auditVersion.current, clock }),
    {
      control,
      inTransaction: false,
    },
  );
  Object.defineProperty(writer, "inTransaction", { get: () => writing.inTransaction });
  const counts = createStoreCounts();
  const queue = createWriteQueue(writer, clock, reader.endSnapshot, counts);

  return {
    read: <T>(unit: (tx: Tx) => Awaitable<T>) => reader.read(unit),
    write: (unit, units) => queue.submit(unit, units),
    lateCommitMs: 0,
    stats: () => ({ ...counts, waiting: queue.length, files: () => readFileSizes(directory) }),
    // Reads do not wait for anything.
    hasRoom: (access) => access === "read" || queue.hasRoom(),
    async check() {
      assertMayOpen(readOldest());
    },
    async close() {
      await queue.close();
      await reader.close();
      writing.close();
      release();
    },
  };
}

function readFileSizes(directory: string) {
  const sizeOf = (file: string) => statSync(join(directory, file), { throwIfNoEntry: false })?.size ?? 0;
  const { bavail, bsize } = statfsSync(directory);
  return { database: sizeOf(DATABASE_FILE), wal: sizeOf(`${DATABASE_FILE}-wal`), free: bavail * bsize };
}

function openConnections({ directory, create = true, exclusive = false, migrations = dataMigrations }: SqliteOptions) {
  const file = join(directory, DATABASE_FILE);
  if (create) createPrivateFile(file);
  return withOpenLock(directory, () => {
    const writing = openWriting(file);
    return openOrRelease(
      () => writing.close(),
      () => {
        prepareSqlite(writing, { directory, create, migrations, holdsServeLock: exclusive });
        // From here on the write queue waits for other processes. SQLite would block the event loop.
        writing.pragma("busy_timeout = 0");
        // In KiB, used only as pages are read. The first connection, which runs nearly all reads, can cache the
        // upper levels of all trees and many leaves; additional connections cache less.
        const openReader = (cache = 8_192) => {
          const reading = openReading(file);
          reading.pragma(`cache_size = -${cache}`);
          return reading;
        };
        return { reading: openReader(65_536), writing, openReader };
      },
    );
  });
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
function withOpenLock<T>(directory: string, run: () => T): T {
  const release = holdFileLock(join(directory, "migrate.lock"), 10_000);
  try {
    return run();
  } finally {
    release();
  }
}
