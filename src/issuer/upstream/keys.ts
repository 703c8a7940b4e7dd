// The public keys of an issuer (RFC 7517) and what they verify. A key that is
// weak, odd, private or meant for something else does not exist for us.
import { createPublicKey, type JsonWebKey, type KeyObject, verify } from "node:crypto";
import { algorithms, type KeyType } from "./algorithms.js";
import { checkTimes, type ParsedToken, refused, type VerifiedToken } from "./token.js";

const MAX_KEYS = 32;
const MIN_RSA_BITS = 2048;
const MAX_RSA_BITS = 8192;
/** Beyond 32 bits an exponent makes verification slow and nothing safer. */
const MAX_RSA_EXPONENT = 2n ** 32n;
/** What only a private or a symmetric key has (RFC 7518, section 6). */
const PRIVATE = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

/** A public key that verifies tokens. */
export interface UsableKey {
  readonly key: KeyObject;
  readonly type: KeyType;
  /** The one algorithm its issuer uses it with, if the issuer says so. */
  readonly alg: string | undefined;
}

/** The keys of an issuer that verify tokens. */
export interface UsableKeys {
  /** How many there are. */
  readonly size: number;
  /** By key id; undefined for an id that several have, which therefore names none of them. */
  readonly byKid: ReadonlyMap<string, UsableKey | undefined>;
  /** The only key, if there is just one: that of tokens which name none. */
  readonly only: UsableKey | undefined;
}

/**
 * The first 32 usable keys of a JWK Set. Skipped are RSA keys below 2048 or above 8192 bits or with an
 * exponent that is even, 1 or above 2^32, points that are not on their curve, other curves, symmetric
 * keys, keys with private members, and keys that are not for verifying signatures.
 *
 * @param jwks the parsed JWK Set; whatever is none has no usable keys.
 */
export function usableKeys(jwks: unknown): UsableKeys {
  const listed: unknown = isObject(jwks) ? jwks.keys : undefined;
  const byKid = new Map<string, UsableKey | undefined>();
  const usable: UsableKey[] = [];
  for (const jwk of Array.isArray(listed) ? listed : []) {
    if (usable.length === MAX_KEYS) break;
    const key = isObject(jwk) ? usableKey(jwk) : undefined;
    if (key === undefined) continue;
    usable.push(key);
    const { kid } = jwk;
    if (typeof kid === "string") byKid.set(kid, byKid.has(kid) ? undefined : key);
  }
  return { size: usable.length, byKid, only: usable.length === 1 ? usable[0] : undefined };
}

/**
 * Checks the times and the signature of a token. Whether its issuer, subject and audience are the
 * expected ones is the caller's to decide.
 *
 * @param maxLifeS how long the token may live, in seconds; a day unless given
 * @throws ApiError UNAUTHENTICATED, with one text for every cause.
 */
export function verifyWithKeys(token: ParsedToken, keys: UsableKeys, nowMs: number, maxLifeS?: number): VerifiedToken {
  checkTimes(token, nowMs, maxLifeS);
  const { alg, kid } = token.header;
  const found = kid === undefined ? keys.only : keys.byKid.get(kid);
  if (found === undefined) throw refused("names no key of its issuer, or none that is the only one of its name");
  const algorithm = algorithms.get(alg);
  if (algorithm?.keyType !== found.type || (found.alg !== undefined && found.alg !== alg))
    throw refused("is signed with an algorithm that is not that of the key");
  const { hash, options } = algorithm;
  if (!verify(hash, token.signingInput, { key: found.key, ...options }, token.signature))
    throw refused("has a signature that does not verify");
  const { issuer, subject, audiences, claims, expiresAt, issuedAt } = token;
  return { issuer, subject, audiences, claims, expiresAt, issuedAt };
}

function usableKey(jwk: Record<string, unknown>): UsableKey | undefined {
  const { use, key_ops: operations, alg } = jwk;
  if (use !== undefined && use !== "sig") return undefined;
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes("verify"))) return undefined;
  if (PRIVATE.some((name) => name in jwk)) return undefined;
  const type = typeOf(jwk);
  if (type === undefined) return undefined;
  if (alg !== undefined && (typeof alg !== "string" || algorithms.get(alg)?.keyType !== type)) return undefined;
  try {
    // This finds points that are not on their curve, and coordinates of another length.
    const key = createPublicKey({ key: jwk as JsonWebKey, format: "jwk" });
    return type !== "RSA" || isSoundRsa(key) ? { key, type, alg } : undefined;
  } catch {
    return undefined;
  }
}

function typeOf({ kty, crv }: Record<string, unknown>): KeyType | undefined {
  if (kty === "RSA") return "RSA";
  if (kty === "EC" && (crv === "P-256" || crv === "P-384" || crv === "P-521")) return crv;
  return kty === "OKP" && crv === "Ed25519" ? crv : undefined;
}

function isSoundRsa(key: KeyObject): boolean {
  const { modulusLength = 0, publicExponent = 0n } = key.asymmetricKeyDetails ?? {};
  if (modulusLength < MIN_RSA_BITS || modulusLength > MAX_RSA_BITS) return false;
  return publicExponent > 1n && publicExponent % 2n === 1n && publicExponent <= MAX_RSA_EXPONENT;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
