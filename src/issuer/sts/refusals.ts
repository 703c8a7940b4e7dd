// Limits against guessing, where the next try might be right. Only refusals count.
import { Code } from "@connectrpc/connect";
import { ApiError, resourceExhausted } from "../../kernel/errors.js";
import { createFailureCounter, type FailureLimit } from "./failure-counter.js";

export { addressKey } from "../../kernel/address-key.js";

/** How many refusals are allowed, and what happens beyond. */
export interface RefusalLimit extends FailureLimit {
  /**
   * Whether nothing is done any more for who is over the limit, as by default. Otherwise only refusals turn into
   * another one, and whoever is in order is let in.
   */
  readonly blocks?: boolean;
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

/** Whether an error says that a caller is refused, and not that something is out of order here. */
export function isRefused(error: unknown): error is ApiError {
  return error instanceof ApiError && REFUSED.has(error.code);
}

/** Creates a limit that counts in memory, per key; for a bounded number of keys. */
export function createRefusals({ blocks = true, ...limit }: RefusalLimit): Refusals {
  const counter = createFailureCounter(limit);

  function requireRoom(keys: readonly string[]): void {
    const waitMs = Math.max(0, ...keys.map((key) => counter.exhaustedForMs(key)));
    if (waitMs > 0) throw resourceExhausted("too many refused requests", waitMs);
  }

  return {
    async guard(keys, work) {
      if (blocks) requireRoom(keys);
      try {
        return await work();
      } catch (error) {
        if (!isRefused(error)) throw error;
        if (!blocks) requireRoom(keys);
        for (const key of keys) counter.add(key);
        throw error;
      }
    },
  };
}
