// What backup and restore read from a database file, of this version or an older one.
import { failedPrecondition } from "../../kernel/errors.js";
import type { SqlRow } from "../migrate/data-migration.js";
import { dataMigrations } from "../migrate/data-migrations.js";
import { listSchemaMigrations, schemaRecord } from "../migrate/schema-migrations.js";
import { needsExpanding, readState, readStateSync } from "../migrate/state.js";
import { isOwnId } from "../sqlite/connection.js";
import type { SqliteDatabase } from "../sqlite/driver.js";
import { assertMayOpen } from "../version.js";
import type { ManifestHead } from "./manifest.js";

/** What the manifest says of a database, and whether this version has to migrate it. */
export interface DatabaseContents {
  readonly bytes: number;
  readonly lastMigration: string;
  readonly oldestVersion: string | null;
  readonly auditHeads: readonly ManifestHead[];
  readonly needsExpanding: boolean;
}

/**
 * Reads a database.
 *
 * @throws ApiError FAILED_PRECONDITION when it is not one of this program, is empty, of a version before 1.0 or needs a newer one
 */
export function readContents(db: SqliteDatabase): DatabaseContents {
  const id = db.pragma("application_id", { simple: true });
  const state = readStateSync(readState("sqlite", dataMigrations), (sql) => db.prepare(sql).all() as SqlRow[]);
  if (!isOwnId(id) || state.isEmpty) {
    throw failedPrecondition("BACKUP", `${db.name} is not a database of this program`);
  }
  assertMayOpen(state.oldestVersion);
  const lastMs = Number(db.prepare(`SELECT max(created_at) FROM ${schemaRecord.sqlite}`).pluck().get());
  const known = listSchemaMigrations("sqlite", 0).find(({ createdMs }) => createdMs === lastMs);
  const heads = db
    .prepare("SELECT root_uid AS rootUid, seq, hash, time_ms AS timeMs FROM audit_heads ORDER BY root_uid")
    .all() as (Omit<ManifestHead, "signTime"> & { timeMs: number })[];
  return {
    bytes: Number(db.pragma("page_count", { simple: true })) * Number(db.pragma("page_size", { simple: true })),
    lastMigration: known?.name ?? String(lastMs),
    oldestVersion: state.oldestVersion ?? null,
    auditHeads: heads.map(({ timeMs, ...head }) => ({ ...head, signTime: new Date(timeMs).toISOString() })),
    needsExpanding: needsExpanding(state),
  };
}

/**
 * Reads all pages of a database and checks them.
 *
 * @param name what errors call it
 * @throws ApiError FAILED_PRECONDITION with the first fault
 */
export function assertSound(db: SqliteDatabase, name: string): void {
  let fault: unknown;
  try {
    fault = db.pragma("quick_check(1)", { simple: true });
  } catch (error) {
    fault = (error as Error).message;
  }
  if (fault === "ok") return;
  throw failedPrecondition("DATABASE_DAMAGED", `${name} is damaged: ${fault}; \`arbor check\` tells more`);
}
