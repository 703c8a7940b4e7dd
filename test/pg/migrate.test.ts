// Upgrades of PostgreSQL databases: both phases, and nodes of older versions. Needs TEST_ARBOR_DATABASE_URL.
import assert from "node:assert/strict";
import { join } from "node:path";
import { it } from "node:test";
import pg from "pg";
import { readMasterKey } from "../../src/issuer/keys/master-key.js";
import { readPg } from "../../src/store/check/database.js";
import { openPgMigration } from "../../src/store/migrate/open-pg-migration.js";
import { contract, expand } from "../../src/store/migrate/phases.js";
import { openPg } from "../../src/store/pg/open.js";
import { VERSION } from "../../src/store/version.js";
import { copySettings, writeOldSettings } from "../store/migrate/copied-settings.js";
import { BEFORE, migrationSuite, setOldestVersion, type TestDatabase } from "../store/migrate/migration-suite.js";
import { nameWordSuite } from "../store/migrate/name-words-suite.js";
import { oldServerSuite } from "../store/migrate/old-server-suite.js";
import { tagFamilySuite } from "../store/migrate/tag-families-suite.js";
import { tempDir } from "../support/temp-dir.js";
import { waitUntil } from "../support/wait-until.js";
import { emptyDatabase } from "./databases.js";

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

tagFamilySuite("PostgreSQL", async () => {
  const url = await emptyDatabase();
  return {
    openOldStore: () => openPg({ url, migrations: [] }),
    openMigration: () => openPgMigration(url),
    openCheck: () => readPg(url),
  };
});

nameWordSuite("PostgreSQL", async () => {
  const url = await emptyDatabase();
  return {
    openStore: () => openPg({ url, migrations: [] }),
    openMigration: () => openPgMigration(url),
    openCheck: () => readPg(url),
  };
});

it("a PostgreSQL database is not contracted while a node of an older version is connected, unless forced", async (t) => {
  const { url, openStore } = await create();
  await (await openStore("none")).close();
  const database = await openPgMigration(url);
  t.after(() => database.close());
  await setOldestVersion(database, BEFORE);
  await writeOldSettings(database, 1, 1);
  await expand(database, { migrations });
  const thisVersion = await openStore("copy");
  t.after(() => thisVersion.close());

  const older = new pg.Client({ connectionString: url, application_name: "arbor/0.0.1" });
  await older.connect();
  const error = /servers of an older version use the database: arbor\/0\.0\.1, from /;
  await assert.rejects(contract(database, { migrations }), error);
  await older.end();
  const others = new pg.Client({ connectionString: url, application_name: "arbor-backup" });
  await others.connect();
  t.after(() => others.end());
  const forgotten = new pg.Client({ connectionString: url, application_name: "arbor/0.0.1" });
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
  await waitUntil(() => waits.length > 0);
  await writer.query("COMMIT");
  await expanding;
  const { rows } = await writer.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
  const holder = new RegExp(
    `^a lock that session ${rows[0]?.pid} holds \\(forgotten shell, from 127\\.0\\.0\\.1, idle in transaction for \\d+ s\\)$`,
  );
  assert.match(waits[0] ?? "", holder);
});

oldServerSuite("PostgreSQL", async () => {
  const masterKeyFile = join(tempDir(), "master.key");
  readMasterKey(masterKeyFile, true);
  const url = await emptyDatabase();
  return { settings: { databaseUrl: url, masterKeyFile }, openMigration: () => openPgMigration(url) };
});
