// What a command may do to the installation that it opens.
import assert from "node:assert/strict";
import { chmodSync, chownSync, cpSync, existsSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { openInstallation } from "../../../src/app/installation.js";
import { resolveSettings } from "../../../src/config/config.js";
import { openDatabase } from "../../../src/store/sqlite/driver.js";
import { openSqlite } from "../../../src/store/sqlite/open.js";
import { spawnSync } from "../../support/child-process.js";
import { runCommand } from "../../support/command.js";
import { listHostCommands, listTree } from "../../support/host-commands.js";
import { environmentWithoutSettings, PROJECT, scriptArguments } from "../../support/project.js";
import { tempDir } from "../../support/temp-dir.js";

const template = join(tempDir(), "data");
before(async () => {
  const { code, stderr } = await runCommand(["bootstrap", "--org", "acme.example", "--data", template]);
  assert.equal(code, 0, stderr);
});

function copyInstallation(): string {
  const data = join(tempDir(), "data");
  cpSync(template, data, { recursive: true });
  return data;
}

describe("without its master key, an installation is not opened", async () => {
  const { onInstallation } = await listHostCommands("--data", tempDir());
  const creating = [
    { name: "bootstrap", args: ["bootstrap", "--org", "other.example"] },
    { name: "serve", args: ["serve", "--listen", "127.0.0.1:0"] },
  ];
  // These read the database without its secrets; `check` has a finding.
  const withoutSecrets = /^(check|migrate)\b/;
  const commands = [...creating, ...onInstallation.filter(({ name }) => !withoutSecrets.test(name))];
  for (const { name, args } of commands) {
    test(`by arbor ${name}`, async () => {
      const data = copyInstallation();
      const key = join(data, "master.key");
      renameSync(key, `${key}.away`);
      const { code, stdout, stderr } = await runCommand([...args, "--data", data]);
      assert.deepEqual([code, stdout], [6, ""], stderr);
      assert.match(stderr, /master key \S+\/master\.key of this installation is missing: restore it/);
      assert.equal(existsSync(key), false, "it is not replaced");
      renameSync(`${key}.away`, key);
      assert.equal((await runCommand(["audit", "verify", "--data", data])).code, 0);
    });
  }

  test("control: where nothing is sealed yet, the key is created", async () => {
    const data = join(tempDir(), "data");
    await openSqlite({ directory: data }).close();
    assert.equal(existsSync(join(data, "master.key")), false);
    assert.equal((await runCommand(["bootstrap", "--org", "acme.example", "--data", data])).code, 0);
    assert.equal(existsSync(join(data, "master.key")), true);
  });
});

const reading: readonly (readonly string[])[] = [
  ["audit", "verify"],
  ["audit", "list"],
  ["admin", "keys", "list"],
  ["admin", "jobs", "list"],
  ["admin", "role", "list"],
  ["check"],
];

// Which files belong to it; SQLite creates the others beside a database that it reads.
function listContent(data: string): string[] {
  return listTree(data).filter((line) => !/^\S+arbor\.db-(wal|shm) |^\S+ 40/.test(line));
}

describe("commands that read", () => {
  for (const args of reading) {
    test(`arbor ${args.join(" ")} changes nothing of an installation`, async () => {
      const data = copyInstallation();
      chmodSync(data, 0o755);
      const before = listContent(data);
      const { code, stderr } = await runCommand([...args, "--data", data]);
      assert.equal(code, 0, stderr);
      assert.deepEqual(listContent(data), before);
    });
  }

  test("control: a command that changes the installation is seen", async () => {
    const data = copyInstallation();
    const before = listContent(data);
    assert.equal((await runCommand(["admin", "keys", "rotate", "--purpose", "audit", "--data", data])).code, 0);
    assert.notDeepEqual(listContent(data), before);
  });

  test("an installation that is opened to be read refuses to write", async () => {
    const settings = resolveSettings({ flags: { data: copyInstallation() }, env: {} });
    const { store, close } = await openInstallation({ mode: "read", settings });
    await assert.rejects(async () => store.write((tx) => tx.settings.put("a", "b")), /opened to be read/);
    await close();
  });
});

describe("a directory that cannot be written to", { skip: process.platform === "win32" }, () => {
  // Permissions do not hold root back.
  const user = process.getuid?.() === 0 ? 65_534 : undefined;

  function makeReadOnly(data: string): void {
    for (const path of [...readdirSync(data).map((name) => join(data, name)), data]) {
      if (user !== undefined) chownSync(path, user, user);
      chmodSync(path, path === data ? 0o500 : 0o400);
    }
  }

  function runAs(args: readonly string[]) {
    const { status, stdout, stderr } = spawnSync(process.execPath, [...scriptArguments("src/main.ts"), ...args], {
      cwd: PROJECT,
      env: { ...environmentWithoutSettings(), HOME: "/nonexistent" },
      encoding: "utf8",
      ...(user !== undefined && { uid: user, gid: user }),
    });
    return { status, stdout, stderr };
  }

  test("is read, with the database closed properly or left by a crash, and nothing is left behind", () => {
    const data = copyInstallation();
    // As a crash leaves it: changes are in the write-ahead log alone.
    const crashed = join(tempDir(), "data");
    const db = openDatabase(join(data, "arbor.db"));
    db.exec("INSERT INTO settings (name, value) VALUES ('test', 'x')");
    cpSync(data, crashed, { recursive: true, filter: (path) => !path.endsWith("-shm") });
    db.close();
    for (const directory of [data, crashed]) {
      for (const name of ["arbor.db-wal", "arbor.db-shm"]) {
        if (directory === data) rmSync(join(directory, name), { force: true });
      }
      chmodSync(join(directory, ".."), 0o755);
      makeReadOnly(directory);
      const before = listTree(directory);
      const { status, stdout, stderr } = runAs(["audit", "verify", "--data", directory]);
      assert.equal(status, 0, stderr);
      assert.match(stdout, /: 0 sealed rows, no signed head, 1 unsealed\n$/);
      assert.deepEqual(listTree(directory), before);
      const changing = runAs(["admin", "keys", "rotate", "--purpose", "audit", "--data", directory]);
      assert.notEqual(changing.status, 0, "control");
      assert.deepEqual(listTree(directory), before);
    }
  });
});
