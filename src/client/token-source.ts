// Tokens as calls see them. Every token is checked before it comes near a
// header: the errors of header classes repeat the refused value.

/** Where the tokens of calls come from. Implement it to bring your own. */
export interface TokenSource {
  /** A token that is good now, as far as the source can tell. Called once per call, so it should be quick. */
  readonly token: () => string | Promise<string>;
  /**
   * Called when the service answered UNAUTHENTICATED to `refused`. The call is made once more if the
   * answer is another token; a source without it has nothing newer to give.
   */
  readonly renew?: (refused: string) => string | Promise<string>;
}

// RFC 6750, section 2.1: b64token.
const BEARER = /^[A-Za-z0-9\-._~+/]+=*$/;

/** Whether `value` can be sent as a bearer token (RFC 6750, section 2.1). */
export function isBearerToken(value: unknown): value is string {
  return typeof value === "string" && BEARER.test(value);
}

/**
 * One token for all calls: for scripts and tests, since a token lives for an hour (spec section 5).
 *
 * @throws TypeError when it is no bearer token
 */
export function staticToken(token: string): TokenSource {
  if (!isBearerToken(token)) throw new TypeError("the token is not a valid bearer token");
  return { token: () => token };
}
