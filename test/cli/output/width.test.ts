import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { displayWidth, padded, truncated } from "../../../src/cli/output/width.js";

const widths: readonly (readonly [text: string, width: number])[] = [
  ["", 0],
  ["abc", 3],
  ["Zürich", 6],
  ["日本語", 6],
  ["日本 go", 7],
  ["한국", 4],
  ["ﾊﾝｶｸ", 4],
  ["ＡＢ", 4],
  ["e\u0301", 1],
  ["👍🏽", 2],
  ["🇩🇪", 2],
  ["→ …", 3],
  ["ไทย", 3],
];

describe("the width of", () => {
  for (const [text, width] of widths) {
    it(`"${text}" is ${width}`, () => assert.equal(displayWidth(text), width));
  }
});

describe("a text that is cut", () => {
  for (const [text, width, cut] of [
    ["abcdef", 6, "abcdef"],
    ["abcdef", 5, "abcd…"],
    ["日本語", 5, "日本…"],
    ["日本語", 4, "日…"],
    ["abc", 1, "…"],
    ["e\u0301e\u0301e\u0301", 2, "e\u0301…"],
  ] as const) {
    it(`"${text}" to ${width}`, () => assert.equal(truncated(text, width), cut));
  }

  it("fits, and fills what it is padded to", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.integer({ min: 1, max: 40 }), (text, width) => {
        const cut = truncated(text, width);
        assert.ok(displayWidth(cut) <= width);
        if (displayWidth(text) <= width) assert.equal(cut, text);
        else assert.ok(text.startsWith(cut.slice(0, -1)) && cut.endsWith("…"));
        assert.ok(padded(cut, width).startsWith(cut));
        assert.equal(padded("", width).length, width);
      }),
    );
  });
});
