// Commands where there is no installation: they fail, name the place and write nothing. A check that runs every night with
// a wrong path must not be green.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, mock, test } from "node:test";
import { openDatabase } from "../../../src/store/sqlite/driver.js";
import { runCommand } from "../../support/command.js";
import { listHostCommands, listTree } from "../../support/host-commands.js";
import { isCampaign } from "../../support/scale.js";
import { tempDir } from "../../support/temp-dir.js";

interface Situation {
  readonly name: string;
  readonly reason: RegExp;
  make(directory: string): void;
}

const situations: readonly Situation[] = [
  { name: "a missing directory", reason: /there is no such directory/, make() {} },
  { name: "an empty directory", reason: /it has no arbor\.db/, make: (directory) => mkdirSync(directory) },
  {
    name: "a directory with other files",
    reason: /it has no arbor\.db/,
    make(directory) {
      mkdirSync(join(directory, "photos"), { recursive: true, mode: 0o755 });
      writeFileSync(join(directory, "photos", "arbor.db"), "x");
      writeFileSync(join(directory, "notes.txt"), "notes");
    },
  },
  {
    name: "an empty database file",
    reason: /its arbor\.db is empty/,
    make(directory) {
      mkdirSync(directory);
      writeFileSync(join(directory, "arbor.db"), "");
    },
  },
  {
    name: "the database of another program",
    reason: /its arbor\.db is not a database of this program/,
    make: (directory) => makeForeignDatabase(directory, "wal"),
  },
  {
    name: "the database of another program, without a write-ahead log",
    reason: /its arbor\.db is not a database of this program/,
    make: (directory) => makeForeignDatabase(directory, "delete"),
  },
  {
    name: "a file that is no database",
    reason: /its arbor\.db is not a database of this program/,
    make(directory) {
      mkdirSync(directory);
      writeFileSync(join(directory, "arbor.db"), "text");
    },
  },
];

function makeForeignDatabase(directory: string, journal: "wal" | "delete"): void {
  mkdirSync(directory);
  const db = openDatabase(join(directory, "arbor.db"));
  db.pragma(`journal_mode = ${journal}`);
  db.exec("CREATE TABLE settings (name TEXT, value TEXT)");
  db.close();
}

afterEach(() => mock.restoreAll());

for (const [at, { name, reason, make }] of situations.entries()) {
  describe(`on ${name}`, async () => {
    const parent = tempDir();
    const data = join(parent, "data");
    make(data);
    const before = listTree(parent);
    const { onInstallation, onSettings } = await listHostCommands("--data", parent);

    // Each command with the first situation and two of the others, since all ask the same function; in a campaign with all.
    const commands = onInstallation.filter((_, i) => isCampaign || at === 0 || (i + at) % 3 === 0);
    for (const { name: command, args } of commands) {
      test(`arbor ${command} fails and writes nothing`, async () => {
        const umask = mock.method(process, "umask");
        const { code, stdout, stderr } = await runCommand([...args, "--data", data]);
        assert.deepEqual([code, stdout], [6, ""], stderr);
        assert.ok(stderr.startsWith(`arbor: Precondition failed: there is no installation in ${data}: `), stderr);
        assert.match(stderr, reason);
        assert.match(
          stderr,
          /mount its disk, name its directory with --data .* or create it with `arbor bootstrap`\n(?: {2}to read the log of a service over its API: --scope ORGANISATION\n)?$/,
        );
        assert.deepEqual(listTree(parent), before);
        const masks = umask.mock.calls.map(({ arguments: [mask] }) => mask).filter((mask) => mask === 0o077);
        // With other flags `arbor migrate` creates a database.
        assert.deepEqual(masks, command.startsWith("migrate") ? [0o077] : []);
      });
    }

    for (const { name: command, args } of onSettings) {
      test(`arbor ${command} reads settings alone and writes nothing`, async () => {
        const { code, stderr } = await runCommand([...args, "--data", data]);
        assert.deepEqual([code, stderr], [0, ""]);
        assert.deepEqual(listTree(parent), before);
      });
    }

    test("arbor migrate --expand --dry-run says that there is none, and writes nothing", async () => {
      const { code, stdout, stderr } = await runCommand(["migrate", "--expand", "--dry-run", "--data", data]);
      const isForeign = /program/.test(reason.source);
      assert.equal(code, isForeign ? 6 : 0);
      assert.match(
        isForeign ? stderr : stdout,
        isForeign ? reason : /^-- there is no installation in \S+data: --expand creates one\nCREATE TABLE /,
      );
      assert.deepEqual(listTree(parent), before);
    });
  });
}

test("the commands are found in the command tree", async () => {
  const { onInstallation } = await listHostCommands("--data", "/missing");
  const names = onInstallation.map(({ name }) => name);
  for (const name of ["audit verify", "audit list", "audit export", "check", "admin keys rotate", "admin jobs list"]) {
    assert.ok(names.includes(name), name);
  }
  for (const name of ["registry configure", "registry sync", "advisories import"])
    assert.ok(names.includes(name), name);
  assert.ok(names.length > 20, `${names.length}`);
});

test("control: a command that may create an installation does, and is seen", async () => {
  const parent = tempDir();
  const data = join(parent, "data");
  const before = listTree(parent);
  const { code } = await runCommand(["bootstrap", "--org", "acme.example", "--data", data]);
  assert.equal(code, 0);
  assert.notDeepEqual(listTree(parent), before);
});
