// Stops a store from beginning work while the service shuts down.
import { unavailable } from "../kernel/errors.js";
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
