// An installation without its network side: store, keys and built-in roles. The server and the commands on the host use
// it.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { labelOf, type Settings } from "../config/config.js";
import { findSessionUrl } from "../config/database.js";
import { readDatabaseTls } from "../config/tls.js";
import { seedAnonymous } from "../iam/identities/identity.js";
import { seedRoles } from "../iam/roles/builtin-roles.js";
import { type KeyRing, openKeyRing, readKeyRing } from "../issuer/keys/key-ring.js";
import { createMissingKeyError, hasSecrets, type MasterKeyFile, readMasterKey } from "../issuer/keys/master-key.js";
import { unavailable } from "../kernel/errors.js";
import { describeFileFault } from "../kernel/files.js";
import { type Clock, systemClock } from "../kernel/time.js";
import type { DatabaseFaultEvent } from "../store/faults.js";
import type { MigrationProgress } from "../store/migrate/phases.js";
import { isExpansionNeeded } from "../store/migrate/state.js";
import { MASTER_KEY_FILE } from "../store/sqlite/data-directory.js";
import { describeDiskFaultOf } from "../store/sqlite/disk-faults.js";
import { lockForWorkers, openSqlite } from "../store/sqlite/open.js";
import type { Store } from "../store/store.js";
import { createWorkGate } from "../store/work-gate.js";

/** An open installation. */
export interface Installation {
  readonly store: Store;
  readonly masterKey: MasterKeyFile;
  readonly keys: KeyRing;
  readonly clock: Clock;
  /** Makes the store reject all further units of work. */
  rejectWork(): void;
  close(): Promise<void>;
}

/**
 * What opening an installation may change:
 * - `create`: creates an installation where there is nothing of one. Only for commands that begin an installation, because
 *   with a wrong path they leave an empty installation behind.
 * - `update`: changes an existing one.
 * - `read`: reads one snapshot of an existing one and writes nothing. A database of an older version is not expanded.
 */
export type InstallationMode = "create" | "update" | "read";

export interface InstallationOptions {
  readonly settings: Settings;
  readonly mode: InstallationMode;
  readonly clock?: Clock;
  /** Whether opening fails while a server runs on the same data directory. */
  readonly exclusive?: boolean;
  /** Whether the process is a worker whose parent has called {@link lockInstallation}. */
  readonly isWorker?: boolean;
  /** Called when a fault of the database begins and ends, such as a full disk, and each minute while calls fail. */
  readonly onFault?: (event: DatabaseFaultEvent) => void;
  /** Called every few seconds while a database of an older version is expanded. */
  readonly onMigration?: (progress: MigrationProgress) => void;
}

/**
 * Opens the store, brings its built-in roles up to date, and loads the keys. A SQLite database of an older version is
 * expanded first, unless the settings forbid it.
 *
 * @throws Error when the data directory is in use, the database cannot be reached, or the secrets were encrypted with
 * another master key.
 * @throws ApiError FAILED_PRECONDITION when there is no installation and none may be created, the database or the master key
 * of an existing one is missing, or the database needs a newer version, or is to be expanded by a command; UNAVAILABLE
 * when the disk is lost, read-only or full
 */
export async function openInstallation(options: InstallationOptions): Promise<Installation> {
  return nameDiskFault(options.settings, () => openParts(options));
}

/**
 * Runs work on an installation. An error that a fault of the disk has led to becomes one that names the path and the fault.
 *
 * @throws ApiError UNAVAILABLE for such a fault
 */
export async function nameDiskFault<T>({ databaseUrl, data }: Settings, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const fault = databaseUrl === undefined ? describeDiskFaultOf(error, data) : undefined;
    throw fault === undefined ? error : unavailable(fault, undefined, error);
  }
}

async function openParts(options: InstallationOptions): Promise<Installation> {
  const { settings, mode, clock = systemClock } = options;
  const { store, reject } = createWorkGate(await openStore(options));
  try {
    const masterKey = await openMasterKey(store, options);
    const deps = { store, masterKey, clock, tokenAlgorithm: settings.tokenAlgorithm };
    const keys = await (mode === "read" ? readKeyRing : openKeyRing)(deps);
    if (mode !== "read") {
      await store.write(async (tx) => {
        await seedRoles(tx, clock());
        await seedAnonymous(tx, clock());
      });
    }
    return { store, masterKey, keys, clock, rejectWork: reject, close: () => store.close() };
  } catch (error) {
    await store.close();
    throw error;
  }
}

