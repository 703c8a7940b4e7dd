// Where tokens may go. A bearer token is worth as much as the identity behind
// it, so it travels only where nobody can read along (RFC 6750, section 5.3).
import { isIPv4 } from "node:net";

/**
 * Parses the base URL of a service.
 *
 * @param name what the URL is, for the error's text
 * @throws TypeError when it is no absolute http or https URL, or has credentials, a query or a fragment
 */
export function serviceUrl(value: string, name: string): URL {
  // Not URL.parse, which Node 20 lacks; nor its error, which repeats the text with any credentials in it.
  if (!URL.canParse(value)) throw new TypeError(`${name} must be an absolute URL`);
  const url = new URL(value);
  if (url.protocol !== "https:" && url.protocol !== "http:")
    throw new TypeError(`${name} must be an http or https URL`);
  if (url.username !== "" || url.password !== "") throw new TypeError(`${name} must not contain credentials`);
  if (url.search !== "" || url.hash !== "") throw new TypeError(`${name} must not have a query or fragment`);
  return url;
}

/** Whether a token may be sent to `url`: https, or a host that is this machine. */
export function mayCarryToken(url: URL): boolean {
  if (url.protocol === "https:") return true;
  const { hostname } = url;
  return hostname === "localhost" || hostname === "[::1]" || (isIPv4(hostname) && hostname.startsWith("127."));
}

/**
 * Refuses a URL to which no token may be sent.
 *
 * @throws TypeError for cleartext http to another machine
 */
export function assertMayCarryToken(url: URL, name: string): void {
  if (!mayCarryToken(url))
    throw new TypeError(`${name} must be https: a token is never sent in cleartext to ${url.host}`);
}
