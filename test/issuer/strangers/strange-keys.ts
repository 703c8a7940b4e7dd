// Keys that sign no valid token, one for each family of algorithms.
import { constants, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import type { Signer } from "./token-kit.js";

/** A key of another issuer. */
export interface StrangeKey {
  readonly alg: string;
  readonly key: KeyObject;
  readonly publicJwk: object;
  readonly sign: Signer;
}

function strangeKey(
  alg: string,
  { publicKey, privateKey: key }: { readonly publicKey: KeyObject; readonly privateKey: KeyObject },
  hash: string | null,
  padding = constants.RSA_PKCS1_PADDING,
): StrangeKey {
  const options = { key, dsaEncoding: "ieee-p1363" as const, ...(key.asymmetricKeyType === "rsa" && { padding }) };
  return {
    alg,
    key,
    publicJwk: publicKey.export({ format: "jwk" }),
    sign: (input) => sign(hash, Buffer.from(input), options),
  };
}

const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });

export const strangeKeys = {
  /** Of the kind that good tokens are signed with. */
  sameCurve: strangeKey("ES256", generateKeyPairSync("ec", { namedCurve: "P-256" }), "sha256"),
  otherCurve: strangeKey("ES384", generateKeyPairSync("ec", { namedCurve: "P-384" }), "sha384"),
  rsa: strangeKey("RS256", rsa, "sha256"),
  pss: strangeKey("PS256", rsa, "sha256", constants.RSA_PKCS1_PSS_PADDING),
  edwards: strangeKey("EdDSA", generateKeyPairSync("ed25519"), null),
} satisfies Record<string, StrangeKey>;
