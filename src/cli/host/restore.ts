// `arbor restore`: puts a backup into an empty data directory (docs/backup.md).
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Settings } from "../../config/config.js";
import { readMasterKey } from "../../issuer/keys/master-key.js";
import { randomIds } from "../../kernel/ids.js";
import { systemClock } from "../../kernel/time.js";
import { isWithin } from "../../store/backup/files.js";
import { type BackupManifest, backupFiles, readManifest } from "../../store/backup/manifest.js";
import { restoreBackup } from "../../store/backup/restore-backup.js";
import { invalidFlag } from "../errors.js";
import { escapeControls } from "../output/terminal.js";
import { checkMasterKeyOf, createByteProgress, notOnPostgres } from "./backup.js";
import { print } from "./host.js";

/** The flags of `arbor restore`. */
export interface RestoreFlags {
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
    auditRow: buildAuditRow(),
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

// The row that commands on the host append to the log of the installation.
function buildAuditRow() {
  return {
    rootUid: "",
    timeMs: systemClock(),
    type: "arbor.database.restored.v1",
    method: "arbor",
    subjectUid: "",
    actorUid: "",
    tokenId: "",
    requestId: randomIds.newId(),
    remoteAddress: "",
  };
}
