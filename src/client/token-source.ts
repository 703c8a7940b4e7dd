// Bearer tokens: their sources, and the URLs to which they may be sent. Every token is checked before it becomes a
// header, because errors of the header classes contain the value. Tokens are sent only where no third party can read
// them (RFC 6750, section 5.3).
import { isIPv4 } from "node:net";

/** The source of the tokens of calls, which programs may implement themselves. */
export interface TokenSource {
  /** Returns a token that is valid now. It runs once per call, so it should be quick. */
  readonly token: () => string | Promise<string>;
  /**
   * Returns a newer token after the service rejected `rejected` with UNAUTHENTICATED. If it is another token, the call is
   * made once more.
   */
  readonly renew?: (rejected: string) => string | Promise<string>;
}

// RFC 6750, section 2.1: b64token.
const BEARER = /^[A-Za-z0-9\-._~+/]+=*$/;

/** Whether `value` can be sent as a bearer token (RFC 6750, section 2.1). */
export function isBearerToken(value: unknown): value is string {
  return typeof value === "string" && BEARER.test(value);
}

/**
 * One token for all calls, for scripts and tests. An API token lives for an hour.
 *
 * @throws TypeError when it is no bearer token (RFC 6750, section 2.1)
 */
export function staticToken(token: string): TokenSource {
  if (!isBearerToken(token)) throw new TypeError("the token is not a valid bearer token");
  return { token: () => token };
}

/**
 * Parses the base URL of a service.
 *
 * @param name the name of the URL in the text of the error
 * @throws TypeError when it is no absolute http or https URL, or has credentials, a query or a fragment
 */
export function serviceUrl(value: string, name: string): URL {
  // Node 20 lacks URL.parse, and the error of the constructor would repeat the text with its credentials.
  if (!URL.canParse(value)) throw new TypeError(`${name} must be an absolute URL`);
  const url = new URL(value);
  if (url.protocol !== "https:" && url.protocol !== "http:")
    throw new TypeError(`${name} must be an http or https URL`);
  if (url.username !== "" || url.password !== "") throw new TypeError(`${name} must not contain credentials`);
  if (url.search !== "" || url.hash !== "") throw new TypeError(`${name} must not have a query or fragment`);
  return url;
}

/** Whether a token may be sent to `url`: over https, or to this machine. */
export function mayCarryToken(url: URL): boolean {
  if (url.protocol === "https:") return true;
  const { hostname } = url;
  return hostname === "localhost" || hostname === "[::1]" || (isIPv4(hostname) && hostname.startsWith("127."));
}

/**
 * @throws TypeError for a URL to which no token may be sent: cleartext http to another machine
 */
export function assertMayCarryToken(url: URL, name: string): void {
  if (!mayCarryToken(url))
    throw new TypeError(`${name} must be https: a token is never sent in cleartext to ${url.host}`);
}
