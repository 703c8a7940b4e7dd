// Databases of versions 0.10 and 0.11 through `arbor migrate`, on SQLite. On PostgreSQL: test/pg/.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { deleteMarked } from "../../src/iam/identities/deletion.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { convertSqlite, planSqliteConversion } from "../../src/store/migrate/conversion/sqlite.js";
import { listSchemaMigrations } from "../../src/store/migrate/schema-migrations.js";
import { holdFileLock } from "../../src/store/sqlite/data-directory.js";
import { openDatabase, type SqliteDatabase } from "../../src/store/sqlite/driver.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import { attack } from "../audit/log-kit.js";
import { runCommand } from "../support/command.js";
import { inconsistenciesIn } from "../support/consistency.js";
import { newDataDir } from "../support/data-dir.js";
import { listHostCommands, listTree } from "../support/host-commands.js";
import { tempDir } from "../support/temp-dir.js";
import { type Fixture, oldFixtures, restoreSqlite } from "./fixtures.js";
import { assertIndexMatches, assertRowsKept, dumpSqlite } from "./migrated-rows.js";

const newest = oldFixtures.at(-1) as Fixture;
const convert = (directory: string) => convertSqlite({ directory, onProgress: () => {} });

for (const fixture of oldFixtures) {
  test(`the SQLite database of version ${fixture.version} is converted to what a new one is`, async () => {
    const directory = restoreSqlite(fixture);
    const file = join(directory, "arbor.db");
    const before = withDatabase(file, dumpSqlite);
    const bytes = readFileSync(file);
    const { kept } = await convert(directory);
    assert.deepEqual(withDatabase(file, readSchema), withDatabase(join(newDataDir(), "arbor.db"), readSchema));
    const after = withDatabase(file, dumpSqlite);
    assertRowsKept(before, after);
    const fewer = new Map(after).set("roles", (after.get("roles") ?? []).slice(1));
    assert.throws(() => assertRowsKept(before, fewer), /rows of roles that are gone/);
    assert.deepEqual(withDatabase(file, inconsistenciesIn), []);
    await assertIndexMatches(after);
    assert.equal(kept, join(directory, "arbor.db.before-1.0"));
    assert.deepEqual(readFileSync(kept), bytes, "the old file is what it was");
    const names = ["arbor.db", "arbor.db.before-1.0", "master.key", "migrate.lock", "serve.lock"];
    assert.deepEqual(
      readdirSync(directory).filter((name) => !/-(?:wal|shm)$/.test(name)),
      names,
    );
  });
}

test("a conversion continues the numbers of the audit log, also of rows that were deleted", async () => {
  const directory = restoreSqlite(newest);
  attack(directory, "UPDATE sqlite_sequence SET seq = 1000 WHERE name = 'audit'");
  await convert(directory);
  const store = openSqlite({ directory });
  try {
    const row = { rootUid: "", timeMs: 1, type: "t", method: "", subjectUid: "", actorUid: "", tokenId: "" };
    await store.write((tx) => tx.audit.append({ ...row, requestId: "", remoteAddress: "" }));
  } finally {
    await store.close();
  }
  const last = withDatabase(join(directory, "arbor.db"), (db) => db.prepare("SELECT max(id) FROM audit").pluck().get());
  assert.equal(last, 1001);
});

test("an identity that was being deleted stays deleted, and its deletion ends", async (t) => {
  const directory = restoreSqlite(newest);
  const file = join(directory, "arbor.db");
  const pick = (condition: string) =>
    withDatabase(file, (db) => db.prepare(`SELECT uid FROM identities WHERE ${condition}`).pluck().all() as string[]);
  const [marked = ""] = pick("name = 'literal'");
  attack(
    directory,
    `UPDATE identities SET provider_uid = 'deleted', not_before = 9007199254740991 WHERE uid = '${marked}'`,
  );
  await convert(directory);
  assert.deepEqual(pick("delete_time_ms IS NOT NULL AND provider_uid IS NULL"), [marked]);
  const store = openSqlite({ directory });
  t.after(() => store.close());
  const [others = ""] = pick("name = 'pattern'");
  const find = (uid: string) => store.read(async (tx) => (await tx.table(identityKind).find(uid))?.uid);
  assert.deepEqual([await find(marked), await find(others)], [undefined, others]);
  assert.deepEqual(await store.read((tx) => tx.access.findIdentity(marked)), []);
  assert.equal(await deleteMarked(store, () => false), 1);
  assert.deepEqual(pick(`uid = '${marked}'`), []);
});

test("a conversion copies what only the write-ahead log of a server that was killed has", async () => {
  const directory = restoreSqlite(newest);
  const file = join(directory, "arbor.db");
  const killed = openDatabase(file);
  killed.exec("UPDATE groups SET description = 'in the log' WHERE name = 'storage'");
  const log = readFileSync(`${file}-wal`);
  const before = readFileSync(file);
  killed.close();
  writeFileSync(file, before);
  writeFileSync(`${file}-wal`, log);
  await convert(directory);
  const read = (path: string) =>
    withDatabase(path, (db) => db.prepare("SELECT description FROM groups WHERE name = 'storage'").pluck().get());
  assert.equal(read(file), "in the log");
  assert.equal(read(`${file}.before-1.0`), "in the log");
});

