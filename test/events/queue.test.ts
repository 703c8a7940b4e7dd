// The queue of one subscription: what is sent when, and what is written.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Attempt } from "../../src/events/delivery/sender.js";
import { SubscriptionQueue } from "../../src/events/delivery/subscription-queue.js";
import type { SubscribedPosition } from "../../src/store/events/positions.js";
import type { EventDeliveryRow } from "../../src/store/tables/events.js";

const ROOT = "a".repeat(40);
const HOUR = 3_600_000;
const position: SubscribedPosition = {
  ...{ subscriptionUid: `${ROOT}/1`, rootUid: ROOT, groupUid: ROOT, sink: "https://a", seq: 0, headSeq: 0 },
  ...{ state: "live", suspendReason: "", failingSinceMs: null, revision: 0 },
};
const accepted: Attempt = { kind: "accepted", status: 200, error: "" };
const failed: Attempt = { kind: "failed", status: 500, error: "status 500" };

function createQueue(values: Partial<SubscribedPosition> = {}, waiting: readonly EventDeliveryRow[] = []) {
  // Pauses have their full length.
  const queue = new SubscriptionQueue({ ...position, ...values }, waiting, () => 1);
  let seq = values.seq ?? 0;
  return {
    queue,
    /** Adds events of these resources, as the log has them. */
    add(nowMs: number, ...subjects: string[]) {
      for (const subject of subjects) {
        seq++;
        queue.headSeq = seq;
        queue.readSeq = seq;
        queue.add({ seq, subjectUid: `${ROOT}/${subject}`, type: "dev.chainguard.api.iam.group.updated.v1" }, nowMs);
      }
    },
    /** Sends all that may be sent, each with an outcome. */
    send(nowMs: number, outcome: (seq: number) => Attempt): number[] {
      const sent: number[] = [];
      for (let next = queue.takeNext(nowMs); next !== undefined; next = queue.takeNext(nowMs)) {
        sent.push(next);
        queue.recordOutcome(next, outcome(next), nowMs);
      }
      return sent;
    },
    write() {
      const changes = queue.takeChanges();
      queue.confirmChanges(changes);
      return changes;
    },
  };
}

test("success moves the position and leaves no row", () => {
  const { add, send, write } = createQueue();
  add(0, "a", "b", "a");
  assert.deepEqual(
    send(0, () => accepted),
    [1, 2, 3],
  );
  const { position: written, rows, removed } = write();
  assert.deepEqual([written.seq, written.state, rows, removed], [3, "live", [], []]);
});

test("the position does not pass an event in flight, and one resource has one at a time", () => {
  const { queue, add, send, write } = createQueue();
  add(0, "a");
  send(0, () => accepted);
  add(0, "b", "b", "c");
  assert.deepEqual([queue.takeNext(0), queue.takeNext(0), queue.takeNext(0)], [2, 4, undefined]);
  queue.recordOutcome(4, accepted, 0);
  assert.equal(write().position.seq, 1);
  queue.recordOutcome(2, accepted, 0);
  assert.equal(queue.takeNext(0), 3);
  assert.equal(write().position.seq, 2);
});

test("a failed event waits with later ones of its resource, and the position passes them", () => {
  const { add, send, write } = createQueue();
  add(0, "a", "b", "a");
  assert.deepEqual(
    send(0, (seq) => (seq === 1 ? failed : accepted)),
    [1, 2],
  );
  const { position: written, rows } = write();
  assert.deepEqual([written.seq, written.state], [3, "live"]);
  assert.deepEqual(
    rows.map(({ seq, attempts, lastStatus }) => [seq, attempts, lastStatus]),
    [
      [1, 1, 500],
      [3, 0, 0],
    ],
  );
  assert.deepEqual(
    send(999, () => accepted),
    [],
  );
  assert.deepEqual(
    send(1_000, () => accepted),
    [1, 3],
  );
  assert.deepEqual(write().removed, [1, 3]);
});

test("pauses double, up to an hour, and a day later the event is a dead letter", () => {
  const { add, send, write } = createQueue();
  const times: number[] = [];
  add(0, "bad");
  let nowMs = 0;
  for (let other = 0; ; nowMs += 500) {
    // Another event is accepted each time, so the sink is not failing.
    add(nowMs, `other${other++}`);
    const sent = send(nowMs, (seq) => (seq === 1 ? failed : accepted));
    if (sent.includes(1)) times.push(nowMs);
    const dead = write().rows.find(({ deadTimeMs }) => deadTimeMs !== null);
    if (dead) {
      assert.deepEqual([dead.seq, dead.nextTimeMs, dead.deadTimeMs], [1, null, nowMs]);
      break;
    }
    assert.ok(nowMs < 26 * HOUR);
  }
  const pauses = times.slice(1).map((time, i) => time - (times[i] ?? 0));
  assert.deepEqual(pauses.slice(0, 4), [1_000, 2_000, 4_000, 8_000]);
  assert.equal(Math.max(...pauses), HOUR);
  assert.ok(nowMs >= 24 * HOUR && nowMs < 25 * HOUR + 500);
});

