// Opens the store in SQLite. One connection writes: units of work wait in a queue, and all that wait run in one transaction
// with a savepoint each, so that one sync of the disk makes all of them durable (write-queue.ts). Other connections read:
// reads of the same turn of the event loop share a snapshot until something is committed, and one that takes long keeps its
// own (snapshot-reader.ts). One more is never in a transaction, and says whether something was committed.
// Statements run on the thread of the service, so each is bounded to milliseconds and long reads pause between.
//
// The data directory is for its owner alone, and a lock in it keeps other servers out (data-directory.ts). A full or broken
// disk fails writes, and reads where they must, until a commit succeeds again (faults.ts). A database that was removed or
// replaced while it is open fails all calls (files.ts).
import { statfsSync, statSync } from "node:fs";
import { join } from "node:path";
import { type Clock, systemClock } from "../../kernel/time.js";
import { type DatabaseFaultEvent, rewriteSetting } from "../faults.js";
import type { DataMigration } from "../migrate/data-migration.js";
import { dataMigrations } from "../migrate/data-migrations.js";
import { prepareSqlite } from "../migrate/prepare-sqlite.js";
import type { Store } from "../store.js";
import { assertMayOpen, OLDEST_VERSION } from "../version.js";
import { createStoreCounts } from "../work-gate.js";
import {
  createControl,
  createDataVersion,
  createExecutor,
  DATABASE_FILE,
  openReading,
  openWriting,
} from "./connection.js";
import {
  assertNothingLost,
  createPrivateFile,
  findSqliteInstallation,
  holdFileLock,
  holdParentLock,
  secureDataDirectory,
  shareParentLock,
} from "./data-directory.js";
import type { SqliteDatabase } from "./driver.js";
import { createFaultMonitor } from "./faults.js";
import { guardFiles } from "./files.js";
import { SnapshotReader } from "./snapshot-reader.js";
import { WriteQueue, type WriterConnection } from "./write-queue.js";

export interface SqliteOptions {
  /** The data directory; its access is for its owner alone. */
  readonly directory: string;
  /** Whether the directory and the database are created where there is nothing of them; by default they are. */
  readonly create?: boolean;
  readonly clock?: Clock;
  /** Fail while another process has opened the store with this option; set by servers. */
  readonly exclusive?: boolean;
  /** The process is a worker, whose parent has called {@link lockForWorkers}. */
  readonly isWorker?: boolean;
  /** Called when a fault of the machine begins and ends, such as a full disk, and each minute while calls fail. */
  readonly onFault?: ((event: DatabaseFaultEvent) => void) | undefined;
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
 * @throws ApiError FAILED_PRECONDITION when there is no database and none may be created, it was lost, or it needs a newer version;
 * as `isExpansionNeeded` recognises it, when the database is that of an older version and must be expanded first.
 */
export function openSqlite(options: SqliteOptions): Store {
  const { directory, clock = systemClock } = options;
  secureInstallation(options);
  const release = takeLock(options);
  const { reading, writing, idle, openReader } = openOrRelease(release, () => openConnections(options));

  const file = join(directory, DATABASE_FILE);
  const faults = createFaultMonitor(file, options.onFault);
  const setting = idle.prepare("SELECT value FROM settings WHERE name = ?").pluck();
  const readOldest = () => setting.get(OLDEST_VERSION) as string | undefined;
  const executorOptions = { clock, faults };
  let first: SqliteDatabase | undefined = reading;
  const openNext = () => {
    try {
      return first ?? openReader();
    } catch (error) {
      throw faults.toCallError(error);
    }
  };
  const openConnection = () => {
    const db = openNext();
    first = undefined;
    return Object.assign(createExecutor(db, executorOptions), {
      control: createControl(db, faults),
      close: () => void db.close(),
    });
  };
  const readVersion = createDataVersion(idle, faults);
  const reader = new SnapshotReader(openConnection, () => {
    faults.assertReadable();
    return readVersion();
  });
  const writer: WriterConnection = Object.assign(createExecutor(writing, executorOptions), {
    control: createControl(writing, faults),
    inTransaction: false,
  });
  Object.defineProperty(writer, "inTransaction", { get: () => writing.inTransaction });
  const counts = createStoreCounts();
  const guard = guardFiles({ file, faults, database: writing });
  const queue = new WriteQueue(writer, clock, counts, guard);
  // Without calls nothing would end a fault, because only a commit that succeeds does.
  const timer = setInterval(() => {
    guard.check();
    if (faults.isFaulty && queue.length === 0) queue.submit(rewriteSetting).catch(() => {});
  }, CHECK_MS).unref();

  return {
    read: (unit) => reader.read(unit),
    write: (unit, units) => queue.submit(unit, units),
    lateCommitMs: 0,
    stats: () => ({ ...counts, waiting: queue.length, files: () => readFileSizes(directory), faults: faults.counts }),
    async check() {
      faults.assertWritable();
      assertMayOpen(readOldest());
      return faults.isReadOnly ? "read-only" : "ok";
    },
    async close() {
      clearInterval(timer);
      await queue.close();
      await reader.close();
      idle.close();
      writing.close();
      release();
    },
  };
}

/**
 * Keeps other servers out of a data directory for a process that opens no store itself, and whose workers do.
 *
 * @throws as {@link openSqlite} for the directory and its lock
 */
export function lockForWorkers(options: Pick<SqliteOptions, "directory" | "create">): () => void {
  secureInstallation(options);
  return holdParentLock(join(options.directory, LOCK_FILE));
}

const LOCK_FILE = "serve.lock";

function secureInstallation({ directory, create = true }: Pick<SqliteOptions, "directory" | "create">): void {
  if (create) assertNothingLost(directory);
  else findSqliteInstallation(directory);
  secureDataDirectory(directory);
}

function takeLock({ directory, exclusive = false, isWorker = false }: SqliteOptions): () => void {
  const file = join(directory, LOCK_FILE);
  if (isWorker) return shareParentLock(file);
  return exclusive ? holdFileLock(file, 0) : () => {};
}

/** How often the files of the database are compared with those that were opened. */
const CHECK_MS = 1_000;

function readFileSizes(directory: string) {
  const sizeOf = (file: string) => statSync(join(directory, file), { throwIfNoEntry: false })?.size ?? 0;
  const { bavail, bsize } = statfsSync(directory);
  return { database: sizeOf(DATABASE_FILE), wal: sizeOf(`${DATABASE_FILE}-wal`), free: bavail * bsize };
}

function openConnections(options: SqliteOptions) {
  const { directory, create = true, migrations = dataMigrations } = options;
  const holdsServeLock = options.exclusive === true || options.isWorker === true;
  const file = join(directory, DATABASE_FILE);
  if (create) createPrivateFile(file);
  return withOpenLock(directory, () => {
    const writing = openWriting(file);
    return openOrRelease(
      () => writing.close(),
      () => {
        prepareSqlite(writing, { directory, create, migrations, holdsServeLock });
        // From here on the write queue waits for other processes. SQLite would block the event loop.
        writing.pragma("busy_timeout = 0");
        // In KiB, used only as pages are read. The first connection, which runs nearly all reads, can cache the
        // upper levels of all trees and many leaves; additional connections cache less.
        const openReader = (cache = 8_192) => {
          const reading = openReading(file);
          reading.pragma(`cache_size = -${cache}`);
          return reading;
        };
        return { reading: openReader(65_536), writing, idle: openReader(64), openReader };
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
