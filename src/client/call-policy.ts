// What every call gets beside its bytes: a deadline over all attempts, a token,
// one more try with a new token, and tries after UNAVAILABLE. It wraps the
// transport and not each request inside it, because every attempt has to tell
// the service the time that is left then.
import type { DescMethod, DescMethodUnary } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { type CallTime, startCallTime } from "./call-time.js";
import { type Pacing, retryUnavailable } from "./retry.js";
import { isBearerToken, type TokenSource } from "./token-source.js";

/** How calls are made. */
export interface CallPolicy {
  readonly token: TokenSource | undefined;
  /** Whether the service is reached in a way that a token may take. */
  readonly mayCarryToken: boolean;
  /** The deadline of unary calls that set none, in milliseconds. */
  readonly timeoutMs: number;
  /** Methods with effects that may be sent twice. */
  readonly retryWrites: ReadonlySet<DescMethod>;
  readonly pacing: Pacing;
}

/**
 * The transport with the policy applied. Streams get a token and nothing else: what they sent or gave
 * before they broke cannot be taken back, and they may be meant to stay open.
 */
export function withCallPolicy(transport: Transport, policy: CallPolicy): Transport {
  return {
    async unary(method, signal, timeoutMs, header, input, contextValues) {
      const time = startCallTime(timeoutMs ?? policy.timeoutMs, signal);
      const headers = new Headers(header);
      const attempt = () => transport.unary(method, signal, time.leftMs(), headers, input, contextValues);
      const send = mayRepeat(method, policy) ? () => retryUnavailable(attempt, time, policy.pacing) : attempt;
      const source = sourceFor(headers, policy);
      if (source === undefined) return send();
      const token = await tokenFrom(source.token, time);
      headers.set("authorization", `Bearer ${token}`);
      try {
        return await send();
      } catch (error) {
        const { renew } = source;
        if (renew === undefined || !isUnauthenticated(error)) throw error;
        const renewed = await tokenFrom(() => renew(token), time);
        if (renewed === token) throw error;
        // The service refused before it did anything, so even a write may be sent again.
        headers.set("authorization", `Bearer ${renewed}`);
        return send();
      }
    },
    async stream(method, signal, timeoutMs, header, input, contextValues) {
      const headers = new Headers(header);
      const source = sourceFor(headers, policy);
      if (source !== undefined) {
        const token = await tokenFrom(source.token, startCallTime(timeoutMs ?? 0, signal));
        headers.set("authorization", `Bearer ${token}`);
      }
      return transport.stream(method, signal, timeoutMs, headers, input, contextValues);
    },
  };
}

// A call that brings its own Authorization, to act for somebody else, is sent with that.
function sourceFor(headers: Headers, policy: CallPolicy): TokenSource | undefined {
  if (!headers.has("authorization")) return policy.token;
  if (!policy.mayCarryToken) throw new TypeError("a token is never sent in cleartext to another machine");
  return undefined;
}

function mayRepeat(method: DescMethodUnary, policy: CallPolicy): boolean {
  return method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS || policy.retryWrites.has(method);
}

async function tokenFrom(get: () => string | Promise<string>, time: CallTime): Promise<string> {
  let token: unknown;
  try {
    const given = get();
    token = typeof given === "string" ? given : await time.within(given);
  } catch (error) {
    if (error instanceof ConnectError) throw error;
    // The text of an unknown error may repeat what could not be parsed: a token.
    throw new ConnectError("no token could be had", Code.Unauthenticated, undefined, undefined, error);
  }
  if (isBearerToken(token)) return token;
  throw new ConnectError("the token source gave no valid bearer token", Code.Unauthenticated);
}

function isUnauthenticated(error: unknown): boolean {
  return error instanceof ConnectError && error.code === Code.Unauthenticated;
}
