// Tokens that are fetched again before they expire, once for all calls, so that calls rarely wait.
import type { TokenSource } from "./token-source.js";

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
