// Retries after UNAVAILABLE within the deadline of a call. Other codes would fail again, or the call may have had its
// effect.
import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { retryDelayMs } from "./error-details.js";

/** The retries of a call. */
const MAX_RETRIES = 3;

/** The default wait before the second attempt, in milliseconds. Each further wait is twice as long. */
export const BACKOFF_MS = 200;

/** The waits between attempts. */
export interface Pacing {
  /** The longest wait before the second attempt, in milliseconds. */
  readonly backoffMs: number;
  /** A random number from 0 up to 1. */
  readonly random: () => number;
}

/**
 * Runs `attempt`, and up to three times more while it fails with UNAVAILABLE and the wait fits into the
 * deadline of the call. Each wait is random in the upper half of an interval that doubles, so that callers that failed
 * together do not retry together. The delay of the service's RetryInfo is added.
 *
 * @throws the error of the last attempt
 */
export async function retryUnavailable<T>(
  attempt: () => Promise<T>,
  deadline: CallDeadline,
  pacing: Pacing,
): Promise<T> {
  for (let retries = 0; ; retries++) {
    try {
      return await attempt();
    } catch (error) {
      if (retries === MAX_RETRIES || !isUnavailable(error)) throw error;
      const span = pacing.backoffMs * 2 ** retries;
      const waitMs = retryDelayMs(error) + (span / 2) * (1 + pacing.random());
      if (!deadline.hasMoreThan(waitMs)) throw error;
      await deadline.pause(waitMs);
    }
  }
}

function isUnavailable(error: unknown): boolean {
  return error instanceof ConnectError && error.code === Code.Unavailable;
}

/** The deadline of a call over all its attempts, and waits that end with it. */
export type CallDeadline = ReturnType<typeof startDeadline>;

/**
 * Starts the deadline of a call.
 *
 * @param timeoutMs its timeout in milliseconds; 0 or less for none
 * @param signal cancels it
 */
export function startDeadline(timeoutMs: number, signal?: AbortSignal) {
  const endMs = timeoutMs > 0 ? performance.now() + timeoutMs : Number.POSITIVE_INFINITY;
  const createCancelledError = () => ConnectError.from(signal?.reason, Code.Canceled);
  return {
    /** Whole milliseconds left, at least 1; undefined without a deadline. */
    remainingMs: () =>
      endMs === Number.POSITIVE_INFINITY ? undefined : Math.max(1, Math.ceil(endMs - performance.now())),
    /** Whether there is more than `ms` milliseconds left. */
    hasMoreThan: (ms: number) => endMs - performance.now() > ms,
    /**
     * Awaits `promise`.
     *
     * @throws ConnectError DEADLINE_EXCEEDED or CANCELED when the call ends before
     */
    async within<T>(promise: Promise<T>): Promise<T> {
      let timer: NodeJS.Timeout | undefined;
      let onAbort: (() => void) | undefined;
      const end = new Promise<never>((_, reject) => {
        if (endMs !== Number.POSITIVE_INFINITY) {
          timer = setTimeout(() => reject(createTimeoutError()), Math.max(1, endMs - performance.now()));
        }
        onAbort = () => reject(createCancelledError());
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
    /**
     * Waits `ms` milliseconds.
     *
     * @throws ConnectError CANCELED when the call is cancelled
     */
    async pause(ms: number): Promise<void> {
      await sleep(ms, undefined, signal && { signal }).catch(() => {
        throw createCancelledError();
      });
    },
  };
}

// The text of connect for the same error.
function createTimeoutError(): ConnectError {
  return new ConnectError("the operation timed out", Code.DeadlineExceeded);
}
