import { invalidArgument } from "../kernel/errors.js";

const MAX_LENGTH = 255;
const LOOPBACK = new Set(["127.0.0.1", "[::1]", "localhost"]);

/**
 * Whether `text` has the form of an issuer (OpenID Connect Discovery 1.0, section 3): a URL of a host
 * and perhaps a path, in the one spelling that URLs have, for issuers are compared byte by byte.
 */
export function isIssuerUrl(text: string): boolean {
  const url = text.length <= MAX_LENGTH && URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.href !== text && url.href !== `${text}/`)) return false;
  if (url.protocol !== "https:" && url.protocol !== "http:") return false;
  // Escaped control characters and empty segments name the same place to some, and another to others.
  return (
    url.username === "" && url.password === "" && !/[?#]|%[01][0-9a-f]|%7f/i.test(text) && !url.pathname.includes("//")
  );
}

/**
 * Makes sure that an issuer can be asked for its keys: by https, or in cleartext on this machine or
 * where the operator says so.
 *
 * @param trustedOrigins origins of issuers that may be http
 * @param field what has the issuer
 * @throws ApiError INVALID_ARGUMENT naming `field`
 */
export function requireSecureIssuer(issuer: string, field: string, trustedOrigins: readonly string[]): void {
  const { protocol, hostname, origin } = new URL(issuer);
  if (protocol === "https:" || LOOPBACK.has(hostname) || trustedOrigins.includes(origin)) return;
  throw invalidArgument({ field, description: `${field}.issuer must be an https URL without user, query or fragment` });
}
