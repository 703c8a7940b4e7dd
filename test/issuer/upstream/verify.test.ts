// Signatures of every algorithm, and times, of tokens of other issuers.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseJwks, verifyWithKeys } from "../../../src/issuer/upstream/jwks.js";
import { parseUpstreamToken } from "../../../src/issuer/upstream/token.js";
import { ApiError } from "../../../src/kernel/errors.js";
import { isCampaign } from "../../support/scale.js";
import { farTimes, type Times, wrongTimes } from "../strangers/times.js";
import {
  goodClaims,
  headerOf,
  MAX_LIFE_S,
  NOW_S,
  part,
  signatureOf,
  signToken,
  type TestKey,
  testKey,
} from "./foreign-issuer.js";
import { isInvalidToken } from "./invalid-token.js";

const algs = ["ES256", "ES384", "ES512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "EdDSA", "Ed25519"];
// RSA keys take a quarter of a second to generate: those of all algorithms are one key, and strangers sign with another.
const [rsa, strangerRsa] = [testKey("RS256", "rsa"), testKey("RS256", "stranger")];
const keys = algs.map((alg) => keyOf(alg, `key of ${alg}`));
const [es256] = keys as [TestKey];
const jwks = parseJwks({ keys: keys.map(({ publicJwk }) => publicJwk) });
const verify = (text: string, nowMs = NOW_S * 1000) =>
  verifyWithKeys(parseUpstreamToken(text), jwks, nowMs, MAX_LIFE_S);

function keyOf(alg: string, kid: string, { privateKey, publicJwk } = rsa): TestKey {
  return isRsa(alg) ? { alg, kid, privateKey, publicJwk: { ...publicJwk, alg, kid } } : testKey(alg, kid);
}

function isRsa(alg: string): boolean {
  return /^[RP]S/.test(alg);
}

const BAD_SIGNATURE = isInvalidToken("has a signature that does not verify");
const OTHER_ALGORITHM = isInvalidToken("is signed with an algorithm that is not that of the key");
const NO_KEY = isInvalidToken("names no key of its issuer that can be used");

for (const key of keys) {
  test(`${key.alg}: verifies its own token, and no other`, () => {
    const { claims, ...verified } = verify(signToken(key));
    assert.deepEqual(verified, {
      issuer: "https://issuer.test",
      subject: "repo:octo/app",
      audiences: ["https://api.test"],
      expiresAt: NOW_S + 600,
      issuedAt: NOW_S - 10,
    });
    assert.deepEqual({ ...claims }, goodClaims());
    const stranger = keyOf(key.alg, key.kid, strangerRsa);
    assert.throws(() => verify(signToken(stranger)), BAD_SIGNATURE);
  });

  for (const alg of algs.filter((other) => other !== key.alg)) {
    test(`${key.alg}: a header with ${alg} is rejected`, () => {
      assert.throws(() => verify(signToken(key, goodClaims(), { ...headerOf(key), alg })), OTHER_ALGORITHM);
    });
  }
}

test("a key without alg verifies what its type can, and nothing else", () => {
  const { alg: _, ...publicJwk } = keyOf("RS256", "r").publicJwk;
  const found = parseJwks({ keys: [publicJwk] });
  for (const alg of ["RS256", "RS512", "PS256"]) {
    const text = signToken({ ...rsa, kid: "r", alg });
    assert.equal(verifyWithKeys(parseUpstreamToken(text), found, NOW_S * 1000, MAX_LIFE_S).subject, "repo:octo/app");
  }
  const withKid = parseUpstreamToken(signToken({ ...es256, kid: "r" }));
  assert.throws(() => verifyWithKeys(withKid, found, NOW_S * 1000, MAX_LIFE_S), OTHER_ALGORITHM);
});

test("RSA and Ed25519 signatures of other lengths are rejected", () => {
  for (const key of keys.slice(3)) {
    const [header, claims, signature = ""] = signToken(key).split(".");
    const bytes = Buffer.from(signature, "base64url");
    for (const wrong of [bytes.subarray(1), Buffer.concat([bytes, bytes]), Buffer.alloc(bytes.length), Buffer.alloc(1)])
      assert.throws(() => verify(`${header}.${claims}.${wrong.toString("base64url")}`), BAD_SIGNATURE);
  }
});

// One signature in 256 begins with a zero byte, so 5,000 tries find one but for once in 10^8 runs.
function beginningWithZero(key: (typeof keys)[0]): { readonly signedInput: string; readonly bytes: Buffer } {
  for (let i = 0; i < 5_000; i++) {
    const signedInput = `${part(headerOf(key))}.${part({ ...goodClaims(), nonce: i })}`;
    const bytes = signatureOf(signedInput, key.alg, key.privateKey);
    if (bytes[0] === 0) return { signedInput, bytes };
  }
  throw new Error("no signature began with a zero byte");
}

// With RSA that takes a quarter of a second, and apart from the padding its algorithms differ in the hash alone.
const tried = keys.filter(({ alg }) => (isCampaign ? !/^Ed|^ES512/.test(alg) : /256$|^ES384/.test(alg)));
for (const key of tried) {
  test(`${key.alg}: a signature that begins with a zero byte is rejected without it`, () => {
    const { signedInput, bytes } = beginningWithZero(key);
    const text = (signature: Buffer) => `${signedInput}.${signature.toString("base64url")}`;
    assert.equal(verify(text(bytes)).issuer, "https://issuer.test");
    const spellings = [bytes.subarray(1), Buffer.concat([Buffer.alloc(1), bytes])];
    for (const spelling of spellings) assert.throws(() => verify(text(spelling)), BAD_SIGNATURE);
  });
}

test("no token with one bit flipped is accepted", () => {
  const token = Buffer.from(signToken(es256));
  verify(token.toString("latin1"));
  for (let bit = 0; bit < token.length * 8; bit++) {
    const flipped = Buffer.from(token);
    flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    assert.throws(() => verify(flipped.toString("latin1")), ApiError, `bit ${bit}`);
  }
});

test("a token without a kid is tried with the keys that could have signed it", () => {
  for (const key of keys) {
    const text = signToken(key, goodClaims(), { alg: key.alg });
    assert.equal(verify(text).subject, "repo:octo/app", key.alg);
    const stranger = keyOf(key.alg, key.kid, strangerRsa);
    assert.throws(() => verify(signToken(stranger, goodClaims(), { alg: key.alg })), BAD_SIGNATURE);
  }
  const text = signToken(es256, goodClaims(), { alg: "ES256" });
  const one = parseJwks({ keys: [es256.publicJwk] });
  assert.equal(verifyWithKeys(parseUpstreamToken(text), one, NOW_S * 1000, MAX_LIFE_S).subject, "repo:octo/app");
  assert.throws(
    () => verifyWithKeys(parseUpstreamToken(text), parseJwks({ keys: [] }), NOW_S * 1000, MAX_LIFE_S),
    NO_KEY,
  );
});

const LIMITS = { leewayS: 60, maxLifeS: MAX_LIFE_S };
const verifyTimes = (times: Times) => verify(signToken(es256, { ...goodClaims(), ...times }));

for (const { differs, rule, make } of [...wrongTimes, ...farTimes]) {
  test(`a token that ${differs} is rejected`, () => {
    assert.throws(() => verifyTimes(make(NOW_S, 1, LIMITS)), isInvalidToken(rule));
  });
}

for (const { differs, make } of wrongTimes) {
  test(`a token at the limit is accepted: ${differs}`, () => {
    for (const beyondS of [0, -1])
      assert.equal(verifyTimes(make(NOW_S, beyondS, LIMITS)).issuer, "https://issuer.test");
  });
}

test("a token of a managed identity of Azure, which lives a day and five minutes, is accepted", () => {
  const DAY_S = 24 * 3600;
  assert.doesNotThrow(() => verifyTimes({ iat: NOW_S - 300, nbf: NOW_S - 300, exp: NOW_S + DAY_S }));
});