test("a sink that fails is tried with one event at a time, ever less often, and a day later it is suspended", () => {
  const { queue, add, send, write } = createQueue();
  add(0, ..."abcdefghij");
  const times: number[] = [];
  let nowMs = 0;
  for (let rows = write(); rows.position.state !== "suspended"; rows = write(), nowMs += 1_000) {
    assert.ok(rows.rows.every(({ deadTimeMs }) => deadTimeMs === null));
    const sent = send(nowMs, () => failed);
    if (nowMs >= 1_000) assert.ok(sent.length <= 1, `${sent}`);
    if (sent.length > 0) times.push(nowMs);
    assert.ok(nowMs < 26 * HOUR);
  }
  assert.ok(queue.isSuspended);
  assert.ok(nowMs >= 24 * HOUR && nowMs < 25 * HOUR, `${nowMs}`);
  // Ten events, each of which would be tried some forty times.
  assert.ok(times.length < 320, `${times.length} attempts`);
});

test("at most 256 events wait, and then the position stands still", () => {
  const { queue, add, send, write } = createQueue();
  add(0, "x");
  send(0, () => failed);
  let read = 1;
  for (; queue.hasRoom && read < 1_000; read++) {
    add(0, `s${read}`);
    send(0, () => failed);
  }
  queue.headSeq = read + 100;
  const { position: written, rows } = write();
  assert.equal(rows.length, 256);
  assert.deepEqual([written.seq, written.state], [256, "stalled"]);
});

test("an event that is at fault itself does not keep a sink that works from getting the others", () => {
  const { add, send, write } = createQueue();
  add(0, "bad1", "bad2", "bad3");
  const outcome = (seq: number) => (seq <= 3 ? failed : accepted);
  for (let nowMs = 0; nowMs < 5_000; nowMs += 100) send(nowMs, outcome);
  add(5_000, ...Array.from({ length: 30 }, (_, i) => `good${i}`));
  let delivered = 0;
  let attempts = 0;
  for (let nowMs = 5_000; nowMs < 120_000; nowMs += 100) {
    for (const seq of send(nowMs, outcome)) {
      if (seq > 3) delivered++;
      else attempts++;
    }
  }
  assert.equal(delivered, 30);
  assert.ok(attempts < 30, `${attempts} attempts of what always fails`);
  assert.equal(write().position.seq, 33);
});

test("after a restart a failing sink is tried once, and what waits keeps its order", () => {
  const row = (seq: number, subject: string): EventDeliveryRow => ({
    ...{ subscriptionUid: position.subscriptionUid, seq, subjectUid: `${ROOT}/${subject}`, sinceMs: 0, nextTimeMs: 0 },
    ...{ deadTimeMs: null, attempts: 3, lastTimeMs: 0, lastStatus: 500, lastError: "status 500" },
  });
  const failing = { seq: 9, headSeq: 9, state: "failing", failingSinceMs: 1 } as const;
  const { queue, send } = createQueue(failing, [row(2, "a"), row(5, "a"), row(7, "b")]);
  assert.equal(queue.takeNext(100_000), 2);
  assert.equal(queue.takeNext(100_000), undefined);
  queue.recordOutcome(2, accepted, 100_000);
  assert.deepEqual(
    send(100_000, () => accepted),
    [5, 7],
  );
});

test("a subscription that is too far behind is suspended", () => {
  const near = createQueue({ seq: 0, headSeq: 100_000 }).queue;
  near.checkBacklog();
  const far = createQueue({ seq: 0, headSeq: 100_001 });
  far.queue.checkBacklog();
  assert.deepEqual([near.isSuspended, far.queue.isSuspended], [false, true]);
  assert.deepEqual(far.write().position, {
    seq: 0,
    state: "suspended",
    suspendReason: "backlog",
    failingSinceMs: null,
  });
});

test("events that the log cannot prove are dead letters at once", () => {
  const { queue, add, write } = createQueue();
  add(0, "a");
  const seq = queue.takeNext(0) ?? 0;
  queue.giveUp(seq, "the audit log was changed", 5);
  const { position: written, rows } = write();
  assert.deepEqual(
    [written.seq, rows.map(({ deadTimeMs, lastError }) => [deadTimeMs, lastError])],
    [1, [[5, "the audit log was changed"]]],
  );
});

test("what could not be written is written with the next changes", () => {
  const { queue, add, send, write } = createQueue();
  add(0, "a");
  send(0, () => failed);
  queue.restoreChanges(queue.takeChanges());
  assert.equal(write().rows.length, 1);
  assert.equal(write().rows.length, 0);
});
