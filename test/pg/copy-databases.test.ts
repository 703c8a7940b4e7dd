// PostgreSQL as the source and the target of a copy, when something goes wrong. Needs TEST_ARBOR_DATABASE_URL.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { CopiedRow } from "../../src/store/copy/cells.js";
import { openPgSource, openPgTarget } from "../../src/store/copy/pg.js";
import { openSqliteSource } from "../../src/store/copy/sqlite.js";
import { type CopiedTable, copiedTables } from "../../src/store/copy/tables.js";
import { createFilledDirectory } from "../store/copy/copy-kit.js";
import { waitUntil } from "../support/wait-until.js";
import { newDatabase, withClient } from "./databases.js";

const tableOf = (name: string) => copiedTables.find((table) => table.name === name) ?? assert.fail(name);

const countRows = (url: string, ...tables: readonly string[]) =>
  withClient(url, async (client) => {
    const counts: number[] = [];
    for (const table of tables) {
      counts.push(Number((await client.query(`SELECT count(*) AS n FROM ${table}`)).rows[0].n));
    }
    return counts;
  });

// The connections of copies to a database.
const countConnections = (url: string) =>
  withClient(url, async (client) => {
    const statement =
      "SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'arbor copy'";
    return Number((await client.query(statement)).rows[0].n);
  });

// The rows of advisories and of all tables before them.
async function readAdvisories(): Promise<{ table: CopiedTable; rows: readonly CopiedRow[] }[]> {
  const source = openSqliteSource({ directory: createFilledDirectory(), exclusive: false });
  try {
    const all: { table: CopiedTable; rows: readonly CopiedRow[] }[] = [];
    for (const table of copiedTables.slice(0, copiedTables.indexOf(tableOf("advisories")) + 1)) {
      for await (const rows of source.rows(table)) all.push({ table, rows });
    }
    return all;
  } finally {
    await source.close();
  }
}

describe("a copy to PostgreSQL", () => {
  it("has no row of a transaction that fails, and takes all of the next one", async () => {
    const url = await newDatabase();
    const batches = await readAdvisories();
    const target = await openPgTarget({ url });
    try {
      const insertAll = async () => {
        for (const { table, rows } of batches) await target.insert(table, rows);
      };
      const failing = target.transaction(async () => {
        await insertAll();
        throw new Error("no more");
      });
      await assert.rejects(failing, /^Error: no more$/);
      assert.deepEqual(await countRows(url, "groups", "advisories"), [0, 0]);
      await target.transaction(insertAll);
      const [groups = 0, advisories = 0] = await countRows(url, "groups", "advisories");
      assert.ok(groups > 0 && advisories > 0, `${groups} groups, ${advisories} advisories`);
    } finally {
      await target.close();
    }
  });

  it("names the table whose rows the database rejects, and can be continued", async () => {
    const url = await newDatabase();
    const target = await openPgTarget({ url });
    try {
      const table = tableOf("registry_events");
      const twice = [
        ["event", "1"],
        ["event", "2"],
      ];
      await assert.rejects(target.insert(table, twice), /^Error: table registry_events: duplicate key value/);
      assert.deepEqual(await countRows(url, "registry_events"), [0]);
      await target.insert(table, twice.slice(0, 1));
      assert.deepEqual(await countRows(url, "registry_events"), [1]);
    } finally {
      await target.close();
    }
  });
});

describe("a copy from PostgreSQL", () => {
  it("leaves no connection to a database that it cannot read: the server would keep rows for its snapshot", async () => {
    const url = await newDatabase();
    const source = await openPgSource({ url });
    assert.equal(await countConnections(url), 2);
    await source.close();
    await withClient(url, (client) => client.query("DROP TABLE audit CASCADE"));
    await assert.rejects(openPgSource({ url }), /relation "audit" does not exist/);
    await waitUntil(async () => (await countConnections(url)) === 0);
  });
});
