// When requests are rejected because they would wait too long, and whose.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { createAdmission } from "../../../src/transport/http/admission.js";
import { createPeer, enqueue, hasTimeFor, type Peer } from "../../../src/transport/http/fair-queue.js";
import { standStill } from "../../support/stand-still.js";

const MAX_WAIT_MS = 10;
const tick = () => new Promise((resolve) => setImmediate(resolve));

interface Log {
  ran: number;
  rejected: number;
}

function put(peer: Peer, log: Log, costMs = 1, maxWaitMs = 200): void {
  const task = {
    run() {
      standStill(costMs);
      log.ran++;
    },
    onError: assert.fail,
    reject: () => void log.rejected++,
  };
  enqueue(peer, task, maxWaitMs);
}

/** Keeps the queue of a peer long until one more of its requests is rejected, then puts no more. */
async function fillUntilRejected(peer: Peer, log: Log): Promise<void> {
  for (let ticks = 0; ticks < 5_000; ticks++) {
    while (peer.queue.length < 60) put(peer, log);
    await tick();
    if (!hasTimeFor(peer, MAX_WAIT_MS)) return;
  }
  assert.fail("nothing was rejected");
}

async function drain(peers: readonly Peer[]): Promise<void> {
  for (let ticks = 0; peers.some(({ queue }) => queue.length > 0); ticks++) {
    assert.ok(ticks < 5_000, "the queue was not emptied");
    await tick();
  }
  // For as long as the queue must have been empty before it no longer counts as standing.
  await delay(300);
}

test("a burst is not rejected, a queue that stands is, and when it is empty again nothing is", async () => {
  const peer = createPeer();
  const log: Log = { ran: 0, rejected: 0 };
  for (let i = 0; i < 60; i++) {
    assert.ok(hasTimeFor(peer, MAX_WAIT_MS), "a burst was rejected");
    put(peer, log);
  }
  await fillUntilRejected(peer, log);
  await drain([peer]);
  assert.ok(hasTimeFor(peer, MAX_WAIT_MS), "an idle service rejects");
  for (let i = 0; i < 60; i++) {
    assert.ok(hasTimeFor(peer, MAX_WAIT_MS), "a burst was rejected");
    put(peer, log);
  }
  await drain([peer]);
});

test("in a queue that stands a peer with few requests gets the place of one with many", async () => {
  const [many, few] = [createPeer(), createPeer()];
  const log: Log = { ran: 0, rejected: 0 };
  await fillUntilRejected(many, log);
  const before = many.queue.length;
  const rejected = log.rejected;
  assert.ok(hasTimeFor(few, MAX_WAIT_MS));
  assert.equal(log.rejected, rejected + 1);
  assert.equal(many.queue.length, before - 1);
  await drain([many, few]);
});

test("in a queue that stands a peer whose request took long soon gets its next turn", async () => {
  const [slow, ...others] = Array.from({ length: 4 }, createPeer) as [Peer, Peer, Peer, Peer];
  const log: Log = { ran: 0, rejected: 0 };
  for (const peer of others) await fillUntilRejected(peer, log);
  const own: Log = { ran: 0, rejected: 0 };
  put(slow, own, 60, Number.POSITIVE_INFINITY);
  while (own.ran === 0) await refillAndTick();
  put(slow, own, 1, Number.POSITIVE_INFINITY);
  const before = log.ran;
  while (own.ran === 1) await refillAndTick();
  // By what its long request has cost it would be next after about 180 of theirs.
  assert.ok(log.ran - before < 60, `${log.ran - before} of the others were taken before it`);
  await drain([slow, ...others]);

  async function refillAndTick(): Promise<void> {
    for (const peer of others) while (peer.queue.length < 10) put(peer, log, 1, Number.POSITIVE_INFINITY);
    await tick();
  }
});

test("what may not be rejected is not, as long as it waits", async () => {
  const [many, health] = [createPeer(), createPeer()];
  const log: Log = { ran: 0, rejected: 0 };
  const healthLog: Log = { ran: 0, rejected: 0 };
  await fillUntilRejected(many, log);
  for (let i = 0; i < 20; i++) put(health, healthLog, 0, Number.POSITIVE_INFINITY);
  await drain([many, health]);
  assert.deepEqual(healthLog, { ran: 20, rejected: 0 });
});

test("what may not be rejected takes no place from other requests, however much of it waits", async () => {
  const [health, few] = [createPeer(), createPeer()];
  const log: Log = { ran: 0, rejected: 0 };
  for (let i = 0; i < 600; i++) put(health, log, 1, Number.POSITIVE_INFINITY);
  const endMs = performance.now() + 300;
  while (performance.now() < endMs) await tick();
  assert.ok(health.queue.length > 60, "the queue does not stand");
  assert.ok(hasTimeFor(few, MAX_WAIT_MS), "a request was rejected");
  await drain([health]);
});

test("requests that were queued before the queue stood are rejected when they have waited for long", async () => {
  const peer = createPeer();
  const log: Log = { ran: 0, rejected: 0 };
  for (let i = 0; i < 1_000; i++) put(peer, log);
  await drain([peer]);
  assert.ok(log.rejected > 0, "all of them were handled");
  assert.ok(log.ran > 0, "none of them was handled");
  assert.equal(log.ran + log.rejected, 1_000);
});

test("a request that may wait longer is handled then", async () => {
  const peer = createPeer();
  const log: Log = { ran: 0, rejected: 0 };
  for (let i = 0; i < 400; i++) put(peer, log, 1, 10_000);
  await drain([peer]);
  assert.deepEqual(log, { ran: 400, rejected: 0 });
});

test("an admitted request may wait three times the delay that is allowed, and at least 60 ms", () => {
  for (const [maxDelayMs, expected] of [
    [1, 60],
    [20, 60],
    [500, 1_500],
    [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY],
  ] as const) {
    const admission = createAdmission({ maxDelayMs, maxRoundMs: 250 });
    assert.equal(admission.maxWaitMs, expected);
    admission.stop();
  }
});

test("control: without admission all of them are handled", async () => {
  const peer = createPeer();
  const log: Log = { ran: 0, rejected: 0 };
  for (let i = 0; i < 1_000; i++) put(peer, log, 1, Number.POSITIVE_INFINITY);
  await drain([peer]);
  assert.deepEqual(log, { ran: 1_000, rejected: 0 });
});
