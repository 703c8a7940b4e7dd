// Which keys of a JWK Set are used at all.
import assert from "node:assert/strict";
import { createPublicKey } from "node:crypto";
import { test } from "node:test";
import { parseJwks, type UsableKeys, verifyWithKeys } from "../../../src/issuer/upstream/jwks.js";
import { parseUpstreamToken } from "../../../src/issuer/upstream/token.js";
import { NOW_S, signToken, testKey } from "./foreign-issuer.js";
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
    // The one that a token means that names none.
    assert.equal(keys.find(undefined)?.type, "P-256");
  });
}

for (const jwks of [undefined, null, [], "keys", {}, { keys: {} }, { keys: "x" }, { keys: null }]) {
  test(`${JSON.stringify(jwks)} has no usable keys`, () => assert.equal(parseJwks(jwks).any, false));
}

test("of 10,000 entries the first 32 are read, whatever they are", () => {
  const keys = parseJwks({ keys: Array.from({ length: 10_000 }, (_, i) => ({ ...ec.publicJwk, kid: `k${i}` })) });
  const afterLimit = parseJwks({ keys: [...Array.from({ length: 32 }, () => ({ kty: "oct" })), ec.publicJwk] });
  assert.equal(afterLimit.any, false);
  assert.equal(verifies(keys, { ...ec, kid: "k31" }), true);
  assert.throws(() => verifies(keys, { ...ec, kid: "k32" }));
});

test("a key id of several keys identifies none of them", () => {
  const ambiguous = "names no key of its issuer, or none that is the only one of its name";
  for (const count of [2, 3]) {
    const same = [ec, other, testKey("ES256", "third")]
      .slice(0, count)
      .map((key) => ({ ...key.publicJwk, kid: "same" }));
    const keys = parseJwks({ keys: [...same, rsa.publicJwk] });
    for (const key of [ec, other])
      assert.throws(() => verifies(keys, { ...key, kid: "same" }), isInvalidToken(ambiguous));
    assert.equal(verifies(keys, rsa), true);
  }
});

test("what a full list of the slowest keys costs is bounded, however often it is used", () => {
  const slow = testKey("ES512", "slow").publicJwk;
  const listed = { keys: Array.from({ length: 1_000 }, (_, i) => ({ ...slow, kid: i % 2 === 0 ? "same" : `k${i}` })) };
  const cpuMsOf = (work: () => unknown) => {
    const start = process.cpuUsage();
    for (let i = 0; i < 10; i++) work();
    const { user, system } = process.cpuUsage(start);
    return (user + system) / 10_000;
  };
  const read = cpuMsOf(() => parseJwks(listed));
  assert.ok(read < 2, `reading a list takes ${read} ms`);
  const ambiguous = cpuMsOf(() => assert.equal(parseJwks(listed).find("same"), undefined));
  const none = cpuMsOf(() => assert.equal(parseJwks(listed).find(undefined), undefined));
  const imported = cpuMsOf(() => createPublicKey({ key: slow, format: "jwk" }));
  // The control: as many keys as were imported when all were.
  const all = 32 * imported;
  assert.ok(ambiguous < all / 4 && none < all / 4, `${ambiguous} and ${none} ms, all of them ${all} ms`);
});

test("a modulus that is even verifies nothing and breaks nothing", () => {
  const even = { ...rsa.publicJwk, n: base64url(Buffer.concat([Buffer.alloc(255, 0xff), Buffer.from([0xfe])])) };
  const keys = parseJwks({ keys: [even] });
  assert.throws(() => verifies(keys, rsa), isInvalidToken("has a signature that does not verify"));
});

function verifies(keys: UsableKeys, key: typeof ec): boolean {
  return verifyWithKeys(parseUpstreamToken(signToken(key)), keys, NOW_S * 1000).subject === "repo:octo/app";
}
