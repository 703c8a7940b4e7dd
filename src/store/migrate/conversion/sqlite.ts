// Converts a SQLite database of version 0.10 or 0.11: builds a new file beside it, and puts that in its place. At each
// moment the complete database of one version or the other is at its path.
import { linkSync, rmSync, statSync } from "node:fs";
import { setImmediate } from "node:timers/promises";
import { failedPrecondition } from "../../../kernel/errors.js";
import { renameDurably, requireSpace, syncPath } from "../../backup/files.js";
import { assertNoUnknownObjects } from "../../check/objects.js";
import {
  APPLICATION_ID,
  createExecutor,
  openExisting,
  openWriting,
  runMigrationStatement,
} from "../../sqlite/connection.js";
import {
  createPrivateFile,
  findSqliteInstallation,
  holdMigrateLock,
  holdServeLock,
  secureDataDirectory,
} from "../../sqlite/data-directory.js";
import { openDatabase, type SqliteDatabase } from "../../sqlite/driver.js";
import type { SqlRow } from "../data-migration.js";
import { dataMigrations } from "../data-migrations.js";
import type { MigrationProgress } from "../phases.js";
import { readState, readStateSync } from "../state.js";
import { conversionNeeded } from "./old-database.js";
import { type Conversion, type ConversionTx, convertRows, countOldRows } from "./rows.js";

/** The steps of a conversion, in their order. */
export type ConversionStep = "build" | "sync" | "keep" | "replace" | "done";

export interface SqliteConversionOptions {
  readonly directory: string;
  readonly onProgress: (progress: MigrationProgress) => void;
  /** Called as each step begins; tests end the process there. */
  readonly onStep?: (step: ConversionStep) => void;
}

/** What a conversion copies, needs and leaves. */
export interface SqliteConversionPlan extends Conversion {
  /** How many bytes must be free in the directory. */
  readonly bytes: number;
  /** The path at which the old database stays. */
  readonly kept: string;
}

/** The schema of the old database in statements on the connection of the new one. */
const OLD = "old";
/** In KiB. Rows are added to indexes in another order than to tables. */
const CACHE_KIB = 131_072;

const keptPath = (file: string) => `${file}.before-1.0`;
const partialPath = (file: string) => `${file}.converting`;

/**
 * Says what a conversion would do, and changes nothing.
 *
 * @throws ApiError FAILED_PRECONDITION when the database cannot be converted, or its disk is too small
 */
export async function planSqliteConversion(directory: string): Promise<SqliteConversionPlan> {
  const file = findSqliteInstallation(directory);
  const db = openExisting(file);
  try {
    const bytes = await requireConvertible(db, file, directory);
    const counts = await countOldRows(createTx(db, "main"));
    const rows = [...counts.values()].reduce((sum, n) => sum + n, 0);
    return { tables: counts.size, rows, bytes, kept: keptPath(file) };
  } finally {
    db.close();
  }
}

/**
 * Converts the database of a data directory. Ended at any moment, it can be run again.
 *
 * @throws ApiError FAILED_PRECONDITION when the database cannot be converted, another process uses it, or its disk is too
 * small; then it is as it was
 */
export async function convertSqlite(options: SqliteConversionOptions): Promise<SqliteConversionPlan> {
  const { directory, onStep = () => {} } = options;
  const file = findSqliteInstallation(directory);
  const [kept, partial] = [keptPath(file), partialPath(file)];
  secureDataDirectory(directory);
  const release = keepOthersOut(directory);
  try {
    const reading = openExisting(file);
    let bytes: number;
    try {
      bytes = await requireConvertible(reading, file, directory);
    } finally {
      reading.close();
    }
    onStep("build");
    const converted = await build(file, partial, options.onProgress);
    assertClosed(file);
    onStep("sync");
    // Every connection to a database of Arbor expects a write-ahead log.
    openWriting(partial).close();
    syncPath(partial);
    onStep("keep");
    // A run that ended here has left the other name of the same file.
    rmSync(kept, { force: true });
    keep(file, kept);
    syncPath(directory);
    onStep("replace");
    renameDurably(partial, file);
    onStep("done");
    return { ...converted, bytes, kept };
  } finally {
    removePartial(partial);
    release();
  }
}

