// Needs TEST_ARBOR_DATABASE_URL, which `npm run test:pg` sets.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { MigrationDatabase } from "../../src/store/migrate/data-migration.js";
import { openPgMigration } from "../../src/store/migrate/open-pg-migration.js";
import { contract, expand } from "../../src/store/migrate/phases.js";
import { openPg } from "../../src/store/open-pg.js";
import type { Store } from "../../src/store/port.js";
import { createOldTables, orderIndexSuite, readTables, runAll, writeOld } from "../store/order-index-suite.js";
import { applyChange } from "../support/apply-change.js";
import { findIndexDifferences, INDEX_TABLES } from "../support/consistency.js";
import { findOldIndexDifferences } from "../support/old-index.js";
import { createRandom } from "../support/operations.js";
import { RowChanges } from "../support/row-changes.js";
import { emptyDatabase } from "./databases.js";

orderIndexSuite("on PostgreSQL", async () => openPgMigration(await emptyDatabase()));

interface Both {
  readonly database: MigrationDatabase;
  readonly store: Store;
  readonly url: string;
}

/** Runs a test on a database of version 0.4.0 that was expanded, with a node of this version. */
function withBothVersions(name: string, run: (both: Both, changes: RowChanges) => Promise<void>): void {
  test(`between the phases ${name}`, async () => {
    const url = await emptyDatabase();
    const database = await openPgMigration(url);
    const changes = new RowChanges(createRandom(1));
    await createOldTables(database);
    await writeOld(database, Array.from({ length: 100 }, () => changes.next()).flat());
    await expand(database);
    const store = await openPg({ url });
    try {
      await run({ database, store, url }, changes);
    } finally {
      await store.close();
      await database.close();
    }
  });
}

async function writeMixed({ database, store }: Both, changes: RowChanges, count: number, random = createRandom(7)) {
  for (let i = 0; i < count; i++) {
    const some = changes.next();
    if (random(2) === 0) await writeOld(database, some);
    else
      await store.write(async (tx) => {
        for (const change of some) await applyChange(tx, change);
      });
  }
}

async function findDifferences({ database }: Both) {
  const read = await readTables(database, [...INDEX_TABLES, "text_order", "time_order", "counters"]);
  return { added: findIndexDifferences(read), old: findOldIndexDifferences(read) };
}

withBothVersions("what either version writes is in the index of both", async (both, changes) => {
  assert.deepEqual(await findDifferences(both), { added: [], old: [] });
  await writeMixed(both, changes, 250);
  assert.deepEqual(await findDifferences(both), { added: [], old: [] });
});

withBothVersions("concurrent writes of both versions are in the index of both", async (both) => {
  const writers = [1, 2, 3].map(async (n) => {
    const database = await openPgMigration(both.url);
    await writeMixed({ ...both, database }, new RowChanges(createRandom(n), 5_000 * n), 60, createRandom(n));
    await database.close();
  });
  await Promise.all(writers);
  assert.deepEqual(await findDifferences(both), { added: [], old: [] });
});

const triggers = [
  ...["text_entries", "time_entries"].flatMap((table) => [
    { table, name: `${table}_insert` },
    { table, name: `${table}_delete` },
  ]),
  { table: "totals", name: "totals" },
  { table: "groups", name: "groups_self" },
  { table: "account_associations", name: "account_associations_self" },
];
for (const { table, name } of triggers) {
  withBothVersions(`without the trigger ${name} differences are found`, async (both, changes) => {
    await runAll(both.database, [`DROP TRIGGER arbor_copy_${name} ON ${table}`]);
    await writeMixed(both, changes, 60);
    assert.notDeepEqual((await findDifferences(both)).old, []);
  });
}

withBothVersions("a node goes on through the contract phase", async (both, changes) => {
  const write = async () => {
    for (let i = 0; i < 60; i++) {
      const some = changes.next();
      await both.store.write(async (tx) => {
        for (const change of some) await applyChange(tx, change);
      });
    }
  };
  await Promise.all([write(), contract(both.database, { force: true })]);
  assert.deepEqual(findIndexDifferences(await readTables(both.database, INDEX_TABLES)), []);
});
