import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createSettling } from "../../src/audit/settling.js";

type Step = { readonly ms: number; readonly seen?: number; readonly settled: number };

const cases: readonly { name: string; lateMs: number; steps: readonly Step[] }[] = [
  {
    name: "nothing is settled before anything was seen",
    lateMs: 100_000,
    steps: [
      { ms: 0, settled: 0 },
      { ms: 1e9, settled: 0 },
    ],
  },
  {
    name: "where writers take turns, what is seen is settled",
    lateMs: 0,
    steps: [
      { ms: 5, seen: 3, settled: 3 },
      { ms: 5, seen: 4, settled: 4 },
      { ms: 6, seen: 2, settled: 4 },
    ],
  },
  {
    name: "an id is settled once the longest commit is over, and not a moment before",
    lateMs: 100_000,
    steps: [
      { ms: 10, seen: 7, settled: 0 },
      { ms: 100_009, settled: 0 },
      { ms: 100_010, settled: 7 },
    ],
  },
  {
    name: "each id has its own time",
    lateMs: 100_000,
    steps: [
      { ms: 0, seen: 7, settled: 0 },
      { ms: 50_000, seen: 9, settled: 0 },
      { ms: 100_000, settled: 7 },
      { ms: 149_999, settled: 7 },
      { ms: 150_000, settled: 9 },
    ],
  },
  {
    name: "ids seen within a second count from the end of it",
    lateMs: 100_000,
    steps: [
      { ms: 0, seen: 1, settled: 0 },
      { ms: 500, seen: 90, settled: 0 },
      { ms: 1_000, seen: 90, settled: 0 },
      { ms: 100_500, seen: 90, settled: 1 },
      { ms: 101_000, seen: 90, settled: 90 },
    ],
  },
  {
    name: "an id seen again does not begin anew",
    lateMs: 100_000,
    steps: [
      { ms: 0, seen: 5, settled: 0 },
      { ms: 60_000, seen: 5, settled: 0 },
      { ms: 100_000, seen: 5, settled: 5 },
      { ms: 300_000, seen: 5, settled: 5 },
    ],
  },
];

describe("what is settled", () => {
  for (const { name, lateMs, steps } of cases) {
    test(name, () => {
      const settling = createSettling(lateMs);
      for (const { ms, seen, settled } of steps) {
        if (seen !== undefined) settling.seen(seen, ms);
        assert.equal(settling.at(ms), settled, `at ${ms} ms`);
      }
    });
  }
});
