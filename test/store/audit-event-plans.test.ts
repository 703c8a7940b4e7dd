// Each filter of the audit log reads its own index, whatever SQLite knows of the table.
import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, test } from "node:test";
import { nextEvents } from "../../src/store/audit/events.js";
import { createQueries } from "../../src/store/sqlite/connection.js";
import { openDatabase } from "../../src/store/sqlite/driver.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import type { Sql } from "../../src/store/statement.js";
import { schema } from "../../src/store/tables/schema-sqlite.js";
import { tempDir } from "../support/temp-dir.js";

const indexes = {
  time: undefined,
  subject: "subjectUid",
  actor: "actorUid",
  type: "type",
} as const;

describe("plans of the audit log", async () => {
  const directory = tempDir();
  await openSqlite({ directory }).close();
  const db = openDatabase(join(directory, "arbor.db"));
  const queries = createQueries(db) as unknown as Sql;
  const planOf = (column: (typeof indexes)[keyof typeof indexes], descending: boolean): string => {
    const query = nextEvents({ column, descending }).build(queries, schema);
    const { sql, params } = (query as unknown as { toSQL(): { sql: string; params: unknown[] } }).toSQL();
    const rows = db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...params.map(() => 1)) as { detail: string }[];
    return rows.map(({ detail }) => detail).join("\n");
  };

  for (const [name, column] of Object.entries(indexes)) {
    for (const descending of [true, false]) {
      test(`${name} ${descending ? "descending" : "ascending"}`, () => {
        const plan = planOf(column, descending);
        assert.match(plan, new RegExp(`^SEARCH audit USING INDEX audit_${name} \\(.*time_ms`), plan);
        assert.doesNotMatch(plan, /TEMP B-TREE/, plan);
      });
    }
  }

  test("control: differ without the index", () => {
    db.exec("DROP INDEX audit_actor");
    assert.doesNotMatch(planOf("actorUid", true), /audit_actor/);
  });
});
