// What stores of both databases share: the gate that stops them from beginning work while the service shuts down, and
// what they count.
import { unavailable } from "../kernel/errors.js";
import { Histogram } from "../kernel/histogram.js";
import type { Store } from "./store.js";
import type { Tx } from "./transaction.js";

/**
 * Wraps a store. After `reject`, `read`, `write` and `check` fail with UNAVAILABLE, which tells callers that nothing
 * was done and that they may retry on another node.
 */
export function createWorkGate(inner: Store) {
  let isClosed = false;
  const stopping = () => Promise.reject(unavailable("the service is stopping"));
  // Asked again when a queued unit begins, and when a unit runs again after a conflict.
  const unlessClosed =
    <T>(unit: (tx: Tx) => Promise<T>) =>
    (tx: Tx) =>
      isClosed ? stopping() : unit(tx);

  const store: Store = {
    read: (unit, options) => (isClosed ? stopping() : inner.read(unit, options)),
    write: (unit, options) => (isClosed ? stopping() : inner.write(unlessClosed(unit), options)),
    lateCommitMs: inner.lateCommitMs,
    stats: () => inner.stats(),
    check: () => (isClosed ? stopping() : inner.check()),
    close: () => inner.close(),
  };
  return {
    store,
    /**
     * Rejects every unit of work that has not begun, also those in a queue; units that have begun run to their commit.
     */
    reject(): void {
      isClosed = true;
    },
  };
}

/** What both databases count in the same way; `StoreStats` in store.ts has the others. */
export interface StoreCounts {
  readonly batchUnits: Histogram;
  readonly commitSeconds: Histogram;
  conflicts: number;
  readonly waiting: number;
}

/** The bounds of the histograms. A batch of the group commit has at most 64 units. */
const UNIT_BOUNDS = [1, 2, 4, 8, 16, 32];
const SECOND_BOUNDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1];

export function createStoreCounts(): StoreCounts {
  return {
    batchUnits: new Histogram(UNIT_BOUNDS),
    commitSeconds: new Histogram(SECOND_BOUNDS),
    conflicts: 0,
    waiting: 0,
  };
}
