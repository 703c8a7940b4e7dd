// The plans that SQLite makes for all statements of the store. It has no statistics, so they never change.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { createQueries } from "../../src/store/sqlite/connection.js";
import { openDatabase, type SqliteDatabase } from "../../src/store/sqlite/driver.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import type { Sql } from "../../src/store/statement.js";
import { schema } from "../../src/store/tables/schema-sqlite.js";
import { memoryDir } from "../support/temp-dir.js";
import { findUnexpected, listStatements, type PlannedStatement, scans, sorts, useFamilies } from "./statement-plans.js";

/** Registers the tests, which know the statements that ran before them in this process. */
export function sqliteStatementPlanSuite(): void {
  test("each statement of the store reads indexes of SQLite", async (t) => {
    const directory = memoryDir();
    const store = openSqlite({ directory });
    const db = openDatabase(join(directory, "arbor.db"));
    t.after(async () => {
      await store.close();
      db.close();
    });
    await useFamilies(store);
    const dialect = { sql: createQueries(db) as unknown as Sql, tables: schema };
    const statements = listStatements(dialect);
    const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all() as string[];
    const scanned = new RegExp(`^SCAN (${tables.join("|")})\\b(?!.*VIRTUAL)`, "m");
    const sorted = /USE TEMP B-TREE/;
    const doing = (pattern: RegExp) =>
      statements.filter((one) => pattern.test(readPlan(db, one))).map(({ sql }) => sql.replaceAll("?", "$1"));
    assert.deepEqual(findUnexpected("SQLite", doing(scanned), scans), []);
    assert.deepEqual(findUnexpected("SQLite", doing(sorted), sorts), []);

    // Rows that are deleted a few at a time are found by their keys, not among all that have the same parent.
    const inParts = statements.filter(({ sql }) => /^delete from .* in \(select .* limit /.test(sql));
    assert.ok(inParts.length > 5, `${inParts.length} statements`);
    for (const one of inParts) {
      const [first = ""] = readPlan(db, one).split("\n");
      assert.match(first, /^SEARCH \w+ USING (PRIMARY KEY|INTEGER PRIMARY KEY) \(/, one.sql);
      assert.doesNotMatch(first, /\((group|repo)_uid=\?\)$/, one.sql);
    }

    // A bare parameter there makes SQLite plan the statement again in every run.
    const bareLimit = / (limit|offset) \?(?! \+)/;
    assert.ok(statements.filter(({ sql }) => /limit (\d|\? \+)/.test(sql)).length > 20, "statements with limits");
    assert.deepEqual(
      statements.filter(({ sql }) => bareLimit.test(sql)).map(({ sql }) => sql),
      [],
    );
    assert.match(createQueries(db).select().from(schema.keys).limit(1).toSQL().sql, bareLimit, "control");

    db.exec("DROP INDEX identities_provider");
    const without = doing(scanned).filter((sql) => / "identities"."provider_uid" = /.test(sql));
    assert.ok(without.length > 0, "control: without an index a statement scans");
    assert.deepEqual(db.prepare("SELECT name FROM sqlite_schema WHERE name = 'sqlite_stat1'").all(), []);
  });
}

function readPlan(db: SqliteDatabase, { sql, params }: PlannedStatement): string {
  const rows = db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...params.map(() => 1)) as { detail: string }[];
  return rows.map(({ detail }) => detail).join("\n");
}
