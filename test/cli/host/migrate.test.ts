// `arbor migrate`, and what the service does with a database of an older version.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, describe, it } from "node:test";
import { pino } from "pino";
import { startApp } from "../../../src/app/app.js";
import { createMigrationProgress, formatProgress } from "../../../src/cli/host/progress.js";
import { resolveSettings } from "../../../src/config/config.js";
import type { DataMigration } from "../../../src/store/migrate/data-migration.js";
import { dataMigrations } from "../../../src/store/migrate/data-migrations.js";
import { openSqliteMigration } from "../../../src/store/migrate/open-sqlite-migration.js";
import { contract, expand } from "../../../src/store/migrate/phases.js";
import { openSqlite } from "../../../src/store/sqlite/open.js";
import { attack } from "../../audit/log-kit.js";
import { copiesOf, copySettings, readCopied, writeOldSettings } from "../../store/migrate/copied-settings.js";
import { spawn } from "../../support/child-process.js";
import { runCommand } from "../../support/command.js";
import { newDataDir } from "../../support/data-dir.js";
import { scriptArguments } from "../../support/project.js";
import { tempDir } from "../../support/temp-dir.js";

describe("arbor migrate", () => {
  it("has nothing to do on a database of this version", async () => {
    const data = newDataDir();
    const before = readFileSync(join(data, "arbor.db"));
    const state = await runCommand(["migrate", "--data", data]);
    assert.deepEqual([state.code, state.stderr], [0, ""]);
    assert.match(state.stdout, /^expand: done\ncontract: done\n$/m);
    const plan = await runCommand(["migrate", "--expand", "--contract", "--dry-run", "--data", data]);
    assert.deepEqual([plan.code, plan.stdout], [0, "-- nothing to do\n"]);
    assert.deepEqual(readFileSync(join(data, "arbor.db")), before);
    const done = await runCommand(["migrate", "--expand", "--contract", "--vacuum", "--data", data]);
    assert.equal(done.code, 0, done.stderr);
    assert.match(done.stdout, /^expanded: .*\ncontracted: .*\nthe space of deleted rows is free\n$/);
    assert.match(done.stderr, /servers cannot write meanwhile/);
  });

  it("prints the statements that create an installation, and creates nothing", async () => {
    const missing = join(tempDir(), "missing");
    const planned = await runCommand(["migrate", "--expand", "--dry-run", "--data", missing]);
    assert.match(planned.stdout, /^-- there is no installation in \S+missing: --expand creates one\nCREATE TABLE /);
    assert.throws(() => readFileSync(missing), /ENOENT/);
  });

  for (const { flags, rule } of [
    { flags: ["--force"], rule: "--force: belongs to --contract" },
    { flags: ["--vacuum", "--dry-run"], rule: "--vacuum: cannot be combined with --dry-run" },
    {
      flags: ["--vacuum", "--database-url", "postgres://127.0.0.1/none", "--master-key-file", "none"],
      rule: "--vacuum: PostgreSQL gives space back by itself",
    },
  ]) {
    it(`rejects ${flags.join(" ")}`, async () => {
      const { code, stderr } = await runCommand(["migrate", ...flags, "--data", tempDir()]);
      assert.deepEqual([code, stderr], [2, `arbor: ${rule}; see arbor migrate --help\n`]);
    });
  }

  it("killed within a batch, loses and repeats nothing", async (t) => {
    const directory = tempDir();
    await openSqlite({ directory, migrations: [] }).close();
    const database = openSqliteMigration({ directory, mode: "create" });
    t.after(() => database.close());
    await writeOldSettings(database, 1, 20);
    await killAtBatch(4, [JSON.stringify({ data: directory }), "copied-settings", "--expand"]);
    const [killed] = (await readCopied(database)).progress;
    assert.deepEqual(killed, { name: "copied-settings", phase: "expanding", position: "old:0006", done: 6 });
    const migrations = [copySettings()];
    await expand(database, { migrations });
    await contract(database, { migrations });
    assert.deepEqual(await readCopied(database), {
      left: [],
      copies: copiesOf(1, 20),
      progress: [{ name: "copied-settings", phase: "contracted", position: "", done: 20 }],
    });
  });
});

