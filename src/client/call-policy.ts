// The policy of every call: a deadline over all attempts, a token, one more attempt with a new token, and retries after
// UNAVAILABLE. It wraps the transport, because every attempt sends the service the time that is left.
import { setTimeout as sleep } from "node:timers/promises";
import type { DescMethod, DescMethodUnary } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { retryDelayMs } from "./error-details.js";
import { isBearerToken, type TokenSource } from "./token-source.js";

/** How calls are made. */
interface CallPolicy {
  readonly token: TokenSource | undefined;
  /** Whether a token may be sent to the service. */
  readonly mayCarryToken: boolean;
  /** The deadline of unary calls that set none, in milliseconds. */
  readonly timeoutMs: number;
  /** Methods with effects that may be sent twice. */
  readonly retryWrites: ReadonlySet<DescMethod>;
  readonly pacing: Pacing;
}

/**
 * Applies the policy to a transport. Streams only get a token: their messages before an error cannot be taken back, and
 * they may stay open without a deadline.
 */
export function withCallPolicy(transport: Transport, policy: CallPolicy): Transport {
  return {
    async unary(method, signal, timeoutMs, header, input, contextValues) {
      const deadline = startDeadline(timeoutMs ?? policy.timeoutMs, signal);
      const headers = new Headers(header);
      const attempt = () => transport.unary(method, signal, deadline.remainingMs(), headers, input, contextValues);
      const send = mayRepeat(method, policy) ? () => retryUnavailable(attempt, deadline, policy.pacing) : attempt;
      const source = sourceFor(headers, policy);
      if (source === undefined) return send();
      const token = await tokenFrom(source.token, deadline);
      headers.set("authorization", `Bearer ${token}`);
      try {
        return await send();
      } catch (error) {
        const { renew } = source;
        if (renew === undefined || !isUnauthenticated(error)) throw error;
        const renewed = await tokenFrom(() => renew(token), deadline);
        if (renewed === token) throw error;
        // The service authenticates before it acts, so a write may be sent again as well.
        headers.set("authorization", `Bearer ${renewed}`);
        return send();
      }
    },
    async stream(method, signal, timeoutMs, header, input, contextValues) {
      const headers = new Headers(header);
      const source = sourceFor(headers, policy);
      if (source !== undefined) {
        const token = await tokenFrom(source.token, startDeadline(timeoutMs ?? 0, signal));
        headers.set("authorization", `Bearer ${token}`);
      }
      return transport.stream(method, signal, timeoutMs, headers, input, contextValues);
    },
  };
}

// A call with an Authorization header of its own keeps it.
function sourceFor(headers: Headers, policy: CallPolicy): TokenSource | undefined {
  if (!headers.has("authorization")) return policy.token;
  if (!policy.mayCarryToken) throw new TypeError("a token is never sent in cleartext to another machine");
  return undefined;
}

function mayRepeat(method: DescMethodUnary, policy: CallPolicy): boolean {
  return method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS || policy.retryWrites.has(method);
}

async function tokenFrom(get: () => string | Promise<string>, deadline: CallDeadline): Promise<string> {
  let token: unknown;
  try {
    const given = get();
    token = typeof given === "string" ? given : await deadline.within(given);
  } catch (error) {
    if (error instanceof ConnectError) throw error;
    // The text of an unknown error may contain a token.
    throw new ConnectError("no token could be had", Code.Unauthenticated, undefined, undefined, error);
  }
  if (isBearerToken(token)) return token;
  throw new ConnectError("the token source gave no valid bearer token", Code.Unauthenticated);
}

function isUnauthenticated(error: unknown): boolean {
  return error instanceof ConnectError && error.code === Code.Unauthenticated;
}

// Retries after UNAVAILABLE within the deadline of a call. Other codes would fail again, or the call may have had its
// effect.

/** The retries of a call. */
const MAX_RETRIES = 3;

/** The default wait before the second attempt, in milliseconds. Each further wait is twice as long. */
export const BACKOFF_MS = 200;

/** The waits between attempts. */
interface Pacing {
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
