// What stores of both databases share: the gate that stops them from beginning work while the service shuts down, and
// what they count.
import { unavailable } from "../kernel/errors.js";
import { Histogram } from "../kernel/histogram.js";
import type { Awaitable, Store, Tx } from "./port.js";

/**
 * Wraps a store. After `refuse`, `read`, `write` and `check` fail with UNAVAILABLE, which tells callers that
 * nothing was done and that they may try again elsewhere.
 */
export function createWorkGate(inner: Store) {
  let refusing = false;
  const assertOpen = () => {
    if (refusing) throw unavailable("the service is stopping");
  };
  // Checked again when a queued unit begins, and when a unit runs again after a conflict.
  const checkFirst =
    <T>(unit: (tx: Tx) => Awaitable<T>) =>
    (tx: Tx) => {
      assertOpen();
      return unit(tx);
    };

  const store: Store = {
    read(unit, options) {
      assertOpen();
      return inner.read(unit, options);
    },
    async write(unit, options) {
      assertOpen();
      return inner.write(checkFirst(unit), options);
    },
    lateCommitMs: inner.lateCommitMs,
    stats: () => inner.stats(),
    hasRoom: (access) => inner.hasRoom(access),
    async check() {
      assertOpen();
      return inner.check();
    },
    close: () => inner.close(),
  };
  return {
    store,
    /** Rejects every unit of work that has not begun, also those in a queue; units that have begun run to their commit. */
    reject(): void {
      refusing = true;
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

/** The batches of the group commit have at most 64 units. */
const UNITS = [1, 2, 4, 8, 16, 32];
const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1];

/** Creates counts of nothing. */
export function createStoreCounts(): StoreCounts {
  return { batchUnits: new Histogram(UNITS), commitSeconds: new Histogram(SECONDS), conflicts: 0, waiting: 0 };
}
