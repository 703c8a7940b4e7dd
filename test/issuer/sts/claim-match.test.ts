import assert from "node:assert/strict";
import { test } from "node:test";
import { Code } from "@connectrpc/connect";
import fc from "fast-check";
import { notAssumable } from "../../../src/issuer/sts/audience.js";
import { matchesIssuer, requireClaimMatch } from "../../../src/issuer/sts/claim-match.js";
import type { VerifiedToken } from "../../../src/issuer/upstream/token.js";
import {
  assertNotAssumable,
  assertUnauthenticated,
  buildVerifiedToken,
  catchError,
  claimMatch,
  issuer,
  ownUrls,
  subject,
  uid,
} from "./tokens.js";

const subjectOf = (value: string) => claimMatch({ sub: { case: "subject", value } });
const subjectPattern = (value: string) => claimMatch({ sub: { case: "subjectPattern", value } });

test("a token that is what the identity states is accepted", () => {
  requireClaimMatch(claimMatch(), buildVerifiedToken(), ownUrls, uid);
});

// Every literal is compared byte for byte, whatever it looks like.
const strangers: readonly (readonly [what: string, configured: string, given: string])[] = [
  ["another case", "repo:acme/app", "repo:Acme/app"],
  ["a prefix", "repo:acme/app", "repo:acme/ap"],
  ["a suffix", "repo:acme/app", "repo:acme/app2"],
  ["a leading blank", "repo:acme/app", " repo:acme/app"],
  ["a trailing blank", "repo:acme/app", "repo:acme/app "],
  ["a trailing line break", "repo:acme/app", "repo:acme/app\n"],
  ["the decomposed form", "repo:caf\u00e9", "repo:cafe\u0301"],
  ["full-width letters", "repo:acme", "repo:\uff41cme"],
  ["a zero-width joiner", "repo:acme", "repo:ac\u200dme"],
  ["a right-to-left mark", "repo:acme", "repo:acme\u200f"],
  ["a Cyrillic look-alike", "repo:acme", "repo:\u0430cme"],
  ["a star", "repo:acme/*", "repo:acme/app"],
  ["a dot and a star", "repo:acme/.*", "repo:acme/app"],
  ["a percent sign", "repo:acme/%", "repo:acme/app"],
  ["an underscore", "repo:acme/_pp", "repo:acme/app"],
  ["anchors", "^repo:acme$", "repo:acme"],
];

for (const [what, configured, given] of strangers) {
  test(`a subject that differs by ${what} does not match`, () => {
    assertNotAssumable(() =>
      requireClaimMatch(subjectOf(configured), buildVerifiedToken({ subject: given }), ownUrls, uid),
    );
    requireClaimMatch(subjectOf(configured), buildVerifiedToken({ subject: configured }), ownUrls, uid);
  });
}

test("the text is that of an identity which does not exist", () => {
  const unknown = notAssumable(uid, undefined);
  const found = catchError(() => requireClaimMatch(subjectOf("another"), buildVerifiedToken(), ownUrls, uid));
  assert.deepEqual([found?.code, found?.message, found?.cause], [unknown.code, unknown.message, undefined]);
});

test("a literal match accepts a token if and only if the texts are equal", () => {
  // Not `unit: "binary"`, which first computes with all code points for seconds.
  const unit = fc
    .integer({ min: 0, max: 0x10ffff })
    .filter((code) => code < 0xd800 || code > 0xdfff)
    .map((code) => String.fromCodePoint(code));
  const texts = fc.string({ minLength: 1, unit });
  const pairs = fc.oneof(
    fc.tuple(texts, texts),
    texts.map((text): [string, string] => [text, text]),
    texts.map((text): [string, string] => [text, text.normalize("NFD")]),
    texts.map((text): [string, string] => [text, text.toUpperCase()]),
  );
  fc.assert(
    fc.property(pairs, ([stated, given]) => {
      const found = catchError(() =>
        requireClaimMatch(subjectOf(stated), buildVerifiedToken({ subject: given }), ownUrls, uid),
      );
      assert.equal(found === undefined, stated === given);
      assert.equal(matchesIssuer(claimMatch({ iss: { case: "issuer", value: stated } }), given), stated === given);
    }),
    { numRuns: 500 },
  );
});

