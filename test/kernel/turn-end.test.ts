import assert from "node:assert/strict";
import { test } from "node:test";
import { atTurnEnd } from "../../src/kernel/turn-end.js";

const turn = () => new Promise((resolve) => setImmediate(resolve));

test("items are taken at the end of the turn, in their order", async () => {
  const taken: number[] = [];
  const put = atTurnEnd<number>((item) => taken.push(item));
  put(1);
  await Promise.resolve();
  put(2);
  await new Promise<void>((resolve) => process.nextTick(resolve));
  put(3);
  assert.deepEqual(taken, []);
  await turn();
  assert.deepEqual(taken, [1, 2, 3]);
});

test("what is put off while others are taken waits for the next turn", async () => {
  const taken: number[] = [];
  const put = atTurnEnd<number>((item) => {
    taken.push(item);
    if (item < 3) put(item + 1);
  });
  put(1);
  for (const expected of [[1], [1, 2], [1, 2, 3], [1, 2, 3]]) {
    await turn();
    assert.deepEqual(taken, expected);
  }
});
