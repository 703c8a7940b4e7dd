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
import type { RejectReason } from "../../kernel/reject-reason.js";
import { isJsonObject } from "../../kernel/strict-json.js";
import { algorithms, type KeyType, SIGNATURE_BYTES } from "./algorithms.js";
import { assertTimes, invalidToken, MAX_KID_LENGTH, type ParsedToken, type VerifiedToken } from "./token.js";

/** The number of entries of a JWK Set that are read. */
const MAX_LISTED_KEYS = 256;
/** How many keys are imported to find out whether any can be used, for the operator's log. */
const MAX_PROBED = 32;
/**
 * How many keys a token may be tried with if its kid does not name one: together they take at most about two
 * milliseconds, because anybody can send a token whose signature none of them verifies.
 */
const MAX_TRIED: Readonly<Record<KeyType, number>> = { RSA: 8, "P-256": 8, Ed25519: 8, "P-384": 4, "P-521": 2 };
/** The same for RSA keys whose signatures are longer than that of a key of 4096 bits. */
const MAX_LARGE_TRIED = 3;
const LARGE_SIGNATURE = 512;
const MIN_RSA_BITS = 2048;
const MAX_RSA_BITS = 8192;
/** An exponent of more than 32 bits makes verification slow and adds no security. */
const MAX_RSA_EXPONENT = 2n ** 32n;
/** The longest member of a key, in characters: a modulus of 8192 bits with room for a zero byte. */
const MAX_MEMBER = 1_400;
/** The size of a key without its members, in bytes. */
const KEY_BYTES = 1_024;
/** Members that only private and symmetric keys have (RFC 7518, section 6). */
const PRIVATE = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

/** The keys of an issuer that verify tokens. */
export interface UsableKeys {
  /** Whether there is a usable key. */
  readonly any: boolean;
  /** Their approximate memory size, in bytes. */
  readonly bytes: number;
  /** Whether a key with this kid is listed, usable or not. */
  has(kid: string): boolean;
  /** The keys with a kid, in the order of the list; all keys if it is undefined. */
  list(kid: string | undefined): readonly ListedKey[];
}

/** A key that is listed, with what is known of it before it is imported. */
export interface ListedKey {
  readonly type: KeyType;
  /** The algorithm that the issuer states for it, if any. */
  readonly alg: string | undefined;
  /** The length of its signatures, in bytes. */
  readonly signatureLength: number;
  /** Imports the key the first time; undefined if it cannot be used. */
  key(): KeyObject | undefined;
}

/**
 * Parses the usable keys among the first 256 entries of a JWK Set. Ignored are RSA keys below 2048 or above 8192 bits
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
    const { kid } = candidate;
    const same = kid === undefined ? undefined : byKid.get(kid);
    if (same !== undefined) same.push(candidate);
    else if (kid !== undefined) byKid.set(kid, [candidate]);
  }
  return {
    get any() {
      return candidates.slice(0, MAX_PROBED).some((candidate) => candidate.key() !== undefined);
    },
    bytes: candidates.reduce((sum, { bytes }) => sum + bytes, 0),
    has: (kid) => byKid.has(kid),
    list: (kid) => (kid === undefined ? candidates : (byKid.get(kid) ?? [])),
  };
}

/**
 * Verifies the times and the signature of a token. The caller checks issuer, subject and audience. A token whose kid
 * several keys have, or that has none, is tried with those that could have signed it, with eight at most.
 *
 * @param maxLifeS the longest life of the token, in seconds
 * @throws ApiError UNAUTHENTICATED, with one text for every cause.
 */
export function verifyWithKeys(token: ParsedToken, keys: UsableKeys, nowMs: number, maxLifeS: number): VerifiedToken {
  assertTimes(token, nowMs, maxLifeS);
  const { hash = null, options } = algorithms.get(token.header.alg) ?? {};
  let isTried = false;
  for (const listed of findKeys(token, keys)) {
    const key = listed.key();
    if (key !== undefined && verify(hash, token.signingInput, { key, ...options }, token.signature))
      return toVerified(token);
    isTried ||= key !== undefined;
  }
  if (isTried) throw invalidToken("token_signature", BAD_SIGNATURE);
  reject(token, "token_unknown_key", UNKNOWN_KEY);
}

