// Opening a store: existing files, other processes, and the settings of connections.
import assert from "node:assert/strict";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { groupKind } from "../../src/store/iam/groups.js";
import { openDatabase, type SqliteDatabase } from "../../src/store/sqlite/driver.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import { spawn } from "../support/child-process.js";
import { scriptArguments } from "../support/project.js";
import { groupRow, rootUid } from "../support/rows.js";
import { tempDir } from "../support/temp-dir.js";

/** "Arb2" in ASCII. */
const APPLICATION_ID = 0x41726232;

test("every connection syncs each commit, enforces foreign keys and does not trust the schema", async (t) => {
  const connections = new Set<SqliteDatabase>();
  const any = openDatabase(":memory:");
  const prototype = Object.getPrototypeOf(any) as SqliteDatabase;
  any.close();
  const { pragma } = prototype;
  prototype.pragma = function (this: SqliteDatabase, ...args: Parameters<typeof pragma>) {
    connections.add(this);
    return pragma.apply(this, args);
  };
  t.after(() => {
    prototype.pragma = pragma;
  });
  const store = openSqlite({ directory: tempDir() });
  t.after(() => store.close());
  const settings = [...connections].map((db) => {
    const value = (name: string) => pragma.call(db, name, { simple: true });
    return {
      readonly: db.readonly,
      // 2 is FULL: without it a power cut loses commits that were acknowledged.
      synchronous: value("synchronous"),
      journal: value("journal_mode"),
      foreignKeys: value("foreign_keys"),
      trustedSchema: value("trusted_schema"),
      applicationId: value("application_id"),
    };
  });
  const expected = { synchronous: 2, journal: "wal", foreignKeys: 1, trustedSchema: 0, applicationId: APPLICATION_ID };
  assert.deepEqual(
    settings.sort((a, b) => Number(a.readonly) - Number(b.readonly)),
    [
      { readonly: false, ...expected },
      { readonly: true, ...expected },
      // The one that is never in a transaction.
      { readonly: true, ...expected },
    ],
  );
});

test("the directory is created with access for its owner alone", async (t) => {
  const directory = join(tempDir(), "new", "data");
  const store = openSqlite({ directory });
  t.after(() => store.close());
  assert.equal(statSync(directory).mode & 0o777, 0o700);
});

const foreignFiles: readonly { make: (file: string) => void; error: RegExp; reason: string }[] = [
  {
    make: (file) => openDatabase(file).exec("CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)").close(),
    error: /arbor\.db is not a database of this program/,
    reason: "a database without an application id",
  },
  {
    make: (file) =>
      openDatabase(file).exec("PRAGMA application_id = 1196444487; CREATE TABLE gpkg_contents (a)").close(),
    error: /arbor\.db is not a database of this program/,
    reason: "a database of another program",
  },
  {
    make: (file) => openDatabase(file).exec("PRAGMA application_id = 1196444487").close(),
    error: /arbor\.db is not a database of this program/,
    reason: "an empty database of another program",
  },
  {
    make: (file) => writeFileSync(file, "no database at all\n".repeat(100)),
    error: /file is not a database/,
    reason: "text",
  },
  { make: (file) => mkdirSync(file), error: /unable to open database file/, reason: "a directory" },
];

for (const { make, error, reason } of foreignFiles) {
  test(`rejected and unchanged: ${reason}`, () => {
    const directory = tempDir();
    const file = join(directory, "arbor.db");
    make(file);
    const before = statSync(file).isFile() ? readFileSync(file) : undefined;
    assert.throws(() => openSqlite({ directory, exclusive: true }), error);
    if (before) assert.deepEqual(readFileSync(file), before);
    assert.equal(existsSync(`${file}-wal`), false);
  });
}

test("a rejected file does not leave the directory locked", async () => {
  const directory = tempDir();
  const file = join(directory, "arbor.db");
  writeFileSync(file, "no database");
  assert.throws(() => openSqlite({ directory, exclusive: true }), /file is not a database/);
  writeFileSync(file, "");
  await openSqlite({ directory, exclusive: true }).close();
});

test("a second server on the same directory is rejected; commands are not", async () => {
  const directory = tempDir();
  const server = openSqlite({ directory, exclusive: true });
  assert.throws(() => openSqlite({ directory, exclusive: true }), /another process holds .*serve\.lock/);
  const command = openSqlite({ directory });
  await command.write((tx) => tx.table(groupKind).insert(groupRow(rootUid(1))));
  await command.close();
  assert.ok(await server.read((tx) => tx.table(groupKind).find(rootUid(1))), "and the server sees what they wrote");
  await server.close();
  await openSqlite({ directory, exclusive: true }).close();
});

test("kill -9 releases the directory and keeps what was written", async () => {
  const directory = tempDir();
  const child = spawn(process.execPath, [...scriptArguments("test/store/lock-holder.ts"), directory], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(child.stdout, "data");
  assert.throws(() => openSqlite({ directory, exclusive: true }), /another process holds/);
  child.kill("SIGKILL");
  await once(child, "exit");
  const store = openSqlite({ directory, exclusive: true });
  assert.equal(await store.read((tx) => tx.settings.find("opened")), "yes");
  await store.close();
});

test("a copy of the files between two commits opens with the state of that time", async () => {
  const [directory, copy] = [tempDir(), tempDir()];
  const store = openSqlite({ directory });
  for (let i = 1; i <= 20; i++) await store.write((tx) => tx.table(groupKind).insert(groupRow(rootUid(i))));
  for (const name of ["arbor.db", "arbor.db-wal"]) copyFileSync(join(directory, name), join(copy, name));
  await store.write((tx) => tx.table(groupKind).insert(groupRow(rootUid(21))));
  await store.close();
  const copied = openSqlite({ directory: copy });
  const there = await Promise.all(
    [20, 21].map(async (i) => (await copied.read((tx) => tx.table(groupKind).find(rootUid(i)))) !== undefined),
  );
  assert.deepEqual(there, [true, false]);
  await copied.close();
});

test("opening again changes neither schema nor rows", async () => {
  const directory = tempDir();
  const schemas: unknown[] = [];
  for (let i = 1; i <= 3; i++) {
    const store = openSqlite({ directory });
    await store.write((tx) => tx.table(groupKind).insert(groupRow(rootUid(i))));
    await store.close();
    const db = openDatabase(join(directory, "arbor.db"), { readonly: true });
    schemas.push(db.prepare("SELECT sql FROM sqlite_schema ORDER BY name").all());
    assert.equal(db.prepare("SELECT count(*) FROM groups").pluck().get(), i);
    db.close();
  }
  assert.deepEqual(schemas[1], schemas[0]);
  assert.deepEqual(schemas[2], schemas[0]);
});

test("several processes that open an empty directory at once all succeed", async () => {
  const directory = tempDir();
  const outcomes = await Promise.all(
    Array.from({ length: 3 }, async () => {
      const args = [...scriptArguments("test/store/lock-holder.ts"), directory, "shared"];
      const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
      let output = "";
      child.stderr.on("data", (chunk: Buffer) => {
        output += chunk;
      });
      child.stdout.on("data", (chunk: Buffer) => {
        output += chunk;
        child.kill("SIGKILL");
      });
      await once(child, "close");
      return output;
    }),
  );
  assert.deepEqual(outcomes, ["opened\n", "opened\n", "opened\n"]);
});
