// When units of work are stuck, by a clock of the test.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { deadlineExceeded, notFound, unavailable } from "../../src/kernel/errors.js";
import type { Store } from "../../src/store/store.js";
import { watchUnits } from "../../src/store/unit-watch.js";

/** A store whose units end when the test says so, and whose other reads end at once. */
function startWatch(watchesReads = true) {
  let nowMs = 0;
  const ends: ((error?: Error) => void)[] = [];
  const wait = () =>
    new Promise<undefined>((resolve, reject) => {
      ends.push((error) => (error === undefined ? resolve(undefined) : reject(error)));
    });
  let endsAtOnce = false;
  const read = () => (endsAtOnce ? Promise.resolve(undefined) : wait());
  const inner = { read, write: wait } as unknown as Store;
  const units = watchUnits(inner, { maxWaitMs: 5_000, watchesReads, nowMs: () => nowMs });
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  return {
    areStuck: units.areStuck,
    begin(access: "read" | "write" = "write") {
      const result = Promise.resolve(units.store[access](async () => undefined));
      result.catch(() => {});
      return result;
    },
    async readAtOnce() {
      endsAtOnce = true;
      void units.store.read(async () => undefined);
      endsAtOnce = false;
      await settle();
    },
    async end(index: number, error?: Error) {
      ends[index]?.(error);
      await settle();
    },
    pass(seconds: number) {
      nowMs += seconds * 1_000;
    },
  };
}

describe("units of work are stuck", () => {
  for (const access of ["read", "write"] as const) {
    test(`when a ${access} runs for more than 5 s and none has ended, until it ends`, async () => {
      const watch = startWatch();
      void watch.begin(access);
      watch.pass(5);
      assert.equal(watch.areStuck(), false);
      watch.pass(0.1);
      assert.equal(watch.areStuck(), true);
      await watch.end(0);
      assert.equal(watch.areStuck(), false);
    });
  }

  test("not when a read runs that cannot wait for the database", () => {
    const watch = startWatch(false);
    void watch.begin("read");
    watch.pass(60);
    assert.equal(watch.areStuck(), false);
    void watch.begin("write");
    watch.pass(6);
    assert.equal(watch.areStuck(), true);
  });

  test("not without any, and not for the time before the first", () => {
    const watch = startWatch();
    watch.pass(60);
    assert.equal(watch.areStuck(), false);
    void watch.begin();
    assert.equal(watch.areStuck(), false);
  });

  test("not while others end beside a slow one, until those do not end either", async () => {
    const watch = startWatch();
    void watch.begin();
    for (let i = 1; i <= 10; i++) {
      void watch.begin();
      watch.pass(4);
      await watch.end(i);
      assert.equal(watch.areStuck(), false, `after ${i * 4} s`);
    }
    watch.pass(4);
    await watch.readAtOnce();
    watch.pass(4);
    assert.equal(watch.areStuck(), false, "a read that ends at once counts");
    watch.pass(2);
    assert.equal(watch.areStuck(), true);
  });

  test("not because of one that the database answered with an error", async () => {
    const watch = startWatch();
    void watch.begin();
    void watch.begin();
    watch.pass(6);
    await watch.end(1, notFound({ displayName: "group", type: "Group" }, "a"));
    assert.equal(watch.areStuck(), false);
  });

  for (const error of [unavailable("gone"), deadlineExceeded()]) {
    test(`still, when one is given up as ${error.reason}`, async () => {
      const watch = startWatch();
      void watch.begin();
      watch.pass(3);
      void watch.begin();
      watch.pass(6);
      await watch.end(0, error);
      assert.equal(watch.areStuck(), true);
      await watch.end(1, error);
      assert.equal(watch.areStuck(), false, "nothing waits any more");
    });
  }
});
