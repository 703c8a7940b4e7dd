// Lists on SQLite are read by the intended indexes, and sort a bounded number of rows, whatever statistics there are.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { createQueries } from "../../src/store/sqlite/connection.js";
import { openDatabase, type SqliteDatabase } from "../../src/store/sqlite/driver.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import type { Sql } from "../../src/store/statement.js";
import { schema } from "../../src/store/tables/schema-sqlite.js";
import { memoryDir } from "../support/temp-dir.js";
import { collectStatements, fillWorlds, type ListStatement } from "./list-plans.js";

const limits = { step: 5, slice: 4 };

for (const statistics of ["none", "stale", "fresh"]) {
  test(`no list scans a table, and sorts are bounded, with ${statistics} statistics`, async (t) => {
    const directory = memoryDir();
    const store = openSqlite({ directory });
    const db = openDatabase(join(directory, "arbor.db"));
    t.after(async () => {
      await store.close();
      db.close();
    });
    const worlds = await fillWorlds(store, async () => void (statistics === "stale" && db.exec("ANALYZE")));
    if (statistics === "fresh") db.exec("ANALYZE");
    const dialect = { sql: createQueries(db) as unknown as Sql, tables: schema };
    const statements = await collectStatements(store, worlds, dialect, limits, 200);
    let sorts = 0;
    for (const statement of statements) {
      const plan = db.prepare(`EXPLAIN QUERY PLAN ${statement.sql}`).all(...statement.values) as PlanRow[];
      const text = `${statement.sql}\n${plan.map(({ detail }) => detail).join("\n")}`;
      for (const { detail } of plan) {
        if (detail.startsWith("SCAN")) assert.match(detail, /^SCAN (entries|found|part\d+)$/, text);
      }
      const inner = findSort(plan);
      // The last sort is that of the page.
      if (inner === "none" || inner === "page") continue;
      sorts++;
      assert.ok(countExamined(db, statement) <= limits.slice, text);
    }
    assert.ok(sorts > 20, `${sorts} statements sort`);
  });
}

interface PlanRow {
  readonly id: number;
  readonly parent: number;
  readonly detail: string;
}

function findSort(plan: readonly PlanRow[]): "none" | "page" | "inner" {
  const sorts = plan.filter(({ detail }) => detail.startsWith("USE TEMP B-TREE FOR ORDER BY"));
  const entries = plan.find(({ detail }) => /^(CO-ROUTINE|MATERIALIZE) entries$/.test(detail));
  if (sorts.length === 0) return "none";
  return entries && sorts.every(({ parent }) => parent !== entries.id) ? "page" : "inner";
}

// Counts the rows that the statement reads before it sorts: its conditions without filters and position.
function countExamined(db: SqliteDatabase, { sql, values }: ListStatement): number {
  const [, from = "", before = ""] = /^(?:.*\()?select .*? from (("\w+") indexed by .*?) order by/s.exec(sql) ?? [];
  assert.ok(from && before, sql);
  const first = (sql.slice(0, sql.indexOf(from)).match(/\?/g) ?? []).length;
  const everything = from
    .replace(/coalesce\(("\w+"), \1\) = \?/g, "? is not null")
    .replace(/\("\w+", "uid"\) [<>]=? \(\?, \?\)/g, "(? is not null and ? is not null)");
  const bound = (from.match(/\?/g) ?? []).length;
  const count = db.prepare(`select count(*) from ${everything}`).pluck();
  return Number(count.get(...values.slice(first, first + bound)));
}
