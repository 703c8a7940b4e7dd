import { createHash, randomBytes } from "node:crypto";

/** Makes the parts of the system that need chance or identity replaceable in tests. */
export interface Ids {
  /** A new uid: 20 random bytes in hex, or below `parent` the parent's uid and 8 random bytes. */
  newUid(parent?: string): string;
  /** A new token id or request id: 16 random bytes in hex. */
  newId(): string;
}

/** The ids of a running service, from the system's random source. */
export const randomIds: Ids = {
  newUid: (parent) => (parent ? `${parent}/${randomBytes(8).toString("hex")}` : randomBytes(20).toString("hex")),
  newId: () => randomBytes(16).toString("hex"),
};

/** A uid that is a pure function of `text`: the first 40 hex digits of its SHA-256. */
export function derivedUid(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 40);
}

/** The uid of the built-in role called `name`; `viewer` has the published one. */
export function builtinRoleUid(name: string): string {
  return name === "viewer" ? "63921b2c44617e3f2603851537be0123af4a57d7" : derivedUid(`arbor role ${name}`);
}

/** The uid of an identity that Arbor itself names, such as `anonymous` or `owner@<root uid>`. */
export function builtinIdentityUid(name: string): string {
  return derivedUid(`arbor identity ${name}`);
}

/** The uid of the identity that stands for everybody; what is bound to it is public. */
export const ANONYMOUS_UID = builtinIdentityUid("anonymous");

/**
 * The uid of the person that came through an organisation's own provider. Another one than that of
 * {@link personUid}: an organisation may name any issuer, and must not become who signs in there.
 */
export function providerPersonUid(provider: string, issuer: string, subject: string): string {
  return derivedUid(`arbor provider person ${JSON.stringify([provider, issuer, subject])}`);
}

/** The uid of the person that `issuer` knows as `subject`, the same before and after registration. */
export function personUid(issuer: string, subject: string): string {
  return derivedUid(`arbor person ${JSON.stringify([issuer, subject])}`);
}
