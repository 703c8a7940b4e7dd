import assert from "node:assert/strict";
import { test } from "node:test";
import { RE2JS } from "re2js";
import { compilePattern, matchesPattern, matchesValue } from "../../../src/issuer/sts/claim-pattern.js";
import { createRandom } from "../../support/openapi/random.js";
import { measureLeastProcessorMs } from "../../support/stopwatch.js";

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
  const label = text.length > 40 ? `${text.length} characters` : JSON.stringify(text);
  test(`${pattern} ${matches ? "matches" : "does not match"} ${label}`, () => {
    assert.equal(matchesPattern(pattern, text), matches);
    assert.equal(matchesPattern(pattern, text), matches, "the second time, from memory");
  });
}

test("a malformed pattern is an error, not a match", () => {
  assert.throws(() => matchesPattern("a(", "a"));
});

test("a value is a text unless its case is a pattern", () => {
  assert.equal(matchesValue({ case: "arn", value: "a.c" }, "abc"), false);
  assert.equal(matchesValue({ case: "arn", value: "a.c" }, "a.c"), true);
  assert.equal(matchesValue({ case: "arnPattern", value: "a.c" }, "abc"), true);
  assert.equal(matchesValue({ case: undefined }, ""), false);
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
    const ms = measureLeastProcessorMs(() => matchesPattern(pattern, text));
    assert.ok(ms < 100, `${ms} ms`);
  });
}

// The runner of compiled patterns against the engines of the library.

const PIECES = [
  "a",
  "b",
  ".",
  "[a-c]",
  "[^a]",
  "\\w",
  "\\d",
  "\\pL",
  "é",
  "\u{1f600}",
  "\n",
  "(?i:K)",
  "\\b",
  "\\B",
  "$",
  "^",
];
const SHAPES = [
  "(?:X)*",
  "(?:X)+?",
  "(?:X)?",
  "(?:X){2,3}",
  "(?:X|Y)",
  "(X)(Y)",
  "XY",
  "XY",
  "(?m:^X)",
  "(?m:X$)",
  "(?s:X)",
  "(?i:X)",
];
const LETTERS = ["a", "b", "c", "B", "1", "_", " ", "\n", "é", "k", "K", "\u212a", "\u{1f600}", "É"];

test("matches what the library matches, over 20,000 random patterns and texts", () => {
  const random = createRandom(20_260_101).int;
  const pick = (from: readonly string[]) => from[random(from.length)] ?? "";
  const pattern = (depth: number): string =>
    depth === 0
      ? pick(PIECES)
      : pick(SHAPES)
          .replace("X", () => pattern(depth - 1))
          .replace("Y", () => pattern(depth - 1));
  let matched = 0;
  for (let i = 0; i < 1_000; i++) {
    const text = pattern(random(4));
    const program = compilePattern(text);
    const reference = RE2JS.compile(`^(?:${text})$`);
    for (let j = 0; j < 20; j++) {
      const subject = Array.from({ length: random(5) }, () => pick(LETTERS)).join("");
      const expected = reference.test(subject);
      if (expected) matched++;
      assert.equal(program.matches(subject, { left: 1e9 }), expected, JSON.stringify([text, subject]));
    }
  }
  assert.ok(matched > 1_000, `${matched} matched`);
});

test("a match ends when its budget is used up, and the budget is shared", () => {
  const program = compilePattern("(?:a|b|ab)*c");
  const text = `${"ab".repeat(100)}c`;
  const budget = { left: 1e6 };
  assert.equal(program.matches(text, budget), true);
  const steps = 1e6 - budget.left;
  assert.equal(program.matches(text, { left: steps }), false);
  const twice = { left: 2 * steps };
  assert.deepEqual([program.matches(text, twice), program.matches(text, twice)], [true, false]);
  assert.ok(twice.left > -100, "and goes on no further");
});

// Each of these takes the engines of the library 10 ms or more the first time that a text is new.
const costly = [
  "https://a\\.b/(?:[a-z0-9]{1,30}){1,14}[0-9]",
  "https://a\\.b/(?:.{0,30}.{0,30}){1,8}[0-9]",
  "https://a\\.b/(?:\\pL{1,20}){1,10}[0-9]",
  "https://a\\.b/(?:[^a]{0,28}a){0,15}[0-9]",
];

test("the most expensive patterns end within 50,000 steps, in a few ms of CPU time", () => {
  const cpuMsOf = (work: () => unknown) => {
    const start = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(start);
    return (user + system) / 1_000;
  };
  const textOf = (i: number) =>
    `https://a.b/${Array.from({ length: 240 }, (_, j) => "abcde"[(i * j * j + (j >> 3)) % 5]).join("")}7`;
  const programs = costly.map((pattern) => compilePattern(pattern));
  const rounds = 25;
  const ours = cpuMsOf(() => {
    for (let i = 0; i < rounds; i++) for (const program of programs) program.matches(textOf(i), { left: 50_000 });
  });
  // About 1 ms on a machine that does nothing else.
  assert.ok(ours / rounds / costly.length < 6, `${ours / rounds / costly.length} ms each`);
  // The control: without a budget the same matches take more steps.
  const stepsOf = programs.map((program) => {
    const budget = { left: 1e9 };
    program.matches(textOf(1), budget);
    return 1e9 - budget.left;
  });
  assert.ok(Math.max(...stepsOf) > 100_000, stepsOf.join());
});
