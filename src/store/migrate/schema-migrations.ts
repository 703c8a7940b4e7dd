// The changes of the schema, which drizzle-kit generates into src/store/migrations/. Drizzle's own migrator always
// commits by itself, and an empty database is to be created in one transaction with its migrations of stored rows. So
// this file runs the changes, and keeps the record of them as drizzle does.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { readMigrationFiles } from "drizzle-orm/migrator";
import type { Dialect } from "./data-migration.js";

export interface SchemaMigration {
  readonly name: string;
  /** When it was generated, in epoch milliseconds; the record names it by this. */
  readonly createdMs: number;
}

/** The table that records which changes have run. */
export const schemaRecord = {
  sqlite: "__drizzle_migrations",
  pg: "drizzle.__drizzle_migrations",
} as const satisfies Record<Dialect, string>;

const createRecord: Record<Dialect, readonly string[]> = {
  sqlite: [
    `CREATE TABLE IF NOT EXISTS ${schemaRecord.sqlite} (id SERIAL PRIMARY KEY, hash text NOT NULL, created_at numeric)`,
  ],
  pg: [
    "CREATE SCHEMA IF NOT EXISTS drizzle",
    `CREATE TABLE IF NOT EXISTS ${schemaRecord.pg} (id SERIAL PRIMARY KEY, hash text NOT NULL, created_at bigint)`,
  ],
};

/**
 * Lists the changes after the last one in the record, in their order.
 *
 * @param lastMs when the last recorded change was generated, in epoch milliseconds; 0 where there is none
 */
export function listSchemaMigrations(dialect: Dialect, lastMs: number): SchemaMigration[] {
  const journal = JSON.parse(readFileSync(`${findFolder(dialect)}/meta/_journal.json`, "utf8")) as {
    entries: readonly { tag: string; when: number }[];
  };
  return journal.entries
    .filter(({ when }) => when > lastMs)
    .map(({ tag, when }): SchemaMigration => ({ name: tag, createdMs: when }));
}

/** Builds the statements that run these changes and record them. */
export function buildSchemaStatements(dialect: Dialect, changes: readonly SchemaMigration[]): string[] {
  if (changes.length === 0) return [];
  const selected = new Set(changes.map(({ createdMs }) => createdMs));
  const files = readMigrationFiles({ migrationsFolder: findFolder(dialect) });
  return [
    ...createRecord[dialect],
    ...files
      .filter(({ folderMillis }) => selected.has(folderMillis))
      .flatMap(({ sql, hash, folderMillis }) => [
        ...sql.map((statement) => statement.trim().replace(/;$/, "")),
        `INSERT INTO ${schemaRecord[dialect]} (hash, created_at) VALUES ('${hash}', ${folderMillis})`,
      ]),
  ];
}

function findFolder(dialect: Dialect): string {
  return fileURLToPath(new URL(`../migrations/${dialect}`, import.meta.url));
}
