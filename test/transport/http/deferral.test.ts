import assert from "node:assert/strict";
import { test } from "node:test";
import { createDeferral } from "../../../src/transport/http/deferral.js";

const turn = () => new Promise((resolve) => setImmediate(resolve));

test("items are handled in the next turn of the event loop, in their order", async () => {
  const handled: number[] = [];
  const put = createDeferral<number>((item) => handled.push(item), assert.fail);
  put(1);
  await Promise.resolve();
  put(2);
  await new Promise<void>((resolve) => process.nextTick(resolve));
  put(3);
  assert.deepEqual(handled, []);
  await turn();
  assert.deepEqual(handled, [1, 2, 3]);
});

test("an item that is put off while others are handled waits for the turn after", async () => {
  const handled: number[] = [];
  const put = createDeferral<number>((item) => {
    handled.push(item);
    if (item < 3) put(item + 1);
  }, assert.fail);
  put(1);
  for (const expected of [[1], [1, 2], [1, 2, 3], [1, 2, 3]]) {
    await turn();
    assert.deepEqual(handled, expected);
  }
});

test("an error of one item reaches its handler and no other item", async () => {
  const handled: number[] = [];
  const failed: number[] = [];
  const put = createDeferral<number>(
    (item) => {
      if (item === 2) throw new Error("two");
      handled.push(item);
    },
    (_error, item) => failed.push(item),
  );
  for (const item of [1, 2, 3]) put(item);
  await turn();
  assert.deepEqual([handled, failed], [[1, 3], [2]]);
});

test("of many items one turn handles as many as it has room for", async () => {
  const handled: number[] = [];
  const put = createDeferral<number>((item) => handled.push(item), assert.fail, 2);
  for (let i = 0; i < 5; i++) put(i);
  const counts: number[] = [];
  while (handled.length < 5) {
    await turn();
    counts.push(handled.length);
  }
  assert.deepEqual(handled, [0, 1, 2, 3, 4]);
  assert.deepEqual(counts, [2, 4, 5]);
});
