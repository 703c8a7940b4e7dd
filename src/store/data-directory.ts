// The data directory: who may access it, and the locks in it.
import { chmodSync, closeSync, existsSync, mkdirSync, openSync, statSync } from "node:fs";
import { join } from "node:path";
import { failedPrecondition } from "../kernel/errors.js";
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