const issuers: readonly (readonly [given: string, literal: boolean, pattern: boolean])[] = [
  ["https://ci.example.com/org/7", true, true],
  ["https://ci.example.com/org/7/", false, false],
  ["https://ci.example.com/org/77", false, true],
  ["https://ci.example.com/org/", false, false],
  ["https://ci.example.com:8443/org/7", false, false],
  ["http://ci.example.com/org/7", false, false],
  ["https://CI.example.com/org/7", false, false],
  ["https://evil.example/?https://ci.example.com/org/7", false, false],
  ["https://ci.example.com/org/7\n", false, false],
  ["https://ci-example.com/org/7", false, false],
];
const literal = { case: "issuer", value: "https://ci.example.com/org/7" } as const;
const pattern = { case: "issuerPattern", value: "https://ci\\.example\\.com/org/[0-9]+" } as const;

for (const [given, byLiteral, byPattern] of issuers) {
  test(`of the issuer ${JSON.stringify(given)} the keys are looked up only if the match names it`, () => {
    assert.equal(matchesIssuer(claimMatch({ iss: literal }), given), byLiteral);
    assert.equal(matchesIssuer(claimMatch({ iss: pattern }), given), byPattern);
    for (const [iss, admitted] of [[literal, byLiteral] as const, [pattern, byPattern] as const]) {
      const decide = () => requireClaimMatch(claimMatch({ iss }), buildVerifiedToken({ issuer: given }), ownUrls, uid);
      if (admitted) decide();
      else assertNotAssumable(decide);
    }
  });
}

test("a match without issuer or subject matches nothing", () => {
  assert.equal(matchesIssuer(claimMatch({ iss: { case: undefined } }), issuer), false);
  assertNotAssumable(() =>
    requireClaimMatch(claimMatch({ iss: { case: undefined } }), buildVerifiedToken(), ownUrls, uid),
  );
  assertNotAssumable(() =>
    requireClaimMatch(claimMatch({ sub: { case: undefined } }), buildVerifiedToken(), ownUrls, uid),
  );
});

test("two identities may have the same issuer and subject: each is judged by what it states itself", () => {
  const token = buildVerifiedToken({ claims: { environment: "production" } });
  requireClaimMatch(claimMatch(), token, ownUrls, uid);
  const staging = claimMatch({ claims: { environment: "staging" } });
  assert.equal(catchError(() => requireClaimMatch(staging, token, ownUrls, uid))?.code, Code.PermissionDenied);
});

test("a match is judged as it is now, not as it was with the token before", () => {
  const token = buildVerifiedToken();
  requireClaimMatch(subjectPattern("repo:acme/.*"), token, ownUrls, uid);
  assertNotAssumable(() => requireClaimMatch(subjectPattern("repo:acme/.*:ref:refs/tags/.*"), token, ownUrls, uid));
});

type Stated = "unstated" | "literal" | "pattern";
const audiences: readonly (readonly [given: readonly string[], stated: Stated, outcome: "yes" | "PD" | "U"])[] = [
  [["https://issuer.arbor.example.com"], "unstated", "yes"],
  [["https://issuer.arbor.example.com/"], "unstated", "yes"],
  [["https://issuer.arbor.example.com//"], "unstated", "U"],
  [["issuer.arbor.example.com"], "unstated", "yes"],
  [["https://arbor.example.com"], "unstated", "yes"],
  [["arbor.example.com/"], "unstated", "yes"],
  [["sts.amazonaws.com", "arbor.example.com"], "unstated", "yes"],
  [["http://arbor.example.com"], "unstated", "U"],
  [["https://ARBOR.example.com"], "unstated", "U"],
  [["https://arbor.example.com.evil.example"], "unstated", "U"],
  [["example.com"], "unstated", "U"],
  [["sts.amazonaws.com"], "unstated", "U"],
  [[], "unstated", "U"],
  [["https://github.example/acme"], "literal", "yes"],
  [["other", "https://github.example/acme"], "literal", "yes"],
  [["https://github.example/acme/"], "literal", "PD"],
  [["https://issuer.arbor.example.com"], "literal", "PD"],
  [[], "literal", "PD"],
  [["https://github.example/acme"], "pattern", "yes"],
  [["other", "https://github.example/acme-2"], "pattern", "yes"],
  [["https://github.example/other"], "pattern", "PD"],
  [["x https://github.example/acme"], "pattern", "PD"],
];
const statedAudience = {
  unstated: { case: undefined },
  literal: { case: "audience", value: "https://github.example/acme" },
  pattern: { case: "audiencePattern", value: "https://github\\.example/acme|https://github\\.example/acme-.*" },
} as const;

