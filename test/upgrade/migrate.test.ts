// Databases of released versions through both phases of an upgrade, on SQLite. On PostgreSQL: test/pg/.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { openSqliteMigration } from "../../src/store/migrate/open-sqlite-migration.js";
import { contract, expand } from "../../src/store/migrate/phases.js";
import { listSchemaMigrations } from "../../src/store/migrate/schema-migrations.js";
import { openDatabase, type SqliteDatabase } from "../../src/store/sqlite/driver.js";
import { inconsistenciesIn } from "../support/consistency.js";
import { newDataDir } from "../support/data-dir.js";
import { PROJECT } from "../support/project.js";
import { fixtures, restoreSqlite } from "./fixtures.js";
import { assertIndexMatches, assertRowsKept, dumpSqlite } from "./migrated-rows.js";

for (const fixture of fixtures) {
  test(`the SQLite database of version ${fixture.version} is migrated to what a new one is`, async () => {
    const directory = restoreSqlite(fixture);
    const before = withDatabase(directory, dumpSqlite);
    const database = openSqliteMigration({ directory, mode: "create" });
    await expand(database);
    await contract(database);
    await database.close();
    assert.deepEqual(withDatabase(directory, readSchema), withDatabase(newDataDir(), readSchema));
    const after = withDatabase(directory, dumpSqlite);
    assertRowsKept(before, after);
    const fewer = new Map(after).set("roles", (after.get("roles") ?? []).slice(1));
    assert.throws(() => assertRowsKept(before, fewer), /rows of roles that are gone/);
    assert.deepEqual(withDatabase(directory, inconsistenciesIn), []);
    await assertIndexMatches(after);
  });
}

// Versions go on while the schema is changed, so a change must leave what they use as it is.
test("changes of the schema since version 0.4.0 only add", () => {
  for (const dialect of ["sqlite", "pg"]) {
    const folder = join(PROJECT, "src", "store", "migrations", dialect);
    const files = readdirSync(folder).filter((name) => name.endsWith(".sql") && name >= "0007");
    assert.ok(files.length > 0);
    const statements = files.flatMap((name) =>
      readFileSync(join(folder, name), "utf8").split("--> statement-breakpoint"),
    );
    // Triggers and what is inserted by the migration itself write to tables that it adds.
    const adds =
      /^(?:CREATE (?:TABLE|VIRTUAL TABLE|INDEX|UNIQUE INDEX|SEQUENCE|TRIGGER|FUNCTION)|INSERT INTO advisory_changes|DO \$\$\nBEGIN\n\tCREATE EXTENSION|ALTER TABLE \S+ ADD (?:COLUMN )?[`"])/;
    assert.deepEqual(
      statements
        .map((statement) => statement.replace(/^\s*--.*\n/gm, "").trim())
        .filter((statement) => !adds.test(statement)),
      [],
    );
  }
});

// A database records the time of the last change that it has, and gets those after it.
test("changes of the schema are in the order of their times", () => {
  for (const dialect of ["sqlite", "pg"] as const) {
    const times = listSchemaMigrations(dialect, 0).map(({ createdMs }) => createdMs);
    assert.ok(times.length > 7);
    assert.deepEqual(
      times,
      [...new Set(times)].sort((a, b) => a - b),
    );
  }
});

function readSchema(db: SqliteDatabase): unknown {
  // The record of changes of the schema is created by drizzle in older versions, with other blanks.
  const query =
    "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name NOT LIKE '%drizzle%' ORDER BY type, name";
  return db.prepare(query).all();
}

function withDatabase<T>(directory: string, work: (db: SqliteDatabase) => T): T {
  const db = openDatabase(join(directory, "arbor.db"), { readonly: true });
  try {
    return work(db);
  } finally {
    db.close();
  }
}
