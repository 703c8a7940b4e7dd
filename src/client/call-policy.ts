// The policy of every call: a deadline over all attempts, a token, one more attempt with a new token, and retries after
// UNAVAILABLE. It wraps the transport, because every attempt sends the service the time that is left.
import type { DescMethod, DescMethodUnary } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { type CallDeadline, type Pacing, retryUnavailable, startDeadline } from "./retry.js";
import { isBearerToken, type TokenSource } from "./token-source.js";

/** How calls are made. */
export interface CallPolicy {
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
