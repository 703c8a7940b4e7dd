// Builds tokens of every shape, good and bad, out of a running service's own
// key and of keys that are not its own.
import { createHmac, createPublicKey, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import type { Installation } from "../../../src/app/installation.js";

/** What a token is signed with: bytes in, signature out. */
export type Signer = (input: string) => Buffer | Promise<Buffer>;

/** A part of a token: an object to be written as JSON, or text or bytes as they are. */
export type Part = object | string | Uint8Array;

/** The service's key, its public forms, and what a good token says. */
export interface TokenKit {
  readonly kid: string;
  /** The kid of a key that seals page tokens. */
  readonly pageKid: string;
  /** Signs as the service does. */
  readonly ours: Signer;
  /** The public key as PEM, JWK text and DER: what an HMAC might wrongly be keyed with. */
  readonly publicForms: Readonly<Record<"pem" | "jwk" | "der", Buffer>>;
  /** The claims of a good token, with changes; undefined takes a claim away. */
  claims(changes?: Readonly<Record<string, unknown>>): Record<string, unknown>;
  /** The header of a good token, with changes; undefined takes a field away. */
  header(changes?: Readonly<Record<string, unknown>>): Record<string, unknown>;
  /** A token of these parts; each is a good one's unless given. */
  token(parts?: { readonly header?: Part; readonly payload?: Part; readonly signer?: Signer }): Promise<string>;
}

/** Who the good token speaks for, and to whom. */
export interface TokenSubject {
  readonly issuer: string;
  readonly audience: string;
  readonly identity: string;
  readonly nowMs: number;
}

/** Makes the kit of an installation. */
export async function tokenKitOf({ keys, store }: Installation, subject: TokenSubject): Promise<TokenKit> {
  const { kid, key } = keys.getSigningKey();
  const rows = await store.read((tx) => tx.keys.list());
  const jwk = rows.find((row) => row.kid === kid)?.publicJwk ?? "";
  const publicKey = createPublicKey({ key: JSON.parse(jwk), format: "jwk" });
  const issuedAt = Math.floor(subject.nowMs / 1000) - 10;
  const ours: Signer = (input) => sign("sha256", Buffer.from(input), { key, dsaEncoding: "ieee-p1363" });
  const header = (changes: object = {}) => ({ alg: "ES256", kid, typ: "at+jwt", ...changes });
  const claims = (changes: object = {}) => ({
    iss: subject.issuer,
    sub: subject.identity,
    aud: subject.audience,
    iat: issuedAt,
    exp: issuedAt + 3_600,
    jti: "0123456789abcdef0123456789abcdef",
    ...changes,
  });
  return {
    kid,
    pageKid: rows.find(({ purpose }) => purpose === "page-token")?.kid ?? "",
    ours,
    publicForms: {
      pem: Buffer.from(publicKey.export({ type: "spki", format: "pem" })),
      jwk: Buffer.from(jwk),
      der: publicKey.export({ type: "spki", format: "der" }),
    },
    claims,
    header,
    async token({ header: first = header(), payload = claims(), signer = ours } = {}) {
      const input = `${encodePart(first)}.${encodePart(payload)}`;
      return `${input}.${(await signer(input)).toString("base64url")}`;
    },
  };
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

/** A key that is not the service's. */
export interface StrangeKey {
  readonly publicJwk: Record<string, unknown>;
  readonly signer: Signer;
}

/** A new key of a kind that some JWT algorithm uses. */
export function strangeKey(kind: "ES256" | "ES384" | "RS256" | "PS256" | "EdDSA"): StrangeKey {
  const pair = {
    ES256: () => generateKeyPairSync("ec", { namedCurve: "P-256" }),
    ES384: () => generateKeyPairSync("ec", { namedCurve: "P-384" }),
    RS256: () => generateKeyPairSync("rsa", { modulusLength: 2048 }),
    PS256: () => generateKeyPairSync("rsa", { modulusLength: 2048 }),
    EdDSA: () => generateKeyPairSync("ed25519"),
  }[kind]();
  const hash = { ES256: "sha256", ES384: "sha384", RS256: "sha256", PS256: "sha256", EdDSA: null }[kind];
  // 6 is RSA_PKCS1_PSS_PADDING.
  const key = {
    key: pair.privateKey as KeyObject,
    dsaEncoding: "ieee-p1363" as const,
    ...(kind === "PS256" && { padding: 6 }),
  };
  return {
    publicJwk: pair.publicKey.export({ format: "jwk" }) as Record<string, unknown>,
    signer: (input) => sign(hash, Buffer.from(input), key),
  };
}

/** The order of the group of P-256: r and s of a signature are below it. */
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;

/** The same signature with the other of its two values of s. */
export function otherS(signature: Buffer): Buffer {
  const s = BigInt(`0x${signature.subarray(32).toString("hex")}`);
  return Buffer.concat([signature.subarray(0, 32), numberBytes(ORDER - s)]);
}

/** r and s as the 64 bytes of a signature. */
export function signatureOf(r: bigint, s: bigint): Buffer {
  return Buffer.concat([numberBytes(r), numberBytes(s)]);
}

/** A signature with r and s, where each grew by the order of the group: the same modulo it. */
export function beyondOrder(): Buffer {
  return signatureOf(ORDER + 1n, ORDER + 1n);
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
