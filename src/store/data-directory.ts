// The data directory: who may access it, and the locks in it.
import { chmodSync, closeSync, existsSync, mkdirSync, openSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import { type ApiError, failedPrecondition } from "../kernel/errors.js";
import { APPLICATION_ID, DATABASE_FILE, VERSIONED_APPLICATION_ID } from "./sqlite-connection.js";
import { openDatabase } from "./sqlite-driver.js";

/** The permissions of the group and of others. */
const GROUP_AND_OTHERS = 0o077;

/** The files of SQLite and of the locks. The permissions of the master key are checked where it is read. */
const FILES = ["arbor.db", "arbor.db-wal", "arbor.db-shm", "arbor.db-journal", "serve.lock", "migrate.lock"];

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
  mkdirSync(directory, { recursive: true, mode: 0o700 });
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
 */
export function createPrivateFile(file: string): void {
  // An existing file must not be opened here: closing it would release the locks of this process on it.
  if (existsSync(file)) return;
  try {
    closeSync(openSync(file, "wx", 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

/**
 * Takes a lock that the operating system releases when the process ends, also when it crashes: an
 * exclusive transaction on an otherwise empty SQLite file. Node itself offers no file locks.
 *
 * @param file the path of the lock file; created if missing
 * @param waitMs how long to wait for the current holder, in milliseconds; this blocks the event loop
 * @returns a function that releases the lock
 * @throws Error when another process holds the lock
 */
export function holdFileLock(file: string, waitMs: number): () => void {
  createPrivateFile(file);
  const db = openDatabase(file, { timeout: waitMs });
  try {
    db.exec("BEGIN EXCLUSIVE");
  } catch (error) {
    db.close();
    throw new Error(`another process holds ${file}`, { cause: error });
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
  } catch {
    throw failedPrecondition(reason, describe(directory));
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
    "name its directory with --data or its database with --database-url, or create it with `arbor bootstrap` or `arbor serve`";
  return failedPrecondition("INSTALLATION", `there is no installation in ${where}: ${reason}; ${remedy}`);
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
  const header = Buffer.alloc(HEADER_BYTES);
  const descriptor = openSync(file, "r");
  try {
    readSync(descriptor, header, 0, HEADER_BYTES, 0);
  } finally {
    closeSync(descriptor);
  }
  if (header.toString("latin1", 0, MAGIC.length) !== MAGIC) return false;
  return [APPLICATION_ID, VERSIONED_APPLICATION_ID].includes(header.readUInt32BE(APPLICATION_ID_OFFSET));
}
