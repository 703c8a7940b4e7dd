import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import fc from "fast-check";
import { parse } from "yaml";
import { createListFormatter, formatResponse, formatYaml } from "../../../src/cli/output/format.js";
import { createProgress } from "../../../src/cli/output/terminal.js";
import type { Format } from "../../../src/cli/remote/flags.js";

const file = { colour: false, width: undefined };
const ACTIVE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

// What proto JSON consists of: no numbers with fractions, no text with halves of characters.
const text = fc.string({
  unit: fc.oneof(
    fc.string({ unit: "grapheme" }),
    fc.constantFrom(..."\u0000\u001b\n\r\u0085\u2028\u202e\ufeff: #'\"\\"),
  ),
});
const json = fc.letrec<{ value: JsonValue; object: JsonObject }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    text,
    fc.boolean(),
    fc.integer(),
    fc.constantFrom(
      "null",
      "true",
      "1",
      "1.5",
      "0x1f",
      "~",
      "- a",
      "2026-01-01",
      "",
      " ",
      "<<",
      "=",
      "|",
      "---",
      "...",
    ),
    fc.array(tie("value"), { maxLength: 3 }),
    tie("object"),
  ),
  object: fc.dictionary(text, tie("value"), { maxKeys: 3, noNullPrototype: true }),
}));

describe("a list", () => {
  const pages = fc.array(fc.array(json.object, { maxLength: 3 }), { minLength: 1, maxLength: 3 });
  const formatAll = (format: Format, parts: readonly (readonly JsonObject[])[], rest: JsonObject) => {
    const list = createListFormatter(format, "rows", [], file);
    return parts.map((rows) => list.page(rows)).join("") + list.end(rest);
  };

  it("is the same document however it is cut into pages", () => {
    fc.assert(
      fc.property(pages, (parts) => {
        const rest = { totalCount: "3", skipped: 0 };
        const whole = { rows: parts.flat(), ...rest };
        for (const format of ["json", "yaml"] as const) {
          const document = formatAll(format, parts, rest);
          assert.equal(document, formatAll(format, [parts.flat()], rest));
          assert.deepEqual(format === "json" ? JSON.parse(document) : parse(document), whole);
        }
        assert.equal(formatAll("json", [[]], rest), `${JSON.stringify({ rows: [], ...rest }, null, 2)}\n`);
        const lines = formatAll("jsonl", parts, rest).split("\n").slice(0, -1);
        assert.deepEqual(
          lines.map((line) => JSON.parse(line)),
          whole.rows,
        );
      }),
    );
  });

  it("is cut for a terminal as a table, and not as a wide one", () => {
    const columns = [{ title: "TEXT", kind: "prose" as const, cell: (row: JsonObject) => String(row.text) }];
    const [short, wide] = (["table", "wide"] as const).map((format) =>
      createListFormatter(format, "rows", columns, { colour: false, width: 20 }).page([{ text: "x".repeat(50) }]),
    );
    assert.equal(short, `TEXT\n${"x".repeat(19)}…\n`);
    assert.equal(wide, `TEXT\n${"x".repeat(50)}\n`);
  });

  it("is nothing but its rows where nothing else is known", () => {
    assert.equal(formatAll("yaml", [[{ a: 1 }]], {}), "rows:\n- a: 1\n");
    assert.equal(formatAll("json", [[{ a: 1 }]], {}), '{\n  "rows": [\n    {\n      "a": 1\n    }\n  ]\n}\n');
  });
});

describe("a list as CSV", () => {
  const columns = [
    { title: "NAME", cell: (row: JsonObject) => String(row.name) },
    { title: "UID", kind: "uid" as const, cell: (row: JsonObject) => String(row.uid) },
  ];
  const formatRow = (name: string) => {
    const list = createListFormatter("csv", "rows", columns, { colour: true, width: 20 });
    return list.page([{ name, uid: "0".repeat(75) }]) + list.end({});
  };

  for (const [name, field] of [
    ["team", "team"],
    ["", ""],
    ["a, b", '"a, b"'],
    ['the "best"', '"the ""best"""'],
    ["two\nlines\u001b", "two\\u000alines\\u001b"],
    ['=HYPERLINK("https://evil.example")', '"\'=HYPERLINK(""https://evil.example"")"'],
    ["+1", "'+1"],
    ["-1", "'-1"],
    ["@SUM(A1)", "'@SUM(A1)"],
    ["a=b", "a=b"],
  ] as const) {
    it(`has ${JSON.stringify(name)} as ${field}`, () => {
      assert.equal(formatRow(name), `NAME,UID\r\n${field},${"0".repeat(75)}\r\n`);
    });
  }

  it("has its header once, and without rows as well", () => {
    const list = createListFormatter("csv", "rows", columns, file);
    const pages = list.page([{ name: "a", uid: "1" }]) + list.page([{ name: "b", uid: "2" }]) + list.end({});
    assert.equal(pages, "NAME,UID\r\na,1\r\nb,2\r\n");
    assert.equal(createListFormatter("csv", "rows", columns, file).end({}), "NAME,UID\r\n");
  });

  it("is the lines of a table for one resource", () => {
    assert.equal(
      formatResponse("csv", {}, () => [["name", "a, b"]], file),
      'FIELD,VALUE\r\nname,"a, b"\r\n',
    );
  });
});

