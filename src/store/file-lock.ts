import { createPrivateFile } from "./data-directory.js";
import { openDatabase } from "./sqlite-driver.js";

/**
 * Takes a lock that the operating system releases when the process dies, however it dies: an
 * exclusive transaction on a SQLite file that holds nothing else. Node offers no file locks itself.
 *
 * @param file where the lock lives; made if missing
 * @param waitMs how long to wait for its holder, in milliseconds; the event loop stands still meanwhile
 * @returns what releases the lock
 * @throws Error when another process holds it
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
