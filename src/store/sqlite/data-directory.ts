// The data directory: who may access it, and the locks in it.
import { chmodSync, closeSync, existsSync, openSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import { createDirectories } from "../../kernel/directories.js";
import { type ApiError, failedPrecondition } from "../../kernel/errors.js";
import { openNewFile } from "../../kernel/new-file.js";
import { DATABASE_FILE, isOwnId } from "./connection.js";
import { openDatabase, type SqliteDatabase } from "./driver.js";

/** The permissions of the group and of others. */
const GROUP_AND_OTHERS = 0o077;

/** The files of SQLite and of the locks. The permissions of the master key are checked where it is read. */
const FILES = ["arbor.db", "arbor.db-wal", "arbor.db-shm", "arbor.db-journal", "serve.lock", "migrate.lock"];

/** The file of the master key, unless the settings name another. */
export const MASTER_KEY_FILE = "master.key";

/** The directory within a data directory in which a restore prepares its files. */
export const RESTORE_DIRECTORY = "restore.partial";

/**
 * Creates the data directory if it is missing, and revokes all access of the group and others to it and to
 * the database: the database holds e-mail addresses, the audit log and sealed keys.
 *
 * @param directory its path
 * @throws Error when other users have access and the permissions cannot be changed, because another user is the owner
 * @throws ApiError FAILED_PRECONDITION when a restore into it has not ended: a new database would take its place
 */
export function secureDataDirectory(directory: string): void {
  if (existsSync(join(directory, RESTORE_DIRECTORY)) && !existsSync(join(directory, "arbor.db"))) {
    const rule = `a restore into ${directory} was interrupted or is under way: run arbor restore again`;
    throw failedPrecondition("RESTORE_UNFINISHED", rule);
  }
  createDirectories(directory, 0o700);
  // Windows has no such permissions; those that Node reports there cannot be changed.
  if (process.platform === "win32") return;
  revokeOtherAccess(directory, "data directory", 0o700);
  for (const name of FILES) {
    const file = join(directory, name);
    if (statSync(file, { throwIfNoEntry: false })?.isFile()) revokeOtherAccess(file, "file", 0o600);
  }
}

/**
 * Creates an empty file that only its owner can read, unless it exists. SQLite itself would let others read
 * it, and gives its other files the permissions of the database.
 *
 * @param file its path
 * @throws ApiError FAILED_PRECONDITION when another user could put a file in its place
 */
export function createPrivateFile(file: string): void {
  // An existing file must not be opened here: closing it would release the locks of this process on it.
  if (existsSync(file)) return;
  try {
    closeSync(openNewFile(file));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

class LockHeldError extends Error {}

/** Whether {@link holdFileLock} failed because another process holds the lock. */
export function isLockHeld(error: unknown): boolean {
  return error instanceof LockHeldError;
}

/**
 * Takes a lock that the operating system releases when the process ends, also when it crashes: an
 * exclusive transaction on an otherwise empty SQLite file. Node itself offers no file locks.
 *
 * @param file the path of the lock file; created if missing
 * @param waitMs how long to wait for the current holder, in milliseconds; this blocks the event loop
 * @returns a function that releases the lock
 * @throws Error when another process holds the lock, see {@link isLockHeld}, or the file cannot be created or locked
 */
export function holdFileLock(file: string, waitMs: number): () => void {
  return holdTransaction(file, waitMs, (db) => db.exec("BEGIN EXCLUSIVE"));
}

// SQLite has the three locks that a server with workers needs: RESERVED, of which there is one, beside any number of
// SHARED ones, and EXCLUSIVE, which excludes all others.

/**
 * Takes the lock of a server for a process whose workers share it. While the process or any of its workers has it,
 * {@link holdFileLock} fails, and so does this function, also in a later process.
 *
 * @throws as {@link holdFileLock}
 */
export function holdParentLock(file: string): () => void {
  return holdTransaction(file, 0, (db) => {
    // Nobody else has any lock, not even a worker whose parent was killed.
    db.exec("BEGIN EXCLUSIVE; COMMIT");
    db.exec("BEGIN IMMEDIATE");
  });
}

/** Shares the lock of the parent of this process. @throws as {@link holdFileLock} */
export function shareParentLock(file: string): () => void {
  return holdTransaction(file, 0, (db) => {
    db.exec("BEGIN");
    db.prepare("SELECT count(*) FROM sqlite_schema").get();
  });
}

function holdTransaction(file: string, waitMs: number, begin: (db: SqliteDatabase) => void): () => void {
  createPrivateFile(file);
  const db = openDatabase(file, { timeout: waitMs });
  try {
    begin(db);
  } catch (error) {
    db.close();
    const isHeld = String((error as { code?: unknown }).code).startsWith("SQLITE_BUSY");
    throw isHeld ? new LockHeldError(`another process holds ${file}`, { cause: error }) : error;
  }
  return () => {
    db.close();
  };
}

/**
 * Keeps servers out of a data directory, which must exist.
 *
 * @param reason of the error
 * @param describe says who uses the directory and what to do
 * @returns a function that lets them in again
 * @throws ApiError FAILED_PRECONDITION when a server, or another command that keeps them out, uses it
 */
export function holdServeLock(directory: string, reason: string, describe: (directory: string) => string): () => void {
  try {
    return holdFileLock(join(directory, "serve.lock"), 0);
  } catch (error) {
    throw isLockHeld(error) ? failedPrecondition(reason, describe(directory)) : error;
  }
}

function revokeOtherAccess(path: string, kind: string, allowed: number): void {
  const { mode, uid } = statSync(path);
  if ((mode & GROUP_AND_OTHERS) === 0) return;
  let cause: unknown;
  try {
    chmodSync(path, mode & allowed);
    // Some file systems accept the call and change nothing.
    if ((statSync(path).mode & GROUP_AND_OTHERS) === 0) return;
  } catch (error) {
    cause = error;
  }
  const found = (mode & 0o777).toString(8).padStart(4, "0");
  const advice = `run chmod ${allowed.toString(8)} ${path} as its owner, or name another directory with --data`;
  throw new Error(`the ${kind} ${path} of user ${uid} is open to other users (mode ${found}): ${advice}`, { cause });
}

// Whether there is an installation, found out before anything is opened: SQLite would create files beside a database that
// it only reads, and a command with a wrong path must leave nothing behind.

/** Where the application id is in the header of a SQLite file (https://sqlite.org/fileformat2.html). */
const APPLICATION_ID_OFFSET = 68;
const HEADER_BYTES = 100;
const MAGIC = "SQLite format 3\0";

/**
 * FAILED_PRECONDITION: there is no installation where the settings say, and the command may not create one.
 *
 * @param where such as a directory
 * @param reason what is missing
 */
export function noInstallation(where: string, reason: string): ApiError {
  const remedy =
    "mount its disk, name its directory with --data or its database with --database-url, or create it with `arbor bootstrap`";
  return failedPrecondition("INSTALLATION", `there is no installation in ${where}: ${reason}; ${remedy}`);
}

/**
 * Checks that a data directory has its database, or nothing of an installation. Where a database was lost, a new one would
 * look sound, and nobody would look for the old one.
 *
 * @throws ApiError FAILED_PRECONDITION when it has a master key or a write-ahead log, and no database
 */
export function assertNothingLost(directory: string): void {
  // Where a restore was interrupted, what it has to say is more useful: see secureDataDirectory.
  if (existsSync(join(directory, RESTORE_DIRECTORY))) return;
  const sizeOf = (name: string) => statSync(join(directory, name), { throwIfNoEntry: false })?.size;
  // In this order: another process may be creating an installation, whose key is created last.
  const left = [MASTER_KEY_FILE, `${DATABASE_FILE}-wal`].filter((name) => (sizeOf(name) ?? 0) > 0);
  const size = sizeOf(DATABASE_FILE);
  if (left.length === 0 || (size ?? 0) > 0) return;
  // The first changes of a database may be in the write-ahead log alone. Without its key it never was in use.
  const log = `${DATABASE_FILE}-wal`;
  if (size === 0 && left.includes(log) && (left.length === 1 || isLog(join(directory, log)))) return;
  const found = `it has ${left.join(" and ")}, and ${size === undefined ? "no" : "an empty"} ${DATABASE_FILE}`;
  const remedy =
    "mount the disk or put back the file that is missing; `arbor restore` puts back a backup, and a new installation " +
    "needs an empty directory";
  throw failedPrecondition("INSTALLATION", `the database of ${directory} is lost: ${found}; ${remedy}`);
}

/** The headers of a write-ahead log and of its first frame (https://sqlite.org/fileformat2.html#walformat). */
const LOG_BYTES = 56;
const LOG_MAGIC: readonly number[] = [0x377f0682, 0x377f0683];

// Whether a log has a frame that SQLite would read. With any other, an empty database stays empty.
function isLog(file: string): boolean {
  const head = readHead(file, LOG_BYTES);
  return LOG_MAGIC.includes(head.readUInt32BE(0)) && head.subarray(16, 24).equals(head.subarray(40, 48));
}

/**
 * Finds the database of a data directory without opening it.
 *
 * @returns the path of the file
 * @throws ApiError FAILED_PRECONDITION where there is none, or the file is not a database of this program
 * @throws Error when the directory or the file cannot be read
 */
export function findSqliteInstallation(directory: string): string {
  const found = statSync(directory, { throwIfNoEntry: false });
  if (found === undefined) throw noInstallation(directory, "there is no such directory");
  if (!found.isDirectory()) throw noInstallation(directory, "it is not a directory");
  const file = join(directory, DATABASE_FILE);
  const size = statSync(file, { throwIfNoEntry: false })?.size;
  if (size === undefined) throw noInstallation(directory, `it has no ${DATABASE_FILE}`);
  // The first changes of a database may be in the write-ahead log alone.
  const isLogged = (statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;
  if (!isLogged && size === 0) throw noInstallation(directory, `its ${DATABASE_FILE} is empty`);
  if (!isLogged && !hasApplicationId(file)) {
    throw noInstallation(directory, `its ${DATABASE_FILE} is not a database of this program`);
  }
  return file;
}

function hasApplicationId(file: string): boolean {
  const header = readHead(file, HEADER_BYTES);
  if (header.toString("latin1", 0, MAGIC.length) !== MAGIC) return false;
  return isOwnId(header.readUInt32BE(APPLICATION_ID_OFFSET));
}

// The first bytes of a file; zeros after its end.
function readHead(file: string, bytes: number): Buffer {
  const head = Buffer.alloc(bytes);
  const descriptor = openSync(file, "r");
  try {
    readSync(descriptor, head, 0, bytes, 0);
  } finally {
    closeSync(descriptor);
  }
  return head;
}
