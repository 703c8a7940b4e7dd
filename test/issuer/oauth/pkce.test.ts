import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { matchesChallenge, requireChallenge } from "../../../src/issuer/oauth/pkce.js";

// RFC 7636, appendix B.
const VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

const challengeOf = (verifier: string) => createHash("sha256").update(verifier).digest("base64url");

test("the example of the RFC is accepted", () => {
  assert.equal(requireChallenge(CHALLENGE, "S256"), CHALLENGE);
  assert.equal(matchesChallenge(VERIFIER, CHALLENGE), true);
});

const challenges: readonly (readonly [string, string | undefined, string | undefined])[] = [
  ["no challenge", undefined, "S256"],
  ["42 characters", CHALLENGE.slice(1), "S256"],
  ["44 characters", `${CHALLENGE}A`, "S256"],
  ["padding", `${CHALLENGE}=`, "S256"],
  ["base64 of the other alphabet", `${CHALLENGE.slice(0, 42)}+`, "S256"],
  ["stray bits in the last character", `${CHALLENGE.slice(0, 42)}N`, "S256"],
  ["no method", CHALLENGE, undefined],
  ["the method plain", CHALLENGE, "plain"],
  ["the method in another case", CHALLENGE, "s256"],
];

for (const [name, challenge, method] of challenges) {
  test(`a request with ${name} is rejected`, () => {
    assert.throws(() => requireChallenge(challenge, method), /Invalid argument: code_challenge/);
  });
}

const verifiers: readonly (readonly [string, string, boolean])[] = [
  ["42 characters", "v".repeat(42), false],
  ["43 characters", "v".repeat(43), true],
  ["128 characters", "v".repeat(128), true],
  ["129 characters", "v".repeat(129), false],
  ["every character there may be", `${"a".repeat(40)}-._~`, true],
  ["a character there may not be", `${"a".repeat(43)}+`, false],
  ["nothing", "", false],
];

for (const [name, verifier, isRight] of verifiers) {
  test(`a verifier of ${name} ${isRight ? "proves" : "does not prove"} its challenge`, () => {
    assert.equal(matchesChallenge(verifier, challengeOf(verifier)), isRight);
  });
}

test("another verifier and a malformed challenge do not match", () => {
  assert.equal(matchesChallenge("v".repeat(43), CHALLENGE), false);
  assert.equal(matchesChallenge("v".repeat(43), ""), false);
});
