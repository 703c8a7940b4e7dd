// The public keys of an issuer (RFC 7517), and the verification of its tokens. Keys that are weak, malformed, private
// or for another use are ignored.
import {
  createPublicKey,
  generateKeyPairSync,
  type JsonWebKey,
  type KeyObject,
  randomBytes,
  verify,
} from "node:crypto";
import { isJsonObject } from "../../kernel/strict-json.js";
import {
  algorithms,
  assertTimes,
  invalidToken,
  type KeyType,
  type ParsedToken,
  signatureLengthOf,
  type VerifiedToken,
} from "./token.js";

/** The number of entries of a JWK Set that are read. */
const MAX_LISTED_KEYS = 32;
const MIN_RSA_BITS = 2048;
const MAX_RSA_BITS = 8192;
/** An exponent of more than 32 bits makes verification slow and adds no security. */
const MAX_RSA_EXPONENT = 2n ** 32n;
/** The longest member of a key, in characters: a modulus of 8192 bits with room for a zero byte. */
const MAX_MEMBER = 1_400;
/** The longest key id of a listed key, in characters. */
const MAX_KID = 1_024;
/** The size of a key without its members, in bytes. */
const KEY_BYTES = 1_024;
/** Members that only private and symmetric keys have (RFC 7518, section 6). */
const PRIVATE = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

/** A public key that verifies tokens. */
export interface UsableKey {
  readonly key: KeyObject;
  readonly type: KeyType;
  /** The algorithm that the issuer states for it, if any. */
  readonly alg: string | undefined;
  /** The length of its signatures, in bytes. */
  readonly signatureLength: number;
}

/** The keys of an issuer that verify tokens. */
export interface UsableKeys {
  /** Whether there is a usable key. */
  readonly any: boolean;
  /** Their approximate memory size, in bytes. */
  readonly bytes: number;
  /** Whether a key with this kid is listed, usable or not. */
  has(kid: string): boolean;
  /**
   * The key with a kid; undefined when several usable keys have it, because it identifies none of them.
   *
   * @param kid undefined for the only usable key, if there is exactly one
   */
  find(kid: string | undefined): UsableKey | undefined;
}

/**
 * Parses the usable keys among the first 32 entries of a JWK Set. Ignored are RSA keys below 2048 or above 8192 bits
 * or with an exponent that is even, 1 or above 2^32, points that are not on their curve, other curves, symmetric keys,
 * keys with private members, and keys that are not for verifying signatures. A key is imported when a token first
 * needs it, because that takes up to a millisecond.
 *
 * @param jwks the parsed JWK Set; anything else has no usable keys
 */
export function parseJwks(jwks: unknown): UsableKeys {
  const listed: unknown = isJsonObject(jwks) ? jwks.keys : undefined;
  const entries: readonly unknown[] = Array.isArray(listed) ? listed.slice(0, MAX_LISTED_KEYS) : [];
  const candidates = entries
    .map((jwk) => (isJsonObject(jwk) ? parseCandidate(jwk) : undefined))
    .filter((one) => one !== undefined);
  const byKid = new Map<string, Candidate[]>();
  for (const candidate of candidates) {
    if (candidate.kid !== undefined) byKid.set(candidate.kid, [...(byKid.get(candidate.kid) ?? []), candidate]);
  }
  return {
    get any() {
      return candidates.some((candidate) => candidate.key() !== undefined);
    },
    bytes: candidates.reduce((sum, { bytes }) => sum + bytes, 0),
    has: (kid) => byKid.has(kid),
    find: (kid) => onlyUsable(kid === undefined ? candidates : (byKid.get(kid) ?? [])),
  };
}

// Stops at the second usable key, so that many keys with one kid cost no more than two.
function onlyUsable(candidates: readonly Candidate[]): UsableKey | undefined {
  let only: UsableKey | undefined;
  for (const candidate of candidates) {
    const key = candidate.key();
    if (key === undefined) continue;
    if (only !== undefined) return undefined;
    only = key;
  }
  return only;
}

/**
 * Verifies the times and the signature of a token. The caller checks issuer, subject and audience.
 *
 * @param maxLifeS the longest life of the token, in seconds; a day unless given
 * @throws ApiError UNAUTHENTICATED, with one text for every cause.
 */
export function verifyWithKeys(token: ParsedToken, keys: UsableKeys, nowMs: number, maxLifeS?: number): VerifiedToken {
  assertTimes(token, nowMs, maxLifeS);
  const key = keys.find(token.header.kid);
  const fault = findKeyFault(token, key);
  if (key === undefined || fault !== undefined) {
    verifyWithDummyKey(token);
    throw invalidToken(key === undefined ? "token_unknown_key" : "token_signature", fault ?? UNKNOWN_KEY);
  }
  const { hash = null, options } = algorithms.get(token.header.alg) ?? {};
  if (!verify(hash, token.signingInput, { key: key.key, ...options }, token.signature))
    throw invalidToken("token_signature", BAD_SIGNATURE);
  const { issuer, subject, audiences, claims, expiresAt, issuedAt } = token;
  return { issuer, subject, audiences, claims, expiresAt, issuedAt };
}

