// The signature algorithms accepted from other issuers (RFC 7518, section 3;
// RFC 8037): asymmetric ones only, each tied to one type of key, so that a
// token can never choose how a key is used (RFC 8725, section 3.1).
import { constants, type SigningOptions } from "node:crypto";

/** A type of key: the name of the curve, or RSA. */
export type KeyType = "RSA" | "P-256" | "P-384" | "P-521" | "Ed25519";

/** How a signature of one algorithm is verified. */
export interface Algorithm {
  readonly keyType: KeyType;
  /** As node:crypto calls it; null where the algorithm brings its own. */
  readonly hash: string | null;
  readonly options: SigningOptions;
}

/**
 * How long signatures with a key are, in bytes: as long as its modulus (RFC 8017, section 8.1.2), or
 * two numbers of the length of its field. Verification alone takes an RSASSA-PSS signature that lost
 * its leading zero bytes, so one token would have several spellings.
 *
 * @param modulusBits the size of an RSA key
 */
export function signatureLengthOf(type: KeyType, modulusBits = 0): number {
  return SIGNATURE_BYTES[type] ?? Math.ceil(modulusBits / 8);
}

const SIGNATURE_BYTES: Readonly<Partial<Record<KeyType, number>>> = {
  "P-256": 64,
  "P-384": 96,
  "P-521": 132,
  Ed25519: 64,
};

// JOSE writes the two numbers of an ECDSA signature side by side, not as DER.
const ecdsa: SigningOptions = { dsaEncoding: "ieee-p1363" };
const pkcs1: SigningOptions = { padding: constants.RSA_PKCS1_PADDING };
const pss: SigningOptions = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };

/** The accepted algorithms by their JOSE name. */
export const algorithms: ReadonlyMap<string, Algorithm> = new Map<string, Algorithm>([
  ["ES256", { keyType: "P-256", hash: "sha256", options: ecdsa }],
  ["ES384", { keyType: "P-384", hash: "sha384", options: ecdsa }],
  ["ES512", { keyType: "P-521", hash: "sha512", options: ecdsa }],
  ["RS256", { keyType: "RSA", hash: "sha256", options: pkcs1 }],
  ["RS384", { keyType: "RSA", hash: "sha384", options: pkcs1 }],
  ["RS512", { keyType: "RSA", hash: "sha512", options: pkcs1 }],
  ["PS256", { keyType: "RSA", hash: "sha256", options: pss }],
  ["PS384", { keyType: "RSA", hash: "sha384", options: pss }],
  ["PS512", { keyType: "RSA", hash: "sha512", options: pss }],
  ["EdDSA", { keyType: "Ed25519", hash: null, options: {} }],
  // The name that RFC 9864 gives the same algorithm.
  ["Ed25519", { keyType: "Ed25519", hash: null, options: {} }],
]);
