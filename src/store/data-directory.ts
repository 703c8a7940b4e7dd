import { chmodSync, closeSync, existsSync, mkdirSync, openSync, statSync } from "node:fs";
import { join } from "node:path";
import { openDatabase } from "./sqlite-driver.js";

/** Everything that the group or others may do with a file. */
const OTHERS = 0o077;

/** What SQLite and the locks leave in the directory. The master key has a check of its own. */
const FILES = ["arbor.db", "arbor.db-wal", "arbor.db-shm", "arbor.db-journal", "serve.lock", "migrate.lock"];

/**
 * Makes the data directory if it is missing, and takes all access to it and to the database from the
 * group and others: the database holds e-mail addresses, the audit log and sealed keys.
 *
 * @param directory its path
 * @throws Error when something is open to other users and belongs to another user, who alone can change that
 */
export function secureDataDirectory(directory: string): void {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  // Windows has no such modes; what Node makes up there cannot be changed.
  if (process.platform === "win32") return;
  closeToOthers(directory, "data directory", 0o700);
  for (const name of FILES) {
    const file = join(directory, name);
    if (statSync(file, { throwIfNoEntry: false })?.isFile()) closeToOthers(file, "file", 0o600);
  }
}

/**
 * Makes an empty file that its owner alone can read, unless there is one: SQLite would let others read
 * it, and gives the files beside a database the mode of the database.
 *
 * @param file its path
 */
export function createPrivateFile(file: string): void {
  // One that exists must not be opened here: to close it again would release this process's locks on it.
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

function closeToOthers(path: string, kind: string, wanted: number): void {
  const { mode, uid } = statSync(path);
  if ((mode & OTHERS) === 0) return;
  let cause: unknown;
  try {
    chmodSync(path, mode & wanted);
    // Some file systems accept the call and change nothing.
    if ((statSync(path).mode & OTHERS) === 0) return;
  } catch (error) {
    cause = error;
  }
  const found = (mode & 0o777).toString(8).padStart(4, "0");
  const advice = `run chmod ${wanted.toString(8)} ${path} as its owner, or name another directory with --data`;
  throw new Error(`the ${kind} ${path} of user ${uid} is open to other users (mode ${found}): ${advice}`, { cause });
}
