// The kinds of faults: which errors of SQLite begin which, how callers are answered, and how a store recovers alone.
import assert from "node:assert/strict";
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { ApiError } from "../../src/kernel/errors.js";
import type { DatabaseFaultEvent } from "../../src/store/faults.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { openReading, openWriting } from "../../src/store/sqlite/connection.js";
import { openDatabase, type SqliteDatabase } from "../../src/store/sqlite/driver.js";
import { createFaultMonitor } from "../../src/store/sqlite/faults.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import type { Executor } from "../../src/store/statement.js";
import type { Store } from "../../src/store/store.js";
import type { Tx } from "../../src/store/transaction.js";
import { replaceFs } from "../support/replace-fs.js";
import { groupRow, rootUid } from "../support/rows.js";
import { memoryDir } from "../support/temp-dir.js";

/** Why a disk does not write, as Node tells it. */
type DiskError = "EROFS" | "EPERM" | "EACCES" | "EIO" | undefined;

function newFile(): string {
  const file = join(memoryDir(), "arbor.db");
  writeFileSync(file, "");
  return file;
}

function openMonitor(file: string) {
  const events: DatabaseFaultEvent[] = [];
  return { faults: createFaultMonitor(file, (event) => events.push(event)), events };
}

function catchError(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  return assert.fail("it did not fail");
}

const isUnavailable = (error: unknown) =>
  error instanceof ApiError && /^Unavailable: the database cannot be used at the moment/.test(error.message);

test("a database that may only be read and one that cannot be opened are different faults", () => {
  const file = newFile();
  openWriting(file).exec("CREATE TABLE kept (n INTEGER)").close();
  const { faults, events } = openMonitor(file);
  const reading = openReading(file);
  const written = faults.toCallError(catchError(() => reading.exec("INSERT INTO kept VALUES (1)")));
  reading.close();
  assert.ok(isUnavailable(written), String(written));
  assert.deepEqual([faults.isReadOnly, [...faults.counts.current]], [true, ["read_only"]]);

  const missing = join(memoryDir(), "arbor.db");
  const other = openMonitor(missing);
  const opened = other.faults.toCallError(catchError(() => openDatabase(missing, { fileMustExist: true })));
  assert.ok(isUnavailable(opened), String(opened));
  assert.deepEqual([other.faults.isReadOnly, [...other.faults.counts.current]], [false, ["no_files"]]);
  assert.deepEqual(
    [...events, ...other.events].map(({ message }) => message),
    [
      "the database cannot be written, because its file system or file is read-only: writes fail",
      "no file of the database can be opened: calls fail until files can be opened again",
    ],
  );
});

// A file system that stopped after an error of its disk rejects new times, but not to ask whether a file may be written.
for (const [diskError, fault] of [
  ["EROFS", "read_only"],
  ["EPERM", "read_only"],
  ["EACCES", "read_only"],
  ["EIO", "io_error"],
  [undefined, "io_error"],
] as const) {
  test(`an error of the disk, with ${diskError ?? "no error"} on a change of the directory, is ${fault}`, (t) => {
    const file = newFile();
    const { faults } = openMonitor(file);
    rejectTimes(t, diskError);
    const error = Object.assign(new Error("disk I/O error"), { code: "SQLITE_IOERR_FSYNC" });
    assert.ok(isUnavailable(faults.toCallError(error)));
    assert.deepEqual([...faults.counts.current], [fault]);
  });
}

function rejectTimes(t: TestContext, code: DiskError): void {
  if (code === undefined) return;
  replaceFs(t, "utimesSync", () => {
    throw Object.assign(new Error(code), { code });
  });
}

test("an error that is no fault of the machine is a defect, and begins none", () => {
  const { faults, events } = openMonitor(newFile());
  const db = openDatabase(":memory:");
  const defect = catchError(() => db.exec("SELECT * FROM nowhere"));
  db.close();
  assert.equal(faults.toCallError(defect), defect);
  assert.deepEqual(events, []);
});

