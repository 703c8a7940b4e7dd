import assert from "node:assert/strict";
import { test } from "node:test";
import { Code } from "@connectrpc/connect";
import fc from "fast-check";
import type { Identity_ClaimMatch } from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { notAssumable } from "../../../src/issuer/sts/audience.js";
import { matchesIssuer, requireClaimMatch } from "../../../src/issuer/sts/claim-match.js";
import type { VerifiedToken } from "../../../src/issuer/upstream/token.js";
import { audienceEdits, issuerEdits, type StrangeClaim, strangeClaims, unequalTexts } from "../strangers/texts.js";
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

for (const { differs, stated, given } of unequalTexts) {
  test(`literals match no text that differs by ${differs}`, () => {
    const matches: readonly (readonly [match: Identity_ClaimMatch, of: (text: string) => Partial<VerifiedToken>])[] = [
      [subjectOf(stated), (subject) => ({ subject })],
      [claimMatch({ aud: { case: "audience", value: stated } }), (text) => ({ audiences: ["x", text] })],
      [claimMatch({ iss: { case: "issuer", value: stated } }), (issuer) => ({ issuer })],
    ];
    for (const [match, of] of matches) {
      assertNotAssumable(() => requireClaimMatch(match, buildVerifiedToken(of(given)), ownUrls, uid));
      requireClaimMatch(match, buildVerifiedToken(of(stated)), ownUrls, uid);
    }
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

const literal = { case: "issuer", value: "https://ci.example.com/org/7" } as const;
const pattern = { case: "issuerPattern", value: "https://ci\\.example\\.com/org/[0-9]+" } as const;
const issuers: readonly (readonly [given: string, byLiteral: boolean, byPattern: boolean])[] = [
  [literal.value, true, true],
  [`${literal.value}7`, false, true],
  ...Object.values(issuerEdits).map((edit) => [edit(literal.value), false, false] as const),
];

for (const [given, byLiteral, byPattern] of issuers) {
  test(`of the issuer ${JSON.stringify(given)} the keys are looked up only if the match names it`, () => {
    for (const [iss, admitted] of [[literal, byLiteral] as const, [pattern, byPattern] as const]) {
      assert.equal(matchesIssuer(claimMatch({ iss }), given), admitted);
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
  [["issuer.arbor.example.com"], "unstated", "yes"],
  [["https://arbor.example.com"], "unstated", "yes"],
  [["arbor.example.com/"], "unstated", "yes"],
  [["sts.amazonaws.com", "arbor.example.com"], "unstated", "yes"],
  ...ownUrls.flatMap((own) => Object.values(audienceEdits).map((edit) => [[edit(own)], "unstated", "U"] as const)),
  [["example.com"], "unstated", "U"],
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

type StatedClaims = StrangeClaim["stated"];
const ownProperty = JSON.parse('{"__proto__":"main","constructor":"main"}') as VerifiedToken["claims"];
const matchingClaims: readonly (readonly [what: string, stated: StatedClaims, given: VerifiedToken["claims"]])[] = [
  ["equal text", { claims: { ref: "main" } }, { ref: "main" }],
  ["true", { claims: { private: "true" } }, { private: true }],
  ["false", { claims: { private: "false" } }, { private: false }],
  ["the word for the boolean", { claims: { private: "true" } }, { private: "true" }],
  ["a pattern", { claimPatterns: { ref: "refs/heads/(main|dev)" } }, { ref: "refs/heads/dev" }],
  ["a pattern on a boolean", { claimPatterns: { private: "t.*" } }, { private: true }],
  ["a claim by the name of what every object has", { claims: { constructor: "main" } }, ownProperty],
];

for (const [what, stated, given] of matchingClaims) {
  test(`custom claims match: ${what}`, () => {
    requireClaimMatch(claimMatch(stated), buildVerifiedToken({ claims: given }), ownUrls, uid);
  });
}

const inherited = {
  differs: "text that the token itself does not hold",
  stated: { claims: { ref: "main" } },
  given: Object.create({ ref: "main" }) as object,
  claim: "ref",
};

for (const { differs, stated, given, claim } of [...strangeClaims, inherited]) {
  test(`custom claims do not match: ${differs}`, () => {
    const found = catchError(() =>
      requireClaimMatch(
        claimMatch(stated),
        buildVerifiedToken({ claims: given as VerifiedToken["claims"] }),
        ownUrls,
        uid,
      ),
    );
    const message = `Permission denied: invalid "${claim}" (or it might not exist)`;
    assert.deepEqual([found?.code, found?.message], [Code.PermissionDenied, message]);
  });
}

test("custom claims are not named to a bearer that does not match otherwise", () => {
  const match = claimMatch({ claims: { ref: "main" } });
  assertNotAssumable(() => requireClaimMatch(match, buildVerifiedToken({ subject: `${subject}x` }), ownUrls, uid));
});
