// Compares the schema of a SQLite file with that of a new database, which the same migrations create in memory.
import type { SqlRow } from "../migrate/data-migration.js";
import { buildSchemaStatements, listSchemaMigrations } from "../migrate/schema-migrations.js";
import type { DatabaseState, DataMigrationState } from "../migrate/state.js";
import { runMigrationStatement } from "../sqlite/connection.js";
import { openDatabase } from "../sqlite/driver.js";
import type { RunQuery, UnknownObject } from "./unknown-object.js";

// But for what SQLite creates itself. Others can write the rows of the schema: a trigger may have any name, and the type in capitals.
const OBJECTS = `SELECT lower(type) AS type, name, tbl_name, coalesce(sql, '') AS sql FROM sqlite_schema WHERE NOT (
  lower(type) = 'index' AND sql IS NULL OR
  lower(type) = 'table' AND name IN ('sqlite_sequence', 'sqlite_stat1', 'sqlite_stat4'))`;

/** A column that a newer version has added: a constant as its default, and no rule but a foreign key that changes nothing. */
const ADDED_COLUMN =
  /^, [`"]?\w+[`"]? (?:text|integer|real|blob)(?: (?:NOT NULL|DEFAULT (?:'[^']*'|-?\d+|true|false)|REFERENCES [`"]?\w+[`"]? ?\([`"]?\w+[`"]?\)))*/i;

interface SchemaObject {
  readonly type: string;
  readonly name: string;
  readonly table: string;
  readonly sql: string;
}

/** Finds the objects of a file that are not those of its version. */
export async function findSqliteObjects(state: DatabaseState, query: RunQuery): Promise<readonly UnknownObject[]> {
  const found = (await query(OBJECTS)).map(toObject);
  const expected = new Map(createExpected(state).map((one) => [`${one.type} ${one.name}`, one]));
  const isNewer = state.lastSchemaMs > (listSchemaMigrations("sqlite", 0).at(-1)?.createdMs ?? 0);
  const unknown = found.flatMap((one) => {
    const created = expected.get(`${one.type} ${one.name}`);
    if (created === undefined) return isActive(one) ? [toUnknown(one, undefined)] : [];
    const isSame = created.sql === one.sql || (isNewer && one.type === "table" && hasMoreColumns(one, created));
    return isSame && created.table === one.table ? [] : [toUnknown(one, created)];
  });
  const names = new Set(found.map(({ type, name }) => `${type} ${name}`));
  const lost = [...expected.values()].filter((one) => one.type === "trigger" && !names.has(`trigger ${one.name}`));
  return [...unknown, ...lost.map(({ table, name }) => ({ table, name, problem: "the trigger is missing" }))];
}

function toObject({ type, name, tbl_name: table, sql }: SqlRow): SchemaObject {
  // SQLite keeps the statement as it was written.
  return { type: String(type), name: String(name), table: String(table), sql: String(sql).replace(/\s+/g, " ").trim() };
}

// Triggers run with the statements of others, and views and virtual tables may have the rows of others. Other tables and
// indexes are of no effect on those of the schema.
function isActive(one: SchemaObject): boolean {
  return one.type === "trigger" || one.type === "view" || isVirtual(one);
}

// SQLite writes added columns behind the last one, before what the statement says of the table.
function hasMoreColumns({ sql }: SchemaObject, created: SchemaObject): boolean {
  const moreLength = sql.length - created.sql.length;
  if (moreLength <= 0) return false;
  let same = 0;
  while (same < created.sql.length && created.sql[same] === sql[same]) same++;
  for (let start = same; start >= 0; start--) {
    if (!sql.endsWith(created.sql.slice(start))) return false;
    let added = sql.slice(start, start + moreLength);
    while (ADDED_COLUMN.test(added)) added = added.replace(ADDED_COLUMN, "");
    if (added === "") return true;
  }
  return false;
}

function isVirtual({ type, sql }: SchemaObject): boolean {
  return type === "table" && /^CREATE VIRTUAL/i.test(sql);
}

function toUnknown(one: SchemaObject, created: SchemaObject | undefined): UnknownObject {
  const kind = isVirtual(one) ? "virtual table" : one.type;
  const problem =
    created === undefined
      ? `no migration creates this ${kind}`
      : `the ${kind} is not the one that the migrations create`;
  return { table: one.table, name: one.name, problem };
}

function createExpected(state: DatabaseState): SchemaObject[] {
  const db = openDatabase(":memory:");
  try {
    const missing = new Set(state.missingSchema.map(({ createdMs }) => createdMs));
    const changes = listSchemaMigrations("sqlite", 0).filter(({ createdMs }) => !missing.has(createdMs));
    const statements = [...buildSchemaStatements("sqlite", changes), ...state.data.flatMap(listStatements)];
    for (const statement of statements) runMigrationStatement(db, statement);
    return (db.prepare(OBJECTS).all() as SqlRow[]).map(toObject);
  } finally {
    db.close();
  }
}

// What a migration of stored rows has created and removed so far.
function listStatements({ migration, phase, position }: DataMigrationState): string[] {
  if (phase === "missing") return [];
  const removed = migration.contract("sqlite").map(({ sql }) => sql);
  const count = phase === "contracted" ? removed.length : phase === "contracting" ? Number(position) : 0;
  return [...migration.begin("sqlite"), ...removed.slice(0, count)];
}
