// Limits against guessing, where the next try might be right. Only refusals count.
import { Code } from "@connectrpc/connect";
import { LRUCache } from "lru-cache";
import { parseInviteCode } from "../../iam/people/accept-invite.js";
import { ApiError, resourceExhausted } from "../../kernel/errors.js";

import { addressKey } from "../../kernel/ip-address.js";

/** How many refusals are allowed, and what happens beyond. */
export interface FailureLimiterOptions extends FailureLimit {
  /**
   * Whether nothing is done any more for who is over the limit, as by default. Otherwise only refusals turn into
   * another one, and whoever is in order is let in.
   */
  readonly blocks?: boolean;
}

/** Refusals of one sort. */
export interface FailureLimiter {
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
export function isRejection(error: unknown): error is ApiError {
  return error instanceof ApiError && REFUSED.has(error.code);
}

/** Creates a limit that counts in memory, per key; for a bounded number of keys. */
export function createFailureLimiter({ blocks = true, ...limit }: FailureLimiterOptions): FailureLimiter {
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
        if (!isRejection(error)) throw error;
        if (!blocks) requireRoom(keys);
        for (const key of keys) counter.add(key);
        throw error;
      }
    },
  };
}

/** How many failures are allowed within how many seconds. */
export interface FailureLimit {
  readonly points: number;
  readonly seconds: number;
}

/** So many names are counted; beyond that the one counted least lately is forgotten. */
const MAX_NAMES = 20_000;

/** Counts failures by name, in windows that begin with the first one; keeps a bounded number of names. */
export interface FailureCounter {
  add(name: string): void;
  /** Until when the limit is reached, in milliseconds from now; 0 when it is not. */
  exhaustedForMs(name: string): number;
}

/** Creates the counter, in memory. */
export function createFailureCounter({ points, seconds }: FailureLimit, maxNames = MAX_NAMES): FailureCounter {
  const windows = new LRUCache<string, { failures: number; readonly endMs: number }>({ max: maxNames });

  function open(name: string) {
    const found = windows.get(name);
    return found !== undefined && found.endMs > performance.now() ? found : undefined;
  }

  return {
    add(name) {
      const found = open(name);
      if (found !== undefined) found.failures++;
      else windows.set(name, { failures: 1, endMs: performance.now() + seconds * 1000 });
    },
    exhaustedForMs(name) {
      const found = open(name);
      return found !== undefined && found.failures >= points ? found.endMs - performance.now() : 0;
    },
  };
}

// Wrong codes of invites, wherever they are given.

/**
 * How many in how many seconds. A right code passes whatever was tried before: at 128 random bits nobody guesses one,
 * and addresses are shared.
 */
export const INVITE_FAILURES = { points: 10, seconds: 600, blocks: false };

/**
 * What wrong codes are counted by: one invite and one address. So nobody can use up another's tries, and a wrong
 * code for one invite leaves the others of the address alone.
 *
 * @param code as it was given; those that belong to no invite are counted together
 */
export function inviteFailureKey(remoteAddress: string | undefined, code: string): string {
  return `${addressKey(remoteAddress)} invite ${parseInviteCode(code)?.keyId ?? ""}`;
}
