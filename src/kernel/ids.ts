import { randomBytes } from "node:crypto";
import { sha256 } from "./digest.js";

/** Creates uids and ids; replaced in tests. */
export interface Ids {
  /** Creates a uid: 20 random bytes in hex, or the uid of `parent` and 8 random bytes. */
  newUid(parent?: string): string;
  /** Creates the id of a token or of a change by an operator: 16 random bytes in hex. */
  newId(): string;
}

/** Ids from the system's random source. */
export const randomIds: Ids = {
  newUid: (parent) => (parent ? `${parent}/${randomBytes(8).toString("hex")}` : randomBytes(20).toString("hex")),
  newId: () => randomBytes(16).toString("hex"),
};

/** The digits of a request id, and how many ids are drawn from the system's random source at once. */
const REQUEST_ID_DIGITS = 32;
const REQUEST_IDS_DRAWN = 128;

let randomDigits = "";
let nextDigit = 0;

/**
 * Creates the id of a request: 32 random hex digits. It costs a quarter of a UUID, which Node joins from twenty parts. A
 * counter would cost less, but tell callers how many requests others make.
 */
export function newRequestId(): string {
  if (nextDigit === randomDigits.length) {
    randomDigits = randomBytes((REQUEST_IDS_DRAWN * REQUEST_ID_DIGITS) / 2).toString("hex");
    nextDigit = 0;
  }
  nextDigit += REQUEST_ID_DIGITS;
  return randomDigits.slice(nextDigit - REQUEST_ID_DIGITS, nextDigit);
}

/** Derives a uid from `text`: the first 40 hex digits of its SHA-256. */
function deriveUid(text: string): string {
  return sha256(text).toString("hex").slice(0, 40);
}

/** The uid of a built-in role; `viewer` has the published one. */
export function builtinRoleUid(name: string): string {
  return name === "viewer" ? "63921b2c44617e3f2603851537be0123af4a57d7" : deriveUid(`arbor role ${name}`);
}

/** The uid of a built-in identity, such as `anonymous` or `owner@<root uid>`. */
export function builtinIdentityUid(name: string): string {
  return deriveUid(`arbor identity ${name}`);
}

/** The uid of the owner that `arbor bootstrap` makes for a root group when it is given nobody: only the host has its tokens. */
export function hostOwnerUid(rootUid: string): string {
  return builtinIdentityUid(`owner@${rootUid}`);
}

/** The uid of the anonymous identity; its role bindings are public. */
export const ANONYMOUS_UID = builtinIdentityUid("anonymous");

/**
 * The uid of a person of an organisation's own provider. It differs from {@link personUid}, because an organisation
 * may name any issuer and must not become the people of that issuer.
 */
export function providerPersonUid(provider: string, issuer: string, subject: string): string {
  return deriveUid(`arbor provider person ${JSON.stringify([provider, issuer, subject])}`);
}

/** The uid of the person with this issuer and subject, the same before and after registration. */
export function personUid(issuer: string, subject: string): string {
  return deriveUid(`arbor person ${JSON.stringify([issuer, subject])}`);
}

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/** Base32 (RFC 4648, section 6) without padding. Bits after the last whole digit are zero. */
export function encodeBase32(bytes: Uint8Array): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, "0")).join("");
  return bits.replace(/.{1,5}/g, (five) => ALPHABET.charAt(Number.parseInt(five.padEnd(5, "0"), 2)));
}
