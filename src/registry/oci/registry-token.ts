// Tokens for the registry (distribution, "Docker Registry v2 Bearer token
// specification"). Its verifier takes `aud` as one string and times as whole
// seconds, and finds the key by the `kid` alone: a token brings no key along.
import { sign } from "node:crypto";
import type { SigningKey } from "../../pipeline/auth/api-token.js";
import type { Access } from "./grant.js";

/** How long a token for the registry lives, in seconds. */
export const REGISTRY_TOKEN_LIFE_S = 300;

/** What to put into a token. */
export interface RegistryTokenClaims {
  readonly issuer: string;
  /** What the registry calls itself. */
  readonly service: string;
  /** The uid of the identity. */
  readonly subject: string;
  readonly access: readonly Access[];
  readonly tokenId: string;
  /** Epoch seconds. */
  readonly issuedAt: number;
}

/** Signs a token for the registry with ES256 (RFC 7518, section 3.4). */
export function signRegistryToken(claims: RegistryTokenClaims, { kid, key }: SigningKey): string {
  const { issuer, service, subject, access, tokenId, issuedAt } = claims;
  const payload = {
    iss: issuer,
    sub: subject,
    aud: service,
    exp: issuedAt + REGISTRY_TOKEN_LIFE_S,
    nbf: issuedAt,
    iat: issuedAt,
    jti: tokenId,
    access,
  };
  const input = `${encoded({ alg: "ES256", kid, typ: "JWT" })}.${encoded(payload)}`;
  return `${input}.${sign("sha256", Buffer.from(input), { key, dsaEncoding: "ieee-p1363" }).toString("base64url")}`;
}

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}
