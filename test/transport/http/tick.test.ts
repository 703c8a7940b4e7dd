import assert from "node:assert/strict";
import { test } from "node:test";
import { flushPerTick } from "../../../src/transport/http/tick.js";

const tick = () => new Promise((resolve) => setImmediate(resolve));

test("items are taken in the next tick, in their order", async () => {
  const taken: number[] = [];
  const put = flushPerTick<number>("answers", (item) => taken.push(item), assert.fail);
  put(1);
  await Promise.resolve();
  put(2);
  await new Promise<void>((resolve) => process.nextTick(resolve));
  put(3);
  assert.deepEqual(taken, []);
  await tick();
  assert.deepEqual(taken, [1, 2, 3]);
});

test("an item that is put off while others are taken waits for the next tick", async () => {
  const taken: number[] = [];
  const put = flushPerTick<number>(
    "answers",
    (item) => {
      taken.push(item);
      if (item < 3) put(item + 1);
    },
    assert.fail,
  );
  put(1);
  for (const expected of [[1], [1, 2], [1, 2, 3], [1, 2, 3]]) {
    await tick();
    assert.deepEqual(taken, expected);
  }
});

test("a request that is put off between the phases of a tick is handled in the next", async () => {
  const taken: string[] = [];
  const late = flushPerTick<string>("requests", (item) => taken.push(item), assert.fail);
  const early = flushPerTick<string>(
    "requests",
    (item) => {
      taken.push(item);
      void Promise.resolve().then(() => late("late"));
    },
    assert.fail,
  );
  early("early");
  await tick();
  await tick();
  await tick();
  assert.deepEqual(taken, ["early", "late"]);
});

test("requests come before answers, with what they lead to in promises between the two", async () => {
  const taken: string[] = [];
  const response = flushPerTick<string>("answers", (item) => taken.push(item), assert.fail);
  const request = flushPerTick<string>(
    "requests",
    (item) => {
      taken.push(item);
      void Promise.resolve().then(() => response(`${item} answered`));
    },
    assert.fail,
  );
  response("earlier answer");
  request("first");
  request("second");
  await tick();
  await tick();
  assert.deepEqual(taken, ["first", "second", "earlier answer", "first answered", "second answered"]);
});

test("an error of one item reaches its handler and no other item", async () => {
  const taken: number[] = [];
  const failed: number[] = [];
  const put = flushPerTick<number>(
    "answers",
    (item) => {
      if (item === 2) throw new Error("two");
      taken.push(item);
    },
    (_error, item) => failed.push(item),
  );
  for (const item of [1, 2, 3]) put(item);
  await tick();
  await tick();
  assert.deepEqual([taken, failed], [[1, 3], [2]]);
});

test("of many items no more are taken in a tick than it has room for", async () => {
  const taken: number[] = [];
  const put = flushPerTick<number>("answers", (item) => taken.push(item), assert.fail, 2);
  for (let i = 0; i < 5; i++) put(i);
  const counts: number[] = [];
  while (taken.length < 5) {
    await tick();
    counts.push(taken.length);
  }
  assert.deepEqual(taken, [0, 1, 2, 3, 4]);
  assert.ok(
    counts.every((count, i) => count - (counts[i - 1] ?? 0) <= 2),
    counts.join(", "),
  );
});

test("what a phase puts off to itself or to an earlier one is done in the next tick", async () => {
  const taken: string[] = [];
  const later = flushPerTick<string>("rejections", (item) => taken.push(item), assert.fail);
  const from = (phase: "rejections" | "requests" | "answers") =>
    flushPerTick<string>(
      phase,
      (item) => {
        taken.push(item);
        later(`after ${item}`);
      },
      assert.fail,
    );
  for (const phase of ["rejections", "requests", "answers"] as const) {
    taken.length = 0;
    from(phase)(phase);
    await tick();
    await tick();
    assert.deepEqual(taken.slice(0, 1), [phase]);
    for (let ticks = 0; ticks < 4; ticks++) await tick();
    assert.deepEqual(taken, [phase, `after ${phase}`]);
  }
});

test("rejections come before requests and answers", async () => {
  const taken: string[] = [];
  for (const phase of ["answers", "requests", "rejections"] as const) {
    flushPerTick<string>(phase, (item) => taken.push(item), assert.fail)(phase);
  }
  await tick();
  await tick();
  assert.deepEqual(taken, ["rejections", "requests", "answers"]);
});
