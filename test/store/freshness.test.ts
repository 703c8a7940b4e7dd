// A read sees every write that was acknowledged before it, by whichever process, also where other reads of the same tick of
// the event loop came before the write.
import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { groupKind } from "../../src/store/iam/groups.js";
import {
  createControl,
  createDataVersion,
  createExecutor,
  openExisting,
  openReading,
} from "../../src/store/sqlite/connection.js";
import { openDatabase } from "../../src/store/sqlite/driver.js";
import { createFaultMonitor } from "../../src/store/sqlite/faults.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import { SnapshotReader } from "../../src/store/sqlite/snapshot-reader.js";
import type { Executor } from "../../src/store/statement.js";
import type { Store } from "../../src/store/store.js";
import type { Tx } from "../../src/store/transaction.js";
import { execFileSync } from "../support/child-process.js";
import { groupRow, rootUid } from "../support/rows.js";
import { tempDir } from "../support/temp-dir.js";

const root = rootUid(1);
const checkout = fileURLToPath(new URL("../..", import.meta.url));

/** Reads as a process does, and renames the group as another one does, without a turn of the event loop. */
async function openBoth(t: TestContext) {
  const directory = tempDir();
  const file = join(directory, "arbor.db");
  const store = openSqlite({ directory });
  t.after(() => store.close());
  await store.write((tx) => tx.table(groupKind).insert(groupRow(root)));
  const other = openDatabase(file);
  t.after(() => other.close());
  const change = other.prepare("UPDATE groups SET name = ? WHERE uid = ?");
  return { file, store, rename: (name: string) => void change.run(name, root) };
}

const readName = async (tx: Tx) => (await tx.table(groupKind).find(root))?.name;

test("a read sees what another process has committed since an earlier read of the same tick", async (t) => {
  const { store, rename } = await openBoth(t);
  const before = await store.read(readName);
  // The first of them may see more than was committed as it was called, but the others nothing less.
  const first = store.read(readName);
  rename("second");
  const second = store.read(readName);
  rename("third");
  const third = store.read(readName);
  assert.ok([before, "second", "third"].includes(await first));
  assert.ok(["second", "third"].includes(String(await second)), `the second read returned ${await second}`);
  assert.equal(await third, "third");
});

test("the same, as the earlier read has read its first statement", async (t) => {
  const { store, rename } = await openBoth(t);
  const found = await store.read(async (tx) => {
    const before = await readName(tx);
    rename("second");
    const later = await store.read(readName);
    // Its own snapshot is that of its beginning.
    return [before === (await readName(tx)), later];
  });
  assert.deepEqual(found, [true, "second"]);
});

test("the same, where a command in a process of its own commits", async (t) => {
  const { store, file } = await openBoth(t);
  await store.read(readName);
  const script = `import { openDatabase } from "./src/store/sqlite/driver.js";
    const db = openDatabase(process.argv[1]);
    db.prepare("UPDATE groups SET name = 'by another process'").run();`;
  const flags = ["--import", "tsx", "--input-type=module", "--eval", script, file];
  const again = store.read(readName);
  execFileSync(process.execPath, flags, { cwd: checkout });
  const last = store.read(readName);
  await again;
  assert.equal(await last, "by another process");
});

test("many reads of one tick between many commits see each of them", async (t) => {
  const { store, rename } = await openBoth(t);
  const seen: Promise<string | undefined>[] = [];
  for (let i = 100; i < 200; i++) {
    rename(`name ${i}`);
    seen.push(store.read(readName), store.read(readName));
  }
  const names = (await Promise.all(seen)).map(String);
  names.forEach((name, i) => {
    assert.ok(name >= `name ${100 + Math.floor(i / 2)}`, `read ${i} returned ${name}`);
  });
});

test("a unit that has paused keeps its snapshot, and later reads see what was committed", async (t) => {
  const { store, rename } = await openBoth(t);
  let renamed = () => {};
  const isRenamed = new Promise<void>((resolve) => {
    renamed = resolve;
  });
  const long = store.read(async (tx) => {
    const before = await readName(tx);
    await (tx as Tx & Executor).pause?.(true);
    renamed();
    await (tx as Tx & Executor).pause?.(true);
    return [before, await readName(tx)];
  });
  await isRenamed;
  rename("later");
  assert.equal(await store.read(readName), "later");
  const [before, after] = await long;
  assert.equal(after, before);
});

test("control: a reader that does not notice commits returns the old value", async (t) => {
  const { file, rename } = await openBoth(t);
  const faults = createFaultMonitor(file);
  const open = () => {
    const db = openReading(file);
    return Object.assign(createExecutor(db), { control: createControl(db, faults), close: () => void db.close() });
  };
  const idle = openExisting(file);
  t.after(() => idle.close());
  const staleAfter = async (dataVersion: () => unknown) => {
    const reader = new SnapshotReader(open, dataVersion);
    const read = reader.read.bind(reader) as unknown as Store["read"];
    rename("first");
    const [, ...later] = await read(async (tx) => {
      const names = [await readName(tx)];
      rename("second");
      names.push(await read(readName));
      rename("third");
      return [...names, await read(readName)];
    });
    await reader.close();
    return later;
  };
  assert.deepEqual(await staleAfter(() => 0), ["first", "first"]);
  assert.deepEqual(await staleAfter(createDataVersion(idle, faults)), ["second", "third"]);
});
