// Generates keys and opens stored ones. Each is encrypted with the master key and has one purpose.
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPair,
  generateKeyPairSync,
  type JsonWebKey,
  type KeyObject,
  randomBytes,
} from "node:crypto";
import { promisify } from "node:util";
import { sha256 } from "../../kernel/digest.js";
import { encodeBase32 } from "../../kernel/ids.js";
import { algorithmOf, RSA_BITS, type TokenAlgorithm } from "../../kernel/jws.js";
import type { KeyPurpose, KeyRow } from "../../store/tables/tokens.js";
import type { Tx } from "../../store/transaction.js";
import { type MasterKey, resealForStore } from "./master-key.js";

export type SigningPurpose = Exclude<KeyPurpose, "page-token">;

const computeKid: Readonly<Record<SigningPurpose, (publicKey: KeyObject) => string>> = {
  "api-token": computeThumbprint,
  audit: computeThumbprint,
  registry: computeLibtrustFingerprint,
};

/** The purposes of keys other than those of API tokens, which {@link generateTokenKey} generates. */
export type OtherPurpose = Exclude<KeyPurpose, "api-token">;

/**
 * Generates an active key for a purpose: a secret for page tokens, an ES256 key otherwise.
 *
 * @param nowMs the create time, in epoch milliseconds
 */
export function generateKey(purpose: OtherPurpose, masterKey: MasterKey, nowMs: number): KeyRow {
  if (purpose === "page-token") return generatePageTokenKey(masterKey, nowMs);
  const pair = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const kid = computeKid[purpose](pair.publicKey);
  // Commands would read such a kid as an option.
  return kid.startsWith("-")
    ? generateKey(purpose, masterKey, nowMs)
    : sealKeyPair({ kid, purpose, nowMs }, pair, masterKey);
}

/**
 * Generates an active key for API tokens. A thread of libuv's pool does it, because an RSA key takes some hundred
 * milliseconds.
 *
 * @param nowMs the create time, in epoch milliseconds
 */
export async function generateTokenKey(
  algorithm: TokenAlgorithm,
  masterKey: MasterKey,
  nowMs: number,
): Promise<KeyRow> {
  const pair = await generators[algorithm]();
  const kid = computeThumbprint(pair.publicKey);
  if (kid.startsWith("-")) return generateTokenKey(algorithm, masterKey, nowMs);
  return sealKeyPair({ kid, purpose: "api-token", nowMs }, pair, masterKey);
}

const generatePair = promisify(generateKeyPair);
const generators: Readonly<Record<TokenAlgorithm, () => Promise<KeyPair>>> = {
  RS256: () => generatePair("rsa", { modulusLength: RSA_BITS }),
  ES256: () => generatePair("ec", { namedCurve: "P-256" }),
};

/** The algorithm of a stored key, for planning only: the stored public key is not authenticated. */
export function algorithmOfRow({ publicJwk }: Pick<KeyRow, "publicJwk">): TokenAlgorithm {
  return (JSON.parse(publicJwk) as JsonWebKey).kty === "RSA" ? "RS256" : "ES256";
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
  return { ...row, sealed: masterKey.seal(randomBytes(32), formatKeyContext(row)) };
}

function sealKeyPair(
  { kid, purpose, nowMs }: { readonly kid: string; readonly purpose: SigningPurpose; readonly nowMs: number },
  { publicKey, privateKey }: KeyPair,
  masterKey: MasterKey,
): KeyRow {
  const row = {
    kid,
    purpose,
    state: "active",
    publicJwk: JSON.stringify({ ...publicKey.export({ format: "jwk" }), alg: algorithmOf(publicKey), use: "sig" }),
    createTimeMs: nowMs,
    nextTimeMs: null,
  } as const;
  const secret = Buffer.from(JSON.stringify(privateKey.export({ format: "jwk" })));
  return { ...row, sealed: masterKey.seal(secret, formatKeyContext(row)) };
}

/** Encrypts a new key with the key of the store, in the transaction that inserts it ({@link resealForStore}). */
export async function resealKeyForStore(tx: Tx, masterKey: MasterKey, row: KeyRow): Promise<KeyRow> {
  return { ...row, sealed: await resealForStore(tx, masterKey, row.sealed, formatKeyContext(row)) };
}

// RFC 7638: the hash of the required members in lexicographic order.
function computeThumbprint(publicKey: KeyObject): string {
  const { crv, e, kty, n, x, y } = publicKey.export({ format: "jwk" });
  const members = kty === "RSA" ? { e, kty, n } : { crv, kty, x, y };
  return sha256(JSON.stringify(members)).toString("base64url");
}

/**
 * Computes the libtrust fingerprint, the name of a public key in a registry's certificate bundle: the first 240 bits
 * of the SHA-256 of its SubjectPublicKeyInfo, in base32 and in groups of four with colons between.
 */
export function computeLibtrustFingerprint(publicKey: KeyObject): string {
  const hash = sha256(publicKey.export({ type: "spki", format: "der" }));
  return encodeBase32(hash.subarray(0, 30)).replace(/.{4}(?=.)/g, "$&:");
}

/**
 * Opens the secret of a stored key.
 *
 * @throws Error when it was not sealed with this master key for this row.
 */
export function unsealSecret(row: KeyRow, masterKey: MasterKey): Buffer {
  return masterKey.unseal(row.sealed, formatKeyContext(row));
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

/** The context in which a key is sealed. */
export function formatKeyContext({ purpose, kid }: Pick<KeyRow, "purpose" | "kid">): string {
  return `${purpose} ${kid}`;
}
