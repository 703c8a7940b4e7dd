// Faults of the machine that a store on SQLite meets: files that are removed or replaced under it, and a full disk.
import assert from "node:assert/strict";
import { closeSync, copyFileSync, openSync, renameSync, rmSync, unlinkSync, writeSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ApiError } from "../../src/kernel/errors.js";
import { systemClock } from "../../src/kernel/time.js";
import type { DatabaseFaultEvent } from "../../src/store/faults.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { createControl, createExecutor, openWriting } from "../../src/store/sqlite/connection.js";
import { openDatabase } from "../../src/store/sqlite/driver.js";
import { createFaultMonitor } from "../../src/store/sqlite/faults.js";
import { guardFiles } from "../../src/store/sqlite/files.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import { WriteQueue } from "../../src/store/sqlite/write-queue.js";
import type { Store } from "../../src/store/store.js";
import { groupRow, rootUid } from "../support/rows.js";
import { tempDir } from "../support/temp-dir.js";

function openFaulty() {
  const directory = tempDir();
  const events: DatabaseFaultEvent[] = [];
  const store = openSqlite({ directory, exclusive: true, onFault: (event) => events.push(event) });
  return { directory, file: join(directory, "arbor.db"), store, events };
}

const addGroup = (store: Pick<Store, "write">, n: number) =>
  store.write((tx) =>
    tx.table(groupKind).insert(groupRow(rootUid(n), { name: `group ${n}`, description: "x".repeat(4_000) })),
  );

const isReplaced = (error: unknown) =>
  error instanceof ApiError && error.message.includes("replaced while it was in use");

// The main file alone, as the next process finds it when the log is gone.
function countGroups(file: string): number {
  const copy = join(tempDir(), "copy.db");
  copyFileSync(file, copy);
  const db = openDatabase(copy, { readonly: true });
  try {
    return db.prepare("SELECT count(*) FROM groups").pluck().get() as number;
  } catch (error) {
    // The tables themselves are only in the log.
    if (/no such table/.test(String(error))) return 0;
    throw error;
  } finally {
    db.close();
  }
}

async function assertRejectsAll(store: Store): Promise<void> {
  await assert.rejects(addGroup(store, 90), isReplaced);
  await assert.rejects(async () => store.read((tx) => tx.table(groupKind).find(rootUid(1))), isReplaced);
  await assert.rejects(store.check(), isReplaced);
}

for (const { name, spoil } of [
  { name: "removed", spoil: (file: string) => unlinkSync(file) },
  {
    name: "replaced by another",
    spoil(file: string) {
      const other = openDatabase(`${file}.new`);
      other.exec("CREATE TABLE other (id INTEGER)");
      other.close();
      renameSync(`${file}.new`, file);
    },
  },
]) {
  test(`a database that is ${name}: all calls are rejected, with one event`, async () => {
    const { store, file, events } = openFaulty();
    await addGroup(store, 1);
    spoil(file);
    await assertRejectsAll(store);
    await assertRejectsAll(store);
    assert.deepEqual(
      events.map(({ fault, state, file: named }) => [fault, state, named]),
      [["replaced", "began", file]],
    );
    assert.match(events[0]?.advice ?? "", /\/proc\/\d+\/fd/);
    assert.equal(store.stats().faults?.errors.replaced, 1);
    await store.close();
  });
}

test("a database that is moved away during a commit: the commit is not acknowledged", async () => {
  const { store, file } = openFaulty();
  await addGroup(store, 1);
  const writing = store.write(async (tx) => {
    await tx.table(groupKind).insert(groupRow(rootUid(2), { name: "late" }));
    renameSync(file, `${file}.away`);
  });
  await assert.rejects(writing, isReplaced);
  await store.close();
});

test("a write-ahead log that is removed: what it had is in the database, and all calls are rejected", async () => {
  const { store, file, events } = openFaulty();
  for (let n = 1; n <= 20; n++) await addGroup(store, n);
  unlinkSync(`${file}-wal`);
  await assertRejectsAll(store);
  assert.deepEqual(
    events.map(({ fault, state }) => [fault, state]),
    [
      ["replaced", "began"],
      ["replaced", "saved"],
    ],
  );
  // The write that detected the fault was not acknowledged; its row may be stored or not.
  assert.ok([20, 21].includes(countGroups(file)));
  await store.close();
});

