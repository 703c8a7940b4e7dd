// The time one call has, over all its attempts and everything it waits for.
import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";

/** How long a call may still take, and waiting that ends with it. */
export interface CallTime {
  /** Whole milliseconds left, at least 1; undefined without a deadline. */
  leftMs(): number | undefined;
  /** Whether there is more than `ms` milliseconds left. */
  hasMoreThan(ms: number): boolean;
  /**
   * What `promise` gives.
   *
   * @throws ConnectError DEADLINE_EXCEEDED or CANCELED when the call ends first
   */
  within<T>(promise: Promise<T>): Promise<T>;
  /**
   * Waits `ms` milliseconds.
   *
   * @throws ConnectError CANCELED when the call is cancelled meanwhile
   */
  pause(ms: number): Promise<void>;
}

/**
 * Starts the time of a call.
 *
 * @param timeoutMs how long it may take in milliseconds; 0 or less is for ever
 * @param signal cancels it
 */
export function startCallTime(timeoutMs: number, signal?: AbortSignal): CallTime {
  const endMs = timeoutMs > 0 ? performance.now() + timeoutMs : Number.POSITIVE_INFINITY;
  const cancelled = () => ConnectError.from(signal?.reason, Code.Canceled);
  return {
    leftMs: () => (endMs === Number.POSITIVE_INFINITY ? undefined : Math.max(1, Math.ceil(endMs - performance.now()))),
    hasMoreThan: (ms) => endMs - performance.now() > ms,
    async within(promise) {
      let timer: NodeJS.Timeout | undefined;
      let onAbort: (() => void) | undefined;
      const end = new Promise<never>((_, reject) => {
        if (endMs !== Number.POSITIVE_INFINITY) {
          timer = setTimeout(() => reject(timedOut()), Math.max(1, endMs - performance.now()));
        }
        onAbort = () => reject(cancelled());
        if (signal?.aborted) onAbort();
        else signal?.addEventListener("abort", onAbort, { once: true });
      });
      try {
        return await Promise.race([promise, end]);
      } finally {
        clearTimeout(timer);
        if (onAbort !== undefined) signal?.removeEventListener("abort", onAbort);
      }
    },
    async pause(ms) {
      await sleep(ms, undefined, signal && { signal }).catch(() => {
        throw cancelled();
      });
    },
  };
}

// The text connect uses for the same thing.
function timedOut(): ConnectError {
  return new ConnectError("the operation timed out", Code.DeadlineExceeded);
}
