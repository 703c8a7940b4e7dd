// The token exchange (spec section 5, item 4): the OIDC token that a platform
// gives its workloads, for an API token of the identity that may be assumed
// with it.
import { Code, ConnectError } from "@connectrpc/connect";
import { type CallTime, startCallTime } from "./call-time.js";
import { type RefreshingTokenOptions, refreshingToken } from "./refreshing-token.js";
import { BACKOFF_MS, retryUnavailable } from "./retry.js";
import { assertMayCarryToken, serviceUrl } from "./secure-url.js";
import { isBearerToken, type TokenSource } from "./token-source.js";

/** How long one exchange may take with all its attempts, in milliseconds. */
const EXCHANGE_MS = 10_000;

/** How much of the issuer's own text an error repeats, in characters. */
const MAX_TEXT = 500;

/** What {@link exchangedToken} needs to know. */
export interface ExchangedTokenOptions extends RefreshingTokenOptions {
  /** Where the exchange is, without `/sts/exchange`: https, or http on this machine. */
  readonly issuer: string;
  /** The uid of the identity to assume. */
  readonly identity: string;
  /** What the token is for: the base URL of the API. */
  readonly audience: string;
  /** Gets the OIDC token of the workload, for each exchange anew, such as `tokenFile(path).token`. */
  readonly upstream: () => string | Promise<string>;
  /** The `fetch` to use, where the one of Node does not fit: for a proxy, or a private authority. */
  readonly fetch?: typeof globalThis.fetch;
  /** The wait before the second attempt of an exchange, in milliseconds: 200 unless set. */
  readonly backoffMs?: number;
}

/**
 * API tokens by exchange, kept fresh like those of `refreshingToken`. An exchange that fails with
 * UNAVAILABLE is tried again like a call; other failures reach the calls that wait for the token, with
 * the code and the text of the issuer.
 *
 * @throws TypeError when the issuer is no URL, or one to which no token may be sent
 */
export function exchangedToken(options: ExchangedTokenOptions): TokenSource {
  const { issuer, identity, audience, upstream, fetch = globalThis.fetch, backoffMs = BACKOFF_MS } = options;
  const base = serviceUrl(issuer, "issuer");
  assertMayCarryToken(base, "issuer");
  const query = new URLSearchParams({ aud: audience, identity });
  const url = `${base.origin}${base.pathname.replace(/\/+$/, "")}/sts/exchange?${query}`;

  async function fetchToken(): Promise<string> {
    const time = startCallTime(EXCHANGE_MS);
    const subject = await time.within(Promise.resolve(upstream()));
    if (!isBearerToken(subject)) throw failure("upstream gave no valid bearer token", Code.Unauthenticated);
    const attempt = () => exchangeOnce(fetch, url, subject, time);
    return retryUnavailable(attempt, time, { backoffMs, random: Math.random });
  }
  return refreshingToken(fetchToken, options);
}

async function exchangeOnce(fetch: typeof globalThis.fetch, url: string, subject: string, time: CallTime) {
  const signal = AbortSignal.timeout(time.leftMs() ?? EXCHANGE_MS);
  let status: number;
  let text: string;
  try {
    const headers = { authorization: `Bearer ${subject}`, accept: "application/json" };
    // A redirect would carry the OIDC token to a place nobody configured.
    const response = await fetch(url, { headers, redirect: "manual", signal });
    status = response.status;
    text = await response.text();
  } catch (cause) {
    if (signal.aborted) throw failure(`no answer within ${EXCHANGE_MS} ms`, Code.DeadlineExceeded);
    throw failure("the issuer cannot be reached", Code.Unavailable, cause);
  }
  const body = jsonObject(text);
  if (status !== 200) throw refusal(status, body, subject);
  if (!isBearerToken(body.token)) throw failure("the answer has no token", Code.Internal);
  return body.token;
}

// The issuer's errors have the same JSON body as those of every REST call (spec section 7).
function refusal(status: number, body: Readonly<Record<string, unknown>>, subject: string): ConnectError {
  const { code, message } = body;
  const known = typeof code === "number" && Code[code] !== undefined ? code : codeOfStatus[status];
  const text = typeof message === "string" && message !== "" ? message : `the issuer answered ${status}`;
  return failure(text.replaceAll(subject, "[token]").slice(0, MAX_TEXT), known ?? Code.Unknown);
}

const codeOfStatus: Readonly<Record<number, Code>> = {
  400: Code.InvalidArgument,
  401: Code.Unauthenticated,
  403: Code.PermissionDenied,
  404: Code.NotFound,
  429: Code.ResourceExhausted,
  502: Code.Unavailable,
  503: Code.Unavailable,
  504: Code.Unavailable,
};

// The error of a parser repeats a part of the text, which is a token when all is well.
function jsonObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}

function failure(text: string, code: Code, cause?: unknown): ConnectError {
  return new ConnectError(`token exchange: ${text}`, code, undefined, undefined, cause);
}