describe("a list as names", () => {
  it("has the uid of each row, or else its first column", () => {
    const name = { title: "NAME", cell: (row: JsonObject) => String(row.name) };
    const uid = { title: "UID", kind: "uid" as const, cell: (row: JsonObject) => String(row.uid ?? "") };
    const format = (columns: Parameters<typeof createListFormatter>[2]) =>
      createListFormatter("name", "rows", columns, { colour: false, width: 3 }).page([
        { name: "first", uid: "0123456789" },
        { name: "second" },
      ]);
    assert.equal(format([name, uid]), "0123456789\n");
    assert.equal(format([name]), "first\nsecond\n");
    assert.equal(
      formatResponse("name", { uid: "0123", name: "a" }, () => [], file),
      "0123\n",
    );
    assert.equal(
      formatResponse("name", {}, () => [], file),
      "",
    );
  });
});

describe("an answer", () => {
  it("means the same in every format, and no terminal acts upon it", () => {
    fc.assert(
      fc.property(json.object, (response) => {
        const texts = (["json", "jsonl", "yaml"] as const).map((format) =>
          formatResponse(format, response, () => [], file),
        );
        const [asJson = "", asLine = "", asYaml = ""] = texts;
        assert.deepEqual([JSON.parse(asJson), JSON.parse(asLine), parse(asYaml)], [response, response, response]);
        assert.equal(asLine.split("\n").length, 2);
        for (const one of texts) {
          for (const line of one.split("\n")) assert.doesNotMatch(line, ACTIVE);
        }
      }),
    );
  });

  it("is a table of its fields, whole: texts go on below, and words are not cut", () => {
    const rows = () => [["uid", "0".repeat(60)] as const, ["text", "some words that go on"] as const];
    const terminal = { colour: false, width: 20 };
    const words = "some words\n       that go on";
    assert.equal(
      formatResponse("table", {}, rows, terminal),
      `FIELD  VALUE\nuid    ${"0".repeat(60)}\ntext   ${words}\n`,
    );
    const wide = formatResponse("wide", {}, rows, terminal);
    assert.equal(wide, `FIELD  VALUE\nuid    ${"0".repeat(60)}\ntext   some words that go on\n`);
  });
});

describe("YAML", () => {
  for (const [value, yaml] of [
    [{ a: "yes", b: "1", c: "" }, 'a: yes\nb: "1"\nc: ""\n'],
    [{ a: "one\ntwo" }, 'a: "one\\u000atwo"\n'],
    [{ a: "\u001b[2J" }, 'a: "\\u001b[2J"\n'],
    [["x".repeat(200)], `- ${"x".repeat(200)}\n`],
  ] as const) {
    it(JSON.stringify(value).slice(0, 40), () => {
      assert.deepEqual(parse(formatYaml(value as JsonValue)), value);
      assert.equal(
        formatYaml(value as JsonValue)
          .replace("\\n", "\\u000a")
          .replace("\\e", "\\u001b"),
        yaml,
      );
    });
  }
});

describe("progress", () => {
  const progressText = (isTTY: boolean, always: boolean) => {
    let out = "";
    const progress = createProgress({ isTTY, write: (text) => (out += text) }, always);
    progress.clear();
    progress.show(1, 2);
    progress.clear();
    progress.clear();
    return out;
  };
  it("is one line that comes and goes on a terminal", () => {
    assert.equal(progressText(true, false), "\r\u001b[K1 of 2\r\u001b[K");
  });
  it("is a line each elsewhere, if it is always", () => {
    assert.deepEqual([progressText(false, true), progressText(false, false)], ["1 of 2\n", ""]);
  });
});
