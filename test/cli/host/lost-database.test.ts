// An installation is created only where nothing of one lies: a database that was lost must not be followed by an empty one
// that looks sound.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { startApp } from "../../../src/app/app.js";
import { resolveSettings } from "../../../src/config/config.js";
import { openDatabase } from "../../../src/store/sqlite/driver.js";
import { openSqlite } from "../../../src/store/sqlite/open.js";
import { runCommand } from "../../support/command.js";
import { listTree } from "../../support/host-commands.js";
import { tempDir } from "../../support/temp-dir.js";

let template: Promise<string> | undefined;

/** A data directory of its own with an installation that nobody has open. */
async function makeInstallation(): Promise<string> {
  template ??= createTemplate();
  const data = join(tempDir(), "data");
  cpSync(await template, data, { recursive: true });
  chmodSync(data, 0o700);
  return data;
}

async function createTemplate(): Promise<string> {
  const data = join(tempDir(), "data");
  const { code, stderr } = await runCommand(["bootstrap", "--org", "acme.example", "--data", data]);
  assert.equal(code, 0, stderr);
  return data;
}

async function serve(data: string, ...flags: readonly string[]): Promise<string> {
  const given = { data, listen: "127.0.0.1:0", metricsListen: "off", logLevel: "silent" };
  const create = flags.includes("--no-create") ? { create: "false" } : {};
  try {
    const app = await startApp({ settings: resolveSettings({ flags: { ...given, ...create }, env: {} }) });
    await app.stop();
    return "started";
  } catch (error) {
    return (error as Error).message;
  }
}

/** What creates an installation. */
const creators = [
  { name: "serve", create: (data: string) => serve(data) },
  { name: "bootstrap", create: async (data: string) => runOrRefuse("bootstrap", "--org", "b.example", "--data", data) },
  { name: "migrate --expand", create: async (data: string) => runOrRefuse("migrate", "--expand", "--data", data) },
] as const;

async function runOrRefuse(...args: readonly string[]): Promise<string> {
  const { code, stderr } = await runCommand(args);
  return code === 0 ? "started" : `${code} ${stderr}`;
}

const losses = [
  { name: "its database is gone", lose: (data: string) => rmAll(data), found: /it has master\.key, and no arbor\.db/ },
  {
    name: "its database is an empty file",
    lose(data: string) {
      rmAll(data);
      writeFileSync(join(data, "arbor.db"), "", { mode: 0o600 });
    },
    found: /it has master\.key, and an empty arbor\.db/,
  },
  {
    name: "its database is gone, but not the write-ahead log",
    lose(data: string) {
      rmAll(data);
      writeFileSync(join(data, "arbor.db-wal"), "log", { mode: 0o600 });
    },
    found: /it has master\.key and arbor\.db-wal, and no arbor\.db/,
  },
  {
    name: "its database is an empty file, and its write-ahead log cannot be read",
    lose(data: string) {
      rmAll(data);
      writeFileSync(join(data, "arbor.db"), "", { mode: 0o600 });
      writeFileSync(join(data, "arbor.db-wal"), "x".repeat(4_096), { mode: 0o600 });
    },
    found: /it has master\.key and arbor\.db-wal, and an empty arbor\.db/,
  },
  {
    name: "only the write-ahead log is left",
    lose(data: string) {
      rmSync(data, { recursive: true });
      mkdirSync(data, { mode: 0o700 });
      writeFileSync(join(data, "arbor.db-wal"), "log", { mode: 0o600 });
    },
    found: /it has arbor\.db-wal, and no arbor\.db/,
  },
] as const;

function rmAll(data: string): void {
  for (const suffix of ["", "-wal", "-shm"]) rmSync(join(data, `arbor.db${suffix}`), { force: true });
}

