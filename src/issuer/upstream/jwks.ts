// The public keys of an issuer (RFC 7517) and what they verify. A key that is
// weak, odd, private or meant for something else does not exist for us.
import {
  createPublicKey,
  generateKeyPairSync,
  type JsonWebKey,
  type KeyObject,
  randomBytes,
  verify,
} from "node:crypto";
import { algorithms, type KeyType, signatureLengthOf } from "./algorithms.js";
import { checkTimes, type ParsedToken, refused, type VerifiedToken } from "./token.js";

/** How many entries of a JWK Set are looked at, whatever they are. */
export const MAX_LISTED_KEYS = 32;
const MIN_RSA_BITS = 2048;
const MAX_RSA_BITS = 8192;
/** Beyond 32 bits an exponent makes verification slow and nothing safer. */
const MAX_RSA_EXPONENT = 2n ** 32n;
/** The longest member of a key, in characters: a modulus of 8192 bits with room for a zero byte. */
const MAX_MEMBER = 1_400;
/** The longest key id of a listed key, in characters. */
const MAX_KID = 1_024;
/** What a key occupies in memory besides its members, in bytes. */
const KEY_BYTES = 1_024;
/** What only a private or a symmetric key has (RFC 7518, section 6). */
const PRIVATE = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

/** A public key that verifies tokens. */
export interface UsableKey {
  readonly key: KeyObject;
  readonly type: KeyType;
  /** The one algorithm its issuer uses it with, if the issuer says so. */
  readonly alg: string | undefined;
  /** The length of its signatures, in bytes. */
  readonly signatureLength: number;
}

/** The keys of an issuer that verify tokens. */
export interface UsableKeys {
  /** Whether there is one at all. */
  readonly any: boolean;
  /** About how much memory they occupy, in bytes. */
  readonly bytes: number;
  /** Whether a key of this id is listed, usable or not. */
  has(kid: string): boolean;
  /**
   * The key of an id; undefined for an id that several usable keys have, which names none of them.
   *
   * @param kid undefined: the only usable key, if there is just one
   */
  find(kid: string | undefined): UsableKey | undefined;
}

/**
 * The usable keys among the first 32 entries of a JWK Set. Skipped are RSA keys below 2048 or above
 * 8192 bits or with an exponent that is even, 1 or above 2^32, points that are not on their curve, other
 * curves, symmetric keys, keys with private members, and keys that are not for verifying signatures.
 * Keys are imported when a token first needs them, since that takes up to a millisecond each.
 *
 * @param jwks the parsed JWK Set; whatever is none has no usable keys.
 */
export function usableKeys(jwks: unknown): UsableKeys {
  const listed: unknown = isObject(jwks) ? jwks.keys : undefined;
  const entries: readonly unknown[] = Array.isArray(listed) ? listed.slice(0, MAX_LISTED_KEYS) : [];
  const candidates = entries
    .map((jwk) => (isObject(jwk) ? candidateOf(jwk) : undefined))
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

// Looks no further than the second that is usable, so that many of one id cost no more than two.
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
 * Checks the times and the signature of a token. Whether its issuer, subject and audience are the
 * expected ones is the caller's to decide.
 *
 * @param maxLifeS how long the token may live, in seconds; a day unless given
 * @throws ApiError UNAUTHENTICATED, with one text for every cause.
 */
export function verifyWithKeys(token: ParsedToken, keys: UsableKeys, nowMs: number, maxLifeS?: number): VerifiedToken {
  checkTimes(token, nowMs, maxLifeS);
  const key = keys.find(token.header.kid);
  const fault = keyFault(token, key);
  if (fault !== undefined) verifyWithDecoy(token);
  if (key === undefined || fault !== undefined) throw refused(fault ?? "names no key");
  const { hash = null, options } = algorithms.get(token.header.alg) ?? {};
  if (!verify(hash, token.signingInput, { key: key.key, ...options }, token.signature)) throw refused(BAD_SIGNATURE);
  const { issuer, subject, audiences, claims, expiresAt, issuedAt } = token;
  return { issuer, subject, audiences, claims, expiresAt, issuedAt };
}

const BAD_SIGNATURE = "has a signature that does not verify";

// What shows without computing: no key, another one, or a signature of another length.
function keyFault({ header, signature }: ParsedToken, key: UsableKey | undefined): string | undefined {
  if (key === undefined) return "names no key of its issuer, or none that is the only one of its name";
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

function candidateOf(jwk: Readonly<Record<string, unknown>>): Candidate | undefined {
  const { use, key_ops: operations, alg, kid } = jwk;
  if (use !== undefined && use !== "sig") return undefined;
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes("verify"))) return undefined;
  if (PRIVATE.some((name) => name in jwk)) return undefined;
  const type = typeOf(jwk);
  if (type === undefined) return undefined;
  if (alg !== undefined && (typeof alg !== "string" || algorithms.get(alg)?.keyType !== type)) return undefined;
  if (typeof kid === "string" && kid.length > MAX_KID) return undefined;
  const { kty, crv, n, e, x, y } = jwk;
  const members = [n, e, x, y].filter((member) => member !== undefined);
  if (!members.every((member) => typeof member === "string" && member.length <= MAX_MEMBER)) return undefined;
  // Only what the key is made of: an entry may hold kilobytes of certificates besides.
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
    // This finds points that are not on their curve, and coordinates of another length.
    const key = createPublicKey({ key: jwk, format: "jwk" });
    if (type === "RSA" && !isSoundRsa(key)) return undefined;
    return { key, type, alg, signatureLength: signatureLengthOf(type, key.asymmetricKeyDetails?.modulusLength) };
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

/** The sizes of RSA keys that issuers use, as the length of their signatures in bytes. */
const RSA_BYTES: ReadonlySet<number> = new Set([256, 384, 512]);
const decoys = new Map<string, KeyObject>();

/**
 * Does the work of verifying a signature where there is no key to verify it with, so that the time an
 * answer takes does not tell whether there was one. What comes of it is dropped.
 */
export function verifyWithDecoy({
  header,
  signature,
  signingInput,
}: Pick<ParsedToken, "header" | "signature" | "signingInput">): void {
  const algorithm = algorithms.get(header.alg);
  if (algorithm === undefined) return;
  const { keyType, hash, options } = algorithm;
  const isRsa = keyType === "RSA";
  if (isRsa ? !RSA_BYTES.has(signature.length) : signature.length !== signatureLengthOf(keyType)) return;
  verify(hash, signingInput, { key: decoyOf(keyType, signature.length), ...options }, signature);
}

function decoyOf(type: KeyType, bytes: number): KeyObject {
  const name = `${type} ${bytes}`;
  let key = decoys.get(name);
  if (key === undefined) {
    key = newDecoy(type, bytes);
    decoys.set(name, key);
  }
  return key;
}

function newDecoy(type: KeyType, bytes: number): KeyObject {
  if (type === "Ed25519") return generateKeyPairSync("ed25519").publicKey;
  if (type !== "RSA") return generateKeyPairSync("ec", { namedCurve: type }).publicKey;
  // Making a key takes a second. A number that is no product of two primes does to compute with.
  const modulus = randomBytes(bytes);
  modulus[0] = 0xff;
  modulus[bytes - 1] = 0xff;
  return createPublicKey({ key: { kty: "RSA", n: modulus.toString("base64url"), e: "AQAB" }, format: "jwk" });
}
