// The two phases of an upgrade (docs/adr/0015-expand-and-contract.md). Expanding adds what this version needs and
// copies rows into their new form, while the version before goes on. Contracting removes what only that version
// needed.
import { setTimeout as sleep } from "node:timers/promises";
import { failedPrecondition } from "../../kernel/errors.js";
import { assertNoUnknownObjects } from "../check/objects.js";
import { assertMayOpen } from "../version.js";
import type { DataMigration, MigrationDatabase, MigrationTx } from "./data-migration.js";
import { dataMigrations } from "./data-migrations.js";
import { buildSchemaStatements } from "./schema-migrations.js";
import {
  admitsOlderVersions,
  buildCreation,
  buildVersionChange,
  type DatabaseState,
  type DataMigrationState,
  expansionNeeded,
  findState,
  insertProgress,
  needsContracting,
  needsExpanding,
  readState,
  readStateAsync,
} from "./state.js";

/** How far a migration of stored rows is. */
export interface MigrationProgress {
  readonly name: string;
  /** How many rows are done. */
  readonly done: number;
  /** About how many there are. */
  readonly total: number;
}

export interface ExpandOptions {
  /** Called at the beginning and the end of each migration of stored rows, and every `periodMs` between. */
  readonly onProgress?: (progress: MigrationProgress) => void;
  /** In milliseconds; 5000 unless set. */
  readonly periodMs?: number;
  /** Wait after each batch for as long as it took, so that servers can work. */
  readonly pause?: boolean;
  /** The migrations of stored rows; tests replace them. */
  readonly migrations?: readonly DataMigration[];
}

export interface ContractOptions {
  /** Do not look for servers of older versions. They fail once the old form of their rows is gone. */
  readonly force?: boolean;
  /** Called every few seconds with the number of rows that this run has changed for a migration. */
  readonly onProgress?: (progress: Pick<MigrationProgress, "name" | "done">) => void;
  /** In milliseconds; 5000 unless set. */
  readonly periodMs?: number;
  /** Wait after each statement for as long as it took, so that servers can work. */
  readonly pause?: boolean;
  /** The migrations of stored rows; tests replace them. */
  readonly migrations?: readonly DataMigration[];
}

const PERIOD_MS = 5_000;

/**
 * Reads how far the migrations of a database are.
 *
 * @throws ApiError FAILED_PRECONDITION when it is of a version before 1.0 or needs a newer one
 */
export async function readDatabaseState(
  database: MigrationDatabase,
  migrations: readonly DataMigration[] = dataMigrations,
): Promise<DatabaseState> {
  const state = await database.read((tx) => readStateInTx(tx, migrations));
  assertMayOpen(state.oldestVersion);
  return state;
}

/**
 * Rejects a database with triggers, views or the like that the migrations have not created: they would change what is copied.
 *
 * @throws ApiError FAILED_PRECONDITION
 */
export function assertOwnObjects(
  database: MigrationDatabase,
  migrations: readonly DataMigration[] = dataMigrations,
): Promise<void> {
  return database.read((tx) => {
    return assertNoUnknownObjects(database.name, tx.dialect, (sql) => tx.query(sql), migrations);
  });
}

/**
 * Runs the expand phase, or what is left of it. An empty database is created. Nothing is lost or done twice when the
 * process ends at any point and the phase is run again.
 *
 * @throws ApiError FAILED_PRECONDITION when the database needs a newer version, is of a version before 1.0, or as
 * {@link assertOwnObjects}
 */
export async function expand(database: MigrationDatabase, options: ExpandOptions = {}): Promise<void> {
  const { migrations = dataMigrations } = options;
  const state = await readDatabaseState(database, migrations);
  await assertOwnObjects(database, migrations);
  if (!state.isEmpty && !needsExpanding(state)) return;
  if (state.missingSchema.length > 0) {
    await database.write(async (tx) => {
      const { isEmpty, missingSchema } = await readStateInTx(tx, migrations);
      const { dialect } = tx;
      await runAll(tx, isEmpty ? buildCreation(dialect, migrations) : buildSchemaStatements(dialect, missingSchema));
    });
  }
  for (const migration of migrations) await copyRows(database, migration, options);
}

async function copyRows(database: MigrationDatabase, migration: DataMigration, options: ExpandOptions): Promise<void> {
  const { onProgress = () => {}, periodMs = PERIOD_MS, pause = false } = options;
  const { phase } = await database.read((tx) => readMigrationState(tx, migration));
  if (phase !== "missing" && phase !== "expanding") return;
  const total = await database.read((tx) => migration.total(tx));
  let reportedMs = Number.NEGATIVE_INFINITY;
  for (;;) {
    const { result, tookMs } = await timeWrite(database, (tx) => copyBatch(tx, migration));
    if (result.isFinished || performance.now() - reportedMs >= periodMs) {
      onProgress({ name: migration.name, done: result.done, total });
      reportedMs = performance.now();
    }
    if (result.isFinished) return;
    await sleep(pause ? tookMs : 0);
  }
}

