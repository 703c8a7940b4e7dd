// How tokens of other issuers are taken apart; those that are rejected are in test/issuer/strangers.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import { CompactEncrypt, CompactSign, FlattenedSign } from "jose";
import { parseUpstreamToken } from "../../../src/issuer/upstream/token.js";
import { measureLeastProcessorMs } from "../../support/stopwatch.js";
import { goodClaims, NOW_S, signToken, testKey } from "./foreign-issuer.js";
import { isInvalidToken } from "./invalid-token.js";

const key = testKey("ES256", "k1");
const [header = ""] = signToken(key).split(".");
const withClaims = (change: Record<string, unknown>) => signToken(key, { ...goodClaims(), ...change });
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
  "a subject of 1024 characters": withClaims({ sub: "s".repeat(1024) }),
  "the longest token": padClaims(tooMuch - 1),
};

for (const [name, text] of Object.entries(accepted)) {
  test(`accepts ${name}`, () => assert.doesNotThrow(() => parseUpstreamToken(text)));
}

for (const [name, text] of Object.entries({ claims: padClaims(tooMuch), dots: ".".repeat(1_000_000) })) {
  test(`rejects a token of too many ${name}`, () => {
    assert.throws(() => parseUpstreamToken(text), isInvalidToken("is too long"));
  });
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
