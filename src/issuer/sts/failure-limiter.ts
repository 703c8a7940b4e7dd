// Limits failed attempts, so that codes and secrets cannot be guessed. Only rejected attempts count.
import { Code } from "@connectrpc/connect";
import { LRUCache } from "lru-cache";
import { parseInviteCode } from "../../iam/people/accept-invite.js";
import { ApiError, rejectReasonOf, resourceExhausted } from "../../kernel/errors.js";
import { addressKey } from "../../kernel/ip-address.js";

/** The limit, and what happens beyond it. */
export interface FailureLimiterOptions extends FailureLimit {
  /**
   * Whether attempts beyond the limit are blocked, the default. Otherwise only rejected attempts get another error,
   * and valid ones pass.
   */
  readonly blocks?: boolean;
}

const REJECTION_CODES: ReadonlySet<Code> = new Set([
  Code.Unauthenticated,
  Code.PermissionDenied,
  Code.InvalidArgument,
  Code.NotFound,
]);

/** Whether an error rejects the caller's request, and is no fault of the service. */
export function isRejection(error: unknown): error is ApiError {
  return error instanceof ApiError && REJECTION_CODES.has(error.code);
}

/** Whether an error counts as a failed attempt: a rejection, or a key that is not known and could not be looked for. */
export function isFailedAttempt(error: unknown): boolean {
  return isRejection(error) || rejectReasonOf(error) === "token_unknown_key";
}

/** Limits failed attempts of one kind. */
export type FailureLimiter = ReturnType<typeof createFailureLimiter>;

/** Creates a limiter that counts in memory, for a bounded number of keys. */
export function createFailureLimiter({ blocks = true, ...limit }: FailureLimiterOptions, shared?: SharedFailures) {
  const counter = createFailureCounter(limit, shared);

  function assertBelowLimit(keys: readonly string[]): void {
    const waitMs = Math.max(0, ...keys.map((key) => counter.msUntilReset(key)));
    if (waitMs > 0) throw resourceExhausted("too many refused requests", waitMs, "rate");
  }

  return {
    /**
     * Does `work`, and counts a failure for each of `keys` when it is rejected with UNAUTHENTICATED, PERMISSION_DENIED,
     * INVALID_ARGUMENT or NOT_FOUND.
     *
     * @throws ApiError RESOURCE_EXHAUSTED with the time to wait; whatever `work` throws
     */
    async guard<T>(keys: readonly string[], work: () => T | Promise<T>): Promise<T> {
      if (blocks) assertBelowLimit(keys);
      try {
        return await work();
      } catch (error) {
        if (!isRejection(error)) throw error;
        if (!blocks) assertBelowLimit(keys);
        for (const key of keys) counter.add(key);
        throw error;
      }
    },
  };
}

/** The allowed failures per window, and the length of a window. */
export interface FailureLimit {
  readonly points: number;
  readonly seconds: number;
}

/** Tells the other workers of failures, and hears of theirs. */
export interface FailureNews {
  tell(kind: string, name: string): void;
  listen(kind: string, onFailure: (name: string) => void): void;
}

/** The failures of one counter, which has the same kind in all workers. */
export interface SharedFailures {
  readonly news: FailureNews;
  readonly kind: string;
}

/** For a process that serves alone. */
export const noFailureNews: FailureNews = { tell() {}, listen() {} };

/** The largest number of counted names; beyond it the least recently counted one is forgotten. */
const MAX_NAMES = 20_000;

/**
 * Creates a counter of failures by name, in memory and in windows that start with the first failure, for a bounded number
 * of names.
 *
 * @param shared counts the failures of other workers too; without it those of this process alone
 */
export function createFailureCounter({ points, seconds }: FailureLimit, shared?: SharedFailures, maxNames = MAX_NAMES) {
  // Created at the first failure, because it allocates for all its names at once.
  let windows: LRUCache<string, { failures: number; readonly endMs: number }> | undefined;

  function findWindow(name: string) {
    const found = windows?.get(name);
    return found !== undefined && found.endMs > performance.now() ? found : undefined;
  }

  function count(name: string): void {
    const found = findWindow(name);
    if (found !== undefined) found.failures++;
    else {
      windows ??= new LRUCache({ max: maxNames });
      windows.set(name, { failures: 1, endMs: performance.now() + seconds * 1000 });
    }
  }

  shared?.news.listen(shared.kind, count);

  return {
    add(name: string): void {
      count(name);
      shared?.news.tell(shared.kind, name);
    },
    /** How long the limit stays reached, in milliseconds; 0 when it is not reached. */
    msUntilReset(name: string): number {
      const found = findWindow(name);
      return found !== undefined && found.failures >= points ? found.endMs - performance.now() : 0;
    },
  };
}

/**
 * The limit of wrong invite codes. Right codes always pass: codes have 128 random bits, and callers share addresses.
 */
export const INVITE_FAILURE_LIMIT = { points: 10, seconds: 600, blocks: false };

/**
 * The key of wrong codes: one invite and one address. So callers cannot use up the attempts of others, and a wrong
 * code for one invite does not affect other invites.
 *
 * @param code as it was sent; codes of unknown form are counted together
 */
export function inviteFailureKey(remoteAddress: string | undefined, code: string): string {
  return `${addressKey(remoteAddress)} invite ${parseInviteCode(code)?.keyId ?? ""}`;
}
