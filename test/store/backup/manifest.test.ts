// What a manifest must hold: people copy and edit files, and a command must name what is wrong with one.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Code } from "@connectrpc/connect";
import { ApiError } from "../../../src/kernel/errors.js";
import { readManifest } from "../../../src/store/backup/manifest.js";
import { VERSION } from "../../../src/store/version.js";
import { tempDir } from "../../support/temp-dir.js";

const database = { bytes: 4096, sha256: "0f".repeat(32), lastMigration: "0001_first", oldestVersion: null };
const manifest = {
  ...{ format: 1, arborVersion: VERSION, snapshotTime: "2026-11-26T01:02:03.004Z", database },
  ...{ includesMasterKey: true, auditHeads: [] },
};

function directoryWith(text: string): string {
  const directory = tempDir();
  writeFileSync(join(directory, "manifest.json"), text);
  return directory;
}

function assertRejected(directory: string, rule: string): void {
  assert.throws(
    () => readManifest(directory),
    (error) => {
      assert.ok(error instanceof ApiError, String(error));
      assert.equal(error.code, Code.FailedPrecondition);
      assert.ok(error.message.includes(`${directory}: `) && error.message.includes(rule), error.message);
      return true;
    },
  );
}

test("a manifest is read as it was written, and so is one of an older version", () => {
  for (const arborVersion of [VERSION, "0.1.0"]) {
    const written = { ...manifest, arborVersion };
    assert.deepEqual(readManifest(directoryWith(JSON.stringify(written))), written);
  }
});

const invalidFields: readonly { readonly values: readonly unknown[]; readonly field: string; readonly rule: string }[] =
  [
    { field: "format", values: [undefined, null, 0, "1", {}], rule: "format must be 1" },
    { field: "arborVersion", values: [undefined, null, 1, {}], rule: "arborVersion must be a text" },
    { field: "snapshotTime", values: [undefined, null, "", "noon", 7, {}], rule: "snapshotTime must be a time" },
    { field: "database", values: [undefined, null, "x", 1, []], rule: "database.bytes must be a number" },
    {
      field: "includesMasterKey",
      values: [undefined, null, 1, "true"],
      rule: "includesMasterKey must be true or false",
    },
    { field: "auditHeads", values: [undefined, null, {}, ""], rule: "auditHeads must be a list" },
  ];
const invalidDatabases: typeof invalidFields = [
  { field: "bytes", values: [undefined, null, "4096", 1.5, 2 ** 60], rule: "database.bytes must be a number" },
  {
    field: "sha256",
    values: [undefined, null, "", "0F".repeat(32), "0f".repeat(31), `${"0f".repeat(32)}\n`, 7],
    rule: "database.sha256 must be 64 hex digits",
  },
];

for (const { field, values, rule } of invalidFields) {
  test(`${field} is checked`, () => {
    for (const value of values) assertRejected(directoryWith(JSON.stringify({ ...manifest, [field]: value })), rule);
  });
}

for (const { field, values, rule } of invalidDatabases) {
  test(`${field} of the database is checked`, () => {
    for (const value of values) {
      const changed = { ...manifest, database: { ...database, [field]: value } };
      assertRejected(directoryWith(JSON.stringify(changed)), rule);
    }
  });
}

test("text that is no JSON object is rejected", () => {
  for (const text of ["", "{", '{"format": 1'])
    assertRejected(directoryWith(text), "manifest.json is malformed: it is not JSON");
  for (const text of ["null", "7", '"manifest"', "true"])
    assertRejected(directoryWith(text), "manifest.json is malformed: it must be a JSON object");
  assertRejected(directoryWith("[]"), "manifest.json is malformed: arborVersion must be a text");
});

test("a manifest of a newer version or format says which version reads it", () => {
  for (const changed of [{ arborVersion: "99.0.0" }, { format: 2 }, { arborVersion: "99.0.0", database: "changed" }]) {
    const { arborVersion } = { ...manifest, ...changed };
    const rule = `restore it with version ${arborVersion} or newer`;
    assertRejected(directoryWith(JSON.stringify({ ...manifest, ...changed })), rule);
  }
});

test("a directory without a manifest holds no complete backup, and neither does a file", () => {
  assertRejected(tempDir(), "there is no complete backup");
  const file = join(directoryWith("{}"), "manifest.json");
  assertRejected(file, "there is no complete backup");
});

test("what the operating system refuses to read is no verdict about the backup", () => {
  const directory = tempDir();
  mkdirSync(join(directory, "manifest.json"));
  assert.throws(() => readManifest(directory), { code: "EISDIR" });
});
