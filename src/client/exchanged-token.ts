// The token exchange: the OIDC token of a workload for an API token of the identity that it may assume
// (docs/api-rules.md#token-exchange).
import { Code, ConnectError } from "@connectrpc/connect";
import { type RefreshingTokenOptions, refreshingToken } from "./refreshing-token.js";
import { BACKOFF_MS, type CallDeadline, retryUnavailable, startDeadline } from "./retry.js";
import { assertMayCarryToken, isBearerToken, serviceUrl, type TokenSource } from "./token-source.js";

/** How long one exchange may take with all its attempts, in milliseconds. */
const EXCHANGE_MS = 10_000;

/** How much of the issuer's own text an error repeats, in characters. */
const MAX_TEXT = 500;

export interface ExchangedTokenOptions extends RefreshingTokenOptions {
  /** Where the exchange is, without `/sts/exchange`: https, or http on this machine. */
  readonly issuer: string;
  /** The uid of the identity to assume. */
  readonly identity: string;
  /** The audience of the token: the base URL of the API, or several names of the service, as a list or with commas. */
  readonly audience: string | readonly string[];
  /** Gets the OIDC token of the workload, for each exchange anew, such as `tokenFile(path).token`. */
  readonly upstream: () => string | Promise<string>;
  /** The `fetch` to use, where the one of Node does not fit: for a proxy, or a private authority. */
  readonly fetch?: typeof globalThis.fetch;
  /** The wait before the second attempt of an exchange, in milliseconds: 200 unless set. */
  readonly backoffMs?: number;
}

/**
 * Creates a source of API tokens by exchange, which are refreshed as those of `refreshingToken`. An exchange that fails
 * with UNAVAILABLE is retried as a call is. Calls that wait for the token get other errors, with the code and the text
 * of the issuer.
 *
 * @throws TypeError when the issuer is no URL, or one to which no token may be sent
 */
export function exchangedToken(options: ExchangedTokenOptions): TokenSource {
  const { issuer, identity, audience, upstream, fetch = globalThis.fetch, backoffMs = BACKOFF_MS } = options;
  const base = serviceUrl(issuer, "issuer");
  assertMayCarryToken(base, "issuer");
  const query = new URLSearchParams([
    ...[audience].flat().map((name): [string, string] => ["aud", name]),
    ["identity", identity],
  ]);
  const url = `${base.origin}${base.pathname.replace(/\/+$/, "")}/sts/exchange?${query}`;

  async function fetchToken(): Promise<string> {
    const deadline = startDeadline(EXCHANGE_MS);
    const subject = await deadline.within(Promise.resolve(upstream()));
    if (!isBearerToken(subject)) throw failure("upstream gave no valid bearer token", Code.Unauthenticated);
    const attempt = () => exchangeOnce(fetch, url, subject, deadline);
    return retryUnavailable(attempt, deadline, { backoffMs, random: Math.random });
  }
  return refreshingToken(fetchToken, options);
}

async function exchangeOnce(fetch: typeof globalThis.fetch, url: string, subject: string, deadline: CallDeadline) {
  const signal = AbortSignal.timeout(deadline.remainingMs() ?? EXCHANGE_MS);
  let status: number;
  let text: string;
  try {
    const headers = { authorization: `Bearer ${subject}`, accept: "application/json" };
    // A redirect would send the OIDC token to an address that is not configured.
    const response = await fetch(url, { headers, redirect: "manual", signal });
    status = response.status;
    text = await response.text();
  } catch (cause) {
    if (signal.aborted) throw failure(`no answer within ${EXCHANGE_MS} ms`, Code.DeadlineExceeded);
    throw failure("the issuer cannot be reached", Code.Unavailable, cause);
  }
  const body = parseJsonObject(text);
  if (status !== 200) throw errorFromAnswer(status, body, subject);
  if (!isBearerToken(body.token)) throw failure("the answer has no token", Code.Internal);
  return body.token;
}

// The body of an error is the JSON of a google.rpc.Status.
function errorFromAnswer(status: number, body: Readonly<Record<string, unknown>>, subject: string): ConnectError {
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

// The error of the parser would contain a part of the text, which has a token.
function parseJsonObject(text: string): Readonly<Record<string, unknown>> {
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
