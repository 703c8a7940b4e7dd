// What a backup copies while others write, and when there is none.
import assert from "node:assert/strict";
import { copyFileSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createBackup } from "../../../src/store/backup/create-backup.js";
import { digestFile, requireSpace } from "../../../src/store/backup/files.js";
import { backupFiles, readManifest } from "../../../src/store/backup/manifest.js";
import { holdFileLock } from "../../../src/store/sqlite/data-directory.js";
import { openDatabase } from "../../../src/store/sqlite/driver.js";
import type { Store } from "../../../src/store/store.js";
import { chooseScale } from "../../support/scale.js";
import { tempDir } from "../../support/temp-dir.js";
import { damagePageOf, openWithMarker, readMarker } from "./backup-kit.js";

const MIB = 2 ** 20;

async function openLarge(): Promise<{ readonly data: string; readonly store: Store }> {
  const { data, store } = await openWithMarker();
  // Several steps of a copy.
  await store.write(async (tx) => {
    for (let i = 0; i < 40; i++) await tx.settings.put(`filler ${i}`, "x".repeat(MIB));
  });
  return { data, store };
}

test("all pages are of one snapshot, however much is written meanwhile, and the copy ends", async (t) => {
  const { data, store } = await openLarge();
  t.after(() => store.close());
  const target = tempDir();
  let writes = 0;
  const written: Promise<void>[] = [];
  const manifest = await createBackup({
    data,
    target,
    onProgress({ name }) {
      if (name !== "copy") return;
      writes++;
      const both = ["marker", `filler ${writes}`].map((key) => store.write((tx) => tx.settings.put(key, `${writes}`)));
      written.push(...both);
    },
  });
  await Promise.all(written);
  assert.ok(writes > 2, `${writes} writes during the copy`);
  const copy = join(target, backupFiles.database);
  assert.equal(readMarker(copy), "0");
  assert.equal(readMarker(join(data, "arbor.db")), `${writes}`);
  assert.deepEqual(readManifest(target), manifest);
  assert.deepEqual(await digestFile(copy, () => {}), { bytes: statSync(copy).size, sha256: manifest.database.sha256 });
});

/** Several times as many as the file needs. */
const ENOUGH_STEPS = chooseScale(100, 10);

test("the stepwise copy of SQLite begins again with every write where no snapshot is held", async (t) => {
  const { data, store } = await openLarge();
  t.after(() => store.close());
  const db = openDatabase(join(data, "arbor.db"), { readonly: true });
  t.after(() => db.close());
  const writer = openDatabase(join(data, "arbor.db"));
  t.after(() => writer.close());
  let steps = 0;
  const enough = /enough/;
  await assert.rejects(
    db.backup(join(tempDir(), "copy.db"), {
      progress() {
        writer.prepare("UPDATE settings SET value = ? WHERE name = 'marker'").run(`${++steps}`);
        if (steps > ENOUGH_STEPS) throw new Error("enough");
        return 4_096;
      },
    }),
    enough,
  );
});

test("a copy of the database file alone lacks what is acknowledged, and a backup has it", async (t) => {
  const { data, store } = await openWithMarker();
  t.after(() => store.close());
  await store.write((tx) => tx.settings.put("marker", "acknowledged"));
  const [target, copied] = [tempDir(), join(tempDir(), "arbor.db")];
  copyFileSync(join(data, "arbor.db"), copied);
  await createBackup({ data, target });
  assert.equal(readMarker(join(target, backupFiles.database)), "acknowledged");
  assert.throws(() => assert.equal(readMarker(copied), "acknowledged"));
});

test("everything is for its owner alone, and the lock is gone", async (t) => {
  const { data, store } = await openWithMarker();
  t.after(() => store.close());
  const target = join(tempDir(), "new", "one");
  await createBackup({ data, target });
  assert.deepEqual(readdirSync(target).sort(), [backupFiles.database, backupFiles.manifest]);
  assert.equal(statSync(target).mode & 0o777, 0o700);
  for (const name of readdirSync(target)) assert.equal(statSync(join(target, name)).mode & 0o777, 0o600, name);
});

const occupiedTargets: readonly { reason: string; prepare: (target: string) => void; error: RegExp }[] = [
  {
    reason: "other files",
    prepare: (target) => writeFileSync(join(target, "letter.txt"), ""),
    error: /is not empty: it has letter.txt/,
  },
  {
    reason: "a data directory",
    prepare: (target) => writeFileSync(join(target, "arbor.db"), ""),
    error: /is not empty: it has arbor.db/,
  },
  {
    reason: "a backup",
    prepare: (target) => writeFileSync(join(target, "manifest.json"), "{}"),
    error: /is not empty: it has manifest.json/,
  },
  {
    reason: "a master key",
    prepare: (target) => writeFileSync(join(target, "master.key"), "secret"),
    error: /is not empty: it has master.key/,
  },
];

for (const { reason, prepare, error } of occupiedTargets) {
  test(`a target with ${reason} is rejected and stays as it is`, async (t) => {
    const { data, store } = await openWithMarker();
    t.after(() => store.close());
    const target = tempDir();
    prepare(target);
    const before = readdirSync(target);
    await assert.rejects(createBackup({ data, target }), error);
    assert.deepEqual(readdirSync(target), before);
  });
}

test("of two backups into one directory the second is rejected", async (t) => {
  const { data, store } = await openWithMarker();
  t.after(() => store.close());
  const target = tempDir();
  const release = holdFileLock(join(target, backupFiles.lock), 0);
  writeFileSync(join(target, `${backupFiles.database}.partial`), "of the first");
  await assert.rejects(createBackup({ data, target }), /another backup is being written there/);
  assert.ok(existsSync(join(target, `${backupFiles.database}.partial`)));
  release();
  await createBackup({ data, target });
});

test("a directory that has only the lost+found of its volume counts as empty", async (t) => {
  const { data, store } = await openWithMarker();
  t.after(() => store.close());
  const target = tempDir();
  mkdirSync(join(target, "lost+found"));
  await createBackup({ data, target });
  assert.ok(existsSync(join(target, "lost+found")));
});

test("a damaged database is not backed up, and nothing is left", async () => {
  const { data, store } = await openWithMarker();
  await store.close();
  damagePageOf(join(data, "arbor.db"), "tags");
  const target = tempDir();
  await assert.rejects(createBackup({ data, target }), /is damaged: /);
  assert.deepEqual(readdirSync(target), []);
});

test("a database that needs a newer version is not backed up", async () => {
  const { data, store } = await openWithMarker();
  await store.write((tx) => tx.settings.put("oldest_version", "99.0.0"));
  await store.close();
  const target = tempDir();
  await assert.rejects(createBackup({ data, target }), /the database needs version 99.0.0/);
  assert.deepEqual(readdirSync(target), []);
});

test("a disk without room is rejected before anything is copied", () => {
  const directory = tempDir();
  requireSpace(directory, 1);
  assert.throws(() => requireSpace(directory, 2 ** 60), /1099511627776 MiB are needed and \d+ MiB are free$/);
});
