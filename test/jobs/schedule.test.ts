// When repeated work runs, with a clock that the tests move.
import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { computeBackoffMs, createSchedule, type ScheduleDeps, waitAtMost } from "../../src/jobs/schedule.js";
import { mockTimeouts } from "../support/mock-timeouts.js";

/** A started schedule with times that `advance` moves. */
async function start(t: TestContext, deps: Partial<ScheduleDeps>) {
  mockTimeouts(t);
  const failures: unknown[] = [];
  let runs = 0;
  const schedule = createSchedule({
    ...{ intervalMs: 1_000, random: () => 0, onFailure: (error) => failures.push(error) },
    ...deps,
    run: async () => {
      runs++;
      return deps.run?.();
    },
  });
  const advance = async (ms: number) => {
    // A run ends some turns later, and then the next timer is set.
    for (let left = ms; left > 0; left -= 100) {
      t.mock.timers.tick(Math.min(left, 100));
      await nextTurn();
    }
    return runs;
  };
  schedule.start();
  await nextTurn();
  return { schedule, failures, advance, runs: () => runs };
}

describe("a schedule", () => {
  test("runs at once, then at its interval", async (t) => {
    const { runs, advance } = await start(t, {});
    assert.equal(runs(), 1);
    assert.equal(await advance(900), 1);
    assert.equal(await advance(100), 2);
    assert.equal(await advance(3_000), 5);
  });

  test("runs up to a tenth earlier, so that nodes do not run together", async (t) => {
    const { advance } = await start(t, { random: () => 1 });
    assert.equal(await advance(800), 1);
    assert.equal(await advance(100), 2);
  });

  test("pauses as long as the run asks for", async (t) => {
    const { advance } = await start(t, { run: async () => 5_000 });
    assert.equal(await advance(4_900), 1);
    assert.equal(await advance(100), 2);
  });

  test("waits longer after each failure, and reports the first of several", async (t) => {
    let down = true;
    const run = async () => {
      if (down) throw new Error("down");
      return undefined;
    };
    const { advance, failures } = await start(t, { run, maxBackoffMs: 4_000 });
    // With the smallest random share the pauses are 0.5, 1, 2 and 2 s.
    const counts = [];
    for (const ms of [500, 900, 100, 1_900, 100, 2_000]) counts.push(await advance(ms));
    assert.deepEqual(counts, [2, 2, 3, 3, 4, 5]);
    assert.equal(failures.length, 1);
    down = false;
    assert.equal(await advance(2_000), 6);
    assert.equal(await advance(1_000), 7, "and at its interval again after a success");
    down = true;
    await advance(1_000);
    assert.equal(failures.length, 2);
  });

  test("never runs twice at once, and stop waits for the run", async (t) => {
    const { promise, resolve } = defer();
    const { schedule, advance } = await start(t, {
      run: async () => {
        await promise;
        return undefined;
      },
    });
    assert.equal(await advance(4_000), 1);
    let stopped = false;
    const stop = schedule.stop().then(() => {
      stopped = true;
    });
    await nextTurn();
    assert.equal(stopped, false);
    resolve();
    await stop;
    assert.equal(await advance(4_000), 1, "and it does not run again");
  });
});

test("a pause after failures doubles up to a limit, and half of it is random", () => {
  const pauses = (intervalMs: number, maxBackoffMs: number, random: number) =>
    [1, 2, 3, 4, 99].map((failures) => computeBackoffMs({ intervalMs, maxBackoffMs }, failures, () => random));
  assert.deepEqual(pauses(500, 3_000, 1), [500, 1_000, 2_000, 3_000, 3_000]);
  assert.deepEqual(pauses(500, 3_000, 0), [250, 500, 1_000, 1_500, 1_500]);
  assert.deepEqual(pauses(600_000, 60_000, 1), [1_000, 2_000, 4_000, 8_000, 60_000]);
});

test("waiting ends with the work or with the time, whichever is first", async () => {
  assert.equal(await waitAtMost(Promise.reject(new Error("failed")), 60_000), true);
  assert.equal(await waitAtMost(undefined, 60_000), true);
  assert.equal(await waitAtMost(new Promise(() => {}), 5), false);
});

function defer(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
