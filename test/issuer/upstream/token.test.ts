import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import { CompactEncrypt, CompactSign, FlattenedSign } from "jose";
import { parseUpstreamToken } from "../../../src/issuer/upstream/token.js";
import { measureLeastProcessorMs } from "../../support/stopwatch.js";
import { goodClaims, NOW_S, part, signToken, testKey } from "./foreign-issuer.js";
import { isInvalidToken } from "./invalid-token.js";

const key = testKey("ES256", "k1");
const good = signToken(key);
const [header = "", claims = "", signature = ""] = good.split(".");
const withClaims = (change: Record<string, unknown>) => signToken(key, { ...goodClaims(), ...change });
const withHeader = (change: Record<string, unknown>) => signToken(key, goodClaims(), { alg: "ES256", ...change });
const withText = (text: string) => signToken(key, text);
/** The text of valid claims, followed by more. */
const appendText = (text: string) => withText(`${JSON.stringify(goodClaims()).slice(0, -1)},${text}}`);
const padClaims = (length: number) => withClaims({ padding: "x".repeat(length) });
/** How much padding makes a token of more than 16 KiB. */
let tooMuch = 11_000;
while (padClaims(tooMuch).length <= 16_384) tooMuch++;

test("a token is taken apart", () => {
  const token = parseUpstreamToken(withClaims({ aud: ["a", "b"], nbf: NOW_S, groups: ["x"] }));
  assert.deepEqual({ ...token.header }, { alg: "ES256", kid: "k1" });
  const { issuer, subject, audiences, expiresAt, issuedAt } = token;
  assert.deepEqual(
    { issuer, subject, audiences, expiresAt, issuedAt },
    {
      issuer: "https://issuer.test",
      subject: "repo:octo/app",
      audiences: ["a", "b"],
      expiresAt: NOW_S + 600,
      issuedAt: NOW_S - 10,
    },
  );
  assert.deepEqual(token.claims.groups, ["x"]);
  assert.equal(Object.getPrototypeOf(token.claims), null);
  assert.equal(token.signature.length, 64);
});

const accepted: Readonly<Record<string, string>> = {
  "no typ": withHeader({}),
  "typ in another case": withHeader({ typ: "application/AT+JWT" }),
  "no kid": withHeader({ kid: undefined }),
  "a key thumbprint in the header": withHeader({ x5t: "abc" }),
  "sixteen audiences": withClaims({ aud: Array.from({ length: 16 }, (_, i) => `a${i}`) }),
  "a subject of 1024 characters": withClaims({ sub: "s".repeat(1024) }),
  "times with a fraction": withClaims({ exp: NOW_S + 0.5, iat: NOW_S - 0.5 }),
  "no iat": withClaims({ iat: undefined }),
  "blanks between the claims": withText(JSON.stringify(goodClaims(), null, 2)),
  "a claim called constructor": withClaims({ constructor: 1 }),
  "the longest token": padClaims(tooMuch - 1),
};

for (const [name, text] of Object.entries(accepted)) {
  test(`accepts ${name}`, () => assert.doesNotThrow(() => parseUpstreamToken(text)));
}

