// `arbor migrate`: expands the database of an older version while servers of that version run, and later removes what
// only they needed (docs/upgrade.md).

import type { Settings } from "../../config/config.js";
import { findSessionUrl } from "../../config/database.js";
import { readDatabaseTls } from "../../config/tls.js";
import { failedPrecondition } from "../../kernel/errors.js";
import type { DataMigration, MigrationDatabase } from "../../store/migrate/data-migration.js";
import { dataMigrations } from "../../store/migrate/data-migrations.js";
import { openPgMigration } from "../../store/migrate/open-pg-migration.js";
import { openSqliteMigration, type SqliteMigrationOptions } from "../../store/migrate/open-sqlite-migration.js";
import { assertOwnObjects, contract, expand, readDatabaseState } from "../../store/migrate/phases.js";
import { buildSchemaStatements } from "../../store/migrate/schema-migrations.js";
import {
  admitsOlderVersions,
  buildCreation,
  buildVersionChange,
  type DatabaseState,
  needsContracting,
  needsExpanding,
} from "../../store/migrate/state.js";
import { noInstallation } from "../../store/sqlite/data-directory.js";
import { VERSION } from "../../store/version.js";
import { invalidFlag } from "../errors.js";
import { escapeControls, withStdout } from "../output/terminal.js";
import { print, withInstallation } from "./host.js";
import { createMigrationProgress } from "./progress.js";

export interface MigrateFlags {
  readonly expand?: boolean;
  readonly contract?: boolean;
  readonly dryRun?: boolean;
  readonly force?: boolean;
  readonly vacuum?: boolean;
}

/**
 * `arbor migrate`. Without a phase it prints the progress of the migrations and the remaining steps. Only the expand phase
 * creates an installation.
 *
 * @param migrations the migrations of stored rows; tests replace them
 * @throws ApiError FAILED_PRECONDITION when the database is of a version before 1.0 or needs a newer one, when servers of an older version use what
 * would be removed, or when there is no installation and the expand phase is not to run; CommandError for flags that do not fit
 */
export async function migrateCommand(
  settings: Settings,
  flags: MigrateFlags,
  migrations: readonly DataMigration[] = dataMigrations,
): Promise<void> {
  assertFlags(settings, flags);
  const isWriting = Boolean(flags.expand || flags.contract || flags.vacuum) && !flags.dryRun;
  if (flags.contract && isWriting && !flags.force) assertServersAreSeen(settings);
  const url = findSessionUrl(settings);
  const database =
    url === undefined
      ? openSqliteMigration({ directory: settings.data, mode: chooseMode(flags, isWriting) })
      : await openPgMigration(url, readDatabaseTls(settings), printWait);
  let isNew = false;
  try {
    const state = await readDatabaseState(database, migrations);
    if (state.isEmpty && !flags.expand) throw noInstallation(database.name, "it has no tables of one");
    if (isWriting) await runPhases(database, flags, migrations);
    else if (flags.expand || flags.contract) await planPhases(database, state, flags, migrations);
    else printState(state);
    isNew = isWriting && state.isEmpty;
  } finally {
    await database.close();
  }
  // With PostgreSQL the file of the key is where the servers are.
  if (isNew && settings.databaseUrl === undefined) await withInstallation(settings, "create", async () => {});
}

// The sessions of a pooler have the name of the server that used them last.
function assertServersAreSeen({ databasePooler }: Settings): void {
  if (databasePooler === "none") return;
  const remedy = "make sure that none runs, then run it with --force";
  throw failedPrecondition("POOLED_SERVERS", `behind a pooler the servers of older versions cannot be seen: ${remedy}`);
}

function printWait(holder: string): void {
  const advice = "end it, or SELECT pg_terminate_backend(…) its number";
  process.stderr.write(`arbor: waiting for ${escapeControls(holder)}: ${advice}\n`);
}

function chooseMode({ expand }: MigrateFlags, isWriting: boolean): SqliteMigrationOptions["mode"] {
  if (isWriting) return expand ? "create" : "update";
  return expand ? "plan" : "read";
}

function assertFlags({ databaseUrl }: Settings, flags: MigrateFlags): void {
  if (flags.force && !flags.contract) throw invalidFlag("--force", "belongs to --contract");
  if (flags.vacuum && databaseUrl !== undefined) throw invalidFlag("--vacuum", "PostgreSQL gives space back by itself");
  if (flags.vacuum && flags.dryRun) throw invalidFlag("--vacuum", "cannot be combined with --dry-run");
}

