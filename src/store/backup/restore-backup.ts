// Puts a backup into an empty data directory. Everything is prepared in a directory within it, and the last step gives
// the database its name, so the data directory has the whole database or none.
import { existsSync, readdirSync, readFileSync, rmdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { hashBody } from "../../kernel/audit-body.js";
import { failedPrecondition } from "../../kernel/errors.js";
import { AUDIT_VERSION } from "../audit/log.js";
import { assertNoUnknownObjects } from "../check/objects.js";
import type { SqlRow } from "../migrate/data-migration.js";
import { holdServeLock, RESTORE_DIRECTORY } from "../sqlite/data-directory.js";
import { openDatabase, type SqliteDatabase } from "../sqlite/driver.js";
import type { AuditRow } from "../tables/audit.js";
import type { KeyRow } from "../tables/tokens.js";
import {
  copyFile,
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
import { assertSound, type DatabaseContents, readContents } from "./read-database.js";

/** The steps of a restore, in their order. */
export type RestoreStep = "verify" | "copy" | "change" | "key" | "database" | "done";

export interface RestoreOptions {
  /** The directory of the backup. */
  readonly backup: string;
  readonly manifest: BackupManifest;
  /** The data directory: missing, or empty but for an interrupted restore. */
  readonly data: string;
  /** The contents of the file of the master key. */
  readonly masterKey: Uint8Array;
  /** Whether it is written into the data directory; false where servers read another file. */
  readonly writesMasterKey: boolean;
  /** @throws Error when the master key is not the one of the database */
  readonly checkMasterKey: (database: SqliteDatabase) => void;
  /** The row that the audit log gets. */
  readonly auditRow: Omit<AuditRow, "actorName" | "traceId">;
  /** Whether tokens and logins of the backup stay valid. */
  readonly keepSessions: boolean;
  readonly onProgress?: (progress: StepProgress) => void;
  /** Called as each step begins; tests end the process there. */
  readonly onStep?: (step: RestoreStep) => void;
}

export type RestoreResult = Pick<DatabaseContents, "needsExpanding">;

/**
 * Restores a backup.
 *
 * @throws ApiError FAILED_PRECONDITION when the backup is damaged, of a version before 1.0 or needs a newer one, when the target
 * is not empty or too small; then the target is as it was
 */
export async function restoreBackup(options: RestoreOptions): Promise<RestoreResult> {
  const { data, backup, onStep = () => {} } = options;
  requireEmpty(data, options.masterKey);
  onStep("verify");
  const result = await verifyBackup(options);
  createDirectory(data);
  requireSpace(data, options.manifest.database.bytes);
  // A server that starts meanwhile would create a database.
  const release = holdServeLock(data, "RESTORE", (path) => `a server or another restore uses ${path}`);
  const partial = join(data, RESTORE_DIRECTORY);
  try {
    requireEmpty(data, options.masterKey);
    rmSync(partial, { recursive: true, force: true });
    createDirectory(partial);
    syncPath(data);
    onStep("copy");
    const copy = join(partial, "arbor.db");
    const digest = await copyFile(join(backup, backupFiles.database), copy, reportBytes("copy", options));
    assertDigest(digest, options);
    onStep("change");
    changeDatabase(copy, options);
    onStep("key");
    if (options.writesMasterKey && !existsSync(join(data, "master.key"))) {
      writeAtomically(join(partial, "master.key"), options.masterKey);
      renameDurably(join(partial, "master.key"), join(data, "master.key"));
    }
    onStep("database");
    renameDurably(copy, join(data, "arbor.db"));
    onStep("done");
    rmdirSync(partial);
    return result;
  } catch (error) {
    // The master key stays: it may be the only copy. Until the database has its name, it is here alone.
    if (!existsSync(join(data, "arbor.db"))) rmSync(partial, { recursive: true, force: true });
    throw error;
  } finally {
    release();
  }
}

// Before anything is written. The copy is verified again, because a medium may answer differently the next time.
async function verifyBackup(options: RestoreOptions): Promise<RestoreResult> {
  const { backup, checkMasterKey } = options;
  const file = join(backup, backupFiles.database);
  if (!existsSync(file)) throw unusableBackup(backup, `${backupFiles.database} is missing`);
  assertDigest(await digestFile(file, reportBytes("verify", options)), options);
  const db = openDatabase(file, { readonly: true, fileMustExist: true });
  try {
    db.pragma("trusted_schema = OFF");
    const contents = readContents(db);
    assertSound(db, file);
    await assertNoUnknownObjects(file, "sqlite", async (sql) => db.prepare(sql).all() as SqlRow[]);
    assertManifest(contents, options);
    checkMasterKey(db);
    return contents;
  } finally {
    db.close();
  }
}

function assertDigest(digest: { bytes: number; sha256: string }, { backup, manifest }: RestoreOptions): void {
  const { bytes, sha256 } = manifest.database;
  if (digest.bytes !== bytes) {
    throw unusableBackup(backup, `${backupFiles.database} has ${digest.bytes} bytes, and the manifest says ${bytes}`);
  }
  if (digest.sha256 !== sha256) {
    throw unusableBackup(backup, `${backupFiles.database} is not what the manifest describes: its SHA-256 differs`);
  }
}

function assertManifest(contents: DatabaseContents, { backup, manifest }: RestoreOptions): void {
  const { auditHeads, lastMigration } = contents;
  const isSame =
    JSON.stringify(auditHeads) === JSON.stringify(manifest.auditHeads) &&
    lastMigration === manifest.database.lastMigration;
  if (!isSame) throw unusableBackup(backup, `${backupFiles.manifest} does not describe ${backupFiles.database}`);
}

function reportBytes(name: string, { manifest, onProgress }: RestoreOptions): (bytes: number) => void {
  const total = toMiB(manifest.database.bytes);
  return (bytes) => onProgress?.({ name, done: toMiB(bytes), total });
}

function requireEmpty(data: string, masterKey: Uint8Array): void {
  const names = existsSync(data) ? readdirSync(data) : [];
  const isInterrupted = names.includes(RESTORE_DIRECTORY) && !names.includes("arbor.db");
  const others = names.filter((name) => {
    if (["lost+found", "serve.lock", "serve.lock-journal"].includes(name)) return false;
    // That of an interrupted restore, or of the operator. Another key is never replaced.
    if (name === "master.key") return !readFileSync(join(data, name)).equals(masterKey);
    return !isInterrupted || name !== RESTORE_DIRECTORY;
  });
  if (others.length === 0) return;
  const rule = `it has ${others.slice(0, 3).join(", ")}; name a directory that is missing or empty`;
  throw failedPrecondition("RESTORE", `${data} is not empty: ${rule}`);
}

// The statements suit every version of the schema.
function changeDatabase(file: string, { keepSessions, auditRow }: RestoreOptions): void {
  const db = openDatabase(file, { fileMustExist: true });
  try {
    db.pragma("synchronous = FULL");
    db.transaction(() => {
      if (!keepSessions) voidTokens(db);
      const { body = "" } = auditRow;
      db.prepare(
        `INSERT INTO audit (root_uid, time_ms, type, method, subject_uid, actor_uid, token_id, request_id, remote_address,
           version, body_hash, body)
         VALUES (@rootUid, @timeMs, @type, @method, @subjectUid, @actorUid, @tokenId, @requestId, @remoteAddress,
           @version, @bodyHash, @body)`,
      ).run({ ...auditRow, version: AUDIT_VERSION, body, bodyHash: hashBody(body) });
    })();
  } finally {
    db.close();
  }
  syncPath(file);
}

/**
 * Voids all API tokens, refresh tokens and logins. Whatever key signed an API token, no key that verifies it is left:
 * keys of after the backup are not in it, and its own are deleted here. The next start generates one, as in a new
 * installation.
 */
function voidTokens(db: SqliteDatabase): void {
  db.prepare("DELETE FROM keys WHERE purpose = ?").run("api-token" satisfies KeyRow["purpose"]);
  db.prepare("DELETE FROM refresh_tokens").run();
  db.prepare("DELETE FROM tickets").run();
}
