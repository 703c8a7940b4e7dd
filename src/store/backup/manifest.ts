// What a backup consists of, and the manifest that describes it. The manifest is written last: a directory without one
// is no backup.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type ApiError, failedPrecondition } from "../../kernel/errors.js";
import { isOlder, VERSION } from "../version.js";

/** The files of a backup. None of them has the name of a file in a data directory. */
export const backupFiles = {
  database: "backup.db",
  masterKey: "backup.key",
  manifest: "manifest.json",
  lock: "backup.lock",
} as const;

/** The signed end of the audit log of one organisation; that of the installation has no `rootUid`. */
export interface ManifestHead {
  readonly rootUid: string;
  readonly seq: number;
  readonly hash: string;
  /** RFC 3339. */
  readonly signTime: string;
}

/** The manifest of a backup, stored as JSON. */
export interface BackupManifest {
  readonly format: 1;
  /** The version of the command that made the backup. */
  readonly arborVersion: string;
  /** Everything that was acknowledged before this time is in the backup; RFC 3339. */
  readonly snapshotTime: string;
  readonly database: {
    readonly bytes: number;
    readonly sha256: string;
    /** The last change of the schema that it has. */
    readonly lastMigration: string;
    /** The oldest version that may open it; null where none is stored. */
    readonly oldestVersion: string | null;
  };
  readonly includesMasterKey: boolean;
  readonly auditHeads: readonly ManifestHead[];
}

/** FAILED_PRECONDITION for a backup that cannot be used. */
export function unusableBackup(directory: string, rule: string): ApiError {
  return failedPrecondition("BACKUP", `${directory}: ${rule}`);
}

/**
 * Reads the manifest of a backup.
 *
 * @throws ApiError FAILED_PRECONDITION when there is none, when it is malformed, or when a newer version made it
 */
export function readManifest(directory: string): BackupManifest {
  const manifest = parse(directory);
  if (typeof manifest !== "object" || manifest === null) throw manifestError(directory, "it must be a JSON object");
  const { format, arborVersion } = manifest as Partial<BackupManifest>;
  // A newer version may have changed everything else.
  if (typeof arborVersion !== "string") throw manifestError(directory, "arborVersion must be a text");
  if (isOlder(VERSION, arborVersion) || (typeof format === "number" && format > 1)) {
    const rule = `version ${arborVersion} of arbor made this backup, and this is version ${VERSION}`;
    throw unusableBackup(directory, `${rule}: restore it with version ${arborVersion} or newer`);
  }
  const fault = findFault(manifest as BackupManifest);
  if (fault !== undefined) throw manifestError(directory, fault);
  return manifest as BackupManifest;
}

function parse(directory: string): unknown {
  const file = join(directory, backupFiles.manifest);
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code !== "ENOENT" && code !== "ENOTDIR") throw cause;
    throw unusableBackup(directory, "there is no complete backup: it has no manifest.json, which is written last");
  }
  try {
    return JSON.parse(text);
  } catch {
    throw manifestError(directory, "it is not JSON");
  }
}

function manifestError(directory: string, rule: string): ApiError {
  return unusableBackup(directory, `manifest.json is malformed: ${rule}`);
}

function findFault({ format, snapshotTime, database, includesMasterKey, auditHeads }: BackupManifest) {
  if (format !== 1) return "format must be 1";
  if (typeof snapshotTime !== "string" || Number.isNaN(Date.parse(snapshotTime))) return "snapshotTime must be a time";
  if (!Number.isSafeInteger(database?.bytes)) return "database.bytes must be a number";
  if (!/^[0-9a-f]{64}$/.test(database.sha256)) return "database.sha256 must be 64 hex digits";
  if (typeof includesMasterKey !== "boolean") return "includesMasterKey must be true or false";
  return Array.isArray(auditHeads) ? undefined : "auditHeads must be a list";
}
