// Builds tokens of every shape, good and bad, out of a verifier's own key and of keys that are not its own.
import { createHmac, createPublicKey, type KeyObject, sign } from "node:crypto";
import type { Installation } from "../../../src/app/installation.js";

/** Makes the signature of a signed text. */
export type Signer = (input: string) => Buffer;

/** A part of a token: an object to be written as JSON, or text or bytes as they are. */
export type Part = object | string | Uint8Array;

type Members = Readonly<Record<string, unknown>>;

/** A good token, the key that signs it, and how to write tokens that differ from it. */
export interface TokenKit {
  readonly kid: string;
  /** Signs with the right key. */
  readonly ours: Signer;
  /** The public key as PEM, JWK text and DER: what an HMAC might wrongly be keyed with. */
  readonly publicForms: Readonly<Record<"pem" | "jwk" | "der", Buffer>>;
  /** The claims of a good token, with changes; undefined takes a claim away. */
  claims(changes?: Members): Record<string, unknown>;
  /** The header of a good token, with changes; undefined takes a field away. */
  header(changes?: Members): Record<string, unknown>;
  /** A token of these parts; each is a good one's unless given. */
  token(parts?: { readonly header?: Part; readonly payload?: Part; readonly signer?: Signer }): string;
}

/** What a good token is made of. */
export interface GoodParts {
  /** An EC key of P-256, or an RSA key, with the algorithm of the header. */
  readonly key: KeyObject;
  readonly header: Members;
  readonly claims: Members;
}

/** Creates the kit of a good token. */
export function createTokenKit({ key, header: goodHeader, claims: goodClaims }: GoodParts): TokenKit {
  const ours: Signer = (input) => sign("sha256", Buffer.from(input), { key, dsaEncoding: "ieee-p1363" });
  const header = (changes: Members = {}) => ({ ...goodHeader, ...changes });
  const claims = (changes: Members = {}) => ({ ...goodClaims, ...changes });
  return {
    kid: String(goodHeader.kid),
    ours,
    get publicForms() {
      const publicKey = createPublicKey(key);
      return {
        pem: Buffer.from(publicKey.export({ type: "spki", format: "pem" })),
        jwk: Buffer.from(JSON.stringify(publicKey.export({ format: "jwk" }))),
        der: publicKey.export({ type: "spki", format: "der" }),
      };
    },
    claims,
    header,
    token({ header: first = header(), payload = claims(), signer = ours } = {}) {
      const input = `${encodePart(first)}.${encodePart(payload)}`;
      return `${input}.${signer(input).toString("base64url")}`;
    },
  };
}

/** Who the good token speaks for, and to whom. */
export interface TokenSubject {
  readonly issuer: string;
  readonly audience: string;
  readonly identity: string;
  readonly nowMs: number;
}

/** Creates the kit of an installation's API tokens. */
export function createApiTokenKit({ keys }: Installation, subject: TokenSubject): TokenKit {
  const { kid, key } = keys.getSigningKey();
  const issuedAt = Math.floor(subject.nowMs / 1000) - 10;
  return createTokenKit({
    key,
    header: { alg: "ES256", kid, typ: "at+jwt" },
    claims: {
      iss: subject.issuer,
      sub: subject.identity,
      aud: subject.audience,
      iat: issuedAt,
      exp: issuedAt + 3_600,
      jti: "0123456789abcdef0123456789abcdef",
    },
  });
}

/** A part in base64url. */
export function encodePart(part: Part): string {
  const bytes = part instanceof Uint8Array ? part : typeof part === "string" ? part : JSON.stringify(part);
  return Buffer.from(bytes).toString("base64url");
}

/** Signs with HMAC under any key. */
export function hmac(hash: "sha256" | "sha512", key: Buffer): Signer {
  return (input) => createHmac(hash, key).update(input).digest();
}

/** The order of the group of P-256: r and s of a signature are below it. */
export const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

/** The same signature with the other of its two values of s. */
export function otherS(signature: Buffer): Buffer {
  const s = BigInt(`0x${signature.subarray(32).toString("hex")}`);
  return Buffer.concat([signature.subarray(0, 32), numberBytes(ORDER - s)]);
}

/** r and s as the 64 bytes of a signature. */
export function signatureOf(r: bigint, s: bigint): Buffer {
  return Buffer.concat([numberBytes(r), numberBytes(s)]);
}

/** A signature in the encoding that X.509 uses and JOSE does not. */
export function derOf(signature: Buffer): Buffer {
  const integer = (bytes: Buffer) => {
    const trimmed = Buffer.from(
      BigInt(`0x${bytes.toString("hex")}`)
        .toString(16)
        .padStart(64, "0"),
      "hex",
    );
    const positive = (trimmed[0] ?? 0) > 127 ? Buffer.concat([Buffer.alloc(1), trimmed]) : trimmed;
    return Buffer.concat([Buffer.from([2, positive.length]), positive]);
  };
  const body = Buffer.concat([integer(signature.subarray(0, 32)), integer(signature.subarray(32))]);
  return Buffer.concat([Buffer.from([0x30, body.length]), body]);
}

function numberBytes(n: bigint): Buffer {
  return Buffer.from(n.toString(16).padStart(64, "0"), "hex");
}
