// Upgrades of PostgreSQL databases: both phases, and nodes of older versions. Needs TEST_ARBOR_DATABASE_URL.
import assert from "node:assert/strict";
import { it } from "node:test";
import pg from "pg";
import { openPgMigration } from "../../src/store/migrate/open-pg-migration.js";
import { contract, expand } from "../../src/store/migrate/phases.js";
import { openPg } from "../../src/store/pg/open.js";
import { VERSION } from "../../src/store/version.js";
import { copySettings, writeOldSettings } from "../store/migrate/copied-settings.js";
import { migrationSuite, type TestDatabase } from "../store/migrate/migration-suite.js";
import { waitUntil } from "../support/wait-until.js";
import { fixtures, restorePostgres } from "../upgrade/fixtures.js";
import { assertIndexMatches, assertRowsKept, type Dump } from "../upgrade/migrated-rows.js";
import { emptyDatabase, withClient } from "./databases.js";

const migrations = [copySettings()];

async function create(): Promise<TestDatabase & { readonly url: string }> {
  const url = await emptyDatabase();
  return {
    url,
    openStore: (given) => openPg({ url, migrations: given === "none" ? [] : migrations }),
    openMigration: () => openPgMigration(url),
  };
}

migrationSuite("upgrades on PostgreSQL", create);

it("a PostgreSQL database is not contracted while a node of an older version is connected, unless forced", async (t) => {
  const { url, openStore } = await create();
  await (await openStore("none")).close();
  const database = await openPgMigration(url);
  t.after(() => database.close());
  await writeOldSettings(database, 1, 1);
  await expand(database, { migrations });
  const thisVersion = await openStore("copy");
  t.after(() => thisVersion.close());

  for (const name of ["arbor", "arbor/0.0.1"]) {
    const older = new pg.Client({ connectionString: url, application_name: name });
    await older.connect();
    const error = new RegExp(
      `servers of an older version use the database: ${name}(?:, version 0.4.0 or older)?, from `,
    );
    await assert.rejects(contract(database, { migrations }), error);
    await older.end();
  }
  const others = new pg.Client({ connectionString: url, application_name: "arbor-backup" });
  await others.connect();
  t.after(() => others.end());
  const forgotten = new pg.Client({ connectionString: url, application_name: "arbor" });
  await forgotten.connect();
  t.after(() => forgotten.end());
  await contract(database, { migrations, force: true });
  const { rows } = await forgotten.query("SELECT value FROM settings WHERE name = 'oldest_version'");
  assert.deepEqual(rows, [{ value: VERSION }]);
});

it("a change of the schema waits for a lock only briefly, tries again, and says who holds it", async (t) => {
  const { url, openStore } = await create();
  await (await openStore("none")).close();
  const waits: string[] = [];
  const database = await openPgMigration(url, undefined, (wait) => void waits.push(wait));
  t.after(() => database.close());
  const writer = new pg.Client({ connectionString: url, application_name: "forgotten shell" });
  await writer.connect();
  t.after(() => writer.end());
  await writer.query("BEGIN; INSERT INTO settings VALUES ('open', 'transaction')");
  const expanding = expand(database, { migrations });
  // The trigger needs a lock on the table that the open transaction writes to.
  await waitUntil(() => waits.length > 0, 10_000);
  await writer.query("COMMIT");
  await expanding;
  const { rows } = await writer.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
  const holder = new RegExp(
    `^a lock that session ${rows[0]?.pid} holds \\(forgotten shell, from 127\\.0\\.0\\.1, idle in transaction for \\d+ s\\)$`,
  );
  assert.match(waits[0] ?? "", holder);
});

for (const fixture of fixtures) {
  it(`the PostgreSQL database of version ${fixture.version} is migrated to what a new one is`, async () => {
    const url = await emptyDatabase();
    await withClient(url, (client) => client.query(restorePostgres(fixture).sql));
    const before = await withClient(url, dumpPg);
    const database = await openPgMigration(url);
    await expand(database);
    await contract(database);
    await database.close();
    const created = await emptyDatabase();
    await (await openPg({ url: created })).close();
    assert.deepEqual(await withClient(url, readSchema), await withClient(created, readSchema));
    const after = await withClient(url, dumpPg);
    assertRowsKept(before, after);
    await assertIndexMatches(after);
  });
}

/** Columns, indexes, constraints, triggers and functions, each as a line. */
const SCHEMA = `
  SELECT table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable || ' ' || coalesce(column_default, '')
    || ' ' || coalesce(collation_name, '') AS line FROM information_schema.columns WHERE table_schema = 'public'
  UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
  UNION ALL SELECT conrelid::regclass || ': ' || pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace
  UNION ALL SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
  UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace`;

async function readSchema(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ line: string }>(SCHEMA);
  assert.ok(rows.length > 200, `${rows.length} lines`);
  return rows.map(({ line }) => line).sort();
}

async function dumpPg(client: pg.Client): Promise<Dump> {
  const { rows } = await client.query<{ name: string }>(
    "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public'",
  );
  const dump = new Map<string, object[]>();
  for (const { name } of rows) dump.set(name, (await client.query(`SELECT * FROM public."${name}"`)).rows);
  return dump as unknown as Dump;
}
