// How far the migrations of a database are.
import { ApiError, failedPrecondition } from "../../kernel/errors.js";
import type { MigrationPhase } from "../tables/tables.js";
import { isOlder, OLDEST_VERSION, VERSION } from "../version.js";
import type { DataMigration, Dialect, SqlRow } from "./data-migration.js";
import {
  buildSchemaStatements,
  listSchemaMigrations,
  type SchemaMigration,
  schemaRecord,
} from "./schema-migrations.js";

/** How far one migration of stored rows is. */
export interface DataMigrationState {
  readonly migration: DataMigration;
  readonly phase: MigrationPhase | "missing";
  readonly position: string;
  /** How many rows are copied. */
  readonly done: number;
}

/** How far all migrations are. */
export interface DatabaseState {
  readonly isEmpty: boolean;
  /** When the last change of the schema that it has was generated, in epoch milliseconds; 0 for an empty one. */
  readonly lastSchemaMs: number;
  /** The oldest version that may open the database; undefined where none is stored. */
  readonly oldestVersion: string | undefined;
  readonly missingSchema: readonly SchemaMigration[];
  readonly data: readonly DataMigrationState[];
}

/**
 * Reads the state of a database without changing it. It yields the queries and receives their rows, because one driver
 * is synchronous and the other is not.
 *
 * @throws ApiError FAILED_PRECONDITION when it is of a version before 1.0, whose schema was another one
 */
export function* readState(
  dialect: Dialect,
  migrations: readonly DataMigration[],
): Generator<string, DatabaseState, readonly SqlRow[]> {
  const hasTable = function* (table: string): Generator<string, boolean, readonly SqlRow[]> {
    const rows = yield dialect === "sqlite"
      ? `SELECT name FROM sqlite_schema WHERE type = 'table' AND name = '${table}'`
      : `SELECT 1 WHERE to_regclass('${table}') IS NOT NULL`;
    return rows.length > 0;
  };
  const record = schemaRecord[dialect];
  const recorded = (yield* hasTable(record)) ? yield `SELECT created_at AS time FROM ${record}` : [];
  const oldest = (yield* hasTable("settings"))
    ? yield `SELECT value FROM settings WHERE name = '${OLDEST_VERSION}'`
    : [];
  const stored = (yield* hasTable("data_migrations")) ? yield "SELECT * FROM data_migrations" : [];
  const times = recorded.map(({ time }) => Number(time));
  const lastMs = Math.max(0, ...times);
  const oldestVersion = oldest[0]?.value as string | undefined;
  const [first] = listSchemaMigrations(dialect, 0);
  if (times.length > 0 && first !== undefined && !times.includes(first.createdMs)) throw tooOld();
  return {
    isEmpty: times.length === 0,
    lastSchemaMs: lastMs,
    oldestVersion,
    missingSchema: listSchemaMigrations(dialect, lastMs),
    data: migrations.map((migration) => findState(migration, stored)),
  };
}

/** Reads the state with a synchronous driver. */
export function readStateSync(
  states: ReturnType<typeof readState>,
  query: (statement: string) => readonly SqlRow[],
): DatabaseState {
  let next = states.next();
  while (!next.done) next = states.next(query(next.value));
  return next.value;
}

/** Reads the state with an asynchronous driver. */
export async function readStateAsync(
  states: ReturnType<typeof readState>,
  query: (statement: string) => PromiseLike<readonly SqlRow[]> | readonly SqlRow[],
): Promise<DatabaseState> {
  let next = states.next();
  while (!next.done) next = states.next(await query(next.value));
  return next.value;
}

export function findState(migration: DataMigration, stored: readonly SqlRow[]): DataMigrationState {
  const row = stored.find(({ name }) => name === migration.name);
  if (row === undefined) return { migration, phase: "missing", position: "", done: 0 };
  return {
    migration,
    phase: row.phase as MigrationPhase,
    position: String(row.position),
    done: Number(row.done),
  };
}

function tooOld(): ApiError {
  return failedPrecondition(
    "DATABASE_VERSION",
    "the database is that of a version before 1.0, and goes through version 1.7 first: run `arbor migrate` of version 1.7.0 with " +
      "the same settings (docs/upgrade.md)",
  );
}

/** Whether this version cannot use the database before the expand phase has run. */
export function needsExpanding({ missingSchema, data }: DatabaseState): boolean {
  return missingSchema.length > 0 || data.some(({ phase }) => phase === "missing" || phase === "expanding");
}

/** Whether rows are still stored in an old form that this version does not need. */
export function needsContracting({ data }: DatabaseState): boolean {
  return data.some(({ phase }) => phase === "expanded" || phase === "contracting");
}

/** FAILED_PRECONDITION: the database is that of an older version. The text names the command to run. */
export function expansionNeeded(): ApiError {
  return failedPrecondition(
    "DATABASE_VERSION",
    "the database is that of an older version: run `arbor migrate --expand` with the same settings (docs/upgrade.md)",
  );
}

/** Whether an error is {@link expansionNeeded}. */
export function isExpansionNeeded(error: unknown): boolean {
  return error instanceof ApiError && error.message === expansionNeeded().message;
}

// The statements that create a database, and those that name the oldest version that may open it.

/** Builds the statements that create everything in an empty database, which has no rows in an old form. */
export function buildCreation(dialect: Dialect, migrations: readonly DataMigration[]): string[] {
  return [
    ...buildSchemaStatements(dialect, listSchemaMigrations(dialect, 0)),
    ...migrations.flatMap((migration) => {
      const progress = insertProgress(migration, "contracted");
      if (migration.leavesNothing) return [progress];
      return [...migration.begin(dialect), progress, ...migration.contract(dialect).map(({ sql }) => sql)];
    }),
    buildVersionChange(),
  ];
}

/** Records that a migration of stored rows has begun. */
export function insertProgress({ name }: DataMigration, phase: "expanding" | "contracted"): string {
  return `INSERT INTO data_migrations (name, phase, position, done) VALUES ('${name}', '${phase}', '', 0)`;
}

/** Builds the statement that makes this version the oldest one that may open the database. */
export function buildVersionChange(): string {
  return (
    `INSERT INTO settings (name, value) VALUES ('${OLDEST_VERSION}', '${VERSION}') ` +
    "ON CONFLICT (name) DO UPDATE SET value = excluded.value"
  );
}

/** Whether older versions may still open the database. */
export function admitsOlderVersions({ oldestVersion }: DatabaseState): boolean {
  return oldestVersion === undefined || isOlder(oldestVersion, VERSION);
}
