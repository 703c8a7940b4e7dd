// Keys that sign no valid token here, one for each family of algorithms, and how they sign.
import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";

/** A key of another issuer. */
export interface Stranger {
  readonly alg: string;
  readonly key: KeyObject;
  readonly publicJwk: object;
  sign(input: string): Buffer;
}

function strangerOf(
  alg: string,
  pair: { readonly publicKey: KeyObject; readonly privateKey: KeyObject },
  hash: string | null,
): Stranger {
  const { publicKey, privateKey: key } = pair;
  return {
    alg,
    key,
    publicJwk: publicKey.export({ format: "jwk" }),
    sign: (input) => sign(hash, Buffer.from(input), { key, dsaEncoding: "ieee-p1363" }),
  };
}

/** One of each. */
export const strangers = {
  /** Of the kind that good tokens are signed with. */
  sameCurve: strangerOf("ES256", generateKeyPairSync("ec", { namedCurve: "P-256" }), "sha256"),
  otherCurve: strangerOf("ES384", generateKeyPairSync("ec", { namedCurve: "P-384" }), "sha384"),
  rsa: strangerOf("RS256", generateKeyPairSync("rsa", { modulusLength: 2048 }), "sha256"),
  edwards: strangerOf("EdDSA", generateKeyPairSync("ed25519"), null),
} satisfies Record<string, Stranger>;