async function runPhases(
  database: MigrationDatabase,
  { contract: isContracting = false, force = false, ...flags }: MigrateFlags,
  migrations: readonly DataMigration[],
): Promise<void> {
  const { onProgress, onRemoval, periodMs, clear } = createMigrationProgress(process.stderr);
  const shared = { migrations, periodMs, pause: true };
  if (flags.expand) {
    await expand(database, { ...shared, onProgress }).finally(clear);
    print("expanded: this version can use the database");
  }
  if (isContracting) {
    await contract(database, { ...shared, force, onProgress: onRemoval }).finally(clear);
    print("contracted: the database has only what this version and newer ones use");
    if (database.vacuum && !flags.vacuum) print("the file keeps its size; `arbor migrate --vacuum` makes it smaller");
  }
  if (flags.vacuum) {
    process.stderr.write("arbor: writing the file anew; servers cannot write meanwhile\n");
    await database.vacuum?.();
    print("the space of deleted rows is free");
  }
}

function printState(state: DatabaseState): void {
  print(`this version: ${VERSION}`);
  print(`oldest version that may open the database: ${state.oldestVersion ?? "none is named"}`);
  print(needsExpanding(state) ? "expand:" : "expand: done");
  for (const { name } of state.missingSchema) print(`  schema: ${name}`);
  for (const { migration, phase, done } of state.data) {
    if (phase !== "missing" && phase !== "expanding") continue;
    print(`  rows: ${migration.name}, ${phase === "missing" ? "not begun" : `${done} rows done`}`);
  }
  if (needsContracting(state)) print("contract:");
  else print(needsExpanding(state) ? "contract: after expand" : "contract: done");
  for (const { migration, phase } of state.data) {
    if (phase === "expanded" || phase === "contracting") print(`  remove the old form of ${migration.name}`);
  }
  if (needsExpanding(state)) print("run next: arbor migrate --expand");
  else if (needsContracting(state)) print("run once no older version runs: arbor migrate --contract");
}

async function planPhases(
  database: MigrationDatabase,
  state: DatabaseState,
  flags: MigrateFlags,
  migrations: readonly DataMigration[],
): Promise<void> {
  await assertOwnObjects(database, migrations);
  await printStatements(database, state, flags, migrations);
}

async function printStatements(
  database: MigrationDatabase,
  state: DatabaseState,
  flags: MigrateFlags,
  migrations: readonly DataMigration[],
): Promise<void> {
  const lines = [
    ...(state.isEmpty ? [`-- there is no installation in ${escapeControls(database.name)}: --expand creates one`] : []),
    ...(flags.expand ? listExpandStatements(database, state, migrations) : []),
    ...(flags.contract ? listContractStatements(database, state) : []),
  ];
  const text = lines.length > 0 ? lines.join("\n") : "-- nothing to do";
  await withStdout((output) => output.write(`${text}\n`));
}

function listExpandStatements(
  { dialect }: MigrationDatabase,
  state: DatabaseState,
  migrations: readonly DataMigration[],
): string[] {
  if (state.isEmpty) return buildCreation(dialect, migrations).map((sql) => `${sql};`);
  return [
    ...buildSchemaStatements(dialect, state.missingSchema).map((sql) => `${sql};`),
    ...state.data.flatMap(({ migration, phase }) => [
      ...(phase === "missing" ? migration.begin(dialect).map((sql) => `${sql};`) : []),
      ...(phase === "missing" || phase === "expanding" ? [`-- ${migration.name}: rows are copied in batches`] : []),
    ]),
  ];
}

// The statements of this phase as they would be after the expand phase.
function listContractStatements({ dialect }: MigrationDatabase, state: DatabaseState): string[] {
  const left = state.data.filter(({ phase }) => phase !== "contracted");
  if (state.isEmpty) return [];
  return [
    ...(admitsOlderVersions(state) ? [`${buildVersionChange()};`] : []),
    ...left.flatMap(({ migration, phase, position }) =>
      migration
        .contract(dialect)
        .slice(phase === "contracting" ? Number(position) : 0)
        .map(({ sql, repeat }) => `${sql};${repeat ? " -- repeated until it changes no row" : ""}`),
    ),
  ];
}
