// Signed JWTs in the compact serialization (RFC 7515, section 7.1), with ES256 or RS256 (RFC 7518, sections 3.3 and
// 3.4). The type of a key decides its algorithm; a token has no say in it (RFC 8725, section 3.1).
import { type KeyObject, type SigningOptions, sign } from "node:crypto";

/** The algorithms of tokens of this service. */
export const tokenAlgorithms = ["RS256", "ES256"] as const;
/** The name of such an algorithm (RFC 7518, section 3.1). */
export type TokenAlgorithm = (typeof tokenAlgorithms)[number];

/** The size of the service's RSA keys, in bits. */
export const RSA_BITS = 2048;

/** The length of a signature in base64url: 2048 bits, or two numbers of 256. */
export const SIGNATURE_LENGTHS: Readonly<Record<TokenAlgorithm, number>> = { RS256: 342, ES256: 86 };

/** A private key that signs, and its name. */
export interface SigningKey {
  readonly kid: string;
  readonly key: KeyObject;
}

/** The algorithm of a public or private key of this service. */
export function algorithmOf(key: KeyObject): TokenAlgorithm {
  return key.asymmetricKeyType === "rsa" ? "RS256" : "ES256";
}

/** The options of Node for each algorithm. Signatures of ECDSA are two concatenated numbers, not DER (RFC 7518). */
export const signingOptions: Readonly<Record<TokenAlgorithm, SigningOptions>> = {
  RS256: {},
  ES256: { dsaEncoding: "ieee-p1363" },
};

/** A JWT that lacks its signature. */
export interface UnsignedJwt {
  /** The signed text: header and claims. */
  readonly input: string;
  /** The length of the JWT with its signature, in characters. */
  readonly length: number;
  readonly key: KeyObject;
}

/**
 * Encodes a JWT, to be signed with a key by {@link signJwt}.
 *
 * @param typ the type in the header (RFC 8725, section 3.11): verifiers must not take one kind of token for another
 */
export function encodeJwt(typ: string, claims: object, { kid, key }: SigningKey): UnsignedJwt {
  const alg = algorithmOf(key);
  const input = `${encode({ alg, kid, typ })}.${encode(claims)}`;
  return { input, length: input.length + 1 + SIGNATURE_LENGTHS[alg], key };
}

/**
 * Signs a JWT in a thread of libuv's pool: an RSA signature takes a third of a millisecond. Not in a transaction, which
 * must not wait for it.
 */
export function signJwt({ input, key }: UnsignedJwt): Promise<string> {
  return new Promise((resolve, reject) => {
    sign("sha256", Buffer.from(input), { key, ...signingOptions[algorithmOf(key)] }, (error, signature) => {
      if (error) reject(error);
      else resolve(`${input}.${signature.toString("base64url")}`);
    });
  });
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}
