// What a token says of itself. Nothing is verified: that is for whoever accepts it.

/** How long before its end a token is renewed at most, in milliseconds. */
const EARLY_MS = 300_000;

/** The claims of a JWT that are shown and that renewals go by; each is absent where the token lacks it. */
export interface Claims {
  readonly subject?: string;
  readonly issuer?: string;
  /** In epoch milliseconds. */
  readonly issuedMs?: number;
  /** In epoch milliseconds. */
  readonly expiresMs?: number;
}

/** The claims of `token`; none for what is no JWT (RFC 7519). */
export function claimsOf(token: string): Claims {
  const { sub, iss, iat, exp } = jsonObject(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
  return {
    ...(typeof sub === "string" && { subject: sub }),
    ...(typeof iss === "string" && { issuer: iss }),
    ...(isTime(iat) && { issuedMs: iat * 1000 }),
    ...(isTime(exp) && { expiresMs: exp * 1000 }),
  };
}

/** Whether `token` will do for some minutes: at least five, or half its life where that is shorter. */
export function isFresh(token: string, nowMs: number): boolean {
  const { issuedMs = nowMs, expiresMs = Number.POSITIVE_INFINITY } = claimsOf(token);
  return expiresMs - nowMs > Math.min(EARLY_MS, (expiresMs - issuedMs) / 2);
}

/** Whether `token` has not expired; one that does not say when it does has not. */
export function isAlive(token: string, nowMs: number): boolean {
  return (claimsOf(token).expiresMs ?? Number.POSITIVE_INFINITY) > nowMs;
}

/** When a refresh token expires, in epoch milliseconds: it is base64 of JSON with `exp`. Undefined if it does not say. */
export function refreshExpiryMs(refreshToken: string): number | undefined {
  const { exp } = jsonObject(Buffer.from(refreshToken, "base64").toString());
  return isTime(exp) ? exp * 1000 : undefined;
}

/** The members of a JSON object; none for any other text, as the error of a parser would repeat it. */
export function jsonObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};
  } catch {
    return {};
  }
}

// Seconds that a Date can hold.
function isTime(value: unknown): value is number {
  return typeof value === "number" && Math.abs(value) <= 8.64e12;
}