const invalidTokens: readonly { name: string; text: string; rule: string }[] = [
  { name: "a token that is too long", text: padClaims(tooMuch), rule: "is too long" },
  { name: "a megabyte of dots", text: ".".repeat(1_000_000), rule: "is too long" },
  { name: "16 KiB of dots", text: ".".repeat(16_384), rule: "is not of three parts" },
  { name: "nothing", text: "", rule: "is not of three parts" },
  { name: "two parts", text: `${header}.${claims}`, rule: "is not of three parts" },
  { name: "four parts", text: `${good}.${signature}`, rule: "is not of three parts" },
  { name: "five parts", text: `${good}.a.b`, rule: "is not of three parts" },
  { name: "a dot behind", text: `${good}.`, rule: "is not of three parts" },
  { name: "a dot before", text: `.${good}`, rule: "is not of three parts" },
  { name: "no signature", text: `${header}.${claims}.`, rule: "is not in canonical base64url" },
  { name: "padding", text: `${good}==`, rule: "is not in canonical base64url" },
  { name: "a line break", text: `${header}.${claims}\n.${signature}`, rule: "is not in canonical base64url" },
  { name: "a blank before", text: ` ${good}`, rule: "is not in canonical base64url" },
  {
    name: "the other base64",
    text: `${header}.${claims}.+/${signature.slice(2)}`,
    rule: "is not in canonical base64url",
  },
  { name: "stray bits at the end", text: strayBits(good), rule: "is not in canonical base64url" },
  {
    name: "characters that are not ASCII",
    text: `${header}.${claims}.é${signature}`,
    rule: "is not in canonical base64url",
  },

  ...["none", "None", "nOnE", "HS256", "HS512", "ES256K", "RSA-OAEP", "es256", "", "constructor", "__proto__"].map(
    (alg) => ({
      name: `alg ${alg}`,
      text: withHeader({ alg }),
      rule: "is signed with an algorithm that is not accepted",
    }),
  ),
  { name: "alg null", text: withHeader({ alg: null }), rule: "is signed with an algorithm that is not accepted" },
  {
    name: "alg as a list",
    text: withHeader({ alg: ["ES256"] }),
    rule: "is signed with an algorithm that is not accepted",
  },
  { name: "no alg", text: withHeader({ alg: undefined }), rule: "is signed with an algorithm that is not accepted" },
  { name: "kid as a number", text: withHeader({ kid: 1 }), rule: "has a kid that is no string" },
  { name: "kid as a list", text: withHeader({ kid: ["k1"] }), rule: "has a kid that is no string" },
  { name: "a null kid", text: withHeader({ kid: null }), rule: "has a kid that is no string" },
  ...[
    { crit: ["exp"] },
    { crit: [] },
    { crit: ["b64"], b64: false },
    { jwk: key.publicJwk },
    { jwk: null },
    { jku: "http://127.0.0.1/keys" },
    { x5u: "http://127.0.0.1/chain" },
    { x5c: ["MIIB"] },
  ].map((change) => ({
    name: JSON.stringify(change).slice(0, 30),
    text: withHeader({ kid: "k1", ...change }),
    rule: "has a header parameter that is not accepted",
  })),
  ...["logout+jwt", "secevent+jwt", "dpop+jwt", "application/xml", "", 1, null].map((typ) => ({
    name: `typ ${typ}`,
    text: withHeader({ typ }),
    rule: "is of another type",
  })),
  ...[
    '["ES256"]',
    '"ES256"',
    "null",
    "{",
    '{"alg":"ES256","alg":"none"}',
    '{"alg":"none","\\u0061lg":"ES256"}',
    "\ufeff{}",
  ].map((text) => ({
    name: `header ${text}`,
    text: signToken(key, goodClaims(), text),
    rule: "has a header that is not a plain JSON object",
  })),

  ...["[]", "1", "null", '"x"', "", "{", "{}x", `{"a":${"[".repeat(70)}`, '{"a":1e999}', '{"a":NaN}'].map((text) => ({
    name: `claims ${text.slice(0, 20)}`,
    text: text === "" ? `${header}.${part(" ")}.${signature}` : withText(text),
    rule: "has claims that are not a plain JSON object",
  })),
  {
    name: "a byte order mark",
    text: withText(`\ufeff${JSON.stringify(goodClaims())}`),
    rule: "has claims that are not a plain JSON object",
  },
  {
    name: "bytes that are not UTF-8",
    text: `${header}.${Buffer.from('{"a":"\xff"}', "latin1").toString("base64url")}.${signature}`,
    rule: "has claims that are not a plain JSON object",
  },
  ...[
    '"sub":"admin"',
    '"\\u0073ub":"admin"',
    '"__proto__":{"admin":true}',
    '"a":{"b":1,"b":2}',
    '"a":"\\ud800"',
    '"a":"\\u0000"',
  ].map((text) => ({
    name: `claims with ${text}`,
    text: appendText(text),
    rule: "has claims that are not a plain JSON object",
  })),
  { name: "a token in a token", text: withText(good), rule: "has claims that are not a plain JSON object" },

  ...[undefined, null, 1, "", ["https://issuer.test"], { a: 1 }].map((iss) => ({
    name: `iss ${JSON.stringify(iss)}`,
    text: withClaims({ iss }),
    rule: "has no issuer",
  })),
  ...[undefined, null, 1, true, "", ["repo"], { a: 1 }, "s".repeat(1025)].map((sub) => ({
    name: `sub ${JSON.stringify(sub)?.slice(0, 20)}`,
    text: withClaims({ sub }),
    rule: "has no usable subject",
  })),
  ...[undefined, null, 1, {}, [], [1], ["a", null], [["a"]], Array.from({ length: 17 }, () => "a")].map((aud) => ({
    name: `aud ${JSON.stringify(aud)?.slice(0, 20)}`,
    text: withClaims({ aud }),
    rule: "has no usable audience",
  })),
  ...[undefined, null, String(NOW_S + 600), [NOW_S], true].map((exp) => ({
    name: `exp ${JSON.stringify(exp)}`,
    text: withClaims({ exp }),
    rule: "has no expiry",
  })),
  { name: "iat as text", text: withClaims({ iat: String(NOW_S) }), rule: "has an iat that is no number" },
  { name: "a null iat", text: withClaims({ iat: null }), rule: "has an iat that is no number" },
  { name: "nbf as text", text: withClaims({ nbf: "0" }), rule: "has an nbf that is no number" },
];

for (const { name, text, rule } of invalidTokens) {
  test(`rejects ${name}`, () => assert.throws(() => parseUpstreamToken(text), isInvalidToken(rule)));
}

test("rejects other JOSE serializations and unsigned tokens of other libraries", async () => {
  const { publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const text = Buffer.from(JSON.stringify(goodClaims()));
  const encrypted = await new CompactEncrypt(text)
    .setProtectedHeader({ alg: "RSA-OAEP", enc: "A128GCM" })
    .encrypt(publicKey);
  const flattened = await new FlattenedSign(text).setProtectedHeader({ alg: "ES256" }).sign(key.privateKey);
  const unencoded = await new CompactSign(text)
    .setProtectedHeader({ alg: "ES256", b64: true, crit: ["b64"] })
    .sign(key.privateKey);
  for (const [token, rule] of [
    [encrypted, "is not of three parts"],
    [JSON.stringify(flattened), "is not of three parts"],
    [unencoded, "has a header parameter that is not accepted"],
  ] as const)
    assert.throws(() => parseUpstreamToken(token), isInvalidToken(rule));
});

test("rejects 16 KiB of anything in less than 5 ms", () => {
  for (const text of [".".repeat(16_384), "a".repeat(16_384), `${header}.${"A".repeat(15_000)}.AA`]) {
    const ms = measureLeastProcessorMs(() => assert.throws(() => parseUpstreamToken(text)), 100);
    assert.ok(ms < 5, `${ms} ms`);
  }
});

// The last character of 64 bytes in base64url has four bits that say nothing.
function strayBits(token: string): string {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  return token.slice(0, -1) + alphabet[alphabet.indexOf(token.slice(-1)) + 1];
}
