import assert from "node:assert/strict";
import { test } from "node:test";
import { createSlots, type SlotLimits } from "../../src/outbound/slots.js";

const LIMITS: SlotLimits = {
  running: 6,
  runningPerAccount: 2,
  runningPerTarget: 4,
  waiting: 20,
  waitingPerAccount: 8,
};
const never = new AbortController().signal;

/** Takes slots and notes who got one, in order. */
function recorder(limits: Partial<SlotLimits> = {}) {
  const slots = createSlots({ ...LIMITS, ...limits });
  const running: { readonly account: string; readonly target: string; readonly giveBack: () => void }[] = [];
  const order: string[] = [];
  const take = (account: string, target = account, signal = never) => {
    const taken = slots.acquire(account, target, signal).then((giveBack) => {
      running.push({ account, target, giveBack });
      order.push(account);
    });
    taken.catch(() => {});
    return taken;
  };
  const nextTick = () => new Promise<void>((resolve) => setImmediate(resolve));
  return { slots, running, order, take, nextTick };
}

test("an account takes no more than its share, and others run beside it", async () => {
  const { order, take, nextTick } = recorder();
  for (let i = 0; i < 8; i++) take("tarpit", `t${i}`);
  await nextTick();
  assert.deepEqual(order, ["tarpit", "tarpit"]);
  take("honest");
  await nextTick();
  assert.deepEqual(order, ["tarpit", "tarpit", "honest"]);
});

test("without shares the same requests keep the other account waiting", async () => {
  const { order, take, nextTick } = recorder({ runningPerAccount: 6 });
  for (let i = 0; i < 8; i++) take("tarpit", `t${i}`);
  take("honest");
  await nextTick();
  assert.equal(order.includes("honest"), false);
});

test("waiting accounts are served round-robin, however many requests each has", async () => {
  const { running, order, take, nextTick } = recorder({ running: 1, waiting: 100 });
  take("first");
  await nextTick();
  for (let i = 0; i < 6; i++) take("many");
  take("one");
  take("two");
  for (let i = 0; i < 9; i++) {
    await nextTick();
    running[i]?.giveBack();
  }
  assert.deepEqual(order, ["first", "many", "one", "two", "many", "many", "many", "many", "many"]);
});

test("a target takes no more than its share, and waiters for another pass", async () => {
  const { running, order, take, nextTick } = recorder({ runningPerTarget: 1, runningPerAccount: 6 });
  take("a", "slow");
  take("a", "slow");
  take("b", "slow");
  take("a", "fast");
  await nextTick();
  assert.deepEqual(
    running.map(({ account, target }) => `${account} ${target}`),
    ["a slow", "a fast"],
  );
  running[0]?.giveBack();
  await nextTick();
  assert.deepEqual(order, ["a", "a", "a"]);
  running[2]?.giveBack();
  await nextTick();
  assert.deepEqual(order, ["a", "a", "a", "b"]);
});

test("one released slot can start two waiters, each blocked by another limit", async () => {
  const { running, order, take, nextTick } = recorder({ runningPerAccount: 1, runningPerTarget: 1 });
  take("a", "x");
  take("a", "y");
  take("b", "x");
  await nextTick();
  assert.deepEqual(order, ["a"]);
  running[0]?.giveBack();
  await nextTick();
  assert.deepEqual(order, ["a", "a", "b"]);
});

test("too many waiters are rejected, of one account and of all", async () => {
  const { running, take, nextTick } = recorder({ running: 1 });
  take("first");
  await nextTick();
  const outcomes = async (account: string, count: number) => {
    const refused: unknown[] = [];
    for (let i = 0; i < count; i++) take(account).catch((error: unknown) => refused.push(error));
    await nextTick();
    return refused.length;
  };
  assert.deepEqual([await outcomes("a", 10), await outcomes("b", 10), await outcomes("c", 10)], [2, 2, 6]);
  // Rejected waiters left no state: all others get a slot.
  for (let i = 0; i < 21; i++) {
    running[i]?.giveBack();
    await nextTick();
  }
  assert.equal(running.length, 21);
});

test("an aborted waiter is removed, and releases no slot", async () => {
  const { slots, running, order, take, nextTick } = recorder({ running: 1 });
  take("first");
  const controller = new AbortController();
  const gone = slots.acquire("a", "a", controller.signal);
  take("b");
  controller.abort(new Error("gone"));
  await assert.rejects(gone, /gone/);
  await assert.rejects(slots.acquire("a", "a", controller.signal), /gone/);
  await nextTick();
  running[0]?.giveBack();
  await nextTick();
  assert.deepEqual(order, ["first", "b"]);
});

const SHARED: Partial<SlotLimits> = { running: 16, runningPerAccount: 16, runningPerTarget: 16, waiting: 1_000 };

for (const leavesFree of [true, false]) {
  test(`accounts that share a target ${leavesFree ? "leave" : "control: otherwise leave no"} slots free`, async () => {
    const { running, take, nextTick } = recorder({ ...SHARED, waitingPerAccount: 100, leavesFree });
    for (const account of ["a", "b", "c"]) for (let i = 0; i < 20; i++) take(account, "shared");
    await nextTick();
    const count = (account: string) => running.filter((one) => one.account === account).length;
    assert.deepEqual(["a", "b", "c"].map(count), leavesFree ? [8, 4, 2] : [16, 0, 0]);
    take("late", "shared");
    await nextTick();
    assert.equal(count("late"), leavesFree ? 1 : 0);
    // As slots are given back, whoever has most waits.
    for (let i = 0; i < 8; i++)
      running
        .splice(
          running.findIndex(({ account }) => account === "a"),
          1,
        )[0]
        ?.giveBack();
    await nextTick();
    if (leavesFree) assert.ok(Math.abs(count("a") - count("c")) <= 2, `${["a", "b", "c"].map(count)}`);
  });
}

test("an account takes no more of a target than it may, and other accounts do", async () => {
  const { order, take, nextTick } = recorder({ ...SHARED, waitingPerAccount: 100, runningPerAccountAndTarget: 3 });
  for (let i = 0; i < 10; i++) take("a", "shared");
  take("a", "other");
  for (let i = 0; i < 10; i++) take("b", "shared");
  await nextTick();
  assert.deepEqual(order, ["a", "a", "a", "a", "b", "b", "b"]);
});

test("the targets of an account take turns", async () => {
  const { running, take, nextTick } = recorder({ running: 1, waitingPerAccount: 100 });
  take("first");
  for (let i = 0; i < 3; i++) take("a", "many");
  take("a", "one");
  await nextTick();
  for (let i = 0; i < 4; i++) {
    running[i]?.giveBack();
    await nextTick();
  }
  assert.deepEqual(
    running.map(({ target }) => target),
    ["first", "many", "one", "many", "many"],
  );
});
