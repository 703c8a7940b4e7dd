// Which request is handled next while more wait than one tick handles.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { createPeer, enqueue, isIdlePeer, noteConnection, type Peer } from "../../../src/transport/http/fair-queue.js";
import { standStill } from "../../support/stand-still.js";

const MANY = 600;
const tick = () => new Promise((resolve) => setImmediate(resolve));

async function untilTaken(taken: readonly unknown[], count: number): Promise<number> {
  let ticks = 0;
  for (; taken.length < count; ticks++) {
    assert.ok(ticks < 2 * MANY, `only ${taken.length} of ${count} were taken`);
    await tick();
  }
  return ticks;
}

function put(peer: Peer, taken: string[], name: string, costMs = 0): void {
  enqueue(peer, {
    run() {
      standStill(costMs);
      taken.push(name);
    },
    onError: assert.fail,
  });
}

test("a few requests are all taken in the next tick, each peer's in their order", async () => {
  const taken: string[] = [];
  const [one, two] = [createPeer(), createPeer()];
  for (const name of ["a", "b", "c"]) put(one, taken, name);
  put(two, taken, "d");
  assert.deepEqual(taken, []);
  await tick();
  await tick();
  assert.deepEqual(taken, ["a", "b", "c", "d"]);
});

test("a peer with many requests delays its own alone", async () => {
  const taken: string[] = [];
  const [many, few] = [createPeer(), createPeer()];
  for (let i = 0; i < MANY; i++) put(many, taken, "many", 0.5);
  for (let call = 0; call < 5; call++) {
    put(few, taken, "few");
    const before = taken.length;
    while (taken.filter((name) => name === "few").length <= call) await tick();
    // In the order of arrival the latest request would be handled last.
    assert.ok(taken.length - before < 60, `${taken.length - before} were taken before it`);
  }
  await untilTaken(taken, MANY + 5);
});

test("those that have cost least come first, however many peers there are", async () => {
  const taken: string[] = [];
  const dear = Array.from({ length: 40 }, createPeer);
  for (const peer of dear) for (let i = 0; i < 3; i++) put(peer, taken, "dear", 2);
  await untilTaken(taken, 120);
  taken.length = 0;
  for (const peer of dear) for (let i = 0; i < 3; i++) put(peer, taken, "dear", 2);
  put(createPeer(), taken, "new");
  await untilTaken(taken, 121);
  assert.equal(taken[0], "new");
});

test("the event loop turns while requests wait", async () => {
  const taken: string[] = [];
  const peer = createPeer();
  for (let i = 0; i < 200; i++) put(peer, taken, "x", 1);
  const ticks = await untilTaken(taken, 200);
  assert.ok(ticks > 10, `all were taken within ${ticks} ticks`);
});

test("an error of one request is reported, and the others are handled", async () => {
  const taken: string[] = [];
  const told: unknown[] = [];
  const peer = createPeer();
  const error = new Error("broken");
  enqueue(peer, {
    run() {
      throw error;
    },
    onError: (caught) => told.push(caught),
  });
  put(peer, taken, "after");
  await untilTaken(taken, 1);
  assert.deepEqual(told, [error]);
});

test("a peer that has cost much is remembered for a while", async () => {
  const taken: string[] = [];
  const peer = createPeer();
  assert.ok(isIdlePeer(peer));
  for (let i = 0; i < 20; i++) put(peer, taken, "x", 2);
  assert.ok(!isIdlePeer(peer), "some of its requests wait");
  await untilTaken(taken, 20);
  put(createPeer(), taken, "other");
  await untilTaken(taken, 21);
  assert.ok(!isIdlePeer(peer), "its requests have cost 40 ms");
});

test("a peer with many open requests is charged for the ticks that they make long", async () => {
  const taken: string[] = [];
  const [busy, honest] = [createPeer(), createPeer()];
  // Both cost the same so far, as far as can be told.
  for (let i = 0; i < 20; i++) for (const peer of [busy, honest]) put(peer, taken, "before", 2);
  await untilTaken(taken, 40);
  taken.length = 0;
  // So that the queue does not stand: there half of a tick is for those that have waited longest.
  await delay(300);
  busy.open = 300;
  for (let i = 0; i < 12; i++) put(busy, taken, "busy", 1);
  for (let i = 0; i < 12; i++) put(honest, taken, "honest", 1);
  await untilTaken(taken, 24);
  assert.deepEqual(
    taken.slice(0, 12),
    Array.from({ length: 12 }, () => "honest"),
  );
});

test("a peer with many requests is served while others keep calling", async () => {
  const taken: string[] = [];
  const many = createPeer();
  for (let i = 0; i < MANY; i++) put(many, taken, "many", 0.2);
  const endMs = performance.now() + 3_000;
  let callers: Peer[] = [];
  // More callers than a tick has room for, each with a call at a time, and new ones time and again.
  while (performance.now() < endMs && taken.filter((name) => name === "many").length < 50) {
    if (Math.random() < 0.05) callers = [];
    while (callers.length < 80) callers.push(createPeer());
    for (const peer of callers) if (peer.queue.length === 0) put(peer, taken, "other", 0.2);
    await tick();
  }
  const served = taken.filter((name) => name === "many").length;
  assert.ok(served >= 50, `${served} of it were taken, ${taken.length - served} of others`);
  await untilTaken(taken, MANY + taken.length - served);
});

test("while connections wait to be accepted, half of the time is for them", async () => {
  const shareWithoutRequests = async (onTick: () => void) => {
    const taken: string[] = [];
    for (let peer = 0; peer < 2; peer++) {
      const caller = createPeer();
      for (let i = 0; i < 40; i++) put(caller, taken, "x", 2);
    }
    let idleMs = 0;
    const startMs = performance.now();
    for (let nowMs = startMs; taken.length < 80; ) {
      const before = taken.length;
      onTick();
      await tick();
      const afterMs = performance.now();
      assert.ok(afterMs - startMs < 10_000, `only ${taken.length} were taken`);
      if (taken.length === before) idleMs += afterMs - nowMs;
      nowMs = afterMs;
    }
    return idleMs / (performance.now() - startMs);
  };
  const share = await shareWithoutRequests(noteConnection);
  // A busy machine makes the ticks with requests longer.
  assert.ok(share > 0.1 && share < 0.9, `ticks without requests took ${share} of the time`);
  const without = await shareWithoutRequests(() => {});
  assert.ok(without < 0.05, `without new connections ${without} of the time`);
});
