// The migration of the order index, beside writes of version 0.4.0, on either store.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { DataMigration, MigrationDatabase, MigrationTx } from "../../src/store/migrate/data-migration.js";
import { defineOrderIndexMigration } from "../../src/store/migrate/order-index.js";
import { buildSchemaStatements, listSchemaMigrations } from "../../src/store/migrate/schema-migrations.js";
import { findIndexDifferences, INDEX_TABLES, type ReadAll } from "../support/consistency.js";
import { toOldStatements } from "../support/old-index.js";
import { createRandom } from "../support/operations.js";
import { type Change, RowChanges } from "../support/row-changes.js";
import { chooseScale } from "../support/scale.js";

const SEEDS = Number(process.env.TEST_ARBOR_SEEDS ?? chooseScale(2, 1));
/** Tables of rows that have lists of their own. */
const PARENTS: ReadonlySet<string> = new Set(["groups", "repos"]);
/** Small enough that scopes of a few rows take several batches. */
const limits = { rows: 8, entries: 5 };

/** Creates the tables of version 0.4.0 in an empty database. */
export async function createOldTables(database: MigrationDatabase): Promise<void> {
  const { dialect } = database;
  const old = listSchemaMigrations(dialect, 0).filter(({ name }) => name < "0007");
  await runAll(database, buildSchemaStatements(dialect, old));
}

/** Runs statements in one transaction. */
export function runAll(database: MigrationDatabase, statements: readonly string[]): Promise<void> {
  return database.write(async (tx) => {
    for (const statement of statements) await tx.run(statement);
  });
}

/** Writes changes as version 0.4.0, in one transaction. */
export function writeOld(database: MigrationDatabase, changes: readonly Change[]): Promise<void> {
  return runAll(database, changes.flatMap(toOldStatements));
}

/** Reads whole tables from one snapshot. */
export async function readTables(database: MigrationDatabase, tables: readonly string[]): Promise<ReadAll> {
  return database.read((tx) => readTablesIn(tx, tables));
}

async function readTablesIn(tx: MigrationTx, tables: readonly string[]): Promise<ReadAll> {
  const rows = new Map<string, Awaited<ReturnType<typeof tx.query>>>();
  for (const table of tables) rows.set(table, await tx.query(`SELECT * FROM ${table}`));
  return (table) => rows.get(table) ?? [];
}

async function differences(database: MigrationDatabase): Promise<string[]> {
  return findIndexDifferences(await readTables(database, INDEX_TABLES));
}

/** Writes rows as the version before, then creates the tables and triggers of the migration. */
async function begin(database: MigrationDatabase, migration: DataMigration, changes: RowChanges): Promise<void> {
  await createOldTables(database);
  await writeOld(database, nextOf(changes, 150));
  const { dialect } = database;
  const added = listSchemaMigrations(dialect, 0).filter(({ name }) => name >= "0007");
  await runAll(database, [...buildSchemaStatements(dialect, added), ...migration.begin(dialect)]);
}

function nextOf(changes: RowChanges, count: number): Change[] {
  return Array.from({ length: count }, () => changes.next()).flat();
}

async function copyAll(
  database: MigrationDatabase,
  migration: DataMigration,
  beside = async () => {},
): Promise<number> {
  let position: string | undefined = "";
  let batches = 0;
  for (; position !== undefined; batches++) {
    const after: string = position;
    ({ position } = await database.write((tx) => migration.step(tx, after)));
    await beside();
  }
  return batches;
}

/**
 * Declares the tests.
 *
 * @param open opens an empty database
 */
