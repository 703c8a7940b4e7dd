// The claims of a token, read without verification: that is the task of the service that accepts it.
import { parseJsonObject } from "../service.js";

/** How long before its expiry a token is renewed at most, in milliseconds. */
const EARLY_MS = 300_000;

/** The claims of a JWT that commands show and that decide about renewal. Each is absent where the token lacks it. */
export interface TokenClaims {
  readonly subject?: string;
  readonly issuer?: string;
  /** In epoch milliseconds. */
  readonly issuedMs?: number;
  /** In epoch milliseconds. */
  readonly expiresMs?: number;
}

/** The claims of `token`; none for a text that is no JWT (RFC 7519). */
export function parseClaims(token: string): TokenClaims {
  const { sub, iss, iat, exp } = parseJsonObject(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
  return {
    ...(typeof sub === "string" && { subject: sub }),
    ...(typeof iss === "string" && { issuer: iss }),
    ...(isTime(iat) && { issuedMs: iat * 1000 }),
    ...(isTime(exp) && { expiresMs: exp * 1000 }),
  };
}

/** Whether `token` stays valid for more than five minutes, or half its life where that is shorter. */
export function isFresh(token: string, nowMs: number): boolean {
  const { issuedMs = nowMs, expiresMs = Number.POSITIVE_INFINITY } = parseClaims(token);
  return expiresMs - nowMs > Math.min(EARLY_MS, (expiresMs - issuedMs) / 2);
}

/** Whether `token` has not expired. A token without an expiry has not. */
export function isValid(token: string, nowMs: number): boolean {
  return (parseClaims(token).expiresMs ?? Number.POSITIVE_INFINITY) > nowMs;
}

/** When a refresh token expires, in epoch milliseconds: it is base64 of JSON with `exp`. Undefined without one. */
export function refreshExpiryMs(refreshToken: string): number | undefined {
  const { exp } = parseJsonObject(Buffer.from(refreshToken, "base64").toString());
  return isTime(exp) ? exp * 1000 : undefined;
}

// Seconds that a Date can hold.
function isTime(value: unknown): value is number {
  return typeof value === "number" && Math.abs(value) <= 8.64e12;
}