test("control: without the check the content of the removed log is lost", async () => {
  const { store, file } = openFaulty();
  for (let n = 1; n <= 20; n++) await addGroup(store, n);
  unlinkSync(`${file}-wal`);
  assert.ok(countGroups(file) < 20);
  await store.close();
});

test("control: while the files stay in place no call is rejected", async () => {
  const { store, events } = openFaulty();
  for (let n = 1; n <= 20; n++) await addGroup(store, n);
  assert.equal(await store.check(), "ok");
  assert.deepEqual(events, []);
  await store.close();
});

test("a full database: writes are UNAVAILABLE with one event, and the fault ends with a commit", async (t) => {
  const { store, file, directory } = openFaulty();
  await store.close();
  const events: DatabaseFaultEvent[] = [];
  const faults = createFaultMonitor(file, (event) => events.push(event));
  const db = openWriting(file);
  const connection = Object.assign(createExecutor(db, { faults }), {
    control: createControl(db, faults),
    inTransaction: false,
  });
  Object.defineProperty(connection, "inTransaction", { get: () => db.inTransaction });
  const guard = guardFiles({ file, faults, database: db });
  const queue = new WriteQueue(connection, systemClock, undefined, guard);
  const writeGroup = (n: number) => addGroup({ write: (unit, options) => queue.submit(unit, options) }, n);
  let nowMs = performance.now();
  t.mock.method(performance, "now", () => nowMs);

  await writeGroup(1);
  const pages = Number(db.pragma("page_count", { simple: true }));
  db.pragma(`max_page_count = ${pages}`);
  const outcomes = await Promise.allSettled(Array.from({ length: 200 }, (_, i) => writeGroup(i + 2)));
  const rejected = outcomes.filter(({ status }) => status === "rejected") as PromiseRejectedResult[];
  assert.ok(rejected.length > 0, "it was never full");
  for (const { reason } of rejected) {
    assert.ok(reason instanceof ApiError);
    assert.match(reason.message, /^Unavailable: the database cannot be used at the moment/);
  }
  assert.deepEqual(
    events.map(({ fault, state }) => [fault, state]),
    [["full", "began"]],
  );
  const acknowledged = 1 + outcomes.length - rejected.length;
  assert.equal(db.prepare("SELECT count(*) FROM groups").pluck().get(), acknowledged);

  db.pragma("max_page_count = 1000000");
  await writeGroup(300);
  assert.equal(events.length, 1, "a fault ends only after some time without an error");
  nowMs += 6_000;
  await queue.submit(async (tx) => void tx);
  assert.equal(events.length, 1, "a commit without changes proves nothing");
  await writeGroup(301);
  assert.deepEqual(events[1] && [events[1].fault, events[1].state, events[1].errors], [
    "full",
    "ended",
    faults.counts.errors.full,
  ]);
  assert.equal(faults.isFaulty, false);
  db.close();
  rmSync(directory, { recursive: true });
});

test("a damaged page: all writes are rejected until a restart, and other pages are read", async () => {
  const { store: first, file, directory } = openFaulty();
  for (let n = 1; n <= 200; n++) await addGroup(first, n);
  await first.close();
  const db = openDatabase(file);
  const page = db
    .prepare("SELECT pageno FROM dbstat WHERE name = 'groups' AND pagetype = 'leaf' LIMIT 1")
    .pluck()
    .get();
  const size = Number(db.pragma("page_size", { simple: true }));
  db.close();
  const descriptor = openSync(file, "r+");
  writeSync(descriptor, Buffer.alloc(size, 0xa5), 0, size, (Number(page) - 1) * size);
  closeSync(descriptor);

  const events: DatabaseFaultEvent[] = [];
  const store = openSqlite({ directory, exclusive: true, onFault: (event) => events.push(event) });
  const isDamaged = (error: unknown) => error instanceof ApiError && error.message.includes("the database is damaged");
  const readAll = async () => {
    let found = 0;
    for (let n = 1; n <= 200; n++) {
      try {
        if (await store.read((tx) => tx.table(groupKind).find(rootUid(n)))) found++;
      } catch (error) {
        assert.ok(isDamaged(error), String(error));
      }
    }
    return found;
  };
  const found = await readAll();
  assert.ok(found > 0 && found < 200, `${found} rows were read`);
  await assert.rejects(addGroup(store, 300), isDamaged);
  await assert.rejects(store.check(), isDamaged);
  assert.deepEqual(
    events.map(({ fault, state }) => [fault, state]),
    [["corrupt", "began"]],
  );
  await store.close();
});
