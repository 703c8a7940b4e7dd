// The tokens that mutations begin with, and how one is put together again.
import { type KeyObject, sign } from "node:crypto";
import type { Random } from "../../support/openapi/random.js";
import { encodePart, type Part } from "../strangers/token-kit.js";

/** A token that is accepted, and all that it is made of. */
export interface GoodToken {
  readonly text: string;
  readonly header: Readonly<Record<string, unknown>>;
  readonly claims: Readonly<Record<string, unknown>>;
  /** What signs it. */
  readonly key: KeyObject;
}

/**
 * Makes a token that must not be accepted out of one that is; undefined where it cannot. Whether the
 * result is wrong indeed is for the reference reader to say.
 */
export type Mutation = (good: GoodToken, random: Random) => string | undefined;

/** Mutations that change the same thing. */
export interface MutationClass {
  readonly name: string;
  /** How often it is drawn, beside the others. */
  readonly weight: number;
  /** Whether what it makes has good form and a good signature, and one claim that is wrong. */
  readonly oneClaim?: true;
  readonly mutate: Mutation;
}

/** The parts of a token, each as it stands there; of another number than three the missing are empty. */
export function segmentsOf(text: string): [header: string, payload: string, signature: string] {
  const [header = "", payload = "", signature = ""] = text.split(".");
  return [header, payload, signature];
}

/** The ES256 signature of a text, r and s side by side (RFC 7518, section 3.4). */
export function signatureOver(input: string, key: KeyObject): Buffer {
  return sign("sha256", Buffer.from(input), { key, dsaEncoding: "ieee-p1363" });
}

/** The token whose first two parts are these texts, signed as they are. */
export function signText(header: string, payload: string, key: KeyObject): string {
  const input = `${header}.${payload}`;
  return `${input}.${signatureOver(input, key).toString("base64url")}`;
}

/** The token of this header and payload. */
export function signParts(header: Part, payload: Part, key: KeyObject): string {
  return signText(encodePart(header), encodePart(payload), key);
}

/** A good token of this header and these claims. */
export function goodToken(header: GoodToken["header"], claims: GoodToken["claims"], key: KeyObject): GoodToken {
  return { text: signParts(header, claims, key), header, claims, key };
}

/** A mutation that is one of several, each as likely. */
export function oneOf(...mutations: readonly Mutation[]): Mutation {
  return (good, random) => random.pick(mutations)(good, random);
}
