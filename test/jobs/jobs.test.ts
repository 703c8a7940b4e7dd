// Background jobs on SQLite, and with a clock that the tests set.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { openSqlite } from "../../src/store/sqlite/open.js";
import type { Store } from "../../src/store/store.js";
import { mockTimeouts } from "../support/mock-timeouts.js";
import { tempDir } from "../support/temp-dir.js";
import { waitUntil } from "../support/wait-until.js";
import { counter, createNode, jobsSuite, rowOf } from "./jobs-suite.js";

jobsSuite(async () => {
  const directory = tempDir();
  return () => openSqlite({ directory });
});

describe("background jobs over time", () => {
  const MINUTE_MS = 60_000;

  /** A store whose time the test sets, and how many transactions wrote to it. */
  function openTimed() {
    const times = { nowMs: 1_000_000, writes: 0 };
    const sqlite = openSqlite({ directory: tempDir(), clock: () => times.nowMs });
    const store: Store = {
      ...sqlite,
      write(unit, options) {
        times.writes++;
        return sqlite.write(unit, options);
      },
    };
    return { times, store };
  }

  test("a job with a short interval that has no work writes nothing, but once a minute", async (t) => {
    mockTimeouts(t);
    const { times, store } = openTimed();
    let runs = 0;
    const run = async () => ++runs;
    const node = createNode(store, "one", counter({ intervalMs: 500, hasWork: async () => false, run }), {
      random: () => 0,
    });
    const advance = async (count: number) => {
      for (let i = 0; i < count; i++) {
        times.nowMs += 500;
        t.mock.timers.tick(500);
        await waitForWrites();
      }
      return runs;
    };
    node.start();
    await waitForWrites();
    assert.equal(runs, 1, "the first run is recorded");
    const writes = times.writes;
    assert.equal(await advance(119), 1);
    assert.equal(times.writes, writes);
    assert.equal(await advance(2), 2);
    assert.equal((await rowOf(store)).changes, 2);
    await node.stop();
    await store.close();
  });

  test("of many runs with work one a minute is recorded, and a failure at once", async () => {
    const { times, store } = openTimed();
    let failing = false;
    const run = async () => {
      if (failing) throw new Error("no");
      return 1;
    };
    const node = createNode(store, "one", counter({ intervalMs: 500, run }));
    await node.runNow();
    const { startTimeMs } = await rowOf(store);
    times.nowMs += MINUTE_MS - 1;
    await node.runNow();
    assert.equal((await rowOf(store)).startTimeMs, startTimeMs);
    times.nowMs += 1;
    await node.runNow();
    assert.equal((await rowOf(store)).startTimeMs, times.nowMs);
    failing = true;
    times.nowMs += 1;
    await assert.rejects(node.runNow());
    assert.equal((await rowOf(store)).failures, 1);
    failing = false;
    times.nowMs += 1;
    await node.runNow();
    assert.equal((await rowOf(store)).failures, 0, "and so is the success after it");
    await store.close();
  });

  test("a lease or a next time from a clock that was far ahead is ignored", async () => {
    const { times, store } = openTimed();
    times.nowMs += 365 * 24 * 60 * MINUTE_MS;
    await createNode(store, "one", counter({ intervalMs: 10 * MINUTE_MS })).runNow();
    times.nowMs = 1_000_000;
    let runs = 0;
    const run = async () => ++runs;
    const two = createNode(store, "two", counter({ intervalMs: 10 * MINUTE_MS, run }));
    two.start();
    await waitForWrites();
    assert.equal(runs, 1);
    await two.stop();
    await store.close();
  });

  test("a failing job is reported once until it succeeds, also when the database is down", async (t) => {
    mockTimeouts(t);
    const { store } = openTimed();
    let down = true;
    const read: Store["read"] = (unit, options) => {
      if (down) throw new Error("unreachable");
      return store.read(unit, options);
    };
    const node = createNode({ ...store, read }, "one", counter({ intervalMs: 500, maxBackoffMs: 500 }));
    const advance = async () => {
      for (let i = 0; i < 5; i++) {
        t.mock.timers.tick(500);
        await waitForWrites();
      }
    };
    node.start();
    await waitForWrites();
    await advance();
    const problem = "nothing could be counted and will be tried again: Error: unreachable";
    assert.deepEqual(node.problems, [problem]);
    down = false;
    await advance();
    down = true;
    await advance();
    assert.deepEqual(node.problems, [problem, problem]);
    await node.stop();
    await store.close();
  });

  test("a failing job is reported once, also when its node looks before the job is due again", async () => {
    const store = openSqlite({ directory: tempDir() });
    let runs = 0;
    const run = () => Promise.reject(new Error(`run ${++runs}`));
    // Of each failure the first number is for the stored time, and the second for this node's next look.
    let calls = 0;
    const random = () => (calls++ % 2 === 0 ? 0.9 : 0);
    const node = createNode(store, "one", { ...counter({ intervalMs: 60, maxBackoffMs: 60 }), run }, { random });
    node.start();
    await waitUntil(() => runs >= 4);
    await node.stop();
    assert.deepEqual(node.problems, ["nothing could be counted and will be tried again: Error: run 1"]);
    await store.close();
  });

  /** Lets all work of the database that has begun end: it takes some ticks of the event loop. */
  async function waitForWrites(): Promise<void> {
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
  }
});
