// Opens a store that only reads: one snapshot, beside a server or without one. Nothing is created, expanded or changed.
import { sql } from "drizzle-orm";
import type { Clock } from "../kernel/time.js";
import { readPg, readSqlite } from "./check/database.js";
import type { SqlRow } from "./migrate/data-migration.js";
import { dataMigrations } from "./migrate/data-migrations.js";
import { expansionNeeded, needsExpanding, readState, readStateAsync } from "./migrate/state.js";
import type { PgTls } from "./pg/connection.js";
import { noInstallation } from "./sqlite/data-directory.js";
import type { Store } from "./store.js";
import { assertMayOpen } from "./version.js";

export interface SnapshotOptions {
  /** The data directory; used unless there is a URL. */
  readonly directory: string;
  readonly url: string | undefined;
  /** TLS to PostgreSQL, where the URL does not say it. */
  readonly tls?: PgTls;
  readonly clock?: Clock;
}

/**
 * Opens a snapshot of a store, whose units of work all see the same moment.
 *
 * @throws Error when the database cannot be reached or read
 * @throws ApiError FAILED_PRECONDITION when there is no installation, or the database is that of an older version that must
 * be expanded first, or needs a newer one
 */
export async function openSnapshot({ directory, url, tls, clock }: SnapshotOptions): Promise<Store> {
  const database = url === undefined ? readSqlite(directory, clock) : await readPg(url, tls);
  try {
    const state = await readStateAsync(readState(database.dialect, dataMigrations), (statement) =>
      database.all<SqlRow>(sql.raw(statement)),
    );
    assertMayOpen(state.oldestVersion);
    if (state.isEmpty) throw noInstallation(database.name, "it has no tables of one");
    if (needsExpanding(state)) throw expansionNeeded();
  } catch (error) {
    await database.close();
    throw error;
  }
  return { ...database.store, close: () => database.close() };
}

/**
 * A store that opens a snapshot for each unit of work: a command that reads for hours would keep the write-ahead log of
 * SQLite, or dead rows of PostgreSQL, for as long.
 */
export async function createSnapshots(options: SnapshotOptions): Promise<Pick<Store, "read" | "lateCommitMs">> {
  const lateCommitMs = options.url === undefined ? 0 : (await import("./pg/open.js")).LATE_COMMIT_MS;
  return {
    lateCommitMs,
    async read(unit) {
      const snapshot = await openSnapshot(options);
      try {
        return await snapshot.read(unit);
      } finally {
        await snapshot.close();
      }
    },
  };
}
