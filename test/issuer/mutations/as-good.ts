// Changes that make no difference: what they make must be accepted like the token
// itself. They show that the campaign rejects what a token says, not that it is
// another text.
import { encodePart, otherS } from "../strangers/token-kit.js";
import { type GoodToken, segmentsOf, signParts, signText } from "./good-token.js";

/** A change that makes no difference. */
export interface AsGood {
  readonly name: string;
  make(good: GoodToken): string;
}

const withHeader = (header: object, { claims, key }: GoodToken) => signParts(header, claims, key);

/** Those of tokens that are signed with ES256. */
export const asGoodEcdsa: readonly AsGood[] = [
  {
    // See signature-mutations.ts.
    name: "the other value of s",
    make({ text }) {
      const [header, payload, signature] = segmentsOf(text);
      return [header, payload, otherS(Buffer.from(signature, "base64url")).toString("base64url")].join(".");
    },
  },
];

/** Those of all tokens. */
export const asGood: readonly AsGood[] = [
  { name: "another signature", make: ({ text, key }) => signText(segmentsOf(text)[0], segmentsOf(text)[1], key) },
  {
    name: "the type in upper case",
    make: (good) => withHeader({ ...good.header, typ: String(good.header.typ).toUpperCase() }, good),
  },
  {
    name: "members in another order",
    make: ({ header, claims, key }) => signParts(reverseMembers(header), reverseMembers(claims), key),
  },
  {
    name: "a claim that nobody asked for",
    make: ({ header, claims, key }) => signParts(header, { ...claims, admin: true }, key),
  },
  {
    name: "an audience among others",
    make: ({ header, claims, key }) => {
      return signParts(header, { ...claims, aud: ["https://example.org"].concat(claims.aud as string) }, key);
    },
  },
  {
    name: "nbf that has passed",
    make: ({ header, claims, key }) => signParts(header, { ...claims, nbf: claims.iat }, key),
  },
];

/** Those of foreign tokens alone. */
export const asGoodForeign: readonly AsGood[] = [
  { name: "no kid, of an issuer with one key", make: (good) => withHeader({ alg: good.header.alg, typ: "JWT" }, good) },
  { name: "no type", make: (good) => withHeader({ alg: good.header.alg, kid: good.header.kid }, good) },
  {
    name: "the type of an access token, written out",
    make: (good) => withHeader({ ...good.header, typ: "application/at+jwt" }, good),
  },
  { name: "a header field that means nothing", make: (good) => withHeader({ ...good.header, x5t: "x" }, good) },
  {
    name: "white space in the payload",
    make: ({ header, claims, key }) => signText(encodePart(header), encodePart(JSON.stringify(claims, null, 2)), key),
  },
  {
    name: "no iat",
    make: ({ header, claims: { iat: _, ...claims }, key }) => signParts(header, claims, key),
  },
];

function reverseMembers(object: GoodToken["header"]): object {
  return Object.fromEntries(Object.entries(object).reverse());
}
