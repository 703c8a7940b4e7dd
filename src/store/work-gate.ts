// What stores of both databases share: the gate that stops them from beginning work while the service shuts down, and
// what they count.
import { unavailable } from "../kernel/errors.js";
import { Histogram } from "../kernel/histogram.js";
import type { Awaitable } from "./awaitable.js";
import type { Store } from "./store.js";
import type { Tx } from "./transaction.js";

/**
 * Wraps a store. After `reject`, `read`, `write` and `check` fail with UNAVAILABLE, which tells callers that nothing
 * was done and that they may retry on another node.
 */
export function createWorkGate(inner: Store) {
  let isClosed = false;
  const assertOpen = () => {
    if (isClosed) throw unavailable("the service is stopping");
  };
  // Checked again when a queued unit begins, and when a unit runs again after a conflict.
  const requireOpen =
    <T>(unit: (tx: Tx) => Awaitable<T>) =>
    (tx: Tx) => {
      assertOpen();
      return unit(tx);
    };

  const store: Store = {
    async read(unit, options) {
      assertOpen();
      return inner.read(unit, options);
    },
    async write(unit, options) {
      assertOpen();
      return inner.write(requireOpen(unit), options);
    },
    lateCommitMs: inner.lateCommitMs,
    stats: () => inner.stats(),
    async check() {
      assertOpen();
      return inner.check();
    },
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

/** What both databases count in the same way; see {@link StoreStats} in port. */
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