export function findMasterKeyFile({ masterKeyFile, data }: Settings): string {
  return masterKeyFile ?? join(data, MASTER_KEY_FILE);
}

/**
 * Opens a store for commands that read an existing installation for a long time: each unit of work has its own
 * snapshot.
 */
export async function followStore(settings: Settings): Promise<Pick<Store, "read" | "lateCommitMs">> {
  const { createSnapshots } = await import("../store/open-snapshot.js");
  return createSnapshots(locateDatabase(settings));
}

// For snapshots, which last for as long as a session.
function locateDatabase(settings: Settings) {
  const url = findSessionUrl(settings);
  return { directory: settings.data, url, tls: url === undefined ? undefined : readDatabaseTls(settings) };
}

// Errors of the file system do not name the setting.
async function openStore(options: InstallationOptions): Promise<Store> {
  return nameDataFault(options.settings, () => openDatabaseOf(options));
}

/**
 * Keeps other servers out of the data directory, for a process whose workers open the installation. With PostgreSQL there
 * is nothing to lock.
 *
 * @returns a function that releases the lock
 * @throws as {@link openInstallation}
 */
export async function lockInstallation(settings: Settings): Promise<() => void> {
  const { data: directory, create } = settings;
  if (settings.databaseUrl !== undefined) return () => {};
  const lock = async () => lockForWorkers({ directory, create });
  return nameDiskFault(settings, () => nameDataFault(settings, lock));
}

async function nameDataFault<T>(settings: Settings, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const fault = settings.databaseUrl === undefined ? describeFileFault(error) : undefined;
    if (fault === undefined) throw error;
    throw new Error(`${labelOf(settings, "data")}: cannot use ${settings.data}: ${fault}`, { cause: error });
  }
}

async function openDatabaseOf(options: InstallationOptions): Promise<Store> {
  const { settings, mode, clock = systemClock, onFault } = options;
  if (mode === "read") {
    const { openSnapshot } = await import("../store/open-snapshot.js");
    return openSnapshot({ ...locateDatabase(settings), clock });
  }
  const { databaseUrl: url, databaseDirectUrl: directUrl, databasePoolSize: poolSize } = settings;
  if (url === undefined) return openOrExpandSqlite(options);
  const { openPg } = await import("../store/pg/open.js");
  return openPg({
    url,
    directUrl,
    poolSize,
    tls: readDatabaseTls(settings),
    clock,
    onFault,
    create: mode === "create",
  });
}

// A new key would decrypt nothing that is stored, and what it encrypts could not be decrypted after the old key is
// restored.
async function openMasterKey(store: Store, { settings, mode }: InstallationOptions): Promise<MasterKeyFile> {
  const file = findMasterKeyFile(settings);
  if (!existsSync(file) && (mode !== "create" || (await store.read(hasSecrets)))) {
    throw createMissingKeyError(file);
  }
  return readMasterKey(file, mode === "create" && settings.masterKeyFile === undefined);
}

async function openOrExpandSqlite(options: InstallationOptions): Promise<Store> {
  const { settings, mode, clock = systemClock, exclusive = false, isWorker = false, onMigration, onFault } = options;
  const access = { exclusive, isWorker, create: mode === "create" };
  const open = () => openSqlite({ directory: settings.data, clock, onFault, ...access });
  try {
    return open();
  } catch (error) {
    if (!settings.migrate || !isExpansionNeeded(error)) throw error;
  }
  const { openSqliteMigration } = await import("../store/migrate/open-sqlite-migration.js");
  const { expand } = await import("../store/migrate/phases.js");
  const database = openSqliteMigration({ directory: settings.data, mode: "update" });
  try {
    await expand(database, { ...(onMigration && { onProgress: onMigration }) });
  } finally {
    await database.close();
  }
  return open();
}
