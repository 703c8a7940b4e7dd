import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import stringWidth from "fast-string-width";
import { createTable, pad, type TableColumn, truncate } from "../../../src/cli/output/table.js";
import { detectTerminal, type Terminal } from "../../../src/cli/output/terminal.js";

const columns: readonly TableColumn[] = [
  { title: "UID", kind: "uid" },
  { title: "DESCRIPTION", kind: "prose" },
  { title: "TIME", kind: "time" },
];
const file: Terminal = { colour: false, width: undefined };

describe("a table", () => {
  it("is aligned by what characters take on a terminal", () => {
    const lines = createTable(columns, file).lines([
      ["a", "日本語", "1"],
      ["bbbb", "", "2"],
    ]);
    assert.deepEqual(lines, ["UID   DESCRIPTION  TIME", "a     日本語       1", "bbbb  -            2"]);
  });

  it("has one header, and columns that only grow", () => {
    const table = createTable(columns, file);
    assert.deepEqual(table.lines([["aaaaaa", "b", "1"]]), ["UID     DESCRIPTION  TIME", "aaaaaa  b            1"]);
    assert.deepEqual(table.lines([["a", "b", "1"]]), ["a       b            1"]);
    assert.deepEqual(table.lines([]), []);
  });

  it("shortens uids, then prose, and leaves columns out where that is not enough", () => {
    const uid = "0123456789".repeat(4);
    const row = [uid, "words ".repeat(20), "2026-01-31T12:00:00.123Z"];
    const format = (width: number) => createTable(columns, { colour: false, width }).lines([row]);
    const [header = "", line = ""] = format(100);
    assert.equal(stringWidth(line), 100);
    assert.match(header, /^UID +DESCRIPTION +TIME$/);
    assert.match(line, /^…\d{12} {2}words [a-z ]+… {2}2026-01-31T12:00:00\.123Z$|^…\d{12} {2}.*2026-01-31T12:00Z$/);
    const [, narrow = ""] = format(45);
    assert.equal(narrow, "…890123456789  words words words…  2026-01-31");
    const [titles, least = ""] = format(30);
    assert.equal(titles, "UID            TIME");
    assert.equal(least, "…890123456789  2026-01-31");
    const [, whole = ""] = createTable(columns, file).lines([row]);
    assert.ok(whole.startsWith(uid) && whole.includes("words ".repeat(19)));
  });

  it("keeps columns that were asked for", () => {
    const asked = ["A", "B", "C", "D"].map((title) => ({ title, isKept: true }));
    const lines = createTable(asked, { colour: false, width: 20 }).lines([Array(4).fill("x".repeat(30))]);
    assert.deepEqual(lines, ["A    B    C     D", "xx…  xx…  xxx…  xxx…"]);
  });

  it("is as wide as the terminal at most, whatever is in it, and one uid differs from another", () => {
    const text = fc.string({ unit: "grapheme", maxLength: 60 });
    const rows = fc.array(fc.tuple(text, text, text), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(fc.array(rows, { minLength: 1, maxLength: 3 }), fc.integer({ min: 20, max: 200 }), (pages, width) => {
        const table = createTable(columns, { colour: false, width });
        for (const line of pages.flatMap((page) => table.lines(page))) assert.ok(stringWidth(line) <= width, line);
      }),
    );
  });

  it("colours its header alone", () => {
    const [header, line] = createTable(columns, { colour: true, width: undefined }).lines([["a", "b", "c"]]);
    assert.equal(header, "\u001b[1mUID  DESCRIPTION  TIME\u001b[22m");
    assert.equal(line, "a    b            c");
  });

  it("never holds anything that a terminal acts upon", () => {
    // Not `unit: "binary"`, which first computes with all code points for seconds.
    const character = fc.integer({ min: 0, max: 0x10_ff_ff }).map((code) => String.fromCodePoint(code));
    const nasty = fc.string({
      unit: fc.oneof(fc.constantFrom(..."\u001b\u0007\r\n\t\u009b\u202e\u2028\u200b"), character),
    });
    const rows = fc.array(fc.tuple(nasty, nasty, nasty), { maxLength: 5 });
    const width = fc.option(fc.integer({ min: 1, max: 200 }), { nil: undefined });
    fc.assert(
      fc.property(rows, width, (cells, columnsWide) => {
        const lines = createTable(columns, { colour: false, width: columnsWide }).lines(cells);
        assert.equal(lines.length, cells.length + 1);
        for (const line of lines) assert.doesNotMatch(line, /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
      }),
    );
  });
});

describe("the terminal", () => {
  const cases: readonly (readonly [stream: object, env: Record<string, string>, terminal: Terminal])[] = [
    [{}, {}, { colour: false, width: undefined }],
    [{ columns: 80 }, {}, { colour: false, width: undefined }],
    [{ isTTY: true, columns: 80 }, {}, { colour: true, width: 80 }],
    [{ isTTY: true, columns: 80 }, { NO_COLOR: "1" }, { colour: false, width: 80 }],
    [{ isTTY: true, columns: 80 }, { NO_COLOR: "" }, { colour: true, width: 80 }],
    [{ isTTY: true, columns: 0 }, { TERM: "dumb" }, { colour: false, width: undefined }],
  ];
  for (const [stream, env, terminal] of cases) {
    it(`of ${JSON.stringify(stream)} with ${JSON.stringify(env)}`, () => {
      assert.deepEqual(detectTerminal(stream, env), terminal);
    });
  }
});

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
    it(`"${text}" is ${width}`, () => assert.equal(pad(text, 10).length - text.length, 10 - width));
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
    it(`"${text}" to ${width}`, () => assert.equal(truncate(text, width), cut));
  }

  it("fits, and fills what it is padded to", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.integer({ min: 1, max: 40 }), (text, width) => {
        const cut = truncate(text, width);
        assert.ok(stringWidth(cut) <= width);
        if (stringWidth(text) <= width) assert.equal(cut, text);
        else assert.ok(text.startsWith(cut.slice(0, -1)) && cut.endsWith("…"));
        assert.ok(pad(cut, width).startsWith(cut));
        assert.equal(pad("", width).length, width);
      }),
    );
  });
});
