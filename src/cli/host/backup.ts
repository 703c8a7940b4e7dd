// `arbor backup` copies the database of a running or stopped server, and `arbor restore` puts a copy into an empty data
// directory (docs/backup.md).
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { findMasterKeyFile } from "../../app/installation.js";
import type { Settings } from "../../config/config.js";
import { unsealKeyPair, unsealSecret } from "../../issuer/keys/key-generation.js";
import {
  createMissingKeyError,
  MASTER_KEY_CHECK,
  type MasterKey,
  readMasterKey,
} from "../../issuer/keys/master-key.js";
import { formatBody } from "../../kernel/audit-body.js";
import { randomIds } from "../../kernel/ids.js";
import { systemClock } from "../../kernel/time.js";
import { createBackup } from "../../store/backup/create-backup.js";
import { isWithin, type StepProgress, toMiB } from "../../store/backup/files.js";
import { type BackupManifest, backupFiles, readManifest } from "../../store/backup/manifest.js";
import { restoreBackup } from "../../store/backup/restore-backup.js";
import type { SqliteDatabase } from "../../store/sqlite/driver.js";
import type { KeyRow } from "../../store/tables/tokens.js";
import { Code, CommandError, invalidFlag } from "../errors.js";
import { escapeControls } from "../output/terminal.js";
import { print } from "./host.js";
import { createMigrationProgress } from "./progress.js";

interface BackupFlags {
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
function notOnPostgres(command: "backup" | "restore"): CommandError {
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
function checkMasterKeyOf(database: SqliteDatabase, masterKey: MasterKey): void {
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
function createByteProgress(always: boolean) {
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

interface RestoreFlags {
  readonly keepSessions?: boolean;
  readonly progress?: boolean;
}

/**
 * `arbor restore`: prints the remaining steps.
 *
 * @throws CommandError FAILED_PRECONDITION on PostgreSQL, INVALID_ARGUMENT when no file has the master key or
 * the target is in the directory of the backup
 * @throws ApiError FAILED_PRECONDITION when the backup cannot be used or the data directory is not empty
 */
export async function restoreCommand(settings: Settings, backup: string, flags: RestoreFlags): Promise<void> {
  if (settings.databaseUrl !== undefined) throw notOnPostgres("restore");
  const { data } = settings;
  if (isWithin(data, backup)) throw invalidFlag("--data", `must not be in the directory of the backup, ${backup}`);
  const manifest = readManifest(backup);
  const keyFile = findKeyFile(settings, backup, manifest);
  const masterKey = readMasterKey(keyFile, false);
  const { onProgress, clear } = createByteProgress(flags.progress === true);
  const keepSessions = flags.keepSessions === true;
  const { needsExpanding } = await restoreBackup({
    backup,
    manifest,
    data,
    masterKey: readFileSync(keyFile),
    // A file that the settings name stays where it is.
    writesMasterKey: settings.masterKeyFile === undefined,
    checkMasterKey: (database) => checkMasterKeyOf(database, masterKey),
    auditRow: buildAuditRow(manifest, keepSessions),
    keepSessions,
    onProgress,
  }).finally(clear);

  print(escapeControls(`${data} has the state of ${manifest.snapshotTime}`));
  print(
    keepSessions
      ? "tokens and logins of that time are valid, also those that were revoked since"
      : "all API and refresh tokens are void: people log in again, and services exchange their tokens again",
  );
  if (settings.masterKeyFile !== undefined) {
    print(escapeControls(`start the server with --master-key-file ${settings.masterKeyFile}`));
  }
  if (needsExpanding) print("the database is that of an older version: the next start migrates it");
}

function findKeyFile({ masterKeyFile }: Settings, backup: string, { includesMasterKey }: BackupManifest): string {
  if (masterKeyFile !== undefined) return masterKeyFile;
  if (includesMasterKey) return join(backup, backupFiles.masterKey);
  throw invalidFlag("--master-key-file", "the backup has no master key: name the file that has it");
}

const RESTORED = "arbor.database.restored.v1";

// The row that commands on the host append to the log of the installation.
function buildAuditRow({ snapshotTime }: BackupManifest, keepSessions: boolean) {
  return {
    rootUid: "",
    timeMs: systemClock(),
    type: RESTORED,
    body: formatBody({ type: RESTORED, after: { snapshotTime, keepSessions } }, RESTORED),
    method: "arbor",
    subjectUid: "",
    actorUid: "",
    tokenId: "",
    requestId: randomIds.newId(),
    remoteAddress: "",
  };
}
