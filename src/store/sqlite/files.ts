// Finds whether the files of an open SQLite database are still those at their paths. SQLite itself keeps using files
// that were removed or replaced, and what it writes to them is lost when the process ends.
import { type Stats, statSync } from "node:fs";
import type { SqliteDatabase } from "./driver.js";
import type { FaultMonitor } from "./faults.js";
import type { WriteGuard } from "./write-queue.js";

/** A path at which the opened file is no longer. */
export interface ReplacedFile {
  readonly file: string;
  /** Whether another file is there; otherwise there is none. */
  readonly isOther: boolean;
}

/**
 * Remembers the files of a database that was just opened.
 *
 * @param file the path of the database
 * @returns an object that finds the first file that was removed or replaced since
 */
export function watchDatabaseFiles(file: string) {
  const opened = [file, `${file}-wal`, `${file}-shm`].map((path) => ({ path, stat: find(path) }));
  return {
    /** Compares the files with those at the paths, which takes some microseconds. */
    findReplaced(): ReplacedFile | undefined {
      for (const one of opened) {
        const now = find(one.path);
        // SQLite creates the write-ahead log when it is first needed.
        if (one.stat === undefined) one.stat = now;
        else if (now === undefined) return { file: one.path, isOther: false };
        else if (
          now !== "unknown" &&
          one.stat !== "unknown" &&
          (now.ino !== one.stat.ino || now.dev !== one.stat.dev)
        ) {
          return { file: one.path, isOther: true };
        }
      }
      return undefined;
    },
  };
}

// A directory that cannot be read at the moment says nothing of the file.
function find(path: string): Stats | "unknown" | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return "unknown";
  }
}

interface FileGuardDeps {
  /** The path of the database. */
  readonly file: string;
  readonly faults: FaultMonitor;
  /** The connection that writes. */
  readonly database: SqliteDatabase;
}

/**
 * Creates the guard that fails all calls once a file of an open database was removed or replaced. A commit after that
 * is not acknowledged.
 */
export function guardFiles({ file, faults, database }: FileGuardDeps): WriteGuard & { check(): void } {
  const files = watchDatabaseFiles(file);
  let isUnsaved = false;

  function check(): void {
    if (isUnsaved) save();
    if (faults.counts.current.has("replaced")) return;
    const replaced = files.findReplaced();
    if (replaced === undefined) return;
    const { file: path, isOther } = replaced;
    faults.noteReplaced(path, describeRescue(file));
    // What only the log has would be lost with it; the database itself is still at its path.
    isUnsaved = path === `${file}-wal` && !isOther;
    if (isUnsaved) save();
  }

  // Fails while a read has not ended, and is tried again: until it succeeds, the database has a part of the commits.
  function save(): void {
    if (!checkpoint(database)) return;
    isUnsaved = false;
    faults.noteSaved();
  }

  const countChanges = () => database.prepare("SELECT total_changes()").pluck().get();
  let before: unknown;
  return {
    check,
    beforeBatch() {
      faults.assertWritable();
      if (faults.isFaulty) before = countChanges();
    },
    afterCommit() {
      check();
      faults.assertReadable();
      // A commit without changes writes nothing, so it succeeds on a full disk.
      if (faults.isFaulty && countChanges() !== before) faults.noteCommit();
    },
    onBusy: (error) => faults.noteBusy(error),
  };
}

function checkpoint(database: SqliteDatabase): boolean {
  try {
    if (database.inTransaction) return false;
    const [result] = database.pragma("wal_checkpoint(FULL)") as { busy: number }[];
    return result?.busy === 0;
  } catch {
    return false;
  }
}

function describeRescue(file: string): string {
  const { pid } = process;
  return (
    `do not stop the process before its files are saved: ls -l /proc/${pid}/fd names those of ${file}, and cp copies ` +
    "them from there; then put back the database with its -wal and restart"
  );
}
