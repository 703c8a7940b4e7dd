// The key of a headless login: what the service seals the ID token for, so that
// it can be fetched by anybody and read by us alone.
import { createHash, createPublicKey, diffieHellman, generateKeyPairSync, type KeyObject } from "node:crypto";
import { Code } from "@connectrpc/connect";
import { isBearerToken } from "../../../client/token-source.js";
import { unseal } from "../../../kernel/seal.js";
import { jsonObject } from "./claims.js";
import { failure } from "./failure.js";
import type { IdToken } from "./grants.js";

/** A key pair (X25519, RFC 7748). */
export interface HeadlessKey {
  /** The raw public key in base64url: 43 characters, by which the login goes. */
  readonly code: string;
  /** What the person compares or types, as `ABCD-EFGH`: 40 bits of a hash of the public key. */
  readonly confirmation: string;
  /**
   * Opens what the service sealed.
   *
   * @param serviceKey base64 of the text that is the base64url of the service's raw public key
   * @param sealed base64 of nonce, ciphertext and tag (AES-256-GCM under the shared secret)
   * @throws ConnectError INTERNAL when it is not sealed for this key
   */
  open(serviceKey: unknown, sealed: unknown): IdToken;
}

/** Makes one. */
export function newHeadlessKey(): HeadlessKey {
  const { publicKey, privateKey } = generateKeyPairSync("x25519");
  const { x: code = "" } = publicKey.export({ format: "jwk" });
  const digest = createHash("sha256").update(Buffer.from(code, "base64url")).digest();
  return {
    code,
    confirmation: grouped(digest.subarray(0, 5)),
    open(serviceKey, sealed) {
      const secret = sharedSecret(privateKey, textIn(serviceKey));
      // Nothing binds it to a purpose: the protocol has none.
      const plain = secret && unseal(secret, Buffer.from(typeof sealed === "string" ? sealed : "", "base64"), "");
      const result = plain && resultIn(plain.toString());
      if (!result) throw failure(Code.Internal, "the service's answer cannot be opened");
      return result;
    },
  };
}

function textIn(base64: unknown): string {
  return Buffer.from(typeof base64 === "string" ? base64 : "", "base64").toString("latin1");
}

function sharedSecret(privateKey: KeyObject, x: string): Buffer | undefined {
  try {
    const publicKey = createPublicKey({ format: "jwk", key: { kty: "OKP", crv: "X25519", x } });
    return diffieHellman({ privateKey, publicKey });
  } catch {
    // No key, or one of those that lead to the same secret whoever has them.
    return undefined;
  }
}

// The bare token, or an object that also says whose it is.
function resultIn(text: string): IdToken | undefined {
  if (isBearerToken(text)) return { idToken: text };
  const { id_token: idToken, identity_provider: provider } = jsonObject(text);
  if (!isBearerToken(idToken)) return undefined;
  return { idToken, ...(typeof provider === "string" && provider !== "" && { provider }) };
}

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

// Base32 (RFC 4648) of five bytes, in two groups.
function grouped(bytes: Buffer): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, "0")).join("");
  const digits = bits.match(/.{5}/g)?.map((five) => ALPHABET[Number.parseInt(five, 2)]) ?? [];
  return `${digits.slice(0, 4).join("")}-${digits.slice(4).join("")}`;
}
