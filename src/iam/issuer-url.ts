const MAX_LENGTH = 255;
const LOOPBACK = new Set(["127.0.0.1", "[::1]", "localhost"]);

/**
 * Whether `text` can name an issuer (OpenID Connect Discovery 1.0, section 3): an https URL of a host
 * and perhaps a path, in the one spelling that URLs have, for issuers are compared byte by byte. On
 * the machine itself http will do.
 */
export function isIssuerUrl(text: string): boolean {
  const url = text.length <= MAX_LENGTH && URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.href !== text && url.href !== `${text}/`)) return false;
  const secure = url.protocol === "https:" || (url.protocol === "http:" && LOOPBACK.has(url.hostname));
  return secure && url.username === "" && url.password === "" && !/[?#]/.test(text);
}
