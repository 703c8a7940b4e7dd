// What happens to the files of an open database: when they count as replaced, and when a removed log is saved.
import assert from "node:assert/strict";
import { copyFileSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { DatabaseFaultEvent } from "../../src/store/faults.js";
import { openReading, openWriting } from "../../src/store/sqlite/connection.js";
import { openDatabase } from "../../src/store/sqlite/driver.js";
import { createFaultMonitor } from "../../src/store/sqlite/faults.js";
import { guardFiles, watchDatabaseFiles } from "../../src/store/sqlite/files.js";
import { memoryDir } from "../support/temp-dir.js";

const ROWS = 20;

// A database whose rows are in the log alone.
function openGuarded() {
  const file = join(memoryDir(), "arbor.db");
  writeFileSync(file, "");
  const db = openWriting(file);
  db.pragma("busy_timeout = 0");
  db.exec("CREATE TABLE kept (n INTEGER)");
  for (let n = 0; n < ROWS; n++) db.prepare("INSERT INTO kept VALUES (?)").run(n);
  const events: DatabaseFaultEvent[] = [];
  const faults = createFaultMonitor(file, (event) => events.push(event));
  const guard = guardFiles({ file, faults, database: db });
  const listStates = () => events.map(({ fault, state }) => `${fault} ${state}`);
  return { file, db, faults, guard, listStates };
}

// As the next process finds the file when the log is gone.
function countSavedRows(file: string): number {
  const copy = join(memoryDir(), "copy.db");
  copyFileSync(file, copy);
  const db = openDatabase(copy, { readonly: true });
  try {
    const hasTable = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'kept'").get() !== undefined;
    return hasTable ? Number(db.prepare("SELECT count(*) FROM kept").pluck().get()) : 0;
  } finally {
    db.close();
  }
}

test("a log that is created after the database was opened is watched from then on", () => {
  const file = join(memoryDir(), "arbor.db");
  writeFileSync(file, "");
  const files = watchDatabaseFiles(file);
  assert.equal(files.findReplaced(), undefined);
  writeFileSync(`${file}-wal`, "first");
  assert.equal(files.findReplaced(), undefined, "a new log replaces none");
  writeFileSync(`${file}-new`, "second");
  renameSync(`${file}-new`, `${file}-wal`);
  assert.deepEqual(files.findReplaced(), { file: `${file}-wal`, isOther: true });
  unlinkSync(`${file}-wal`);
  assert.deepEqual(files.findReplaced(), { file: `${file}-wal`, isOther: false });
});

test("a directory that cannot be read for a moment does not count as a replaced database", () => {
  const directory = join(memoryDir(), "data");
  symlinkSync("data", directory);
  const unreadable = watchDatabaseFiles(join(directory, "arbor.db"));
  rmSync(directory);
  const { file: opened, db } = openGuarded();
  const home = join(opened, "..");
  symlinkSync(home, directory);
  const file = join(directory, "arbor.db");
  const files = watchDatabaseFiles(file);
  assert.equal(unreadable.findReplaced(), undefined, "what was there at first is not known");
  rmSync(directory);
  // A link to itself cannot be followed.
  symlinkSync("data", directory);
  assert.equal(files.findReplaced(), undefined);
  rmSync(directory);
  symlinkSync(home, directory);
  assert.equal(files.findReplaced(), undefined, "it is the same database again");
  rmSync(directory);
  assert.deepEqual(files.findReplaced(), { file, isOther: false });
  db.close();
});

test("a log that is removed while others read is saved once they have ended", () => {
  const { file, db, faults, guard, listStates } = openGuarded();
  const reading = openReading(file);
  reading.exec("BEGIN");
  reading.prepare("SELECT count(*) FROM kept").get();
  db.exec("INSERT INTO kept VALUES (99)");
  unlinkSync(`${file}-wal`);
  guard.check();
  guard.check();
  assert.deepEqual(listStates(), ["replaced began"]);
  reading.close();
  guard.check();
  assert.deepEqual(listStates(), ["replaced began", "replaced saved"]);
  assert.equal(countSavedRows(file), ROWS + 1);
  guard.check();
  assert.deepEqual(listStates(), ["replaced began", "replaced saved"], "each is told once");
  assert.equal(faults.counts.errors.replaced, 1);
  db.close();
});

test("a log that is removed within a transaction is saved once it has ended", () => {
  const { file, db, guard, listStates } = openGuarded();
  db.exec("BEGIN IMMEDIATE; DELETE FROM kept");
  unlinkSync(`${file}-wal`);
  guard.check();
  assert.deepEqual(listStates(), ["replaced began"]);
  db.exec("ROLLBACK");
  guard.check();
  assert.deepEqual(listStates(), ["replaced began", "replaced saved"]);
  assert.equal(countSavedRows(file), ROWS);
  db.close();
});

test("a removed log that the disk does not save is saved later, and the check does not fail", () => {
  const { file, db, guard, listStates } = openGuarded();
  const { pragma } = db;
  db.pragma = () => {
    throw Object.assign(new Error("disk I/O error"), { code: "SQLITE_IOERR_WRITE" });
  };
  unlinkSync(`${file}-wal`);
  guard.check();
  assert.deepEqual(listStates(), ["replaced began"]);
  db.pragma = pragma;
  guard.check();
  assert.deepEqual(listStates(), ["replaced began", "replaced saved"]);
  assert.equal(countSavedRows(file), ROWS);
  db.close();
});
