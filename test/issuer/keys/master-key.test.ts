import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { checkMasterKey, readMasterKey } from "../../../src/issuer/keys/master-key.js";
import { openSqlite } from "../../../src/store/sqlite/open.js";
import { tempDir } from "../../support/temp-dir.js";

const key = (byte: number) => Buffer.alloc(32, byte).toString("base64");

function fileOf(content: string, mode = 0o600): string {
  const file = join(tempDir(), "master.key");
  writeFileSync(file, content, { mode });
  chmodSync(file, mode);
  return file;
}

test("a key is made once, for its owner alone, with nothing left beside it", () => {
  const directory = tempDir();
  const file = join(directory, "master.key");
  const sealed = readMasterKey(file, true).seal(Buffer.from("secret"), "c");
  const content = readFileSync(file, "utf8");
  assert.match(content, /^[A-Za-z0-9+/]{43}=\n$/);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.equal(readMasterKey(file, true).unseal(sealed, "c").toString(), "secret");
  assert.equal(readFileSync(file, "utf8"), content);
  assert.deepEqual(readdirSync(directory), ["master.key"]);
});

test("no key is made where one must be given", () => {
  const file = join(tempDir(), "master.key");
  assert.throws(() => readMasterKey(file, false), { message: `--master-key-file: cannot read ${file}: no such file` });
  assert.equal(existsSync(file), false);
});

const modes: readonly { mode: number; allowed: boolean }[] = [
  { mode: 0o600, allowed: true },
  { mode: 0o400, allowed: true },
  // Root may give a group the right to read: so are secrets mounted into containers.
  { mode: 0o640, allowed: process.getuid?.() === 0 },
  { mode: 0o604, allowed: false },
  { mode: 0o620, allowed: false },
  { mode: 0o666, allowed: false },
  { mode: 0o601, allowed: false },
];

for (const { mode, allowed } of modes) {
  test(`mode ${mode.toString(8)}: ${allowed ? "allowed" : "rejected"}`, () => {
    const file = fileOf(`${key(1)}\n`, mode);
    if (allowed) return void readMasterKey(file, true);
    const rule = process.getuid?.() === 0 ? "must not be readable by others" : "must be readable by its owner alone";
    assert.throws(
      () => readMasterKey(file, true),
      (error: Error) => error.message.startsWith(`--master-key-file: ${file} ${rule}`),
    );
  });
}

const contents: readonly { content: string; allowed: boolean; reason: string }[] = [
  { content: key(1), allowed: true, reason: "a key without a line feed" },
  { content: `\n  ${key(1)}  \r\n\n${key(2)}\n`, allowed: true, reason: "two keys, and blanks around them" },
  { content: "", allowed: false, reason: "nothing" },
  { content: "\n \n", allowed: false, reason: "blank lines" },
  { content: Buffer.alloc(31).toString("base64"), allowed: false, reason: "31 bytes" },
  { content: Buffer.alloc(33).toString("base64"), allowed: false, reason: "33 bytes" },
  { content: Buffer.alloc(32).toString("hex"), allowed: false, reason: "hex" },
  { content: `${key(1)}\npassword`, allowed: false, reason: "a key and something else" },
  { content: key(1).repeat(2), allowed: false, reason: "two keys in a line" },
];

for (const { content, allowed, reason } of contents) {
  test(`a file of ${reason}: ${allowed ? "allowed" : "rejected"}`, () => {
    const file = fileOf(content);
    if (allowed) return void readMasterKey(file, false);
    assert.throws(() => readMasterKey(file, false), {
      message: `--master-key-file: ${file} must hold lines of 32 bytes in base64`,
    });
  });
}

test("a directory is no key", () => {
  const file = join(tempDir(), "master.key");
  mkdirSync(file, { mode: 0o700 });
  assert.throws(() => readMasterKey(file, true));
});

test("the first key seals, all open", () => {
  const [one, two] = [readMasterKey(fileOf(key(1)), false), readMasterKey(fileOf(key(2)), false)];
  const both = readMasterKey(fileOf(`${key(2)}\n${key(1)}\n`), false);
  assert.equal(both.unseal(one.seal(Buffer.from("old"), "c"), "c").toString(), "old");
  assert.equal(two.unseal(both.seal(Buffer.from("new"), "c"), "c").toString(), "new");
  assert.throws(() => one.unseal(two.seal(Buffer.from("x"), "c"), "c"), /does not open what is stored \(c\)/);
  assert.throws(() => two.unseal(two.seal(Buffer.from("x"), "c"), "d"), /does not open what is stored \(d\)/);
});

test("another key than the one things were sealed with is noticed at start", async (t) => {
  const store = openSqlite({ directory: tempDir() });
  t.after(() => store.close());
  const [one, two] = [readMasterKey(fileOf(key(1)), false), readMasterKey(fileOf(key(2)), false)];
  for (let i = 0; i < 2; i++) await store.write((tx) => checkMasterKey(tx, one));
  await assert.rejects(
    store.write((tx) => checkMasterKey(tx, two)),
    /does not open what is stored \(master-key-check\)/,
  );
  const both = readMasterKey(fileOf(`${key(2)}\n${key(1)}`), false);
  await store.write((tx) => checkMasterKey(tx, both));
});
