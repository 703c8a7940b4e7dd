import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { findMaskPaths, parseMaskPath, splitMask } from "../../src/codec/field-mask.js";
import { featureMessage } from "../support/feature/feature.js";

const kinds = featureMessage("Kinds");
const thing = featureMessage("Thing");
const findPaths = (json: object, excluded: readonly string[] = []) =>
  findMaskPaths(kinds, JSON.parse(JSON.stringify(json)), new Set(excluded));

const rows: readonly { readonly json: object; readonly paths: readonly string[]; readonly reason: string }[] = [
  {
    json: { struct: { name: { first: "a" }, amount: 2 } },
    paths: ["struct.amount", "struct.name.first"],
    reason: "Struct",
  },
  {
    json: { value: { name: { first: "a" }, amount: 2 } },
    paths: ["value.amount", "value.name.first"],
    reason: "Value",
  },
  { json: { value: [{ a: 1 }] }, paths: ["value"], reason: "a Value that is a list" },
  { json: { value: "a" }, paths: ["value"], reason: "a Value that is a text" },
  { json: { value: null }, paths: ["value"], reason: "a Value that is null" },
  { json: { listValue: [{ a: 1 }] }, paths: ["list_value"], reason: "a ListValue" },
  {
    json: { struct: { myKey: 1, my_key: 2 } },
    paths: ["struct.myKey", "struct.my_key"],
    reason: "keys keep their spelling",
  },
  {
    json: { struct: { "a.b": { "c d": 1 }, "": 1 } },
    paths: ["struct.``", "struct.`a.b`.`c d`"],
    reason: "keys that are no names",
  },
  { json: { struct: { a: { "b`c": 1, d: 1 } } }, paths: ["struct.a"], reason: "a key that cannot be quoted" },
  {
    json: { struct: { "1": 1, ä: 1, "a,b": 1 } },
    paths: ["struct.`1`", "struct.`a,b`", "struct.`ä`"],
    reason: "other keys",
  },
  { json: { any: { "@type": "t", a: 1 } }, paths: ["any"], reason: "an Any is whole" },
  {
    json: { stringMap: { a: "b" }, detailMap: { a: { title: "t" } } },
    paths: ["detail_map", "string_map"],
    reason: "maps are whole",
  },
  {
    json: { timestamp: "x", stringWrapper: "x" },
    paths: ["string_wrapper", "timestamp"],
    reason: "other well-known types",
  },
  { json: { detail: { inner: { lines: [] } } }, paths: ["detail.inner.lines"], reason: "messages" },
  { json: { choiceDetail: { title: "" } }, paths: ["choice_detail.title"], reason: "a member of a oneof" },
];

for (const { json, paths, reason } of rows) {
  test(`${JSON.stringify(json)}: ${reason}`, () => {
    assert.deepEqual(findPaths(json), { paths, unknown: undefined, oversized: undefined });
  });
}

test("unknown keys are told, and what the URL sets is left out", () => {
  assert.deepEqual(findPaths({ nope: 1, detail: { title: "a", other: 1 } }, ["detail.title"]), {
    paths: [],
    unknown: "nope",
    oversized: undefined,
  });
});

const parsed: readonly { readonly text: string; readonly path: string | undefined; readonly plain?: string }[] = [
  { text: "*", path: "*" },
  { text: " displayName ", path: "display_name" },
  { text: "line1", path: "line_1", plain: "line1" },
  { text: "legacyName", path: "legacy", plain: "legacy_name" },
  { text: "detail.inner.lineCount", path: "detail.inner.line_count" },
  { text: "extra.myKey", path: "extra.myKey", plain: "extra.my_key" },
  { text: "extra.my_key.otherKey", path: "extra.my_key.otherKey", plain: "extra.my_key.other_key" },
  { text: "extra.`a.b c,D`.eF", path: "extra.`a.b c,D`.eF", plain: "extra.`a.b c,D`.e_f" },
  { text: "labels.aB", path: "labels.aB", plain: "labels.a_b" },
  { text: "detail.`aB`", path: "detail.`aB`" },
  { text: "`a`", path: undefined },
  { text: "a.`b", path: undefined },
  { text: "a.b`c`", path: undefined },
  { text: "a..b", path: undefined },
  { text: "a[0]", path: undefined },
  { text: "a.0", path: undefined },
  { text: "", path: undefined },
];

for (const { text, path, plain = path } of parsed) {
  test(`the path ${JSON.stringify(text)} of a mask`, () => {
    assert.equal(parseMaskPath(text, thing), path);
    assert.equal(parseMaskPath(text), plain);
  });
}

test("the paths that are found are read again as they are, whatever the keys", () => {
  const key = fc.string({ maxLength: 6 }).filter((text) => !text.includes("`") && text.trim() === text);
  const object = fc.dictionary(key, fc.oneof(fc.constant(1), fc.dictionary(key, fc.constant(1), { minKeys: 1 })), {
    minKeys: 1,
  });
  fc.assert(
    fc.property(object, (struct) => {
      const { paths } = findPaths({ struct });
      assert.deepEqual(splitMask(paths.join(",")), paths);
      for (const path of paths) assert.equal(parseMaskPath(path, kinds), path);
    }),
    { seed: 16, numRuns: 500 },
  );
});

test("commas separate the paths of a mask unless they stand in backticks", () => {
  assert.deepEqual(splitMask("a,b.`c,d`,e"), ["a", "b.`c,d`", "e"]);
  assert.deepEqual(splitMask("a,,b"), ["a", "", "b"]);
  assert.deepEqual(splitMask("a.`b,c"), ["a.`b,c"]);
});