export function orderIndexSuite(title: string, open: () => Promise<MigrationDatabase>): void {
  const withDatabase = (name: string, run: (database: MigrationDatabase) => Promise<void>) =>
    test(`${title}: ${name}`, async () => {
      const database = await open();
      try {
        await run(database);
      } finally {
        await database.close();
      }
    });

  for (let seed = 1; seed <= SEEDS; seed++) {
    withDatabase(
      `writes of version 0.4.0 before, between and after batches are copied, seed ${seed}`,
      async (database) => {
        const migration = defineOrderIndexMigration(limits);
        const changes = new RowChanges(createRandom(seed));
        await begin(database, migration, changes);
        const batches = await copyAll(database, migration, () => writeOld(database, changes.next()));
        assert.ok(batches > 12, `${batches} batches`);
        assert.deepEqual(await differences(database), []);
        for (let i = 0; i < 60; i++) await writeOld(database, changes.next());
        assert.deepEqual(await differences(database), []);
      },
    );
  }

  withDatabase("a batch that is repeated changes nothing", async (database) => {
    const migration = defineOrderIndexMigration({ rows: 1_000, entries: 1_000 });
    await begin(database, migration, new RowChanges(createRandom(9)));
    for (let i = 0; i < 2; i++) await database.write((tx) => migration.step(tx, ""));
    assert.deepEqual(await differences(database), []);
  });

  withDatabase("one batch left out is found", async (database) => {
    const migration = defineOrderIndexMigration(limits);
    await begin(database, migration, new RowChanges(createRandom(1)));
    let left = 6;
    const step: DataMigration["step"] = async (tx, position) => {
      const before = await tx.query("SELECT count(*) AS n FROM time_entries");
      const batch = await migration.step(tx, position);
      const after = await tx.query("SELECT count(*) AS n FROM time_entries");
      if (Number(after[0]?.n) > Number(before[0]?.n) && --left === 0) {
        await tx.run("DELETE FROM time_entries WHERE scope = (SELECT max(scope) FROM time_entries)");
      }
      return batch;
    };
    await copyAll(database, { ...migration, step });
    assert.notDeepEqual(await differences(database), []);
  });

  const triggers = [
    ...["text_order", "time_order"].flatMap((table) => [
      { table, event: "insert" },
      { table, event: "delete" },
    ]),
    { table: "groups", event: "delete" },
    { table: "repos", event: "delete" },
  ];
  withDatabase("without any one of the triggers differences are found", async (database) => {
    const migration = defineOrderIndexMigration(limits);
    await begin(database, migration, new RowChanges(createRandom(2)));
    await copyAll(database, migration);
    for (const { table, event } of triggers) {
      const changes = new RowChanges(createRandom(2));
      // These are there already.
      nextOf(changes, 150);
      const more = PARENTS.has(table) ? changes.deleteAll() : nextOf(changes, 60);
      let found: string[] = [];
      const attempt = database.write(async (tx) => {
        await tx.run(
          tx.dialect === "sqlite"
            ? `DROP TRIGGER copy_${table}_${event}`
            : `DROP TRIGGER arbor_copy_${table}_${event} ON ${table}`,
        );
        for (const statement of more.flatMap(toOldStatements)) await tx.run(statement);
        found = findIndexDifferences(await readTablesIn(tx, INDEX_TABLES));
        throw new Rollback();
      });
      await assert.rejects(attempt, Rollback);
      assert.notDeepEqual(found, [], `${event} in ${table}`);
      assert.deepEqual(await differences(database), []);
    }
  });

  withDatabase("the contract phase removes the old index, and leaves the new one as it is", async (database) => {
    const migration = defineOrderIndexMigration(limits);
    await begin(database, migration, new RowChanges(createRandom(4)));
    await copyAll(database, migration);
    const tables = INDEX_TABLES.slice(-4);
    const before = await readTables(database, tables);
    for (const { sql, repeat } of migration.contract(database.dialect)) {
      while ((await database.write((tx) => tx.run(sql))) > 0 && repeat) {}
    }
    const after = await readTables(database, tables);
    for (const table of tables) assert.deepEqual(after(table), before(table));
    assert.ok(after("text_entries").length > 50);
    assert.deepEqual(await differences(database), []);
    const left = await database.read((tx) =>
      tx.query(
        database.dialect === "sqlite"
          ? `SELECT name FROM sqlite_schema WHERE (type = 'trigger' AND tbl_name NOT LIKE 'advis%') OR tbl_name IN ('text_order', 'time_order', 'counters')
              OR (type = 'index' AND tbl_name = 'groups' AND name NOT LIKE 'sqlite%') ORDER BY name`
          : `SELECT relname AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace
              AND (relname IN ('text_order', 'time_order', 'counters') OR relname LIKE 'groups\\_%' AND relkind = 'i'
                AND relname <> 'groups_pkey')
            UNION ALL SELECT proname FROM pg_proc WHERE proname LIKE 'arbor\\_copy%'
            UNION ALL SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgrelid <> 'advisories'::regclass ORDER BY name`,
      ),
    );
    assert.deepEqual(
      left.map(({ name }) => name),
      ["groups_creator", "groups_root_name"],
    );
  });
}

class Rollback extends Error {}
