// The same operations lead to the same rows in both databases. TEST_ARBOR_SEEDS and
// TEST_ARBOR_OPERATIONS set how many are run.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { openPg } from "../../src/store/pg/open.js";
import { openDatabase } from "../../src/store/sqlite/driver.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import { dump, runOperations } from "../support/operations.js";
import { tempDir } from "../support/temp-dir.js";
import { emptyDatabase, withClient } from "./databases.js";

const seeds = Number(process.env.TEST_ARBOR_SEEDS ?? 3);
const operations = Number(process.env.TEST_ARBOR_OPERATIONS ?? 400);

for (let seed = 1; seed <= seeds; seed++) {
  test(`seed ${seed}: ${operations} operations end in equal dumps`, async () => {
    const directory = tempDir();
    const onSqlite = await runOperations((clock) => openSqlite({ directory, clock }), seed, operations);
    const file = openDatabase(join(directory, "arbor.db"), { readonly: true });
    const sqliteDump = await dump(
      async (table) => file.prepare(`SELECT * FROM ${table}`).all() as Record<string, unknown>[],
    );
    file.close();

    const url = await emptyDatabase();
    const onPostgres = await runOperations((clock) => openPg({ url, clock }), seed, operations);
    const pgDump = await withClient(url, (client) =>
      dump(async (table) => (await client.query(`SELECT * FROM ${table}`)).rows),
    );

    assert.deepEqual(onPostgres, onSqlite);
    assert.deepEqual(pgDump, sqliteDump);
    const done = onSqlite.filter((result) => result === "ok").length;
    assert.ok(done > operations / 4 && done < operations, `${done} of ${operations} operations succeeded`);
  });
}