for (const [given, stated, outcome] of audiences) {
  test(`audiences ${JSON.stringify(given)} with an audience ${stated}: ${outcome}`, () => {
    const match = claimMatch({ aud: statedAudience[stated] });
    const decide = () => requireClaimMatch(match, buildVerifiedToken({ audiences: given }), ownUrls, uid);
    if (outcome === "yes") decide();
    else if (outcome === "PD") assertNotAssumable(decide);
    else assertUnauthenticated(decide);
  });
}

test("a mismatch of the subject is reported before one of the audience", () => {
  assertNotAssumable(() =>
    requireClaimMatch(subjectOf("other"), buildVerifiedToken({ audiences: ["elsewhere"] }), ownUrls, uid),
  );
});

const ownProperty = JSON.parse('{"__proto__":"main","constructor":"main"}') as VerifiedToken["claims"];
const custom: readonly (readonly [
  what: string,
  stated: { claims?: Record<string, string>; claimPatterns?: Record<string, string> },
  given: VerifiedToken["claims"],
  invalid?: string,
])[] = [
  ["equal text", { claims: { ref: "main" } }, { ref: "main" }],
  ["other text", { claims: { ref: "main" } }, { ref: "Main" }, "ref"],
  ["no such claim", { claims: { ref: "main" } }, {}, "ref"],
  ["true", { claims: { private: "true" } }, { private: true }],
  ["false", { claims: { private: "false" } }, { private: false }],
  ["false for true", { claims: { private: "true" } }, { private: false }, "private"],
  ["the word for the boolean", { claims: { private: "true" } }, { private: "true" }],
  ["a number", { claims: { run: "7" } }, { run: 7 }, "run"],
  ["null", { claims: { ref: "null" } }, { ref: null }, "ref"],
  ["a list", { claims: { groups: "admins" } }, { groups: ["admins"] }, "groups"],
  ["an object", { claims: { ref: "[object Object]" } }, { ref: {} }, "ref"],
  ["a matching pattern", { claimPatterns: { ref: "refs/heads/(main|dev)" } }, { ref: "refs/heads/dev" }],
  ["a pattern on a boolean", { claimPatterns: { private: "t.*" } }, { private: true }],
  ["a pattern on a part", { claimPatterns: { ref: "main|dev" } }, { ref: "xdev" }, "ref"],
  ["a pattern on nothing", { claimPatterns: { ref: ".*" } }, {}, "ref"],
  ["a pattern on a number", { claimPatterns: { run: ".*" } }, { run: 7 }, "run"],
  ["two, the second invalid", { claims: { a: "1", b: "2" } }, { a: "1", b: "3" }, "b"],
  ["text before pattern", { claims: { z: "1" }, claimPatterns: { a: "1" } }, {}, "z"],
  ["what every object has", { claims: { constructor: "x" } }, {}, "constructor"],
  ["a pattern on what every object has", { claimPatterns: { toString: ".*" } }, {}, "toString"],
  ["text that the token itself does not hold", { claims: { ref: "main" } }, Object.create({ ref: "main" }), "ref"],
  ["a claim by that name", { claims: { constructor: "main" } }, ownProperty],
];

for (const [what, stated, given, invalid] of custom) {
  test(`custom claims: ${what}`, () => {
    const found = catchError(() =>
      requireClaimMatch(claimMatch(stated), buildVerifiedToken({ claims: given }), ownUrls, uid),
    );
    const expected =
      invalid === undefined
        ? undefined
        : { code: Code.PermissionDenied, message: `Permission denied: invalid "${invalid}" (or it might not exist)` };
    assert.deepEqual(found && { code: found.code, message: found.message }, expected);
  });
}

test("custom claims are not named to a bearer that does not match otherwise", () => {
  const match = claimMatch({ claims: { ref: "main" } });
  assertNotAssumable(() => requireClaimMatch(match, buildVerifiedToken({ subject: `${subject}x` }), ownUrls, uid));
});