describe("a SQLite database of an older version", () => {
  // Until this version has migrations of its own.
  const planted = dataMigrations as DataMigration[];
  afterEach(() => planted.splice(0));

  function createOld(): string {
    const data = newDataDir();
    attack(data, "UPDATE settings SET value = '0.0.1' WHERE name = 'oldest_version'");
    planted.push(copySettings());
    return data;
  }

  it("is described by arbor migrate, with --dry-run by statements", async () => {
    const data = createOld();
    const before = readFileSync(join(data, "arbor.db"));
    const state = await runCommand(["migrate", "--data", data]);
    assert.match(state.stdout, /^expand:\n {2}rows: copied-settings, not begun\n/m);
    assert.match(state.stdout, /\nrun next: arbor migrate --expand\n$/);
    const plan = await runCommand(["migrate", "--expand", "--dry-run", "--data", data]);
    assert.match(plan.stdout, /^CREATE TABLE copies .*;\n/);
    assert.deepEqual(readFileSync(join(data, "arbor.db")), before);
  });

  it("is rejected with --no-migrate, and the error names the command", async () => {
    const data = createOld();
    const { code, stderr } = await runCommand(["audit", "list", "--no-migrate", "--data", data]);
    assert.deepEqual([code, /run `arbor migrate --expand`/.test(stderr)], [6, true], stderr);
    const serving = startApp({ settings: settingsOf(data, { migrate: false }), logger: pino({ level: "silent" }) });
    await assert.rejects(serving, /run `arbor migrate --expand`/);
  });

  it("is not expanded by a command that reads", async () => {
    const data = createOld();
    const before = readFileSync(join(data, "arbor.db"));
    const { code, stderr } = await runCommand(["audit", "verify", "--data", data]);
    assert.deepEqual([code, /run `arbor migrate --expand`/.test(stderr)], [6, true], stderr);
    assert.deepEqual(readFileSync(join(data, "arbor.db")), before);
  });

  it("is expanded by the service before it listens", async () => {
    const data = createOld();
    const app = await startApp({ settings: settingsOf(data), logger: pino({ level: "silent" }) });
    await app.stop();
    const { stdout } = await runCommand(["migrate", "--data", data]);
    assert.match(stdout, /^expand: done$/m);
  });
});

describe("the progress of a migration", () => {
  it("is a bar with a rate", () => {
    const progress = { name: "copied-settings", done: 2_500, total: 10_000 };
    assert.equal(
      formatProgress(progress, 500),
      "copied-settings [#####...............] 25 %, 2500 of about 10000 rows, 500 rows/s, 15 s left",
    );
    assert.equal(
      formatProgress({ ...progress, done: 11_000 }, 0),
      "copied-settings [####################] 100 %, 11000 of about 10000 rows",
    );
    assert.match(formatProgress({ ...progress, done: 0, total: 0 }, 0), / 100 %, 0 of about 0 rows$/);
  });

  it("replaces itself on a terminal, and is a line every few seconds elsewhere", () => {
    for (const isTTY of [true, false]) {
      let written = "";
      const { onProgress, periodMs, clear } = createMigrationProgress({ isTTY, write: (text) => (written += text) });
      onProgress({ name: "a", done: 0, total: 1 });
      clear();
      assert.equal(periodMs, isTTY ? 100 : 5_000);
      assert.match(written, isTTY ? /^\r.*rows\r[^\n]*$/ : /^a \[.*rows\n$/);
    }
  });
});

function settingsOf(data: string, flags: Readonly<Record<string, string | boolean>> = {}) {
  return resolveSettings({ flags: { data, listen: "127.0.0.1:0", accessLog: false, ...flags }, env: {} });
}

async function killAtBatch(count: number, args: readonly string[]): Promise<void> {
  const child = spawn(process.execPath, [...scriptArguments("test/store/migrate/migrate-process.ts"), ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  let batches = 0;
  createInterface({ input: child.stdout }).on("line", () => {
    if (++batches === count) child.kill("SIGKILL");
  });
  assert.deepEqual(await exited, [null, "SIGKILL"]);
}
