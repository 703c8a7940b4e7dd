// Metrics of the delivery of events, on a store of either database.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createDatabaseMetrics } from "../../src/app/database-metrics.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { subscriptionKind } from "../../src/store/iam/subscriptions.js";
import type { Store } from "../../src/store/store.js";
import type { EventDeliveryRow, EventPositionRow } from "../../src/store/tables/events.js";
import { createRenderer } from "../../src/telemetry/metrics/renderer.js";
import { auditRow } from "../audit/log-kit.js";
import { parseMetrics } from "../support/metrics.js";
import { groupRow } from "../support/rows.js";

const NOW = 1_900_000_000_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const times = { createTimeMs: 1, updateTimeMs: 1 };

/** Tests that these metrics are what the store has. */
export function testEventMetrics(open: () => Promise<Store>): void {
  test("subscriptions by state, reason and time, events that wait, and the oldest ones", async () => {
    const store = await open();
    const root = "e".repeat(40);
    const { sources, refresh } = createDatabaseMetrics({
      ...{ store, clock: () => NOW, holder: "me", jobs: () => new Set<string>(), freshMs: 0, waitMs: 30_000 },
    });
    const renderer = createRenderer(sources, { prepare: refresh });
    const read = async () => parseMetrics((await renderer.render("prometheus")).text);
    const none = await read();
    for (const state of ["live", "failing", "stalled", "suspended"])
      assert.equal(none.sum("arbor_event_subscriptions", { state }), 0, state);
    for (const longer_than of ["10m", "1h", "6h"])
      assert.equal(none.sum("arbor_event_subscriptions_failing", { longer_than }), 0, longer_than);
    for (const reason of ["caller", "failed", "gone", "backlog"])
      assert.equal(none.sum("arbor_event_subscriptions_suspended", { reason }), 0, reason);
    for (const waits_for of ["retry", "unsent"])
      assert.equal(none.sum("arbor_event_oldest_seconds", { waits_for }), 0, waits_for);
    assert.equal(none.sum("arbor_events_waiting"), 0);

    let count = 0;
    const subscribe = (position: Partial<EventPositionRow>, waiting: readonly Partial<EventDeliveryRow>[] = []) =>
      store.write(async (tx) => {
        const uid = `${root}/${(++count).toString(16).padStart(16, "0")}`;
        await tx.table(subscriptionKind).insert({ uid, groupUid: root, sink: "https://a.example/", ...times });
        await tx.eventPositions.begin(uid, root, 2);
        const live = { seq: 2, state: "live", suspendReason: "", failingSinceMs: null } as const;
        await tx.eventPositions.change(uid, { ...live, ...position });
        for (const [i, row] of waiting.entries()) {
          await tx.eventDeliveries.put({
            ...{ subscriptionUid: uid, seq: i + 1, subjectUid: root, sinceMs: NOW, nextTimeMs: NOW, deadTimeMs: null },
            ...{ attempts: 1, lastTimeMs: NOW, lastStatus: 500, lastError: "", ...row },
          });
        }
      });
    await store.write(async (tx) => {
      await tx.table(groupKind).insert(groupRow(root));
      for (let seq = 1; seq <= 2; seq++) {
        await tx.audit.append(auditRow(root, { timeMs: NOW - 30 * MINUTE_MS + seq * MINUTE_MS }));
        const [row] = await tx.auditChain.listUnsealed(seq - 1, 1);
        assert.ok(row);
        await tx.auditChain.append([{ rootUid: root, seq, auditId: row.id, hash: "h" }]);
      }
    });
    await subscribe({});
    await subscribe({ state: "failing", failingSinceMs: NOW - 20 * MINUTE_MS }, [
      { sinceMs: NOW - 20 * MINUTE_MS },
      {},
    ]);
    await subscribe({ state: "stalled", failingSinceMs: NOW - 2 * HOUR_MS, seq: 0 }, [{ sinceMs: NOW - HOUR_MS }]);
    // A dead letter, and what waits for a suspended subscription.
    await subscribe({}, [{ sinceMs: 1, nextTimeMs: null, deadTimeMs: NOW }]);
    const suspended = { state: "suspended", failingSinceMs: NOW - 25 * HOUR_MS, seq: 0 } as const;
    await subscribe({ ...suspended, suspendReason: "failed" }, [{ sinceMs: 1, nextTimeMs: null }]);
    await subscribe({ ...suspended, suspendReason: "caller" });

    const some = await read();
    const states = ["live", "failing", "stalled", "suspended"].map((state) =>
      some.sum("arbor_event_subscriptions", { state }),
    );
    assert.deepEqual(states, [2, 1, 1, 2]);
    const failing = ["10m", "1h", "6h"].map((longer_than) =>
      some.sum("arbor_event_subscriptions_failing", { longer_than }),
    );
    assert.deepEqual(failing, [2, 1, 0]);
    const reasons = ["caller", "failed", "gone", "backlog"].map((reason) =>
      some.sum("arbor_event_subscriptions_suspended", { reason }),
    );
    assert.deepEqual(reasons, [1, 1, 0, 0]);
    assert.equal(some.sum("arbor_events_waiting"), 3);
    assert.equal(some.sum("arbor_event_oldest_seconds", { waits_for: "retry" }), 3_600);
    assert.equal(some.sum("arbor_event_oldest_seconds", { waits_for: "unsent" }), 0, "the stalled one is left out");

    await subscribe({ seq: 1 });
    const late = await read();
    assert.equal(late.sum("arbor_event_oldest_seconds", { waits_for: "unsent" }), 28 * 60);
    const counted = await store.read((tx) => tx.eventDeliveries.countWaiting(2));
    assert.equal(counted.n, 2, "no more are counted than the limit");
    await store.close();
  });
}
