// Backups and restores are not written to where another user could read or replace them.
import assert from "node:assert/strict";
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Store } from "../../../src/store/store.js";
import { runCommand } from "../../support/command.js";
import { tempDir } from "../../support/temp-dir.js";
import { openWithMarker } from "./backup-kit.js";

/** Debian's nobody. */
const OTHER = 65_534;
const skip = process.getuid?.() !== 0 && "only root can give files away";

let data: string;
let store: Store;
before(async () => {
  ({ data, store } = await openWithMarker());
});
after(() => store.close());

describe("a backup", { skip }, () => {
  for (const name of ["backup.db.partial", "backup.db.partial-journal", "manifest.json.partial", "backup.lock"]) {
    it(`is refused where another user waits with a ${name} of theirs`, async () => {
      const target = tempDir();
      const theirs = join(target, name);
      writeFileSync(theirs, "", { mode: 0o666 });
      for (const path of [target, theirs]) chownSync(path, OTHER, OTHER);
      const { code, stderr } = await runCommand(["backup", target, "--data", data, "--with-master-key"]);
      assert.equal(code, 6, stderr);
      assert.match(stderr, /belongs to user 65534: another user could replace what is written there/);
      assert.deepEqual(readdirSync(target), [name]);
      assert.equal(readFileSync(theirs).length, 0);
    });
  }

  it("creates no directory within one of another user", async () => {
    const theirs = tempDir();
    chownSync(theirs, OTHER, OTHER);
    const { code } = await runCommand(["backup", join(theirs, "new", "backup"), "--data", data]);
    assert.equal(code, 6);
    assert.deepEqual(readdirSync(theirs), []);
  });

  it("is refused in a directory that all may write to, and none of its files are left", async () => {
    const target = tempDir();
    chmodSync(target, 0o777);
    const { code, stderr } = await runCommand(["backup", target, "--data", data]);
    assert.equal(code, 6, stderr);
    assert.deepEqual(readdirSync(target), []);
  });

  it("control: is written, with all files for their owner alone, where nobody else writes", async () => {
    const target = join(tempDir(), "backup");
    const { code, stderr } = await runCommand(["backup", target, "--data", data, "--with-master-key"]);
    assert.equal(code, 0, stderr);
    for (const name of readdirSync(target)) assert.equal(statSync(join(target, name)).mode & 0o777, 0o600, name);

    const theirs = tempDir();
    chownSync(theirs, OTHER, OTHER);
    for (const into of [theirs, join(theirs, "data")]) {
      const { code, stderr } = await runCommand(["restore", target, "--data", into]);
      assert.equal(code, 6, stderr);
      assert.match(stderr, /belongs to user 65534/);
    }
    assert.deepEqual(readdirSync(theirs), []);
    const mine = join(tempDir(), "restored");
    assert.equal((await runCommand(["restore", target, "--data", mine])).code, 0);
  });
});

describe("an installation", { skip }, () => {
  it("is not created in a directory of another user", async () => {
    const theirs = tempDir();
    chownSync(theirs, OTHER, OTHER);
    mkdirSync(join(theirs, "x"));
    for (const args of [
      ["bootstrap", "--org", "acme.example"],
      ["migrate", "--expand"],
    ]) {
      const { code, stderr } = await runCommand([...args, "--data", theirs]);
      assert.equal(code, 6, stderr);
      assert.match(stderr, /belongs to user 65534/);
    }
    assert.deepEqual(readdirSync(theirs), ["x"]);
  });
});