describe("a database that cannot be converted is as it was", () => {
  const first =
    "run `arbor migrate --expand --contract` of version 0.11.0 with the same settings, then `arbor migrate`";
  const changes = [
    { of: "version 0.9", statement: "UPDATE settings SET value = '0.9.0' WHERE name = 'oldest_version'" },
    { of: "version 0.4", statement: "DELETE FROM settings WHERE name = 'oldest_version'" },
    {
      of: "an older schema",
      statement: "DELETE FROM __drizzle_migrations WHERE created_at > 1795441443294",
    },
    { of: "a phase that has not ended", statement: "UPDATE data_migrations SET phase = 'expanded'" },
  ];
  for (const { of, statement } of changes) {
    test(of, async () => {
      const directory = restoreSqlite(newest);
      attack(directory, statement);
      await assertRejected(directory, first);
    });
  }

  test("another process has it open", async () => {
    const directory = restoreSqlite(newest);
    const other = openDatabase(join(directory, "arbor.db"));
    other.prepare("SELECT 1 FROM settings").get();
    try {
      await assertRejected(directory, "another process has \\S+arbor\\.db open: fuser -v ");
    } finally {
      other.close();
    }
    await convert(directory);
  });

  for (const name of ["serve.lock", "migrate.lock"]) {
    test(`a server or a command holds ${name}`, async () => {
      const directory = restoreSqlite(newest);
      const release = holdFileLock(join(directory, name), 0);
      try {
        await assertRejected(directory, "another process uses ");
      } finally {
        release();
      }
      await convert(directory);
    });
  }

  test("the old database of an earlier conversion is in the way", async () => {
    const directory = restoreSqlite(newest);
    writeFileSync(join(directory, "arbor.db.before-1.0"), "precious");
    await assertRejected(directory, "arbor\\.db\\.before-1\\.0 exists, and would be replaced");
    assert.equal(readFileSync(join(directory, "arbor.db.before-1.0"), "utf8"), "precious");
  });

  test("it is of this version", async () => {
    const directory = restoreSqlite(newest);
    await convert(directory);
    await assertRejected(directory, "is a database of version 1\\.0 or newer");
  });

  async function assertRejected(directory: string, rule: string): Promise<void> {
    const file = join(directory, "arbor.db");
    const before = readFileSync(file);
    await assert.rejects(convert(directory), new RegExp(rule));
    assert.deepEqual(readFileSync(file), before);
    assert.equal(existsSync(`${file}.converting`), false);
  }
});

describe("commands on a database of version 0.11", async () => {
  const { onInstallation } = await listHostCommands("--data", tempDir());
  const commands = [
    ...onInstallation.filter(({ name }) => !/^migrate( --dry-run)?$/.test(name)),
    { name: "bootstrap", args: ["bootstrap", "--org", "other.example"] },
    { name: "serve", args: ["serve", "--listen", "127.0.0.1:0"] },
    { name: "migrate --expand", args: ["migrate", "--expand"] },
  ];
  for (const { name, args } of commands) {
    test(`arbor ${name} names the command to run, and changes nothing`, async () => {
      const data = restoreSqlite(newest);
      const before = listContent(data);
      const { code, stdout, stderr } = await runCommand([...args, "--data", data]);
      assert.deepEqual([code, stdout], [6, ""], stderr);
      assert.match(
        stderr,
        /^arbor: Precondition failed: the database is that of version 0\.10 or 0\.11: .* `arbor migrate` /,
      );
      assert.deepEqual(listContent(data), before);
    });
  }

  test("control: the commands run on the converted database", async () => {
    const data = restoreSqlite(newest);
    await convert(data);
    const checked = await runCommand(["check", "--data", data]);
    assert.equal(checked.code, 0, checked.stdout);
    assert.equal((await runCommand(["audit", "list", "--data", data])).code, 0);
  });

  // Not the files that locks and readers leave.
  function listContent(data: string): string[] {
    return listTree(data).filter((line) => !/^\S+(?:\.lock|-wal|-shm) |^\S+ 40/.test(line));
  }
});

test("--dry-run says what would be done, and changes nothing", async () => {
  const data = restoreSqlite(newest);
  const before = readFileSync(join(data, "arbor.db"));
  const { rows } = await planSqliteConversion(data);
  const planned = await runCommand(["migrate", "--dry-run", "--data", data]);
  assert.equal(planned.code, 0, planned.stderr);
  assert.match(
    planned.stdout,
    new RegExp(`^would copy ${rows} rows of \\d+ tables into a new file; \\d+ MiB must be free\n`),
  );
  assert.match(planned.stdout, /\nthe database of now would stay as \S+arbor\.db\.before-1\.0\n$/);
  assert.deepEqual(readFileSync(join(data, "arbor.db")), before);
  const done = await runCommand(["migrate", "--data", data]);
  assert.match(done.stdout, new RegExp(`^converted: ${rows} rows of \\d+ tables\n`));
  assert.match(done.stderr, /^rows \[#{20}\] 100 %, \d+ of about \d+ rows/m);
  assert.match(done.stderr, /^indexes \[#{20}\] 100 %, \d+ of about \d+ statements/m);
});

// A database records the time of the last change that it has, and gets those after it.
test("changes of the schema are in the order of their times, and after those of older versions", () => {
  const lastOld = 1795735458573;
  for (const dialect of ["sqlite", "pg"] as const) {
    const times = [lastOld, ...listSchemaMigrations(dialect, 0).map(({ createdMs }) => createdMs)];
    assert.ok(times.length > 1);
    assert.deepEqual(
      times,
      [...new Set(times)].sort((a, b) => a - b),
    );
  }
});

function readSchema(db: SqliteDatabase): unknown {
  return db.prepare("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name").all();
}

function withDatabase<T>(file: string, work: (db: SqliteDatabase) => T): T {
  const db = openDatabase(file, { readonly: true });
  try {
    return work(db);
  } finally {
    db.close();
  }
}
