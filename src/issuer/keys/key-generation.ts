// Generates keys and opens stored ones. Each is encrypted with the master key and has one purpose.
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type JsonWebKey,
  type KeyObject,
  randomBytes,
} from "node:crypto";
import { encodeBase32 } from "../../kernel/base32.js";
import type { KeyPurpose, KeyRow } from "../../store/port.js";
import type { MasterKey } from "./master-key.js";

/** The purposes of signing keys. */
export type SigningPurpose = Exclude<KeyPurpose, "page-token">;

/** Computes the kid of a signing key, by purpose. */
const computeKid: Readonly<Record<SigningPurpose, (publicKey: KeyObject) => string>> = {
  "api-token": computeThumbprint,
  audit: computeThumbprint,
  registry: computeLibtrustFingerprint,
};

/**
 * Generates an active key for a purpose: a secret for page tokens, an ES256 key otherwise.
 *
 * @param nowMs the create time, in epoch milliseconds
 */
export function generateKey(purpose: KeyPurpose, masterKey: MasterKey, nowMs: number): KeyRow {
  return purpose === "page-token"
    ? generatePageTokenKey(masterKey, nowMs)
    : generateSigningKey(purpose, masterKey, nowMs);
}

/** Generates an active secret for page tokens. */
export function generatePageTokenKey(masterKey: MasterKey, nowMs: number): KeyRow {
  const kid = randomBytes(8).toString("hex");
  const row = {
    kid,
    purpose: "page-token",
    state: "active",
    publicJwk: "",
    createTimeMs: nowMs,
    nextTimeMs: null,
  } as const;
  return { ...row, sealed: masterKey.seal(randomBytes(32), buildContext(row)) };
}

function generateSigningKey(purpose: SigningPurpose, masterKey: MasterKey, nowMs: number): KeyRow {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const kid = computeKid[purpose](publicKey);
  // Commands would read such a kid as an option.
  if (kid.startsWith("-")) return generateSigningKey(purpose, masterKey, nowMs);
  const row = {
    kid,
    purpose,
    state: "active",
    publicJwk: JSON.stringify({ ...publicKey.export({ format: "jwk" }), alg: "ES256", use: "sig" }),
    createTimeMs: nowMs,
    nextTimeMs: null,
  } as const;
  const secret = Buffer.from(JSON.stringify(privateKey.export({ format: "jwk" })));
  return { ...row, sealed: masterKey.seal(secret, buildContext(row)) };
}

// RFC 7638: the hash of the required members in lexicographic order. It is synchronous, so that a transaction can
// generate a key.
function computeThumbprint(publicKey: KeyObject): string {
  const { crv, kty, x, y } = publicKey.export({ format: "jwk" });
  return createHash("sha256").update(JSON.stringify({ crv, kty, x, y })).digest("base64url");
}

/**
 * Computes the libtrust fingerprint, the name of a public key in a registry's certificate bundle: the first 240 bits
 * of the SHA-256 of its SubjectPublicKeyInfo, in base32 and in groups of four with colons between.
 */
export function computeLibtrustFingerprint(publicKey: KeyObject): string {
  const hash = createHash("sha256")
    .update(publicKey.export({ type: "spki", format: "der" }))
    .digest();
  return encodeBase32(hash.subarray(0, 30)).replace(/.{4}(?=.)/g, "$&:");
}

/**
 * Opens the secret of a stored key.
 *
 * @throws Error when it was not sealed with this master key for this row.
 */
export function unsealSecret(row: KeyRow, masterKey: MasterKey): Buffer {
  return masterKey.unseal(row.sealed, buildContext(row));
}

/** A signing key and its public key. */
export interface KeyPair {
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

/**
 * Opens a stored signing key. The public key is derived from the encrypted private key: a party that can change rows
 * could replace a stored public key, but cannot encrypt a private one.
 *
 * @throws Error when it was not sealed with this master key for this row.
 */
export function unsealKeyPair(row: KeyRow, masterKey: MasterKey): KeyPair {
  const jwk: JsonWebKey = JSON.parse(unsealSecret(row, masterKey).toString());
  const privateKey = createPrivateKey({ key: jwk, format: "jwk" });
  return { privateKey, publicKey: createPublicKey(privateKey) };
}

function buildContext({ purpose, kid }: Pick<KeyRow, "purpose" | "kid">): string {
  return `${purpose} ${kid}`;
}
