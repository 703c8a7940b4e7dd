// Which browser a login goes on in: what was begun in one cannot be ended in
// another, so that nobody can be led into a login that somebody else began.
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { invalidArgument } from "../../kernel/errors.js";
import type { WebRequest } from "../../kernel/web.js";

/** How long a login may take, in milliseconds. */
export const LOGIN_MS = 10 * 60 * 1000;

const SECRET = /^[A-Za-z0-9_-]{43}$/;

/** A browser, by the cookie it has or is to have. */
export interface Browser {
  /** What state is bound to. */
  readonly hash: string;
  /** What its forms must bring back; other sites cannot know it. */
  readonly formSecret: string;
  /** The Set-Cookie header that gives it the cookie or makes it keep the one it has. */
  readonly cookie: string;
}

/** The browser that a request comes from, which may be new. */
export function browserOf(request: WebRequest, secure: boolean): Browser {
  const secret = secretIn(request, secure) ?? randomBytes(32).toString("base64url");
  const attributes = `Path=/; Max-Age=${LOGIN_MS / 1000}; HttpOnly; SameSite=Lax${secure ? "; Secure" : ""}`;
  return {
    hash: hashOf("browser", secret),
    formSecret: hashOf("form", secret),
    cookie: `${cookieName(secure)}=${secret}; ${attributes}`,
  };
}

/** The browser that a request comes from, if it was seen before. */
export function knownBrowserOf(request: WebRequest, secure: boolean): Browser | undefined {
  return secretIn(request, secure) === undefined ? undefined : browserOf(request, secure);
}

/**
 * Requires that a form was sent from a page of ours, in the browser that the page was shown in.
 *
 * @throws ApiError INVALID_ARGUMENT
 */
export function requireOwnForm(form: URLSearchParams, browser: Browser | undefined): Browser {
  const given = Buffer.from(form.get("form") ?? "");
  const wanted = Buffer.from(browser?.formSecret ?? "");
  if (browser !== undefined && given.length === wanted.length && timingSafeEqual(given, wanted)) return browser;
  const rule = "the form is not of this browser or too old: allow cookies for this site and open the page again";
  throw invalidArgument({ field: "form", description: rule });
}

// A cookie with the prefix can be set by this host alone and over TLS alone (RFC 6265bis, section
// 4.1.3.2). On cleartext loopback, where browsers differ about it, the cookie has neither.
function cookieName(secure: boolean): string {
  return secure ? "__Host-arbor-login" : "arbor-login";
}

function secretIn(request: WebRequest, secure: boolean): string | undefined {
  const secret = request.cookie(cookieName(secure));
  return secret !== undefined && SECRET.test(secret) ? secret : undefined;
}

function hashOf(use: string, secret: string): string {
  return createHash("sha256").update(`arbor login ${use} ${secret}`).digest("base64url");
}
