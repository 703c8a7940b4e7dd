// Which keys of a JWK Set are used at all.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { parseJwks, type UsableKeys, verifyWithKeys } from "../../../src/issuer/upstream/jwks.js";
import { parseUpstreamToken } from "../../../src/issuer/upstream/token.js";
import { measureLeastProcessorMs } from "../../support/stopwatch.js";
import { goodClaims, MAX_LIFE_S, NOW_S, part, signToken, testKey } from "./foreign-issuer.js";
import { isInvalidToken } from "./invalid-token.js";

const ec = testKey("ES256", "ec");
const other = testKey("ES256", "other");
const rsa = testKey("RS256", "rsa");
const ed = testKey("EdDSA", "ed");
const { x = "", y = "" } = ec.publicJwk;
const { n = "" } = rsa.publicJwk;
const base64url = (bytes: Buffer) => bytes.toString("base64url");
const privateOf = ({ privateKey, publicJwk }: typeof ec) => ({
  ...privateKey.export({ format: "jwk" }),
  kid: publicJwk.kid,
});
const offCurve = () => {
  const bytes = Buffer.from(x, "base64url");
  bytes[31] = (bytes[31] ?? 0) ^ 1;
  return base64url(bytes);
};

const usable: Readonly<Record<string, unknown>> = {
  "an EC key": ec.publicJwk,
  "an RSA key": rsa.publicJwk,
  "an RSA key with the exponent 3": { ...rsa.publicJwk, e: "Aw" },
  "an Ed25519 key": ed.publicJwk,
  "a key without use, alg or kid": { kty: "EC", crv: "P-256", x, y },
  "a key with operations": { ...ec.publicJwk, key_ops: ["verify"] },
  "a key with members nobody knows": { ...ec.publicJwk, x5t: "abc", issuer: "x" },
};

for (const [name, jwk] of Object.entries(usable)) {
  test(`uses ${name}`, () => assert.equal(parseJwks({ keys: [jwk] }).any, true));
}

const skipped: Readonly<Record<string, unknown>> = {
  "an RSA key of 512 bits": testKey("RS256", "k", 512).publicJwk,
  "an RSA key of 1024 bits": testKey("RS256", "k", 1024).publicJwk,
  "an RSA key of 2047 bits": {
    ...rsa.publicJwk,
    n: base64url(Buffer.concat([Buffer.from([0x7f]), Buffer.alloc(255, 0xff)])),
  },
  "an RSA key of 8193 bits": {
    ...rsa.publicJwk,
    n: base64url(Buffer.concat([Buffer.from([1]), Buffer.alloc(1024, 0xff)])),
  },
  "an RSA key of 16384 bits": { ...rsa.publicJwk, n: base64url(Buffer.alloc(2048, 0xff)) },
  "an RSA key whose size is of leading zeros": {
    ...rsa.publicJwk,
    n: base64url(Buffer.concat([Buffer.alloc(192), Buffer.alloc(64, 0xff)])),
  },
  "an RSA key with the exponent 0": { ...rsa.publicJwk, e: "AA" },
  "an RSA key with the exponent 1": { ...rsa.publicJwk, e: "AQ" },
  "an RSA key with an even exponent": { ...rsa.publicJwk, e: base64url(Buffer.from([1, 0, 0])) },
  "an RSA key with an exponent of 33 bits": { ...rsa.publicJwk, e: base64url(Buffer.from([1, 0, 0, 0, 1])) },
  "an RSA key with an exponent of 2048 bits": { ...rsa.publicJwk, e: n },
  "an RSA key without a modulus": { ...rsa.publicJwk, n: undefined },
  "an RSA key with a number for a modulus": { ...rsa.publicJwk, n: 12345 },
  "a point that is not on its curve": { ...ec.publicJwk, x: offCurve() },
  "the point 0, 0": { ...ec.publicJwk, x: base64url(Buffer.alloc(32)), y: base64url(Buffer.alloc(32)) },
  "a short coordinate": { ...ec.publicJwk, x: "AA" },
  "a long coordinate": { ...ec.publicJwk, x: base64url(Buffer.alloc(33, 1)) },
  "no coordinate": { ...ec.publicJwk, y: undefined },
  "a point of another curve": { ...ec.publicJwk, crv: "P-384", alg: "ES384" },
  "the curve secp256k1": { ...ec.publicJwk, crv: "secp256k1", alg: "ES256K" },
  "the curve X25519": { ...ed.publicJwk, crv: "X25519", alg: undefined },
  "a short Ed25519 key": { ...ed.publicJwk, x: base64url(Buffer.alloc(31, 1)) },
  "a symmetric key": { kty: "oct", k: base64url(Buffer.alloc(32, 1)), kid: "k" },
  "a symmetric key for HS256": { kty: "oct", k: base64url(Buffer.alloc(32, 1)), kid: "k", alg: "HS256" },
  "a private EC key": privateOf(ec),
  "a private RSA key": privateOf(rsa),
  "a private Ed25519 key": privateOf(ed),
  "an EC key with a secret beside": { ...ec.publicJwk, k: "AAAA" },
  "an encryption key": { ...rsa.publicJwk, use: "enc" },
  "a use in another case": { ...ec.publicJwk, use: "SIG" },
  "a key for encryption": { ...rsa.publicJwk, key_ops: ["encrypt"] },
  "operations that are no list": { ...ec.publicJwk, key_ops: "verify" },
  "an algorithm of another type of key": { ...ec.publicJwk, alg: "RS256" },
  "an algorithm of another curve": { ...ec.publicJwk, alg: "ES384" },
  "an algorithm for encryption": { ...rsa.publicJwk, alg: "RSA-OAEP" },
  "an algorithm that is none": { ...rsa.publicJwk, alg: "none" },
  "a MAC over an RSA key": { ...rsa.publicJwk, alg: "HS256" },
  "an algorithm that is no string": { ...ec.publicJwk, alg: ["ES256"] },
  "a type that is no string": { ...ec.publicJwk, kty: ["EC"] },
  "a list": [],
  "a text": "key",
  null: null,
};