// Servers hold one of these locks while they run, commands the other one while they open the database.
function keepOthersOut(directory: string): () => void {
  const describe = (path: string) => `another process uses ${path}: end it, then run the command again`;
  const releaseServe = holdServeLock(directory, "SERVER_RUNS", describe);
  try {
    const releaseMigrate = holdMigrateLock(directory, "SERVER_RUNS", describe);
    return () => {
      releaseMigrate();
      releaseServe();
    };
  } catch (error) {
    releaseServe();
    throw error;
  }
}

// Returns how many bytes must be free.
async function requireConvertible(db: SqliteDatabase, file: string, directory: string): Promise<number> {
  const query = (sql: string) => db.prepare(sql).all() as SqlRow[];
  const { old } = readStateSync(readState("sqlite", dataMigrations), query);
  if (old === undefined) throw failedPrecondition("DATABASE_VERSION", `${file} is a database of version 1.0 or newer`);
  if (!old.isReady) throw conversionNeeded(old);
  await assertNoUnknownObjects(file, "sqlite", async (sql) => query(sql));
  const [kept, found] = [keptPath(file), statSync(keptPath(file), { throwIfNoEntry: false })];
  if (found !== undefined && found.ino !== statSync(file).ino) {
    const rule = `${kept} exists, and would be replaced by the database of now: move or delete it`;
    throw failedPrecondition("FILE_EXISTS", rule);
  }
  const read = (pragma: string) => Number(db.pragma(pragma, { simple: true }));
  const bytes = 2 * (read("page_count") - read("freelist_count")) * read("page_size");
  requireSpace(directory, bytes);
  return bytes;
}

async function build(file: string, partial: string, onProgress: SqliteConversionOptions["onProgress"]) {
  removePartial(partial);
  createPrivateFile(partial);
  const db = openDatabase(partial);
  try {
    // The file is deleted unless it is complete. Then it is synced as a whole.
    for (const pragma of ["journal_mode = OFF", "synchronous = OFF", `cache_size = -${CACHE_KIB}`]) db.pragma(pragma);
    db.pragma("trusted_schema = OFF");
    db.pragma(`application_id = ${APPLICATION_ID}`);
    // For the attached database too: its first read fails while any other process has it open.
    db.pragma("locking_mode = EXCLUSIVE");
    attach(db, file);
    db.exec("BEGIN");
    const converted = await convertRows(createTx(db, OLD), onProgress);
    db.exec("COMMIT");
    return converted;
  } finally {
    db.close();
  }
}

// What only the write-ahead log has would be lost with the file, and would be read into the new one.
function assertClosed(file: string): void {
  const log = `${file}-wal`;
  if ((statSync(log, { throwIfNoEntry: false })?.size ?? 0) > 0)
    throw new Error(`${log} has changes that ${file} lacks`);
  for (const suffix of ["-wal", "-shm"]) rmSync(file + suffix, { force: true });
}

function attach(db: SqliteDatabase, file: string): void {
  try {
    db.prepare(`ATTACH ? AS ${OLD}`).run(file);
    db.prepare(`SELECT 1 FROM ${OLD}.settings LIMIT 1`).get();
  } catch (error) {
    if (!String((error as { code?: unknown }).code).startsWith("SQLITE_BUSY")) throw error;
    const advice = `fuser -v ${file} names it; end it, then run the command again`;
    throw failedPrecondition("DATABASE_IN_USE", `another process has ${file} open: ${advice}`);
  }
}

function createTx(db: SqliteDatabase, oldSchema: string): ConversionTx {
  return {
    ...createExecutor(db),
    dialect: "sqlite",
    oldSchema,
    async run(statement, values = []) {
      // A signal ends the command between two statements.
      await setImmediate();
      return runMigrationStatement(db, statement, values);
    },
    query: async (statement, values = []) => db.prepare(statement).all(...values) as SqlRow[],
  };
}

function keep(file: string, kept: string): void {
  try {
    linkSync(file, kept);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === undefined || !["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EINVAL"].includes(code)) throw cause;
    const rule =
      "its file system has no hard links: copy the directory to another disk, run the command there, copy it back";
    throw failedPrecondition("FILE_SYSTEM", `${kept} cannot be created: ${rule}`);
  }
}

function removePartial(partial: string): void {
  for (const suffix of ["", "-wal", "-shm", "-journal"]) rmSync(partial + suffix, { force: true });
}
