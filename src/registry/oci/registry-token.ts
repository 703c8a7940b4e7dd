// Tokens for the registry (distribution, "Docker Registry v2 Bearer token specification"). The verifier of the
// registry expects `aud` as one string and times in whole seconds, and finds the key by the `kid` alone.
import { sign } from "node:crypto";
import type { KeyRing } from "../../issuer/keys/key-ring.js";
import type { Ids } from "../../kernel/ids.js";
import { encodeJwt, type SigningKey, signingOptions } from "../../kernel/jws.js";
import type { Clock } from "../../kernel/time.js";
import type { RegistryClientOptions } from "./registry-client.js";
import type { Access } from "./scope.js";

export const REGISTRY_TOKEN_LIFE_S = 300;

export interface RegistryTokenClaims {
  readonly issuer: string;
  /** The name of the registry, as its own configuration has it. */
  readonly service: string;
  /** The uid of the identity. */
  readonly subject: string;
  readonly access: readonly Access[];
  readonly tokenId: string;
  /** Epoch seconds. */
  readonly issuedAt: number;
  /** Epoch seconds; as late as {@link REGISTRY_TOKEN_LIFE_S} allows unless set. */
  readonly expiresAt?: number;
}

/** Signs a token for the registry with ES256 (RFC 7518, section 3.4). */
export function signRegistryToken(claims: RegistryTokenClaims, signingKey: SigningKey): string {
  const { issuer, service, subject, access, tokenId, issuedAt, expiresAt = issuedAt + REGISTRY_TOKEN_LIFE_S } = claims;
  const payload = {
    iss: issuer,
    sub: subject,
    aud: service,
    exp: expiresAt,
    nbf: issuedAt,
    iat: issuedAt,
    jti: tokenId,
    access,
  };
  const { input, key } = encodeJwt("JWT", payload, signingKey);
  return `${input}.${sign("sha256", Buffer.from(input), { key, ...signingOptions.ES256 }).toString("base64url")}`;
}

export interface InternalTokenDeps {
  readonly keys: Pick<KeyRing, "getRegistrySigningKey">;
  readonly clock: Clock;
  readonly ids: Ids;
  /** The issuer that the registry trusts. */
  readonly issuer: string;
  /** The name of the registry, as its own configuration has it. */
  readonly service: string;
}

/** Creates the tokens by which the service itself calls the registry. No caller gets one. */
export function createInternalTokens(deps: InternalTokenDeps): RegistryClientOptions["token"] {
  const { keys, clock, ids, issuer, service } = deps;
  return (access) =>
    signRegistryToken(
      {
        issuer,
        service,
        subject: "arbor",
        // The claim has the type of what callers get, and no caller gets the catalog.
        access: access as readonly Access[],
        tokenId: ids.newId(),
        issuedAt: Math.floor(clock() / 1000),
      },
      keys.getRegistrySigningKey(),
    );
}
