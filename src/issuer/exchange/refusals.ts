// Limits that only refusals count against: whoever is let in is never held up
// (spec section 8), and whoever guesses is.
import { Code } from "@connectrpc/connect";
import { RateLimiterMemory } from "rate-limiter-flexible";
import { ApiError, resourceExhausted } from "../../kernel/errors.js";

export { addressKey } from "../../kernel/address-key.js";

/** How many refusals are allowed within how many seconds. */
export interface RefusalLimit {
  readonly points: number;
  readonly seconds: number;
  /**
   * Whether nothing is done any more for who is over the limit: against guessing, where the next try
   * might be right. Otherwise only refusals turn into another one, and whoever is in order is let in.
   */
  readonly blocks: boolean;
}

/** Refusals of one sort. */
export interface Refusals {
  /**
   * Does `work`, and counts it against all of `keys` when it is refused: UNAUTHENTICATED,
   * PERMISSION_DENIED, INVALID_ARGUMENT or NOT_FOUND.
   *
   * @throws ApiError RESOURCE_EXHAUSTED with the time to wait; whatever `work` throws.
   */
  guard<T>(keys: readonly string[], work: () => T | Promise<T>): Promise<T>;
}

const REFUSED: ReadonlySet<Code> = new Set([
  Code.Unauthenticated,
  Code.PermissionDenied,
  Code.InvalidArgument,
  Code.NotFound,
]);

/** Creates a limit that counts in memory, per key. */
export function createRefusals({ points, seconds, blocks }: RefusalLimit): Refusals {
  const limiter = new RateLimiterMemory({ points, duration: seconds });

  async function requireRoom(keys: readonly string[]): Promise<void> {
    for (const key of keys) {
      const counted = await limiter.get(key);
      if (counted !== null && counted.consumedPoints >= points) {
        throw resourceExhausted("too many refused requests", counted.msBeforeNext);
      }
    }
  }

  return {
    async guard(keys, work) {
      if (blocks) await requireRoom(keys);
      try {
        return await work();
      } catch (error) {
        if (!(error instanceof ApiError) || !REFUSED.has(error.code)) throw error;
        if (!blocks) await requireRoom(keys);
        for (const key of keys) await limiter.penalty(key);
        throw error;
      }
    },
  };
}
