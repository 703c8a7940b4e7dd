// The accepted signature algorithms of other issuers (RFC 7518, section 3; RFC 8037). All are asymmetric, and each has
// one type of key, so that a token cannot choose how a key is used (RFC 8725, section 3.1).
import { constants, type SigningOptions } from "node:crypto";

/** The type of a key: the name of its curve, or RSA. */
export type KeyType = "RSA" | "P-256" | "P-384" | "P-521" | "Ed25519";

/** How signatures of an algorithm are verified. */
interface Algorithm {
  readonly keyType: KeyType;
  /** The name in node:crypto; null where the algorithm includes its hash. */
  readonly hash: string | null;
  readonly options: SigningOptions;
}

/**
 * The length of a key's signatures in bytes: two numbers of the length of the field (for RSA it is that of the modulus,
 * RFC 8017, section 8.1.2). It is compared, because the verification accepts an RSASSA-PSS signature without its leading
 * zero bytes, so one token would have several spellings.
 */
export const SIGNATURE_BYTES: Readonly<Record<Exclude<KeyType, "RSA">, number>> = {
  "P-256": 64,
  "P-384": 96,
  "P-521": 132,
  Ed25519: 64,
};

// JOSE signatures of ECDSA are two numbers side by side, not DER.
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
  // RFC 9864 gives EdDSA with Ed25519 this name.
  ["Ed25519", { keyType: "Ed25519", hash: null, options: {} }],
]);
