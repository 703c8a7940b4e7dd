// Makes keys, and opens what is stored of them: each sealed with the master
// key, and each for one purpose alone.
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

/** What a key that signs can be for. */
export type SigningPurpose = Exclude<KeyPurpose, "page-token">;

/** How signing keys are named, by what they are for. */
const kidOf: Readonly<Record<SigningPurpose, (publicKey: KeyObject) => string>> = {
  "api-token": thumbprintOf,
  audit: thumbprintOf,
  registry: libtrustFingerprintOf,
};

/**
 * A new key for a purpose, in use at once: a secret for page tokens, an ES256 key for all else.
 *
 * @param nowMs when it is made, in epoch milliseconds
 */
export function newKey(purpose: KeyPurpose, masterKey: MasterKey, nowMs: number): KeyRow {
  return purpose === "page-token" ? newPageTokenKey(masterKey, nowMs) : newSigningKey(purpose, masterKey, nowMs);
}

/** A new secret for page tokens. */
export function newPageTokenKey(masterKey: MasterKey, nowMs: number): KeyRow {
  const kid = randomBytes(8).toString("hex");
  const row = {
    kid,
    purpose: "page-token",
    state: "active",
    publicJwk: "",
    createTimeMs: nowMs,
    nextTimeMs: null,
  } as const;
  return { ...row, sealed: masterKey.seal(randomBytes(32), contextOf(row)) };
}

function newSigningKey(purpose: SigningPurpose, masterKey: MasterKey, nowMs: number): KeyRow {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const kid = kidOf[purpose](publicKey);
  // A command that is given such a kid would take it for an option.
  if (kid.startsWith("-")) return newSigningKey(purpose, masterKey, nowMs);
  const row = {
    kid,
    purpose,
    state: "active",
    publicJwk: JSON.stringify({ ...publicKey.export({ format: "jwk" }), alg: "ES256", use: "sig" }),
    createTimeMs: nowMs,
    nextTimeMs: null,
  } as const;
  const secret = Buffer.from(JSON.stringify(privateKey.export({ format: "jwk" })));
  return { ...row, sealed: masterKey.seal(secret, contextOf(row)) };
}

// RFC 7638: the hash of the required members, in the order of their names. Worked out without
// waiting, so that a transaction can make a key.
function thumbprintOf(publicKey: KeyObject): string {
  const { crv, kty, x, y } = publicKey.export({ format: "jwk" });
  return createHash("sha256").update(JSON.stringify({ crv, kty, x, y })).digest("base64url");
}

/**
 * What a registry calls a public key that it read from its certificate bundle, by libtrust: the
 * first 240 bits of the SHA-256 of its SubjectPublicKeyInfo, in base32 (RFC 4648, section 6) and
 * groups of four with colons between.
 */
export function libtrustFingerprintOf(publicKey: KeyObject): string {
  const hash = createHash("sha256")
    .update(publicKey.export({ type: "spki", format: "der" }))
    .digest();
  return encodeBase32(hash.subarray(0, 30)).replace(/.{4}(?=.)/g, "$&:");
}

/**
 * The secret of a key for page tokens.
 *
 * @throws Error when it was not sealed with this master key for this row.
 */
export function secretOf(row: KeyRow, masterKey: MasterKey): Buffer {
  return masterKey.unseal(row.sealed, contextOf(row));
}

/** Both halves of a key that signs. */
export interface KeyPair {
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

/**
 * Both halves of a key that signs. The public one is worked out from the sealed private one, not
 * taken from beside it: whoever can change rows of the database could put a key of their own there,
 * but cannot seal one.
 *
 * @throws Error when it was not sealed with this master key for this row.
 */
export function keyPairOf(row: KeyRow, masterKey: MasterKey): KeyPair {
  const jwk: JsonWebKey = JSON.parse(secretOf(row, masterKey).toString());
  const privateKey = createPrivateKey({ key: jwk, format: "jwk" });
  return { privateKey, publicKey: createPublicKey(privateKey) };
}

function contextOf({ purpose, kid }: Pick<KeyRow, "purpose" | "kid">): string {
  return `${purpose} ${kid}`;
}