for (const [name, jwk] of Object.entries(skipped)) {
  test(`skips ${name}, and uses the key after it`, () => {
    const keys = parseJwks({ keys: [jwk, other.publicJwk] });
    assert.equal(parseJwks({ keys: [jwk] }).any, false);
    assert.equal(verifies(keys, other), true);
    // Also if the token names none.
    assert.equal(verifiesText(keys, signToken(other, goodClaims(), { alg: "ES256" })), true);
  });
}

for (const jwks of [undefined, null, [], "keys", {}, { keys: {} }, { keys: "x" }, { keys: null }]) {
  test(`${JSON.stringify(jwks)} has no usable keys`, () => assert.equal(parseJwks(jwks).any, false));
}

test("of 10,000 entries the first 256 are read, whatever they are", () => {
  const keys = parseJwks({ keys: Array.from({ length: 10_000 }, (_, i) => ({ ...ec.publicJwk, kid: `k${i}` })) });
  const afterLimit = parseJwks({ keys: [...Array.from({ length: 256 }, () => ({ kty: "oct" })), ec.publicJwk] });
  assert.equal(afterLimit.any, false);
  for (const i of [0, 31, 32, 33, 255]) assert.equal(verifies(keys, { ...ec, kid: `k${i}` }), true);
  assert.throws(() => verifies(keys, { ...ec, kid: "k256" }));
});

/** A key whose kid is `same`, or none. */
const withKid = (key: typeof ec, kid: string | undefined) => ({ ...key.publicJwk, kid });
const BAD_SIGNATURE = isInvalidToken("has a signature that does not verify");

for (const kid of ["same", undefined]) {
  const name = kid === undefined ? "keys without a kid" : "keys that share a kid";
  /** A token that names the kid, if there is one. */
  const tokenBy = (key: typeof ec) => signToken(key, goodClaims(), { alg: key.alg, kid });
  const check = (keys: UsableKeys, key: typeof ec) => verifiesText(keys, tokenBy(key));

  test(`${name} are tried one after the other, each with tokens of its own type`, () => {
    const listed = [rsa, ec, other, ed, testKey("ES384", "p384"), testKey("PS256", "pss")];
    const keys = parseJwks({ keys: listed.map((key) => withKid(key, kid)) });
    for (const key of listed) assert.equal(check(keys, key), true, key.alg);
    assert.throws(() => check(keys, testKey("ES256", "stranger")), BAD_SIGNATURE);
    const none = isInvalidToken("is signed with an algorithm that is not that of the key");
    assert.throws(() => check(keys, testKey("ES512", "stranger")), none);
  });

  test(`of ${name} eight are tried, whose type, algorithm and length fit`, () => {
    const unfit = [
      ...Array.from({ length: 40 }, () => withKid(rsa, kid)),
      ...Array.from({ length: 40 }, () => withKid(ed, kid)),
      ...Array.from({ length: 40 }, () => ({ ...withKid(testKey("ES384", "x"), kid) })),
    ];
    const wrong = Array.from({ length: 8 }, (_, i) => withKid(testKey("ES256", `k${i}`), kid));
    assert.equal(check(parseJwks({ keys: [...unfit, ...wrong.slice(1), withKid(ec, kid)] }), ec), true);
    assert.throws(() => check(parseJwks({ keys: [...unfit, ...wrong, withKid(ec, kid)] }), ec), BAD_SIGNATURE);
    const large = [3072, 4096].map((bits) => withKid(testKey("RS256", "x", bits), kid));
    const otherAlg = Array.from({ length: 8 }, () => ({ ...withKid(testKey("RS256", "x"), kid), alg: "RS512" }));
    const fits = parseJwks({ keys: [...large, ...otherAlg, withKid(rsa, kid)] });
    assert.equal(check(fits, rsa), true);
  });

  test(`an unusable key among ${name} is passed over`, () => {
    const broken = { ...withKid(ec, kid), x: offCurve() };
    assert.equal(check(parseJwks({ keys: [broken, withKid(other, kid)] }), other), true);
    const unknown = isInvalidToken("names no key of its issuer that can be used");
    assert.throws(() => check(parseJwks({ keys: [broken, broken] }), other), unknown);
  });
}

