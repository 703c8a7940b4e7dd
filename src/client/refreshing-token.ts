// Sources of tokens that expire: fetched again before they do, from the token exchange, or from a file. One fetch serves
// all calls, so that calls rarely wait.
import { readFile } from "node:fs/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { BACKOFF_MS, type CallDeadline, retryUnavailable, startDeadline } from "./call-policy.js";
import { assertMayCarryToken, isBearerToken, serviceUrl, type TokenSource } from "./token-source.js";

/** How long before its expiry a token is replaced, in milliseconds. */
const EARLY_MS = 300_000;

/** The wait after a failed early refresh, in milliseconds. */
const AGAIN_MS = 5_000;

/** The options of {@link refreshingToken}. */
export interface RefreshingTokenOptions {
  /**
   * How long before its expiry a token is replaced, in milliseconds: 5 minutes unless set, and never
   * more than half of what is left of the token when it arrives.
   */
  readonly earlyMs?: number;
  /** Tells the time in epoch milliseconds; tests replace it. */
  readonly clock?: () => number;
}

interface CurrentToken {
  readonly token: string;
  readonly refreshAtMs: number;
  readonly expiresAtMs: number;
}

/**
 * Creates a source of tokens from `fetchToken`, each used until shortly before the `exp` of the JWT. An early refresh
 * runs beside the calls, which use the old token until it succeeds or the token expires. All calls share one fetch at a
 * time. A token without `exp` is used until the service rejects it.
 *
 * @param fetchToken gets a new token; what it throws reaches the calls that had to wait for it
 */
export function refreshingToken(fetchToken: () => Promise<string>, options: RefreshingTokenOptions = {}): TokenSource {
  const { earlyMs = EARLY_MS, clock = Date.now } = options;
  let current: CurrentToken | undefined;
  let fetching: Promise<string> | undefined;
  let notBeforeMs = 0;

  async function fetchOnce(): Promise<string> {
    try {
      const token = await fetchToken();
      const nowMs = clock();
      const expiresAtMs = expiryMs(token) ?? Number.POSITIVE_INFINITY;
      const leftMs = expiresAtMs - nowMs;
      current = { token, expiresAtMs, refreshAtMs: expiresAtMs - Math.min(earlyMs, leftMs / 2) };
      return token;
    } finally {
      fetching = undefined;
    }
  }
  const fetchShared = () => {
    fetching ??= fetchOnce();
    return fetching;
  };
  const refreshAhead = (nowMs: number) => {
    if (fetching !== undefined || nowMs < notBeforeMs) return;
    fetchShared().catch(() => {
      // The current token is still valid. A call that needs a new one gets the error.
      notBeforeMs = nowMs + AGAIN_MS;
    });
  };
  return {
    token() {
      const nowMs = clock();
      if (current === undefined || nowMs >= current.expiresAtMs) return fetchShared();
      if (nowMs >= current.refreshAtMs) refreshAhead(nowMs);
      return current.token;
    },
    renew(rejected) {
      if (current !== undefined && current.token !== rejected) return current.token;
      return fetchShared();
    },
  };
}

// Parses the expiry of a JWT (RFC 7519, section 4.1.4) to epoch milliseconds; undefined without one. The claim is not
// verified, which the service does.
function expiryMs(token: string): number | undefined {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
    if (typeof claims !== "object" || claims === null || !("exp" in claims)) return undefined;
    return typeof claims.exp === "number" && Number.isFinite(claims.exp) ? claims.exp * 1000 : undefined;
  } catch {
    return undefined;
  }
}

// The token exchange: the OIDC token of a workload for an API token of the identity that it may assume
// (docs/api-rules.md#token-exchange).

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
  /** The names of the capabilities to which the token is limited; without them it has all rights of the identity. */
  readonly cap?: readonly string[];
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
  const { issuer, identity, audience, cap = [], upstream, fetch = globalThis.fetch, backoffMs = BACKOFF_MS } = options;
  const base = serviceUrl(issuer, "issuer");
  assertMayCarryToken(base, "issuer");
  const query = new URLSearchParams([
    ...[audience].flat().map((name): [string, string] => ["aud", name]),
    ["identity", identity],
    ...cap.map((name): [string, string] => ["cap", name]),
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
    if (signal.aborted) throw failure(`no response within ${EXCHANGE_MS} ms`, Code.DeadlineExceeded);
    throw failure("the issuer cannot be reached", Code.Unavailable, cause);
  }
  const body = parseJsonObject(text);
  if (status !== 200) throw errorFromResponse(status, body, subject);
  if (!isBearerToken(body.token)) throw failure("the response has no token", Code.Internal);
  return body.token;
}

// The body of an error is the JSON of a google.rpc.Status.
function errorFromResponse(status: number, body: Readonly<Record<string, unknown>>, subject: string): ConnectError {
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

// A token in a file that another program renews, as container platforms do with the tokens of workloads.

/** How often the file is read, in milliseconds. */
const REREAD_MS = 1_000;

/** The options of {@link tokenFile}. */
export interface TokenFileOptions {
  /** Tells the time in epoch milliseconds. */
  readonly clock?: () => number;
}

/**
 * The token in a file, without white space around it. A change takes effect within a second, or at once
 * when the service rejects the token. While the file cannot be read, for example during its replacement, the last token
 * stays in use. Its `token` also serves as `upstream` of `exchangedToken`.
 *
 * Calls fail with UNAUTHENTICATED until the file has contained a token.
 */
export function tokenFile(path: string, options: TokenFileOptions = {}): TokenSource {
  const { clock = Date.now } = options;
  let current: string | undefined;
  let readAtMs = 0;
  let reading: Promise<string> | undefined;

  const read = () => {
    reading ??= readToken(path, current).then(
      (token) => {
        reading = undefined;
        readAtMs = clock();
        current = token;
        return token;
      },
      (error) => {
        reading = undefined;
        throw error;
      },
    );
    return reading;
  };
  return {
    token: () => (current !== undefined && Math.abs(clock() - readAtMs) < REREAD_MS ? current : read()),
    renew: read,
  };
}

async function readToken(path: string, last: string | undefined): Promise<string> {
  let cause: unknown;
  try {
    const token = (await readFile(path, "utf8")).trim();
    if (isBearerToken(token)) return token;
  } catch (error) {
    cause = error;
  }
  if (last !== undefined) return last;
  throw new ConnectError(`no token in the file ${path}`, Code.Unauthenticated, undefined, undefined, cause);
}
