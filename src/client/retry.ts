// Trying again after UNAVAILABLE, the one code that says "not now" and nothing
// else: everything else would fail again, or may have happened.
import { Code, ConnectError } from "@connectrpc/connect";
import type { CallTime } from "./call-time.js";
import { retryDelayMs } from "./error-details.js";

/** How often a call is tried again. */
const MAX_RETRIES = 3;

/** The wait before the second attempt, in milliseconds, unless set; each further one is twice as long. */
export const BACKOFF_MS = 200;

/** How retries are spaced. */
export interface Pacing {
  /** The longest wait before the second attempt, in milliseconds. */
  readonly backoffMs: number;
  /** A random number from 0 up to 1. */
  readonly random: () => number;
}

/**
 * Runs `attempt`, and up to three times more while it fails with UNAVAILABLE and the wait fits into the
 * time of the call. Each wait is drawn from the upper half of a span that doubles, so that callers who
 * failed together do not come back together; what the service asked for with RetryInfo comes on top.
 *
 * @throws the last attempt's error
 */
export async function retryUnavailable<T>(attempt: () => Promise<T>, time: CallTime, pacing: Pacing): Promise<T> {
  for (let retries = 0; ; retries++) {
    try {
      return await attempt();
    } catch (error) {
      if (retries === MAX_RETRIES || !isUnavailable(error)) throw error;
      const span = pacing.backoffMs * 2 ** retries;
      const waitMs = retryDelayMs(error) + (span / 2) * (1 + pacing.random());
      if (!time.hasMoreThan(waitMs)) throw error;
      await time.pause(waitMs);
    }
  }
}

function isUnavailable(error: unknown): boolean {
  return error instanceof ConnectError && error.code === Code.Unavailable;
}