test("what a full list of the slowest keys costs is bounded, however often it is used", () => {
  const slow = testKey("ES512", "slow").publicJwk;
  const listed = { keys: Array.from({ length: 1_000 }, (_, i) => ({ ...slow, kid: i % 2 === 0 ? "same" : `k${i}` })) };
  const read = measureLeastProcessorMs(() => parseJwks(listed));
  assert.ok(read < 2, `reading a list takes ${read} ms`);
  const stranger = testKey("ES512", "stranger");
  const forged = (kid: string | undefined) =>
    parseUpstreamToken(signToken(stranger, goodClaims(), { alg: "ES512", kid }));
  const rejectForged = (kid: string | undefined) => {
    const token = forged(kid);
    return measureLeastProcessorMs(() =>
      assert.throws(() => verifyWithKeys(token, parseJwks(listed), NOW_S * 1000, MAX_LIFE_S), BAD_SIGNATURE),
    );
  };
  const one = rejectForged("k1");
  // The control: as many as would be tried if all were.
  for (const kid of ["same", undefined]) {
    const several = rejectForged(kid);
    assert.ok(several < (128 * one) / 4, `${several} ms, of which one key takes ${one} ms`);
  }
});

test("a forged token that names no key costs a few milliseconds at most, whatever the keys", () => {
  const sets: Readonly<Record<string, readonly [alg: string, bits: number]>> = {
    "RSA of 2048 bits": ["RS256", 2048],
    "RSA of 4096 bits": ["PS512", 4096],
    "RSA of 8192 bits": ["RS512", 8192],
    "P-256": ["ES256", 0],
    "P-384": ["ES384", 0],
    "P-521": ["ES512", 0],
    Ed25519: ["EdDSA", 0],
  };
  for (const [name, [alg, bits]] of Object.entries(sets)) {
    const length = bits / 8;
    // Keys of 8192 bits take seconds to generate: a random modulus takes as long to verify with.
    const modulus = () => Buffer.concat([Buffer.from([0xff]), randomBytes(length - 2), Buffer.from([0xff])]);
    const jwk = () =>
      bits === 0 ? testKey(alg, "x").publicJwk : { kty: "RSA", e: "_____w", n: base64url(modulus()), alg };
    const keys = parseJwks({ keys: Array.from({ length: 30 }, () => ({ ...jwk(), kid: undefined })) });
    const signature = bits === 0 ? Buffer.alloc(0) : Buffer.concat([Buffer.alloc(1), randomBytes(length - 1)]);
    const token = parseUpstreamToken(
      bits === 0
        ? signToken(testKey(alg, "stranger"), goodClaims(), { alg })
        : `${part({ alg })}.${part(goodClaims())}.${base64url(signature)}`,
    );
    const verifyForged = () =>
      assert.throws(() => verifyWithKeys(token, keys, NOW_S * 1000, MAX_LIFE_S), BAD_SIGNATURE);
    const ms = measureLeastProcessorMs(verifyForged);
    // Two milliseconds on an idle machine, and room for one that is not.
    assert.ok(ms < 5, `${name}: ${ms} ms`);
  }
});

test("a modulus that is even verifies nothing and breaks nothing", () => {
  const even = { ...rsa.publicJwk, n: base64url(Buffer.concat([Buffer.alloc(255, 0xff), Buffer.from([0xfe])])) };
  const keys = parseJwks({ keys: [even] });
  assert.throws(() => verifies(keys, rsa), isInvalidToken("has a signature that does not verify"));
});

function verifies(keys: UsableKeys, key: typeof ec): boolean {
  return verifiesText(keys, signToken(key));
}

function verifiesText(keys: UsableKeys, text: string): boolean {
  return verifyWithKeys(parseUpstreamToken(text), keys, NOW_S * 1000, MAX_LIFE_S).subject === "repo:octo/app";
}