const addGroup = (store: Store, n: number) =>
  store.write((tx: Tx) => tx.table(groupKind).insert(groupRow(rootUid(n), { description: "x".repeat(2_000_000) })));

// Opens a store and finds the connection that writes.
function openStore(events: DatabaseFaultEvent[]) {
  const directory = join(memoryDir(), "data");
  mkdirSync(directory, { mode: 0o700 });
  const any = openDatabase(":memory:");
  const prototype = Object.getPrototypeOf(any) as SqliteDatabase;
  any.close();
  const { pragma } = prototype;
  const connections = new Set<SqliteDatabase>();
  prototype.pragma = function (this: SqliteDatabase, ...args: Parameters<typeof pragma>) {
    connections.add(this);
    return pragma.apply(this, args);
  };
  try {
    const store = openSqlite({ directory, exclusive: true, onFault: (event) => events.push(event) });
    const writing = [...connections].find(({ readonly }) => !readonly);
    return { store, writing: writing ?? assert.fail("no connection writes"), file: join(directory, "arbor.db") };
  } finally {
    prototype.pragma = pragma;
  }
}

test("a store whose disk was full says that it can be read, and finds out without calls that it is not any more", async (t) => {
  let nowMs = performance.now();
  t.mock.method(performance, "now", () => nowMs);
  t.mock.timers.enable({ apis: ["setInterval"] });
  const events: DatabaseFaultEvent[] = [];
  const { store, writing } = openStore(events);
  const listStates = () => events.map(({ fault, state }) => `${fault} ${state}`);
  // Without the changes of the test, a commit that ends the fault is one of the store itself.
  const passSeconds = async (seconds: number) => {
    nowMs += seconds * 1_000;
    t.mock.timers.tick(1_000);
    await store.write(async () => {});
  };
  await store.write((tx) => tx.settings.put("origin", "https://arbor.example"));
  assert.equal(await store.check(), "ok");
  writing.pragma(`max_page_count = ${writing.pragma("page_count", { simple: true })}`);
  await assert.rejects(addGroup(store, 1), isUnavailable);
  assert.equal(await store.check(), "read-only");
  assert.equal(await store.read((tx) => tx.table(groupKind).find(rootUid(1))), undefined);
  await passSeconds(1);
  assert.deepEqual(listStates(), ["full began"], "a commit right after an error proves nothing");
  writing.pragma("max_page_count = 1000000");
  await passSeconds(6);
  assert.deepEqual(listStates(), ["full began", "full ended"]);
  assert.equal(await store.check(), "ok");
  assert.equal(await store.read((tx) => tx.settings.find("origin")), "https://arbor.example");
  await addGroup(store, 1);
  await store.close();
});

test("a read that needs another connection when no file can be opened is UNAVAILABLE, and later ones succeed", async (t) => {
  // The store does not look at its files by itself.
  t.mock.timers.enable({ apis: ["setInterval"] });
  const events: DatabaseFaultEvent[] = [];
  const { store, file } = openStore(events);
  await addGroup(store, 1);
  let end = () => {};
  // It pauses, so that the next read needs another connection.
  const long = Promise.resolve(
    store.read(async (unit) => {
      const tx = unit as Tx & Executor;
      const ended = new Promise<void>((resolve) => {
        end = resolve;
      });
      let pausing: Promise<void> | undefined;
      while (pausing === undefined) {
        await tx.table(groupKind).find(rootUid(1));
        pausing = tx.pause?.();
      }
      await pausing;
      await ended;
    }),
  );
  renameSync(file, `${file}.away`);
  await new Promise((resolve) => setImmediate(resolve));
  await assert.rejects(async () => store.read((tx) => tx.table(groupKind).find(rootUid(1))), isUnavailable);
  renameSync(`${file}.away`, file);
  assert.deepEqual(
    events.map(({ fault, state }) => `${fault} ${state}`),
    ["no_files began"],
  );
  assert.ok(await store.read((tx) => tx.table(groupKind).find(rootUid(1))));
  end();
  await long;
  await store.close();
});
