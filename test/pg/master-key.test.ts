import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { masterKeySuite } from "../e2e/master-key-suite.js";
import { runCommand } from "../support/command.js";
import { tempDir } from "../support/temp-dir.js";
import { newDatabase } from "./databases.js";

async function createStorage() {
  const directory = tempDir();
  const keyFile = join(directory, "master.key");
  writeFileSync(keyFile, `${Buffer.alloc(32, 1).toString("base64")}\n`, { mode: 0o600 });
  const flags = ["--database-url", await newDatabase(), "--master-key-file", keyFile];
  return { data: join(directory, "data"), flags, keyFile, nodes: 2, rotate: ["--shared-file"] };
}

masterKeySuite("the master key of two nodes on PostgreSQL", createStorage);

test("where nodes may have files of their own, the key is not rotated in one step", async () => {
  const { flags, keyFile } = await createStorage();
  assert.equal((await runCommand(["bootstrap", "--org", "acme.example", ...flags])).code, 0);
  const before = readFileSync(keyFile, "utf8");
  const { code, stderr } = await runCommand(["admin", "master-key", "rotate", ...flags]);
  assert.equal(code, 6);
  assert.match(
    stderr,
    /with --shared-file they all read this one; otherwise give all nodes a file with the old key and/,
  );
  assert.equal(readFileSync(keyFile, "utf8"), before);

  // The new key is first in all files by now.
  writeFileSync(keyFile, `${Buffer.alloc(32, 2).toString("base64")}\n${before}`, { mode: 0o600 });
  const rotated = await runCommand(["admin", "master-key", "rotate", ...flags]);
  assert.deepEqual([rotated.code, /^encrypted again: [1-9]/.test(rotated.stdout)], [0, true], rotated.stderr);
  writeFileSync(keyFile, `${Buffer.alloc(32, 2).toString("base64")}\n`, { mode: 0o600 });
  assert.match((await runCommand(["check", ...flags])).stdout, /^keys: sound$/m);
});
