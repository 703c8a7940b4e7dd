// Which issuers and patterns an identity may trust: a pattern without a literal host would trust any issuer's keys.
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

/** A pattern of about so many instructions. */
const large = (size: number) => `(?:x{${size / 10}}){10}`;

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
    ["^https://a\\.example$", undefined, "anchors around a literal host"],
    ["^https://a\\.example/.*", undefined, "an anchor before it"],
    ["https://a\\.example$", undefined, "an anchor behind it"],
    ["^https://a\\.example/x\\\\$", undefined, "an anchor behind an escaped backslash"],
    ["^https://a\\.example/\\$", undefined, "an escaped $ behind the host"],
    ["^https://a\\.example\\$", hostRule, "an escaped $ in the host"],
    ["https://a\\.example\\Q$", patternRule("claimMatch.issuerPattern"), "a quoted $"],
    ["^^https://a\\.example$", hostRule, "two anchors before the host"],
    ["^https://a\\.example$$", hostRule, "two anchors behind the host"],
    ["^https://a\\.example$|^https://b\\.example$", hostRule, "anchored alternatives"],
    ["^https://.*$", hostRule, "any host between anchors"],
    ["^*https://a\\.example$", hostRule, "an anchor that is repeated"],
    ["^", hostRule, "nothing but an anchor"],
    ["^$", hostRule, "nothing but anchors"],
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

describe("what is computed for an identity is bounded when it is written", () => {
  const issuer = "https://a.example";
  const keys = (count: number, key: object = { kty: "oct" }) =>
    JSON.stringify({ keys: Array.from({ length: count }, () => key) });
  const staticKeys = (values: object) => ({ staticKeys: { issuer, subject: "s", issuerKeys: "keys", ...values } });
  const steps = (field: string, most: number) =>
    `${field} must be a smaller regular expression: at most ${most} steps of RE2`;
  const cases: readonly [name: string, body: object, broken: readonly [string, string] | undefined][] = [
    [
      "a pattern of issuers of 240 instructions",
      { claimMatch: { issuerPattern: `https://a\\.example/${large(200)}`, subject: "s" } },
      undefined,
    ],
    [
      "a pattern of issuers of 420 instructions",
      { claimMatch: { issuerPattern: `https://a\\.example/${large(400)}`, subject: "s" } },
      ["claimMatch", steps("claimMatch.issuerPattern", 300)],
    ],
    ["a pattern of subjects of 900", { claimMatch: { issuer, subjectPattern: large(900) } }, undefined],
    [
      "patterns of 2,400 in all",
      {
        claimMatch: { issuer, subjectPattern: large(800), claimPatterns: { a: large(800), b: large(800) } },
      },
      ["claimMatch", "claimMatch must have smaller regular expressions: at most 2000 steps of RE2 in all"],
    ],
    ["32 keys", staticKeys({ issuerKeys: keys(32) }), undefined],
    [
      "33 keys",
      staticKeys({ issuerKeys: keys(33) }),
      ["staticKeys", "staticKeys.issuerKeys must hold at most 32 keys"],
    ],
    [
      "a key of many values",
      staticKeys({ issuerKeys: keys(1, { x5c: Array.from({ length: 1_024 }, () => 1) }) }),
      ["staticKeys", "staticKeys.issuerKeys must hold at most 1024 values, those within keys included"],
    ],
    [
      "an issuer of 256 characters",
      staticKeys({ issuer: `https://a.example/${"x".repeat(238)}` }),
      ["staticKeys", "staticKeys.issuer must be 1 to 255 characters"],
    ],
  ];
  for (const [name, body, broken] of cases) {
    it(`${name} ${broken === undefined ? "is taken" : "is rejected"}`, async () => {
      const { outcome } = await create({ name: "n", ...body });
      if (broken === undefined) assert.equal(outcome.code, "OK");
      else assert.deepEqual(outcome, invalid([broken[0], broken[1]]));
    });
  }
});
