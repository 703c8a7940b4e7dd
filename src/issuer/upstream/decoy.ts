import { createPublicKey, generateKeyPairSync, type KeyObject, randomBytes, verify } from "node:crypto";
import { algorithms, type KeyType, signatureLengthOf } from "./algorithms.js";
import type { ParsedToken } from "./token.js";

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
