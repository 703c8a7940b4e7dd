// Signatures and times of foreign tokens.
import assert from "node:assert/strict";
import { createHmac, createPublicKey, sign } from "node:crypto";
import { test } from "node:test";
import { parseJwks, verifyWithKeys } from "../../../src/issuer/upstream/jwks.js";
import { parseUpstreamToken } from "../../../src/issuer/upstream/token.js";
import { ApiError } from "../../../src/kernel/errors.js";
import { isCampaign } from "../../support/scale.js";
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
const [es256, es384] = keys as [(typeof keys)[0], (typeof keys)[0]];
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

test("a MAC keyed with the public key is rejected before any key is looked up", () => {
  const { kid, publicJwk } = keys[3] as TestKey;
  const publicKey = createPublicKey({ key: publicJwk, format: "jwk" });
  const pem = publicKey.export({ type: "spki", format: "pem" }) as string;
  for (const secret of [
    pem,
    `\n${pem}`,
    JSON.stringify(publicJwk),
    publicKey.export({ type: "spki", format: "der" }),
  ]) {
    const input = `${part({ alg: "HS256", kid })}.${part(goodClaims())}`;
    const mac = createHmac("sha256", secret).update(input).digest("base64url");
    assert.throws(() => verify(`${input}.${mac}`), isInvalidToken("is signed with an algorithm that is not accepted"));
  }
});

const input = `${part(headerOf(es256))}.${part(goodClaims())}`;
const right = signatureOf(input, "ES256", es256.privateKey);
const ORDER = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551";
const signatures: Readonly<Record<string, Buffer>> = {
  "64 zero bytes": Buffer.alloc(64),
  "r = s = the order": Buffer.from(ORDER + ORDER, "hex"),
  "r = 0": Buffer.concat([Buffer.alloc(32), right.subarray(32)]),
  "s = 0": Buffer.concat([right.subarray(0, 32), Buffer.alloc(32)]),
  DER: sign("sha256", Buffer.from(input), es256.privateKey),
  "one byte": Buffer.alloc(1),
  "63 bytes": right.subarray(0, 63),
  "65 bytes": Buffer.concat([right, Buffer.alloc(1)]),
  "a zero before each number": Buffer.concat([
    Buffer.alloc(1),
    right.subarray(0, 32),
    Buffer.alloc(1),
    right.subarray(32),
  ]),
  "128 bytes": Buffer.concat([right, right]),
  "the signature of another algorithm": signatureOf(input, "ES384", es384.privateKey),
};

for (const [name, bytes] of Object.entries(signatures)) {
  test(`an ES256 signature of ${name} is rejected`, () => {
    assert.throws(() => verify(`${input}.${bytes.toString("base64url")}`), BAD_SIGNATURE);
  });
}

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

for (const kid of [
  "",
  "other",
  "key of ES256 ",
  "../../dev/null",
  "' OR 1=1--",
  "__proto__",
  "constructor",
  "k".repeat(1_024),
]) {
  test(`the key id ${kid.slice(0, 20)} names no key`, () => {
    assert.throws(() => verify(signToken({ ...es256, kid })), NO_KEY);
  });
}

test("a kid that no listed key can have is rejected before any key is looked up", () => {
  assert.throws(
    () => verify(signToken({ ...es256, kid: "k".repeat(1_025) })),
    isInvalidToken("has a kid that is too long"),
  );
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

const DAY_S = 24 * 3600;
const EXPIRED = "has expired";
const LONG = "lives longer than allowed";
const times: readonly { name: string; claims: Record<string, unknown>; rule?: string }[] = [
  { name: "expires now", claims: { exp: NOW_S } },
  { name: "expired 60 s ago", claims: { exp: NOW_S - 60, iat: NOW_S - 600 } },
  { name: "expired 61 s ago", claims: { exp: NOW_S - 61, iat: NOW_S - 600 }, rule: EXPIRED },
  { name: "expired in 1970", claims: { exp: 0, iat: undefined }, rule: EXPIRED },
  { name: "expired before 1970", claims: { exp: -1, iat: undefined }, rule: EXPIRED },
  { name: "begins in 60 s", claims: { nbf: NOW_S + 60 } },
  { name: "begins in 61 s", claims: { nbf: NOW_S + 61 }, rule: "is not valid yet" },
  { name: "begins in ten years", claims: { nbf: NOW_S + 3650 * DAY_S }, rule: "is not valid yet" },
  { name: "was issued in 60 s", claims: { iat: NOW_S + 60 } },
  { name: "was issued in 61 s", claims: { iat: NOW_S + 61 }, rule: "was issued in the future" },
  {
    name: "expired before it was issued",
    claims: { iat: NOW_S, exp: NOW_S - 1 },
    rule: "expired before it was issued",
  },
  { name: "lives a day", claims: { iat: NOW_S - 3600, exp: NOW_S - 3600 + DAY_S } },
  // Managed identities of Azure: a day, dated back by five minutes.
  { name: "lives a day and five minutes", claims: { iat: NOW_S - 300, nbf: NOW_S - 300, exp: NOW_S + DAY_S } },
  { name: "lives as long as allowed", claims: { iat: NOW_S - 3600, exp: NOW_S - 3600 + MAX_LIFE_S } },
  { name: "lives a second longer", claims: { iat: NOW_S - 3600, exp: NOW_S - 3599 + MAX_LIFE_S }, rule: LONG },
  { name: "lived as long as allowed", claims: { iat: NOW_S - MAX_LIFE_S, exp: NOW_S } },
  {
    name: "was issued too long ago, and lives",
    claims: { iat: NOW_S - MAX_LIFE_S - 60, exp: NOW_S + 60 },
    rule: LONG,
  },
  { name: "has a life left, issued nobody knows when", claims: { iat: undefined, exp: NOW_S + MAX_LIFE_S } },
  { name: "has more than a life left", claims: { iat: undefined, exp: NOW_S + MAX_LIFE_S + 1 }, rule: LONG },
  { name: "lives for ever", claims: { exp: 1e308 }, rule: LONG },
  { name: "was issued at the beginning of time", claims: { iat: -1e308 }, rule: LONG },
];

for (const { name, claims, rule } of times) {
  test(`a token that ${name} is ${rule ? "rejected" : "accepted"}`, () => {
    const text = signToken(es256, { ...goodClaims(), ...claims });
    if (rule) assert.throws(() => verify(text), isInvalidToken(rule));
    else assert.equal(verify(text).issuer, "https://issuer.test");
  });
}