// Another process may run the same migration, so each batch begins with the stored progress.
async function copyBatch(tx: MigrationTx, migration: DataMigration): Promise<{ done: number; isFinished: boolean }> {
  const { phase, position, done } = await readMigrationState(tx, migration);
  if (phase === "missing") {
    await runAll(tx, [...migration.begin(tx.dialect), insertProgress(migration, "expanding")]);
    return { done: 0, isFinished: false };
  }
  if (phase !== "expanding") return { done, isFinished: true };
  const batch = await migration.step(tx, position);
  const isFinished = batch.position === undefined;
  await storeProgress(tx, migration, {
    phase: isFinished ? "expanded" : "expanding",
    position: batch.position ?? "",
    done: done + batch.done,
  });
  return { done: done + batch.done, isFinished };
}

/**
 * Runs the contract phase, or what is left of it. From then on only this version and newer ones may open the database.
 *
 * @throws ApiError FAILED_PRECONDITION when the database needs a newer version, is not expanded, or a server of an
 * older version uses it, or as {@link assertOwnObjects}
 */
export async function contract(database: MigrationDatabase, options: ContractOptions = {}): Promise<void> {
  const { migrations = dataMigrations, force = false } = options;
  const state = await readDatabaseState(database, migrations);
  await assertOwnObjects(database, migrations);
  if (needsExpanding(state)) throw expansionNeeded();
  // Also where nothing is stored in an old form: what only newer versions know, such as checkpoints of the audit log,
  // waits for this.
  if (admitsOlderVersions(state)) {
    if (!force) await assertNoOlderServers(database);
    await database.write((tx) => tx.run(buildVersionChange()));
  }
  if (!needsContracting(state)) return;
  for (const migration of migrations) await removeOldForm(database, migration, options);
}

async function removeOldForm(
  database: MigrationDatabase,
  migration: DataMigration,
  options: ContractOptions,
): Promise<void> {
  const { onProgress = () => {}, periodMs = PERIOD_MS, pause = false } = options;
  let done = 0;
  let reportedMs = performance.now();
  for (;;) {
    const { result: changed, tookMs } = await timeWrite(database, (tx) => runNextStatement(tx, migration));
    if (changed === undefined) return;
    done += changed;
    if (performance.now() - reportedMs >= periodMs) {
      onProgress({ name: migration.name, done });
      reportedMs = performance.now();
    }
    await sleep(pause ? tookMs : 0);
  }
}

// Returns how many rows the statement changed; undefined when none is left.
async function runNextStatement(tx: MigrationTx, migration: DataMigration): Promise<number | undefined> {
  const { phase, position, done } = await readMigrationState(tx, migration);
  if (phase === "contracted") return undefined;
  const next = phase === "contracting" ? Number(position) : 0;
  const statement = migration.contract(tx.dialect)[next];
  if (statement === undefined) {
    await storeProgress(tx, migration, { phase: "contracted", position: "", done });
    return undefined;
  }
  const changed = await tx.run(statement.sql);
  const isDone = statement.repeat !== true || changed === 0;
  await storeProgress(tx, migration, { phase: "contracting", position: String(isDone ? next + 1 : next), done });
  return changed;
}

// The time does not include the wait for other processes.
async function timeWrite<T>(
  database: MigrationDatabase,
  unit: (tx: MigrationTx) => Promise<T>,
): Promise<{ readonly result: T; readonly tookMs: number }> {
  let startMs = 0;
  const result = await database.write((tx) => {
    startMs = performance.now();
    return unit(tx);
  });
  return { result, tookMs: performance.now() - startMs };
}

async function assertNoOlderServers(database: MigrationDatabase): Promise<void> {
  const servers = await database.findOlderServers();
  if (servers.length === 0) return;
  throw failedPrecondition("OLDER_SERVER", `servers of an older version use the database: ${servers.join("; ")}`);
}

function readStateInTx(tx: MigrationTx, migrations: readonly DataMigration[]): Promise<DatabaseState> {
  return readStateAsync(readState(tx.dialect, migrations), async (sql) => tx.query(sql));
}

async function readMigrationState(tx: MigrationTx, migration: DataMigration): Promise<DataMigrationState> {
  return findState(migration, await tx.query("SELECT * FROM data_migrations"));
}

async function storeProgress(
  tx: MigrationTx,
  { name }: DataMigration,
  { phase, position, done }: Omit<DataMigrationState, "migration">,
): Promise<void> {
  const quoted = position.replaceAll("'", "''");
  await tx.run(
    `UPDATE data_migrations SET phase = '${phase}', position = '${quoted}', done = ${done} WHERE name = '${name}'`,
  );
}

async function runAll(tx: MigrationTx, statements: readonly string[]): Promise<void> {
  for (const statement of statements) await tx.run(statement);
}
