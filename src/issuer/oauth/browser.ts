// The browser of a login, known by a cookie: a login that was started in one browser cannot be completed in another
// (login CSRF).
import { randomBytes, timingSafeEqual } from "node:crypto";
import { sha256 } from "../../kernel/digest.js";
import { invalidArgument } from "../../kernel/errors.js";
import type { WebRequest } from "../../kernel/web.js";

/** How long a login may take, in milliseconds. */
export const LOGIN_MS = 10 * 60 * 1000;

const SECRET = /^[A-Za-z0-9_-]{43}$/;

/** A browser, known by its cookie. */
export interface Browser {
  /** The hash that binds state to this browser. */
  readonly hash: string;
  /** The hidden field of its forms, which other sites cannot know (CSRF token). */
  readonly formSecret: string;
  /** The Set-Cookie header that sets or renews the cookie. */
  readonly cookie: string;
  /** Whether the request came with the cookie, so the browser has been here before. */
  readonly isKnown: boolean;
}

/** Gets the browser of a request; it gets a new cookie if it has none. */
export function getBrowser(request: WebRequest, secure: boolean): Browser {
  const found = findSecret(request, secure);
  const secret = found ?? randomBytes(32).toString("base64url");
  const attributes = `Path=/; Max-Age=${LOGIN_MS / 1000}; HttpOnly; SameSite=Lax${secure ? "; Secure" : ""}`;
  return {
    hash: hashFor("browser", secret),
    formSecret: hashFor("form", secret),
    cookie: `${cookieName(secure)}=${secret}; ${attributes}`,
    isKnown: found !== undefined,
  };
}

/** Finds the browser of a request by its cookie. */
export function findBrowser(request: WebRequest, secure: boolean): Browser | undefined {
  return findSecret(request, secure) === undefined ? undefined : getBrowser(request, secure);
}

/**
 * Requires that a form comes from a page of this service in the same browser.
 *
 * @throws ApiError INVALID_ARGUMENT
 */
export function requireOwnForm(form: URLSearchParams, browser: Browser | undefined): Browser {
  const given = Buffer.from(form.get("form") ?? "");
  const expected = Buffer.from(browser?.formSecret ?? "");
  if (browser !== undefined && given.length === expected.length && timingSafeEqual(given, expected)) return browser;
  const rule = "the form is not of this browser or too old: allow cookies for this site and open the page again";
  throw invalidArgument({ field: "form", subject: "", rule });
}

// Only this host can set a cookie with the prefix, and only over TLS (RFC 6265bis, section 4.1.3.2). On cleartext
// loopback, where browsers differ, the cookie has no prefix.
function cookieName(secure: boolean): string {
  return secure ? "__Host-arbor-login" : "arbor-login";
}

function findSecret(request: WebRequest, secure: boolean): string | undefined {
  const secret = request.cookie(cookieName(secure));
  return secret !== undefined && SECRET.test(secret) ? secret : undefined;
}

function hashFor(use: string, secret: string): string {
  return sha256(`arbor login ${use} ${secret}`).toString("base64url");
}
