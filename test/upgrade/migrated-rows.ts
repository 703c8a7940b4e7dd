// What a migrated database must contain: the schema of a new one, the rows of before, and counters that match them.
import assert from "node:assert/strict";
import { join } from "node:path";
import { goneTables } from "../../src/store/migrate/conversion/old-database.js";
import { openDatabase, type SqliteDatabase } from "../../src/store/sqlite/driver.js";
import { OLDEST_VERSION } from "../../src/store/version.js";
import { inconsistenciesIn } from "../support/consistency.js";
import { newDataDir } from "../support/data-dir.js";

/** A row by the names of its columns. */
export type Row = Readonly<Record<string, unknown>>;
/** The rows of all tables. */
export type Dump = ReadonlyMap<string, readonly Row[]>;

/** What is derived from the rows of other tables, or belongs to migrations themselves. */
const DERIVED = new Set(["__drizzle_migrations", "data_migrations", "counters", ...goneTables]);
/** Jobs of the versions before that are gone. */
const GONE_JOBS = ["list-ranks", "advisory-index"];

/**
 * Asserts that every row is still there with its values. Columns and rows may be new.
 *
 * @param before the tables of the earlier version
 * @param after the tables after the upgrade
 */
export function assertRowsKept(before: Dump, after: Dump): void {
  let compared = 0;
  for (const [table, rows] of before) {
    if (DERIVED.has(table)) continue;
    const columns = Object.keys(rows[0] ?? {}).filter((column) => column in (after.get(table)?.[0] ?? {}));
    const pick = (row: Row) => JSON.stringify(columns.map((column) => row[column]));
    const kept = new Set((after.get(table) ?? []).map(pick));
    const isReplaced = ({ name }: Row) =>
      table === "settings" ? name === OLDEST_VERSION : table === "jobs" && GONE_JOBS.includes(String(name));
    const lasting = rows.filter((row) => !isReplaced(row));
    assert.deepEqual(
      lasting.map(pick).filter((row) => !kept.has(row)),
      [],
      `rows of ${table} that are gone`,
    );
    compared += rows.length * columns.length;
  }
  assert.ok(compared > 1_000, `${compared} values were compared`);
}

/** Asserts that the index in a database is what its rows say, by importing all of it into a new database. */
export async function assertIndexMatches(dump: Dump): Promise<void> {
  const db = openDatabase(join(newDataDir(), "arbor.db"));
  try {
    db.pragma("foreign_keys = OFF");
    db.transaction(() => {
      for (const table of tablesOf(db)) importRows(db, table, dump.get(table) ?? []);
    })();
    assert.deepEqual(inconsistenciesIn(db), []);
    const groups = dump.get("groups") ?? [];
    assert.ok(groups.length > 3, `${groups.length} groups were imported`);
    db.exec("DELETE FROM groups WHERE uid = (SELECT max(uid) FROM groups)");
    assert.notDeepEqual(inconsistenciesIn(db), [], "a group less is seen");
  } finally {
    db.close();
  }
}

/** The rows of all tables of a SQLite database. */
export function dumpSqlite(db: SqliteDatabase): Dump {
  return new Map(tablesOf(db).map((table) => [table, db.prepare(`SELECT * FROM "${table}"`).all() as Row[]]));
}

function tablesOf(db: SqliteDatabase): string[] {
  const query =
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'advisory\\_texts%' ESCAPE '\\' AND name NOT LIKE 'sqlite_%' ORDER BY name";
  return db.prepare(query).pluck().all() as string[];
}

function importRows(db: SqliteDatabase, table: string, rows: readonly Row[]): void {
  db.exec(`DELETE FROM "${table}"`);
  for (const row of rows) {
    const names = Object.keys(row);
    const values = names.map(() => "?").join(", ");
    db.prepare(`INSERT INTO "${table}" (${names.map((name) => `"${name}"`).join(", ")}) VALUES (${values})`).run(
      ...names.map((name) => toSqlite(row[name])),
    );
  }
}

// As PostgreSQL's driver returns them: booleans, JSON as values, and 64-bit integers as text, which the columns convert.
function toSqlite(value: unknown): unknown {
  if (typeof value === "boolean") return Number(value);
  if (typeof value === "object" && value !== null && !Buffer.isBuffer(value)) return JSON.stringify(value);
  return value;
}
