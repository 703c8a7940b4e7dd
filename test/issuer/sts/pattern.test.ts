import assert from "node:assert/strict";
import { test } from "node:test";
import { fits, matchesPattern } from "../../../src/issuer/sts/pattern.js";

const cases: readonly (readonly [pattern: string, text: string, matches: boolean])[] = [
  ["a", "a", true],
  ["a", "ab", false],
  ["a", "ba", false],
  ["a|b", "b", true],
  // Anchors put around an ungrouped alternative would hold for one side each.
  ["a|b", "ax", false],
  ["a|b", "xb", false],
  ["^a$", "a", true],
  ["a$", "a\n", false],
  ["(?m)a$", "a\nb", false],
  ["(?m)^b", "a\nb", false],
  [".*", "a\nb", false],
  ["(?s).*", "a\nb", true],
  ["(?i)abc", "ABC", true],
  ["caf\u00e9", "cafe\u0301", false],
  [".", "\u{1f600}", true],
  ["..", "\u{1f600}", false],
  [".*", "", true],
  [".*", "\ud800", false],
  [".*", "a\udc00", false],
  [".*", "x".repeat(1_024), true],
  [".*", "x".repeat(1_025), false],
  ["x{900}", "x".repeat(900), true],
  // A program above 1,000 instructions.
  ["(?:x{1,30}){1,30}", "x", false],
];

for (const [pattern, text, matches] of cases) {
  const shown = text.length > 40 ? `${text.length} characters` : JSON.stringify(text);
  test(`${pattern} ${matches ? "matches" : "does not match"} ${shown}`, () => {
    assert.equal(matchesPattern(pattern, text), matches);
    assert.equal(matchesPattern(pattern, text), matches, "the second time, from memory");
  });
}

test("a pattern that is none is an error, not a match", () => {
  assert.throws(() => matchesPattern("a(", "a"));
});

test("a choice is a text unless its case is a pattern", () => {
  assert.equal(fits({ case: "arn", value: "a.c" }, "abc"), false);
  assert.equal(fits({ case: "arn", value: "a.c" }, "a.c"), true);
  assert.equal(fits({ case: "arnPattern", value: "a.c" }, "abc"), true);
  assert.equal(fits({ case: undefined }, ""), false);
});

// With backtracking each of these takes longer than the universe has. One match is a matter of
// microseconds; 100 ms leave room for a busy machine.
const slow: readonly (readonly [pattern: string, text: string])[] = [
  ["(a+)+$", `${"a".repeat(255)}!`],
  ["(a|aa)+", `${"a".repeat(1_000)}!`],
  ["(.*a){30}", `${"a".repeat(1_000)}!`],
  ["(x+x+)+y", "x".repeat(1_000)],
  ["(?:a?){120}a{120}", "a".repeat(119)],
];

for (const [pattern, text] of slow) {
  test(`${pattern} takes no time`, () => {
    assert.equal(matchesPattern(pattern, text), false);
    const rounds = 20;
    const start = process.hrtime.bigint();
    for (let i = 0; i < rounds; i++) matchesPattern(pattern, text);
    const ms = Number(process.hrtime.bigint() - start) / 1e6 / rounds;
    assert.ok(ms < 100, `${ms} ms`);
  });
}
