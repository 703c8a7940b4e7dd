// Bindings that have ended, or that their directory grants no more, give no rights: every statement that reads role bindings leaves
// them out, or stands below with the reason why it does not.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { createQueries } from "../../src/store/sqlite/connection.js";
import { openDatabase } from "../../src/store/sqlite/driver.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import type { Sql } from "../../src/store/statement.js";
import { schema } from "../../src/store/tables/schema-sqlite.js";
import { memoryDir } from "../support/temp-dir.js";
import { listStatements, useFamilies } from "./statement-plans.js";

const LISTS =
  "rows are left out after they are read (RoleBindings.list); the number of all rows may include them until the sweep";
const ROW = "it reads the row of a uid, which RoleBindings hides where the binding has ended (find, findHydrated)";
const STORED = "it is about stored rows, whatever they grant";

/** By the beginning of the text. Each must be in use. */
const exceptions: readonly (readonly [pattern: RegExp, reason: string])[] = [
  [/^insert into "role_bindings"/, STORED],
  [/^update "role_bindings" set/, `${STORED}: its callers have found the binding before`],
  [/^delete from "role_bindings" where "role_bindings"."uid" = /, STORED],
  [/^select .* from "role_bindings" where "role_bindings"."uid" = \?$/, ROW],
  [/^select .* from "role_bindings" indexed by .* left join "groups" .* where "role_bindings"."uid" in /s, ROW],
  [
    /^select .* from "role_bindings" where \(\("role_bindings"."group_uid" = \? and "role_bindings"."identity_uid" = \? and "role_bindings"."role_uid" = \?\) and "role_bindings"."managed_by_uid" is null\)$/,
    "findSame hides the binding where it has ended; whoever creates one replaces the row",
  ],
  [
    /^select .* from "role_bindings" where "role_bindings"."identity_uid" = \? limit \? \+ 0$/,
    "the deletion of an identity deletes all rows",
  ],
  [
    /^select .* from "role_bindings" where \("role_bindings"."group_uid" = \? and "role_bindings"."automatic" = \?\)$/,
    "the deletion of a group deletes all rows",
  ],
  [
    /^select "role_uid" from "role_bindings" where "role_bindings"."role_uid" = \? limit 1$/,
    "a role cannot be deleted while a row refers to it",
  ],
  [
    /^select "role_uid", "identity_uid" from "role_bindings" .* limit 1$/,
    "a role that was bound to anonymous a moment ago may be so again, where the clock is set back",
  ],
  [
    /^select "uid" from "role_bindings" where \("role_bindings"."role_uid" = \? and \("role_bindings"."uid" < /,
    "a role that was bound elsewhere a moment ago may be so again, where the clock is set back",
  ],
  [/^select .* from \(with recursive found\(root\) as/, "bindings that end make no owner: it reads those that do not"],
  [
    /^select "uid" from "role_bindings" where .*"managed_by_uid" = \?\)/,
    "all rows that a provider manages are deleted",
  ],
  [/^select .* "role_bindings"."managed_by_uid" = \?\) order by/, "rows that a directory grants no more are deleted"],
  [
    /^select "uid" from "role_bindings" where \("role_bindings"."uid" = \? and \(select 1/,
    "RoleBindings.find has compared the end",
  ],
  [/^select count\(\*\) from \(select "uid" from "role_bindings" where /, "quotas limit what is stored"],
  [/entry_uid/, LISTS],
];

const isRead = (sql: string) => /"role_bindings"/.test(sql);
/** How often a statement reads the table, and how often it compares ends and managers. */
const countReads = (sql: string) => [...sql.matchAll(/(?:from|join) "role_bindings"/g)].length;
const MANAGER = '"role_bindings"."managed_by_uid" is null';
const ENDS = new RegExp(
  `"end_time_ms"(?:, \\d+\\) > \\?\\s+and \\(${MANAGER} or | is null and ${MANAGER}| <= \\?)`,
  "g",
);
const countEnds = (sql: string) => [...sql.matchAll(ENDS)].length;

/** Registers the test, which knows the statements that ran before it in this process. */
export function endedBindingsSuite(): void {
  test("each statement leaves out role bindings that have ended, or has a reason", async (t) => {
    const directory = memoryDir();
    const store = openSqlite({ directory });
    const db = openDatabase(join(directory, "arbor.db"));
    t.after(async () => {
      await store.close();
      db.close();
    });
    await useFamilies(store);
    const statements = listStatements({ sql: createQueries(db) as unknown as Sql, tables: schema })
      .map(({ sql }) => sql)
      .filter(isRead);
    assert.ok(statements.length > 40, `${statements.length} statements`);

    const lacking = statements.filter((sql) => countReads(sql) === 0 || countEnds(sql) < countReads(sql));
    const unexplained = lacking.filter((sql) => !exceptions.some(([pattern]) => pattern.test(sql)));
    assert.deepEqual(unexplained, []);
    for (const [pattern] of exceptions)
      assert.ok(
        lacking.some((sql) => pattern.test(sql)),
        `${pattern} is of no statement`,
      );

    // Those that authorize calls are among those that compare, and without the comparison they would be found.
    const authorizing = statements.filter((sql) => /"not_before".*left join "role_bindings"/.test(sql));
    assert.ok(authorizing.length >= 2, `${authorizing.length} statements authorize calls`);
    for (const sql of authorizing) {
      assert.ok(!lacking.includes(sql), sql);
      for (const compared of [/coalesce\("role_bindings"."end_time_ms", \d+\) > \?/, MANAGER]) {
        const without = sql.replace(compared, "true");
        assert.ok(countEnds(without) < countReads(without), "control");
      }
    }
  });
}
