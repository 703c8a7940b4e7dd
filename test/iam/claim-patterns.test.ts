// Which issuers and patterns an identity may trust: a host that is not written out
// would let anybody's keys in.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { invalid } from "../contract/expectations.js";
import { type IamWorld, startIamWorld } from "./iam-world.js";

const issuerRule = (field: string) => `${field} must be an https URL without user, query or fragment`;
const hostRule = "claimMatch.issuerPattern must begin with https:// and a literal host, its dots escaped";
const patternRule = (field: string) => `${field} must be a regular expression in RE2 syntax`;

let world: IamWorld;
before(async () => {
  world = await startIamWorld();
});
after(() => world.stop());

const create = (body: object) => world.owner.rest("POST", `/identities/${world.child}`, body);

describe("a claim match", () => {
  const issuers: readonly [issuer: string, good: boolean][] = [
    ["https://token.actions.example", true],
    ["https://token.example/with/path/", true],
    ["https://token.example:8443/x", true],
    ["http://127.0.0.1:8080", true],
    ["http://token.example", false],
    ["https://user@token.example", false],
    ["https://:secret@token.example", false],
    ["https://token.example?x", false],
    ["https://token.example/?", false],
    ["https://token.example#x", false],
    ["https://TOKEN.example", false],
    ["https://token.example:443", false],
    ["https://token.example/a/../b", false],
    ["https://tok\ten.example", false],
    [" https://token.example", false],
    ["https:\\\\token.example", false],
    ["https://tökén.example", false],
    ["https://token.example/ü", false],
    ["ftp://token.example", false],
    ["token.example", false],
    ["", false],
    [`https://token.example/${"x".repeat(255)}`, false],
  ];
  for (const [issuer, good] of issuers) {
    it(`${good ? "takes" : "refuses"} the issuer ${JSON.stringify(issuer).slice(0, 60)}`, async () => {
      const { outcome } = await create({ name: "n", claimMatch: { issuer, subject: "s" } });
      if (good) assert.equal(outcome.code, "OK");
      else assert.deepEqual(outcome, invalid(["claimMatch", issuerRule("claimMatch.issuer")]));
    });
  }

  const patterns: readonly [pattern: string, fault: string | undefined, reason: string][] = [
    ["https://a\\.example/.*", undefined, "a literal host"],
    ["https://a\\.example", undefined, "a literal host and nothing else"],
    ["https://a[.]example/x", undefined, "a dot in brackets"],
    ["https://a\\.example:8443/(x|y)/.*", undefined, "a port, and alternatives behind the host"],
    ["https://.*", hostRule, "any host"],
    ["https://.+\\.example/", hostRule, "any host of a domain"],
    ["https://a.example/x", hostRule, "a dot that stands for anything"],
    ["https://a.1example/x", hostRule, "such a dot before a digit"],
    ["https://a\\.example.*", hostRule, "a host that goes on"],
    ["https://a\\.example/?.*", hostRule, "a slash that need not be there"],
    ["https://a\\.example/*.*", hostRule, "a slash that need not be there"],
    ["https://a\\.example/{0}.*", hostRule, "a slash that is not there"],
    ["https://a\\.example/|https://.*", hostRule, "another alternative"],
    ["https://a\\.example/[(]|https://.*", hostRule, "an alternative behind a bracket in a class"],
    ["https://a\\.example/\\Q(\\E|https://.*", hostRule, "an alternative behind a quoted bracket"],
    [
      "https://a\\.example/x)|(?:https://.*",
      patternRule("claimMatch.issuerPattern"),
      "one that closes the group it is put in",
    ],
    ["(?i)https://a\\.example/.*", hostRule, "a host in any case"],
    ["http://a\\.example/.*", hostRule, "http"],
    ["https://localhost/.*", hostRule, "a host without a dot"],
    ["https://a\\.example/(?<=x)y", patternRule("claimMatch.issuerPattern"), "look-behind"],
    ["https://a\\.example/(?=x)y", patternRule("claimMatch.issuerPattern"), "look-ahead"],
    ["https://a\\.example/(", patternRule("claimMatch.issuerPattern"), "no pattern at all"],
    ["", "claimMatch.issuerPattern must be 1 to 512 characters", "an empty one"],
    [`https://a\\.example/${"x".repeat(512)}`, "claimMatch.issuerPattern must be 1 to 512 characters", "a long one"],
  ];
  for (const [issuerPattern, fault, reason] of patterns) {
    it(`${fault === undefined ? "takes" : "refuses"} an issuer pattern with ${reason}: ${issuerPattern.slice(0, 50)}`, async () => {
      const { outcome } = await create({ name: "n", claimMatch: { issuerPattern, subject: "s" } });
      if (fault === undefined) assert.equal(outcome.code, "OK");
      else assert.deepEqual(outcome, invalid(["claimMatch", fault]));
    });
  }

  const subjects: readonly [pattern: string, good: boolean][] = [
    ["repo:example/.*:ref:refs/heads/main", true],
    ["a|b", true],
    ["(a+)+$", true],
    ["a)|(?:b", false],
    ["(?<!a)b", false],
    ["(a)\\1", false],
    ["a\\", false],
    ["\\Qa", false],
    ["[", false],
  ];
  for (const [subjectPattern, good] of subjects) {
    it(`${good ? "takes" : "refuses"} the subject pattern ${subjectPattern}`, async () => {
      const { outcome } = await create({ name: "n", claimMatch: { issuer: "https://a.example", subjectPattern } });
      if (good) assert.equal(outcome.code, "OK");
      else assert.deepEqual(outcome, invalid(["claimMatch", patternRule("claimMatch.subjectPattern")]));
    });
  }
});