for (const { name, lose, found } of losses) {
  describe(`where ${name}`, () => {
    for (const creator of creators) {
      test(`${creator.name} creates no other, says what is missing and changes nothing`, async () => {
        const data = await makeInstallation();
        lose(data);
        const before = listTree(data);
        const ending = await creator.create(data);
        assert.match(ending, /Precondition failed: the database of \S+ is lost: /);
        assert.match(ending, found);
        assert.match(ending, /mount the disk or put back the file that is missing; `arbor restore`/);
        assert.ok(ending.includes(data), ending);
        assert.deepEqual(listTree(data), before);
      });
    }
  });
}

const spoiled = [
  {
    name: "another master key",
    spoil: (data: string) => writeFileSync(join(data, "master.key"), `${randomBytes(32).toString("base64")}\n`),
    message: /does not open what is stored/,
  },
  {
    name: "a master key that is no key",
    spoil: (data: string) => writeFileSync(join(data, "master.key"), "no key\n"),
    message: /must hold lines of 32 bytes in base64/,
  },
  {
    name: "a file that is no database",
    spoil: (data: string) => writeFileSync(join(data, "arbor.db"), "no database".repeat(1_000)),
    message: /not a database/,
  },
  {
    name: "a damaged database",
    spoil(data: string) {
      const bytes = readFileSync(join(data, "arbor.db"));
      writeFileSync(join(data, "arbor.db"), bytes.fill(0xff, 100));
    },
    message: /malformed/,
  },
] as const;

for (const { name, spoil, message } of spoiled) {
  test(`${name} ends commands with the exit code after which nothing starts them again`, async () => {
    const data = await makeInstallation();
    rmSync(join(data, "arbor.db-wal"), { force: true });
    spoil(data);
    const { code, stderr } = await runCommand(["bootstrap", "--org", "b.example", "--data", data]);
    assert.match(stderr, message);
    assert.equal(code, 6, stderr);
  });
}

describe("control", () => {
  for (const creator of creators) {
    test(`${creator.name} creates an installation where there is nothing`, async () => {
      const data = join(tempDir(), "data");
      assert.equal(await creator.create(data), "started");
      for (const name of ["arbor.db", "master.key"]) assert.ok(existsSync(join(data, name)), name);
      assert.equal(await serve(data, "--no-create"), "started", "and a server finds all of it");
    });
  }

  test("one that was ended before it had its first table goes on", async () => {
    const data = tempDir();
    writeFileSync(join(data, "arbor.db"), "", { mode: 0o600 });
    assert.equal(await serve(data), "started");
  });

  test("one that was ended before it had its key goes on, and one that has lost its key does not", async () => {
    const data = tempDir();
    const store = openSqlite({ directory: data });
    await store.close();
    assert.equal(await serve(data), "started");
    rmSync(join(data, "master.key"));
    assert.match(await serve(data), /the master key \S+ of this installation is missing/);
  });

  test("a database whose changes are all in its write-ahead log is one", async () => {
    const data = await makeInstallation();
    const copy = tempDir();
    const db = openDatabase(join(data, "arbor.db"));
    db.exec("VACUUM");
    for (const name of ["arbor.db", "arbor.db-wal", "master.key"]) {
      writeFileSync(join(copy, name), readFileSync(join(data, name)), { mode: 0o600 });
    }
    db.close();
    truncateSync(join(copy, "arbor.db"));
    assert.equal(await serve(copy), "started");
  });
});

describe("with --no-create", () => {
  for (const [name, make] of [
    ["a missing directory", () => {}],
    ["an empty one, as a mount point is without its mount", (data: string) => mkdirSync(data, { mode: 0o700 })],
  ] as const) {
    test(`serve on ${name} creates nothing, and says what to do`, async () => {
      const parent = tempDir();
      const data = join(parent, "data");
      make(data);
      const before = listTree(parent);
      const ending = await serve(data, "--no-create");
      assert.match(ending, /^Precondition failed: there is no installation in \S+data: /);
      assert.match(ending, /mount its disk, name its directory .* or create it with `arbor bootstrap`$/);
      assert.deepEqual(listTree(parent), before);
    });
  }

  test("serve uses what `arbor bootstrap` has created", async () => {
    assert.equal(await serve(await makeInstallation(), "--no-create"), "started");
  });
});
