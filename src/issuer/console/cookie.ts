// The two halves of a console session: the secret in a cookie, which scripts cannot read, and the key in the storage of the
// origin, which other ports of the host cannot read. Cookies ignore ports, so either half alone opens nothing.
import { invalidArgument, notPermitted } from "../../kernel/errors.js";
import { CONSOLE_PATH, type WebRequest } from "../../kernel/web.js";

const SECRET = /^[A-Za-z0-9_-]{43}$/;
/** The header field with the key. Scripts of other origins cannot send it, because `/console` has no CORS. */
const KEY_FIELD = "arbor-console-key";
/**
 * How many cookies of the name are tried. Another port of the host may add some with other paths, of which a browser sends
 * four for one path, and as many of a parent domain.
 */
const MAX_COOKIES = 8;

type Fields = Pick<WebRequest, "header">;

/**
 * Requires that a script of the console sends a request. This runs before the body is read.
 *
 * @throws ApiError PERMISSION_DENIED for a page of another origin, INVALID_ARGUMENT without a well-formed key
 */
export function requireOwnScript({ header }: Fields, baseUrl: string): void {
  if (header("origin") !== new URL(baseUrl).origin || header("sec-fetch-site") !== "same-origin") {
    throw notPermitted(`this is for the console at ${new URL(baseUrl).origin}, in a browser that says what it sends`);
  }
  findKey({ header });
}

/** The half of a session that the page has. @throws ApiError INVALID_ARGUMENT */
export function findKey({ header }: Fields): string {
  const key = header(KEY_FIELD);
  if (key !== undefined && SECRET.test(key)) return key;
  throw invalidArgument({ field: KEY_FIELD, rule: "must be 43 characters of base64url" });
}

/** The secrets in the cookies of a request: one, unless another port of the host has set more. */
export function findSecrets({ header }: Fields, secure: boolean): string[] {
  const prefix = `${cookieName(secure)}=`;
  const values = (header("cookie") ?? "")
    .split(";")
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(prefix))
    .map((pair) => pair.slice(prefix.length));
  return [...new Set(values)].filter((value) => SECRET.test(value)).slice(0, MAX_COOKIES);
}

/** The Set-Cookie header that stores a secret. */
export function formatCookie(secret: string, maxAgeS: number, secure: boolean): string {
  const attributes = `Path=${secure ? "/" : CONSOLE_PATH}; Max-Age=${maxAgeS}; HttpOnly; SameSite=Strict`;
  return `${cookieName(secure)}=${secret}; ${attributes}${secure ? "; Secure" : ""}`;
}

/** The Set-Cookie header that deletes the cookie. */
export function formatNoCookie(secure: boolean): string {
  return formatCookie("", 0, secure);
}

// As for the cookie of logins (oauth/browser.ts).
function cookieName(secure: boolean): string {
  return secure ? "__Host-arbor-console" : "arbor-console";
}
