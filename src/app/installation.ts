// What an installation is without its network side: store, keys and built-in
// roles. The server stands on it, and so do commands run on the host.
import { join } from "node:path";
import type { Settings } from "../config/config.js";
import { readDatabaseTls } from "../config/database.js";
import { seedAnonymous } from "../iam/identities/identity.js";
import { seedRoles } from "../iam/roles/builtin-roles.js";
import { type KeyRing, openKeyRing } from "../issuer/keys/key-ring.js";
import { type MasterKey, readMasterKey } from "../issuer/keys/master-key.js";
import { type Clock, systemClock } from "../kernel/time.js";
import type { MigrationProgress } from "../store/migrate/phases.js";
import { isExpansionNeeded } from "../store/migrate/state.js";
import { openPg } from "../store/open-pg.js";
import { openSqlite } from "../store/open-sqlite.js";
import type { Store } from "../store/port.js";
import { createWorkGate } from "../store/work-gate.js";

/** An open installation. */
export interface Installation {
  readonly store: Store;
  readonly masterKey: MasterKey;
  readonly keys: KeyRing;
  readonly clock: Clock;
  /** Has the store refuse every unit of work that has not begun. */
  refuseWork(): void;
  close(): Promise<void>;
}

/** How to open one. */
export interface InstallationOptions {
  readonly settings: Settings;
  readonly clock?: Clock;
  /** Refuse to open while a server runs on the same data directory. */
  readonly exclusive?: boolean;
  /** Called every few seconds while a database of an older version is expanded. */
  readonly onMigration?: (progress: MigrationProgress) => void;
}

/**
 * Opens the store, brings its built-in roles up to date, and loads the keys. A SQLite database of an older version is
 * expanded first, unless the settings forbid it.
 *
 * @throws Error when the data directory is in use, the database cannot be reached, or the master key
 * is not the one the secrets were sealed with.
 * @throws ApiError FAILED_PRECONDITION when the database needs a newer version, or is to be expanded by a command.
 */
export async function openInstallation(options: InstallationOptions): Promise<Installation> {
  const { settings, clock = systemClock } = options;
  const { databaseUrl, data } = settings;
  const { store, refuse } = createWorkGate(
    databaseUrl === undefined
      ? await openOrExpandSqlite(options)
      : await openPg({ url: databaseUrl, tls: readDatabaseTls(settings), clock }),
  );
  try {
    const keyFile = settings.masterKeyFile ?? join(data, "master.key");
    const masterKey = readMasterKey(keyFile, settings.masterKeyFile === undefined);
    const keys = await openKeyRing({ store, masterKey, clock, tokenAlgorithm: settings.tokenAlgorithm });
    await store.write(async (tx) => {
      await seedRoles(tx, clock());
      await seedAnonymous(tx, clock());
    });
    return { store, masterKey, keys, clock, refuseWork: refuse, close: () => store.close() };
  } catch (error) {
    await store.close();
    throw error;
  }
}

async function openOrExpandSqlite(options: InstallationOptions): Promise<Store> {
  const { settings, clock = systemClock, exclusive = false, onMigration } = options;
  const open = () => openSqlite({ directory: settings.data, clock, exclusive });
  try {
    return open();
  } catch (error) {
    if (!settings.migrate || !isExpansionNeeded(error)) throw error;
  }
  const { openSqliteMigration } = await import("../store/migrate/open-sqlite-migration.js");
  const { expand } = await import("../store/migrate/phases.js");
  const database = openSqliteMigration({ directory: settings.data });
  try {
    await expand(database, { ...(onMigration && { onProgress: onMigration }) });
  } finally {
    await database.close();
  }
  return open();
}
