// `arbor backup`: copies the database of a running or stopped server (docs/backup.md).
import { existsSync, readFileSync } from "node:fs";
import { findMasterKeyFile } from "../../app/installation.js";
import type { Settings } from "../../config/config.js";
import { unsealKeyPair, unsealSecret } from "../../issuer/keys/key-generation.js";
import {
  createMissingKeyError,
  MASTER_KEY_CHECK,
  type MasterKey,
  readMasterKey,
} from "../../issuer/keys/master-key.js";
import { createBackup } from "../../store/backup/create-backup.js";
import { isWithin, type StepProgress, toMiB } from "../../store/backup/files.js";
import type { BackupManifest } from "../../store/backup/manifest.js";
import type { KeyRow } from "../../store/port.js";
import type { SqliteDatabase } from "../../store/sqlite-driver.js";
import { Code, CommandError, invalidFlag } from "../errors.js";
import { escapeControls } from "../output/terminal.js";
import { print } from "./host.js";
import { createMigrationProgress } from "./migration-progress.js";

/** The flags of `arbor backup`. */
export interface BackupFlags {
  readonly withMasterKey?: boolean;
  readonly json?: boolean;
  readonly progress?: boolean;
}

/**
 * `arbor backup`: prints a summary of the backup.
 *
 * @throws CommandError FAILED_PRECONDITION on PostgreSQL, INVALID_ARGUMENT for a target in the data directory
 * @throws ApiError FAILED_PRECONDITION when the database has secrets and the file of the master key is missing
 */
export async function backupCommand(settings: Settings, target: string, flags: BackupFlags): Promise<void> {
  if (settings.databaseUrl !== undefined) throw notOnPostgres("backup");
  const { data } = settings;
  if (isWithin(target, data)) {
    throw invalidFlag("directory", `must not be in the data directory ${data}, which would be lost together with it`);
  }
  const masterKeyFile = findMasterKeyFile(settings);
  const { onProgress, clear } = createByteProgress(flags.progress === true);
  const readKey = (database: SqliteDatabase) => {
    checkMasterKeyOf(database, readMasterKey(masterKeyFile, false));
    return readFileSync(masterKeyFile);
  };
  const manifest = await createBackup({
    data,
    target,
    // Without the key the backup could not be used, and a nightly job would still succeed.
    checkSource(database) {
      if (!existsSync(masterKeyFile) && hasSecretsIn(database)) throw createMissingKeyError(masterKeyFile);
    },
    onProgress,
    readMasterKey: flags.withMasterKey === true ? readKey : undefined,
  }).finally(clear);
  if (flags.json) return print(escapeControls(JSON.stringify(manifest)));
  print(escapeControls(`${target}: ${formatSummary(manifest)}`));
  if (!manifest.includesMasterKey) {
    const advice = `keep ${masterKeyFile} elsewhere, without which this backup cannot be used`;
    process.stderr.write(`arbor: the master key is not in the backup: ${escapeControls(advice)}\n`);
  }
}

function formatSummary({ snapshotTime, database, auditHeads }: BackupManifest): string {
  const logs = auditHeads.length === 1 ? "1 audit log" : `${auditHeads.length} audit logs`;
  return `the state of ${snapshotTime}, ${toMiB(database.bytes)} MiB, ${logs}, SHA-256 ${database.sha256}`;
}

/** FAILED_PRECONDITION, with a hint to the tools of PostgreSQL. */
export function notOnPostgres(command: "backup" | "restore"): CommandError {
  const advice =
    "use pg_dump, or base backups with point-in-time recovery; copy the file of the master key before the database and " +
    "again after it, and keep both copies as long as that backup (docs/backup.md)";
  return new CommandError(Code.FailedPrecondition, `arbor ${command} is for SQLite. On PostgreSQL ${advice}`);
}

function hasSecretsIn(database: SqliteDatabase): boolean {
  const found = "SELECT 1 FROM settings WHERE name = ? UNION ALL SELECT 1 FROM keys LIMIT 1";
  return database.prepare(found).pluck().get(MASTER_KEY_CHECK) !== undefined;
}

/**
 * Checks that a master key is the one of a database: it opens the stored check value and every key.
 *
 * @throws CommandError FAILED_PRECONDITION
 */
export function checkMasterKeyOf(database: SqliteDatabase, masterKey: MasterKey): void {
  const stored = database.prepare("SELECT value FROM settings WHERE name = ?").pluck().get(MASTER_KEY_CHECK);
  const keys = database.prepare("SELECT kid, purpose, sealed FROM keys").all() as KeyRow[];
  try {
    if (typeof stored === "string") masterKey.unseal(stored, MASTER_KEY_CHECK);
    for (const row of keys) (row.purpose === "page-token" ? unsealSecret : unsealKeyPair)(row, masterKey);
  } catch (cause) {
    const rule = "the master key is not the one that the secrets of this database are sealed with";
    throw new CommandError(Code.FailedPrecondition, `${rule}: ${(cause as Error).message}`, cause);
  }
}

/** Creates the progress of a command that copies files; it is shown on a terminal, or with `always`. */
export function createByteProgress(always: boolean) {
  const { stderr } = process;
  const { onProgress, clear, periodMs } = createMigrationProgress(stderr, "MiB");
  let nextMs = 0;
  return {
    clear,
    onProgress(progress: StepProgress): void {
      const nowMs = performance.now();
      if ((!stderr.isTTY && !always) || nowMs < nextMs) return;
      nextMs = nowMs + (stderr.isTTY ? periodMs : 1_000);
      onProgress(progress);
    },
  };
}
