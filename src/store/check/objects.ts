// Objects of a database that its migrations did not create, and with which others can change rows or show rows that are none:
// triggers, views, rules, foreign tables and the like. A restored or copied database would be what somebody left in it, and no
// other check sees the difference. objects-sqlite.ts and objects-pg.ts say what is looked for.
//
// Temporary objects and attached databases belong to a connection, and no connection of this program has any of others.
import { failedPrecondition } from "../../kernel/errors.js";
import type { DataMigration, Dialect } from "../migrate/data-migration.js";
import { dataMigrations } from "../migrate/data-migrations.js";
import { readState, readStateAsync } from "../migrate/state.js";
import { findPgObjects, listPgNotes } from "./objects-pg.js";
import { findSqliteObjects } from "./objects-sqlite.js";
import type { RunQuery, UnknownObject } from "./unknown-object.js";

/** Finds all of them, in the schema of the tables. */
export async function findUnknownObjects(
  dialect: Dialect,
  query: RunQuery,
  migrations: readonly DataMigration[] = dataMigrations,
): Promise<readonly UnknownObject[]> {
  const state = await readStateAsync(readState(dialect, migrations), query);
  if (state.isEmpty) return [];
  return dialect === "sqlite" ? findSqliteObjects(state, query) : findPgObjects(state, query);
}

/** Lists what is worth a note, and no finding. */
export async function listObjectNotes(dialect: Dialect, query: RunQuery): Promise<readonly string[]> {
  return dialect === "sqlite" ? [] : listPgNotes(query);
}

/**
 * @param name what holds the database
 * @throws ApiError FAILED_PRECONDITION that names the first unknown objects
 */
export async function assertNoUnknownObjects(
  name: string,
  dialect: Dialect,
  query: RunQuery,
  migrations?: readonly DataMigration[],
): Promise<void> {
  const found = await findUnknownObjects(dialect, query, migrations);
  if (found.length === 0) return;
  const named = found.slice(0, MAX_NAMED).map((one) => `${one.table} ${one.name}: ${one.problem}`);
  const more = found.length > MAX_NAMED ? `; and ${found.length - MAX_NAMED} more` : "";
  throw failedPrecondition("DATABASE_OBJECTS", `${name}: ${named.join("; ")}${more}; ${UNKNOWN_OBJECT_REMEDY}`);
}

const MAX_NAMED = 3;

/** What to do about each of them. */
export const UNKNOWN_OBJECT_REMEDY =
  "drop it if you know who created it, otherwise keep this database as evidence and restore a backup; a newer version of arbor " +
  "knows what it has added itself";