const UNKNOWN_KEY = "names no key of its issuer that can be used";
const BAD_SIGNATURE = "has a signature that does not verify";

function toVerified({ issuer, subject, audiences, claims, expiresAt, issuedAt }: ParsedToken): VerifiedToken {
  return { issuer, subject, audiences, claims, expiresAt, issuedAt };
}

// Finds the keys that could have signed the token, without cryptography: those of the type of its algorithm whose
// signatures are as long as its own.
function findKeys(token: ParsedToken, keys: UsableKeys): readonly ListedKey[] {
  const { kid, alg } = token.header;
  const listed = keys.list(kid);
  if (listed.length === 0) reject(token, "token_unknown_key", UNKNOWN_KEY);
  const type = algorithms.get(alg)?.keyType;
  const fitting = listed.filter((key) => key.type === type && (key.alg === undefined || key.alg === alg));
  if (type === undefined || fitting.length === 0)
    reject(token, "token_signature", "is signed with an algorithm that is not that of the key");
  const length = token.signature.length;
  const sized = fitting.filter(({ signatureLength }) => signatureLength === length);
  if (sized.length === 0) reject(token, "token_signature", BAD_SIGNATURE);
  return sized.slice(0, type === "RSA" && length > LARGE_SIGNATURE ? MAX_LARGE_TRIED : MAX_TRIED[type]);
}

function reject(token: ParsedToken, rejection: RejectReason, rule: string): never {
  verifyWithDummyKey(token);
  throw invalidToken(rejection, rule);
}

/** An entry that looks like a usable key. */
interface Candidate extends ListedKey {
  readonly kid: string | undefined;
  readonly bytes: number;
}

function parseCandidate(jwk: Readonly<Record<string, unknown>>): Candidate | undefined {
  const { use, key_ops: operations, alg, kid } = jwk;
  if (use !== undefined && use !== "sig") return undefined;
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes("verify"))) return undefined;
  if (PRIVATE.some((name) => name in jwk)) return undefined;
  const type = keyTypeOf(jwk);
  if (type === undefined) return undefined;
  if (alg !== undefined && (typeof alg !== "string" || algorithms.get(alg)?.keyType !== type)) return undefined;
  if (typeof kid === "string" && kid.length > MAX_KID_LENGTH) return undefined;
  const { kty, crv, n, e, x, y } = jwk;
  const members = [n, e, x, y].filter((member) => member !== undefined);
  if (!members.every((member) => typeof member === "string" && member.length <= MAX_MEMBER)) return undefined;
  const signatureLength = type === "RSA" ? measureModulus(n) : SIGNATURE_BYTES[type];
  // Only the members of the key: an entry may also contain kilobytes of certificates.
  let source: JsonWebKey | undefined = { kty, crv, n, e, x, y } as JsonWebKey;
  let imported: KeyObject | undefined;
  return {
    kid: typeof kid === "string" ? kid : undefined,
    type,
    alg,
    signatureLength,
    bytes: KEY_BYTES + members.join().length,
    key() {
      if (source !== undefined) imported = importKey(source, type);
      source = undefined;
      return imported;
    },
  };
}

/** The length of a modulus in bytes, which is that of its signatures. */
function measureModulus(n: unknown): number {
  const bytes = Buffer.from(String(n), "base64url");
  const first = bytes.findIndex((byte) => byte !== 0);
  return first < 0 ? 0 : bytes.length - first;
}

function importKey(jwk: JsonWebKey, type: KeyType): KeyObject | undefined {
  try {
    // The import rejects points that are not on their curve, and coordinates of another length.
    const key = createPublicKey({ key: jwk, format: "jwk" });
    return type === "RSA" && !isAcceptableRsa(key) ? undefined : key;
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
  const isExpected =
    keyType === "RSA" ? RSA_BYTES.has(signature.length) : signature.length === SIGNATURE_BYTES[keyType];
  if (!isExpected) return;
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
