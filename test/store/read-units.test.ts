// A unit of work that reads pauses after the time of its own statements, however many others read in the same tick.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Tx } from "../../src/store/port.js";
import { createSnapshotReader, type ReadConnection } from "../../src/store/snapshot-reader.js";
import type { Executor } from "../../src/store/statement.js";

/** What a unit gets, with the statements that it does not offer. */
type Unit = Tx & Executor;

// The statement takes as many milliseconds as its parameter says, by the clock of the reader.
function openReader() {
  let nowMs = 0;
  const connection = (): ReadConnection => ({
    counterSlots: 1,
    rows(_statement, params) {
      nowMs += (params as unknown as { ms: number }).ms;
      return [];
    },
    auditVersion: () => assert.fail(),
    nowMs: () => 0,
    control: () => {},
    close: () => {},
  });
  return createSnapshotReader(connection, () => nowMs);
}

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

test("more long units than may be paused at once all end", async () => {
  const reader = openReader();
  const pauses = await Promise.all(Array.from({ length: 10 }, () => run(reader, 20, 0.5)));
  assert.deepEqual(pauses, Array(10).fill(3));
  await reader.close();
});
