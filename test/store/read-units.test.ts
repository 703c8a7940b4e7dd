// A unit of work that reads pauses after the time of its own statements, however many others read in the same tick.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type ReadConnection, SnapshotReader } from "../../src/store/sqlite/snapshot-reader.js";
import type { Executor } from "../../src/store/statement.js";
import type { Tx } from "../../src/store/transaction.js";

/** What a unit gets, with the statements that it does not offer. */
type Unit = Tx & Executor;

// The statement takes as many milliseconds as its parameter says, by the clock of the reader.
function openReader(counts = { open: 0, most: 0 }) {
  let nowMs = 0;
  const connection = (): ReadConnection => {
    counts.most = Math.max(counts.most, ++counts.open);
    let isOpen = true;
    return {
      counterSlots: 1,
      async rows(_statement, params, take) {
        assert.ok(isOpen, "a closed connection is read");
        nowMs += (params as unknown as { ms: number }).ms;
        return take?.([]) as never;
      },
      changedRows: 0,
      nowMs: async () => 0,
      clockMs: () => 0,
      control: () => {},
      close() {
        isOpen = false;
        counts.open--;
      },
    };
  };
  return new SnapshotReader(
    connection,
    () => 0,
    () => nowMs,
  );
}

/** Waits until the snapshot of this tick has ended. */
const passTick = () => new Promise((resolve) => setImmediate(resolve));

/** Reads `count` times for `ms` milliseconds and returns how often it paused. */
async function readAndCountPauses(tx: Unit, count: number, ms: number): Promise<number> {
  let pauses = 0;
  for (let i = 0; i < count; i++) {
    await tx.rows(undefined as never, { ms } as never);
    const pause = tx.pause?.();
    if (pause) pauses++;
    await pause;
  }
  return pauses;
}

const run = (reader: ReturnType<typeof openReader>, count: number, ms: number) =>
  Promise.resolve(reader.read((tx) => readAndCountPauses(tx as Unit, count, ms)));

test("twenty units of two milliseconds in one tick do not pause", async () => {
  const reader = openReader();
  const units = Array.from({ length: 20 }, () => run(reader, 4, 0.5));
  assert.deepEqual(await Promise.all(units), Array(20).fill(0));
  await reader.close();
});

test("a unit of thirty milliseconds pauses again and again, alone and among others", async () => {
  const reader = openReader();
  // The first statement is read before the unit is known to have more.
  assert.equal(await run(reader, 61, 0.5), 10);
  const [among, ...others] = await Promise.all([
    run(reader, 61, 0.5),
    ...Array.from({ length: 10 }, () => run(reader, 2, 0.5)),
  ]);
  assert.equal(among, 10);
  assert.deepEqual(others, Array(10).fill(0));
  await reader.close();
});

test("a dozen units that are long in any case, of one tick, begin in a tick each", async () => {
  const reader = openReader();
  let tick = 0;
  let isOver = false;
  const count = () => {
    tick++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const began = async (atOnce: boolean) => {
    const units = Array.from({ length: 12 }, () =>
      reader.read(async (tx) => {
        await (tx as Unit).pause?.(atOnce);
        return tick;
      }),
    );
    return new Set(await Promise.all(units)).size;
  };
  assert.equal(await began(true), 12);
  assert.equal(await began(false), 1, "control: otherwise they begin together");
  isOver = true;
  await passTick();
  await reader.close();
});

test("more long units than may be paused at once all end: in one tick on one connection", async () => {
  const reader = openReader();
  const pauses = await Promise.all(Array.from({ length: 10 }, () => run(reader, 20, 0.5)));
  assert.deepEqual(pauses, Array(10).fill(3));
  await reader.close();
});

test("more long units than may be paused at once all end: of different ticks, on five connections, before the close", async () => {
  const counts = { open: 0, most: 0 };
  const reader = openReader(counts);
  const units: Promise<number>[] = [];
  let ended = 0;
  for (let i = 0; i < 8; i++) {
    units.push(run(reader, 200, 0.5).finally(() => ended++));
    await passTick();
  }
  assert.equal(ended, 0, "they are paused at the same time");
  await reader.close();
  await passTick();
  assert.equal(ended, 8);
  // Those that ran again too.
  assert.deepEqual(await Promise.all(units), Array(8).fill(33));
  // One for each snapshot that outlives its tick, and one for that of the tick.
  assert.deepEqual(counts, { open: 0, most: 5 });
});

test("a unit that ends without waiting for its pause leaves the next one a snapshot", async () => {
  const reader = openReader();
  const readTwice = async (tx: Unit) => {
    await readAndCountPauses(tx, 1, 5);
    await tx.rows(undefined as never, { ms: 5 } as never);
    void tx.pause?.();
  };
  const next = Promise.resolve(reader.read((tx) => readTwice(tx as Unit))).then(() => run(reader, 1, 0.5));
  assert.equal(await next, 0);
  await reader.close();
});

test("a unit that waits for something else than its statements cannot read on", async () => {
  const reader = openReader();
  const reading = reader.read(async (tx) => {
    await run(reader, 1, 0.5);
    await passTick();
    return run({ read: (unit) => unit(tx) } as typeof reader, 1, 0.5);
  });
  await assert.rejects(async () => reading, /^TypeError: a unit of work awaited something other than its transaction$/);
  assert.equal(await run(reader, 1, 0.5), 0, "others can");
  await reader.close();
});
