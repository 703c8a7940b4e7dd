import { unavailable } from "../kernel/errors.js";
import type { Awaitable, Store, Tx } from "./port.js";

/** A store that can be told to begin no more work. */
export interface WorkGate {
  readonly store: Store;
  /** Refuses every unit of work that has not begun, queued ones included; those that have begun go on to their commit. */
  refuse(): void;
}

/**
 * Puts a gate in front of a store.
 *
 * Once it refuses, `read`, `write` and `check` fail with UNAVAILABLE, which tells callers that they may
 * try again elsewhere: nothing of what they asked for was done.
 */
export function createWorkGate(inner: Store): WorkGate {
  let refusing = false;
  const assertOpen = () => {
    if (refusing) throw unavailable("the service is stopping");
  };
  // Looked at again when a queued unit begins, and when one that lost against another begins anew.
  const gated =
    <T>(unit: (tx: Tx) => Awaitable<T>) =>
    (tx: Tx) => {
      assertOpen();
      return unit(tx);
    };

  return {
    store: {
      read(unit, options) {
        assertOpen();
        return inner.read(unit, options);
      },
      async write(unit, options) {
        assertOpen();
        return inner.write(gated(unit), options);
      },
      lateCommitMs: inner.lateCommitMs,
      async check() {
        assertOpen();
        await inner.check();
      },
      close: () => inner.close(),
    },
    refuse() {
      refusing = true;
    },
  };
}
