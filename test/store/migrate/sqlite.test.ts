// Upgrades of SQLite databases: both phases, other processes on the same directory, and the command.
import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { openSqliteMigration } from "../../../src/store/migrate/open-sqlite-migration.js";
import { contract, expand } from "../../../src/store/migrate/phases.js";
import { runMigrationStatement } from "../../../src/store/sqlite/connection.js";
import { holdFileLock } from "../../../src/store/sqlite/data-directory.js";
import { openDatabase } from "../../../src/store/sqlite/driver.js";
import { openSqlite } from "../../../src/store/sqlite/open.js";
import { VERSION } from "../../../src/store/version.js";
import { memoryDir } from "../../support/temp-dir.js";
import { copySettings, writeOldSettings } from "./copied-settings.js";
import { BEFORE, migrationSuite, setOldestVersion, type TestDatabase } from "./migration-suite.js";

const migrations = [copySettings()];

function sqliteIn(directory: string): TestDatabase {
  return {
    openStore: async (given) => openSqlite({ directory, migrations: given === "none" ? [] : migrations }),
    openMigration: async () => openSqliteMigration({ directory, mode: "create" }),
  };
}

migrationSuite("upgrades on SQLite", async () => sqliteIn(memoryDir()));

async function createExpanded(): Promise<string> {
  const directory = memoryDir();
  await openSqlite({ directory, migrations: [] }).close();
  const database = openSqliteMigration({ directory, mode: "create" });
  await setOldestVersion(database, BEFORE);
  await writeOldSettings(database, 1, 5);
  await expand(database, { migrations });
  await database.close();
  return directory;
}

function readOldestVersion(directory: string): unknown {
  const db = openDatabase(join(directory, "arbor.db"), { readonly: true });
  const version = db.prepare("SELECT value FROM settings WHERE name = 'oldest_version'").pluck().get();
  db.close();
  return version;
}

describe("an expanded SQLite database", () => {
  it("can be opened by the version before until this version uses it", async () => {
    const directory = await createExpanded();
    assert.equal(readOldestVersion(directory), BEFORE);
    await openSqlite({ directory, migrations }).close();
    assert.equal(readOldestVersion(directory), VERSION);
  });

  it("is not used or contracted while a server of an older version runs", async (t) => {
    const directory = await createExpanded();
    const stop = holdFileLock(join(directory, "serve.lock"), 0);
    const older = /a server of an older version uses \S+: stop it first/;
    assert.throws(() => openSqlite({ directory, migrations }), older);
    const database = openSqliteMigration({ directory, mode: "create" });
    t.after(() => database.close());
    await assert.rejects(contract(database, { migrations }), older);
    assert.equal(readOldestVersion(directory), BEFORE);
    stop();
    const server = openSqlite({ directory, migrations, exclusive: true });
    await contract(database, { migrations });
    await openSqlite({ directory, migrations }).close();
    await server.write((tx) => tx.settings.put("name", "value"));
    await server.close();
  });

  it("gives its space back beside a server that goes on", async (t) => {
    const directory = await createExpanded();
    const server = openSqlite({ directory, migrations, exclusive: true });
    t.after(() => server.close());
    const database = openSqliteMigration({ directory, mode: "create" });
    t.after(() => database.close());
    await database.write((tx) => tx.run("INSERT INTO settings VALUES ('large', hex(zeroblob(1000000)))"));
    await database.write((tx) => tx.run("DELETE FROM settings WHERE name = 'large'"));
    const file = join(directory, "arbor.db");
    await database.vacuum?.();
    assert.ok(statSync(file).size < 1_000_000, `${statSync(file).size} bytes`);
    await server.write((tx) => tx.settings.put("name", "value"));
    assert.equal(await server.read((tx) => tx.settings.find("name")), "value");
  });
});

it("a statement of a migration removes a constraint, which open connections notice, unless it is rolled back", (t) => {
  const file = join(memoryDir(), "test.db");
  const [db, other] = [openDatabase(file), openDatabase(file)];
  t.after(() => [db, other].map((one) => one.close()));
  db.pragma("journal_mode = WAL");
  for (const one of [db, other]) one.pragma("foreign_keys = ON");
  db.exec(
    "CREATE TABLE groups (uid text PRIMARY KEY, parent text, FOREIGN KEY (parent) REFERENCES groups (uid)) STRICT",
  );
  const insert = other.prepare("INSERT INTO groups VALUES (?, 'missing')");
  const statement =
    "UPDATE sqlite_schema SET sql = replace(sql, ', FOREIGN KEY (parent) REFERENCES groups (uid)', '') WHERE name = 'groups'";
  const run = db.transaction((fails: boolean) => {
    assert.equal(runMigrationStatement(db, statement), 1);
    if (fails) throw new Error("the end");
  });
  assert.throws(() => run(true), /the end/);
  assert.throws(() => insert.run("a"), /FOREIGN KEY constraint failed/);
  run(false);
  insert.run("a");
  assert.throws(() => db.exec("UPDATE sqlite_schema SET sql = ''"), /may not be modified/);
  assert.equal(db.pragma("integrity_check", { simple: true }), "ok");
  assert.deepEqual(
    other.prepare("SELECT sql FROM sqlite_schema WHERE name = 'groups'").pluck().get(),
    "CREATE TABLE groups (uid text PRIMARY KEY, parent text) STRICT",
  );
});