const UNKNOWN_KEY = "names no key of its issuer, or none that is the only one of its name";
const BAD_SIGNATURE = "has a signature that does not verify";

// Finds faults without cryptography: no key, a key of another type, or a signature of another length.
function findKeyFault({ header, signature }: ParsedToken, key: UsableKey | undefined): string | undefined {
  if (key === undefined) return UNKNOWN_KEY;
  const { type, alg, signatureLength } = key;
  if (algorithms.get(header.alg)?.keyType !== type || (alg !== undefined && alg !== header.alg)) {
    return "is signed with an algorithm that is not that of the key";
  }
  return signature.length === signatureLength ? undefined : BAD_SIGNATURE;
}

/** An entry that looks like a usable key. */
interface Candidate {
  readonly kid: string | undefined;
  readonly bytes: number;
  /** Imports the key the first time. */
  key(): UsableKey | undefined;
}

function parseCandidate(jwk: Readonly<Record<string, unknown>>): Candidate | undefined {
  const { use, key_ops: operations, alg, kid } = jwk;
  if (use !== undefined && use !== "sig") return undefined;
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes("verify"))) return undefined;
  if (PRIVATE.some((name) => name in jwk)) return undefined;
  const type = keyTypeOf(jwk);
  if (type === undefined) return undefined;
  if (alg !== undefined && (typeof alg !== "string" || algorithms.get(alg)?.keyType !== type)) return undefined;
  if (typeof kid === "string" && kid.length > MAX_KID) return undefined;
  const { kty, crv, n, e, x, y } = jwk;
  const members = [n, e, x, y].filter((member) => member !== undefined);
  if (!members.every((member) => typeof member === "string" && member.length <= MAX_MEMBER)) return undefined;
  // Only the members of the key: an entry may also contain kilobytes of certificates.
  let source: JsonWebKey | undefined = { kty, crv, n, e, x, y } as JsonWebKey;
  let imported: UsableKey | undefined;
  return {
    kid: typeof kid === "string" ? kid : undefined,
    bytes: KEY_BYTES + members.join().length,
    key() {
      if (source !== undefined) imported = importKey(source, type, alg);
      source = undefined;
      return imported;
    },
  };
}

function importKey(jwk: JsonWebKey, type: KeyType, alg: string | undefined): UsableKey | undefined {
  try {
    // The import rejects points that are not on their curve, and coordinates of another length.
    const key = createPublicKey({ key: jwk, format: "jwk" });
    if (type === "RSA" && !isAcceptableRsa(key)) return undefined;
    return { key, type, alg, signatureLength: signatureLengthOf(type, key.asymmetricKeyDetails?.modulusLength) };
  } catch {
    return undefined;
  }
}

function keyTypeOf({ kty, crv }: Record<string, unknown>): KeyType | undefined {
  if (kty === "RSA") return "RSA";
  if (kty === "EC" && (crv === "P-256" || crv === "P-384" || crv === "P-521")) return crv;
  return kty === "OKP" && crv === "Ed25519" ? crv : undefined;
}

function isAcceptableRsa(key: KeyObject): boolean {
  const { modulusLength = 0, publicExponent = 0n } = key.asymmetricKeyDetails ?? {};
  if (modulusLength < MIN_RSA_BITS || modulusLength > MAX_RSA_BITS) return false;
  return publicExponent > 1n && publicExponent % 2n === 1n && publicExponent <= MAX_RSA_EXPONENT;
}

/** The sizes of RSA keys that issuers use, as the length of their signatures in bytes. */
const RSA_BYTES: ReadonlySet<number> = new Set([256, 384, 512]);
const dummyKeys = new Map<string, KeyObject>();

/**
 * Verifies the signature with a dummy key where there is no key, so that the response time does not reveal whether
 * there is one. The result is dropped.
 */
export function verifyWithDummyKey({
  header,
  signature,
  signingInput,
}: Pick<ParsedToken, "header" | "signature" | "signingInput">): void {
  const algorithm = algorithms.get(header.alg);
  if (algorithm === undefined) return;
  const { keyType, hash, options } = algorithm;
  const isRsa = keyType === "RSA";
  if (isRsa ? !RSA_BYTES.has(signature.length) : signature.length !== signatureLengthOf(keyType)) return;
  verify(hash, signingInput, { key: getDummyKey(keyType, signature.length), ...options }, signature);
}

function getDummyKey(type: KeyType, bytes: number): KeyObject {
  const name = `${type} ${bytes}`;
  let key = dummyKeys.get(name);
  if (key === undefined) {
    key = createDummyKey(type, bytes);
    dummyKeys.set(name, key);
  }
  return key;
}

function createDummyKey(type: KeyType, bytes: number): KeyObject {
  if (type === "Ed25519") return generateKeyPairSync("ed25519").publicKey;
  if (type !== "RSA") return generateKeyPairSync("ec", { namedCurve: type }).publicKey;
  // Generating an RSA key takes a second. Verification with a random modulus takes the same time.
  const modulus = randomBytes(bytes);
  modulus[0] = 0xff;
  modulus[bytes - 1] = 0xff;
  return createPublicKey({ key: { kty: "RSA", n: modulus.toString("base64url"), e: "AQAB" }, format: "jwk" });
}
