// The statements that create a database, and those that name the oldest version that may open it.
import { VERSIONED_APPLICATION_ID } from "../sqlite-connection.js";
import { isOlder, OLDEST_VERSION, VERSION } from "../version.js";
import type { DataMigration, Dialect } from "./data-migration.js";
import { buildSchemaStatements, listSchemaMigrations } from "./schema-migrations.js";
import type { DatabaseState } from "./state.js";

/** Builds the statements that create everything in an empty database, which has no rows in an old form. */
export function buildCreation(dialect: Dialect, migrations: readonly DataMigration[]): string[] {
  return [
    ...buildSchemaStatements(dialect, listSchemaMigrations(dialect, 0)),
    ...migrations.flatMap((migration) => [
      ...migration.begin(dialect),
      insertProgress(migration, "contracted"),
      ...migration.contract(dialect).map(({ sql }) => sql),
    ]),
    ...(migrations.length > 0 ? buildVersionChange(dialect) : []),
  ];
}

/** Records that a migration of stored rows has begun. */
export function insertProgress({ name }: DataMigration, phase: "expanding" | "contracted"): string {
  return `INSERT INTO data_migrations (name, phase, position, done) VALUES ('${name}', '${phase}', '', 0)`;
}

/** Builds the statements that make this version the oldest one that may open the database. */
export function buildVersionChange(dialect: Dialect): string[] {
  const store =
    `INSERT INTO settings (name, value) VALUES ('${OLDEST_VERSION}', '${VERSION}') ` +
    "ON CONFLICT (name) DO UPDATE SET value = excluded.value";
  return dialect === "sqlite" ? [store, `PRAGMA application_id = ${VERSIONED_APPLICATION_ID}`] : [store];
}

/** Whether older versions may still open the database. */
export function admitsOlderVersions({ oldestVersion }: DatabaseState): boolean {
  return oldestVersion === undefined || isOlder(oldestVersion, VERSION);
}
