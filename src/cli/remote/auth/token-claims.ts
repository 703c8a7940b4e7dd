// What a token says of itself. Nothing is verified, which the service does that accepts it.
import { parseJsonObject } from "../service.js";

/** The claims of a JWT that commands show or that decide about renewal; those that it does not have are absent. */
export interface StoredTokenClaims {
  readonly subject?: string;
  readonly issuer?: string;
  /** In epoch milliseconds. */
  readonly issuedMs?: number;
  /** In epoch milliseconds. */
  readonly expiresMs?: number;
}

/** Parses the claims of a JWT (RFC 7519); none for any other text. */
export function parseClaims(token: string): StoredTokenClaims {
  const { sub, iss, iat, exp } = decodePart(token, 1);
  return {
    ...(typeof sub === "string" && { subject: sub }),
    ...(typeof iss === "string" && { issuer: iss }),
    ...(isTime(iat) && { issuedMs: iat * 1000 }),
    ...(isTime(exp) && { expiresMs: exp * 1000 }),
  };
}

/** Decodes the header (0) or the claims (1) of a JWT; empty for any other text. */
export function decodePart(token: string, part: 0 | 1): Readonly<Record<string, unknown>> {
  return parseJsonObject(Buffer.from(token.split(".")[part] ?? "", "base64url").toString());
}

/** Whether a value is a number of seconds that a Date can represent. */
export function isTime(value: unknown): value is number {
  return typeof value === "number" && Math.abs(value) <= 8.64e12;
}
