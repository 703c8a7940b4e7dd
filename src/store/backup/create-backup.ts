// Copies the database of a data directory while a server writes to it. All pages are of one snapshot. A backup is a directory
// with the database, the other files that an installation needs, and a manifest of their digests (manifest.ts).
// restore-backup.ts puts it into an empty data directory.
import { closeSync, existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { failedPrecondition } from "../../kernel/errors.js";
import { openNewFile } from "../../kernel/new-file.js";
import { type Clock, systemClock } from "../../kernel/time.js";
import { findSqliteInstallation, holdFileLock, isLockHeld } from "../sqlite/data-directory.js";
import { openDatabase, type SqliteDatabase } from "../sqlite/driver.js";
import { VERSION } from "../version.js";
import {
  createDirectory,
  digestFile,
  renameDurably,
  requireSpace,
  type StepProgress,
  syncPath,
  toMiB,
  writeAtomically,
} from "./files.js";
import { type BackupManifest, backupFiles, unusableBackup } from "./manifest.js";
import { assertSound, readContents } from "./read-database.js";

/** How many pages are copied before other work of the process runs. */
const PAGES_PER_STEP = 4_096;

/** The steps of a backup, in their order. */
export type BackupStep = "copy" | "check" | "digest" | "key" | "manifest" | "done";

export interface BackupOptions {
  /** The data directory. */
  readonly data: string;
  /** A directory that is missing, empty, or has an interrupted backup. */
  readonly target: string;
  /**
   * Reads the file of the master key, once the database is copied; undefined leaves it out.
   *
   * @throws Error when it does not open what is in the copy
   */
  readonly readMasterKey?: ((database: SqliteDatabase) => Uint8Array) | undefined;
  /** @throws Error when a backup of the database would be of no use; nothing is copied then */
  readonly checkSource?: (database: SqliteDatabase) => void;
  readonly onProgress?: (progress: StepProgress) => void;
  /** Called as each step begins; tests end the process there. */
  readonly onStep?: (step: BackupStep) => void;
  readonly clock?: Clock;
}

/**
 * Makes a backup. Until it is complete, its directory has no manifest, so it is not taken for a backup. When it fails,
 * its files are deleted.
 *
 * @throws ApiError FAILED_PRECONDITION when the target has other files or a backup, when its disk is too small, when
 * the database is damaged, of a version before 1.0 or needs a newer version, when there is none, when another user could write to the target
 */
export async function createBackup(options: BackupOptions): Promise<BackupManifest> {
  const { data, target } = options;
  const source = findSqliteInstallation(data);
  createDirectory(target);
  const release = holdTarget(target);
  try {
    removeInterrupted(target);
    return await fillTarget(source, options);
  } catch (error) {
    if (!existsSync(join(target, backupFiles.manifest))) deleteFiles(target);
    throw error;
  } finally {
    release();
    rmSync(join(target, backupFiles.lock), { force: true });
  }
}

async function fillTarget(source: string, options: BackupOptions): Promise<BackupManifest> {
  const { target, checkSource = () => {}, onProgress = () => {}, onStep = () => {}, clock = systemClock } = options;
  const file = join(target, backupFiles.database);
  const partial = `${file}.partial`;
  onStep("copy");
  const snapshotMs = await copySnapshot(source, partial, { target, clock, checkSource, onProgress });

  onStep("check");
  onProgress({ name: "check", done: 0, total: 0 });
  const copy = openDatabase(partial);
  let contents: ReturnType<typeof readContents>;
  let masterKey: Uint8Array | undefined;
  try {
    // A WAL database could not be read from a medium that cannot be written to.
    copy.pragma("journal_mode = DELETE");
    assertSound(copy, source);
    contents = readContents(copy);
    masterKey = options.readMasterKey?.(copy);
  } finally {
    copy.close();
  }
  syncPath(partial);

  onStep("digest");
  const totalMiB = toMiB(contents.bytes);
  const digest = await digestFile(partial, (bytes) =>
    onProgress({ name: "digest", done: toMiB(bytes), total: totalMiB }),
  );
  renameDurably(partial, file);
  onStep("key");
  if (masterKey !== undefined) writeAtomically(join(target, backupFiles.masterKey), masterKey);
  const { lastMigration, oldestVersion, auditHeads } = contents;
  const manifest: BackupManifest = {
    format: 1,
    arborVersion: VERSION,
    snapshotTime: new Date(snapshotMs).toISOString(),
    database: { ...digest, lastMigration, oldestVersion },
    includesMasterKey: masterKey !== undefined,
    auditHeads,
  };
  onStep("manifest");
  writeAtomically(join(target, backupFiles.manifest), `${JSON.stringify(manifest, undefined, 2)}\n`);
  onStep("done");
  return manifest;
}

/**
 * Copies one snapshot in steps. The connection holds its read transaction meanwhile. Without it each step would see a
 * newer snapshot, and SQLite would begin again with every write of the server.
 *
 * @returns the time of the snapshot in epoch milliseconds
 */
async function copySnapshot(
  source: string,
  file: string,
  {
    target,
    clock,
    checkSource,
    onProgress,
  }: Required<Pick<BackupOptions, "target" | "clock" | "checkSource" | "onProgress">>,
): Promise<number> {
  const db = openDatabase(source, { readonly: true, fileMustExist: true });
  try {
    db.pragma("query_only = ON");
    db.pragma("trusted_schema = OFF");
    // Another process may be recovering the database.
    db.pragma("busy_timeout = 5000");
    const snapshotMs = clock();
    db.exec("BEGIN");
    // The first read takes the snapshot.
    const { bytes } = readContents(db);
    checkSource(db);
    requireSpace(target, bytes);
    closeSync(openNewFile(file));
    const pageBytes = Number(db.pragma("page_size", { simple: true }));
    await db.backup(file, {
      progress({ totalPages, remainingPages }) {
        const done = toMiB((totalPages - remainingPages) * pageBytes);
        onProgress({ name: "copy", done, total: toMiB(totalPages * pageBytes) });
        return PAGES_PER_STEP;
      },
    });
    return snapshotMs;
  } finally {
    db.close();
  }
}

function holdTarget(target: string): () => void {
  const lock = join(target, backupFiles.lock);
  const others = readdirSync(target).filter((name) => !isBackupFile(name) && name !== "lost+found");
  // Nothing is written to a directory of something else.
  if (others.length > 0) throw notEmpty(target, others);
  try {
    return holdFileLock(lock, 0);
  } catch (cause) {
    if (!isLockHeld(cause)) throw cause;
    throw unusableBackup(target, `another backup is being written there (${(cause as Error).message})`);
  }
}

function removeInterrupted(target: string): void {
  if (existsSync(join(target, backupFiles.manifest))) throw notEmpty(target, [backupFiles.manifest]);
  deleteFiles(target);
}

function deleteFiles(target: string): void {
  for (const name of readdirSync(target)) {
    if (isBackupFile(name) && !name.startsWith(backupFiles.lock)) rmSync(join(target, name), { force: true });
  }
}

/** Whether a backup, complete or not, has a file of this name. */
function isBackupFile(name: string): boolean {
  return Object.values(backupFiles).some((file) =>
    new RegExp(`^${file}(\\.partial)?(-journal|-wal|-shm)?$`).test(name),
  );
}

function notEmpty(target: string, names: readonly string[]) {
  const rule = `it has ${names.slice(0, 3).join(", ")}; name a directory that is missing or empty`;
  return failedPrecondition("BACKUP", `${target} is not empty: ${rule}`);
}
