// Watches the units of work of callers, to find that the database answers none of them any more. A server that waits for
// a lock, or a machine that stands still, rejects nothing.
import { ApiError } from "../kernel/errors.js";
import type { Store, UnitOptions } from "./store.js";

/** How old the oldest unit must be, and for how long none may have ended, in milliseconds. */
const STUCK_MS = 5_000;

/** The queue of units whose callers have none of their own, such as those of pages. */
const CALLERS = "callers";

export interface UnitWatchOptions {
  /** How long a unit waits for the database unless its caller says so, in milliseconds. */
  readonly maxWaitMs: number;
  /** Whether reads are watched too: not on SQLite, which answers them in the thread that asks. */
  readonly watchesReads: boolean;
  /** A monotonic clock; replaced in tests. */
  readonly nowMs?: () => number;
}

/**
 * Wraps a store, whose units are watched. Background work uses the store itself: it reads other tables, and would end
 * while no call does.
 */
export function watchUnits(
  inner: Store,
  { maxWaitMs, watchesReads, nowMs = () => performance.now() }: UnitWatchOptions,
) {
  // In the order in which they began.
  const running = new Set<{ readonly sinceMs: number }>();
  let endedMs = Number.NEGATIVE_INFINITY;

  const noteEnd = () => {
    // Only `areStuck` needs the time, and without running units it does not.
    if (running.size > 0) endedMs = nowMs();
  };

  function follow<T>(result: Promise<T>): Promise<T> {
    const unit = { sinceMs: nowMs() };
    running.add(unit);
    result.then(
      () => {
        noteEnd();
        running.delete(unit);
      },
      (error) => {
        if (hasEndedWith(error)) noteEnd();
        running.delete(unit);
      },
    );
    return result;
  }

  // Background work does not wait behind the units of callers, nor the other way round.
  function withTurn(options: UnitOptions | undefined): UnitOptions {
    if (options?.key !== undefined) return options;
    return { ...options, key: CALLERS, maxWaitMs };
  }

  const store: Store = {
    ...inner,
    read: (unit, options) => {
      const result = inner.read(unit, withTurn(options));
      return watchesReads ? follow(result) : result;
    },
    write: (unit, options) => follow(inner.write(unit, withTurn(options))),
  };
  return {
    store,
    /**
     * Whether the oldest unit runs for more than five seconds and none has ended for as long. One slow unit beside others
     * that end is no reason to send callers away: all nodes would have it.
     */
    areStuck(): boolean {
      const [oldest] = running;
      if (oldest === undefined) return false;
      return nowMs() - Math.max(oldest.sinceMs, endedMs) > STUCK_MS;
    },
  };
}

// A unit that the database gave up, such as at the limit of its time, has not ended for this purpose.
function hasEndedWith(error: unknown): boolean {
  return !(error instanceof ApiError && ["UNAVAILABLE", "DEADLINE_EXCEEDED"].includes(error.reason));
}
