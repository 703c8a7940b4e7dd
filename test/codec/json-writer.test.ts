import assert from "node:assert/strict";
import { test } from "node:test";
import { create, createFileRegistry, type DescField } from "@bufbuild/protobuf";
import {
  anyPack,
  FileDescriptorProtoSchema,
  StringValueSchema,
  FieldDescriptorProto_Type as Type,
  timestampFromDate,
} from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { formatDuration, formatTimestamp, quote } from "../../src/codec/json-scalar.js";
import { createJsonWriters } from "../../src/codec/json-writer.js";
import { featureMessage, featureRegistry } from "../support/feature/feature.js";

const writers = createJsonWriters(featureRegistry);
const thing = featureMessage("Thing");
const detail = featureMessage("Detail");
const kinds = featureMessage("Kinds");
const time = { seconds: 1767225600n, nanos: 5_000_000 };
const emptyThing =
  '{"uid":"","displayName":"","count":0,"size":"0","enabled":false,"tags":[],"labels":{},"parts":[],"line1":"","legacyName":""}';

const emptyDetail = '{"title":"","level":0,"lines":[]}';

const responses: readonly { desc: string; value: object; text: string; reason: string }[] = [
  {
    desc: "Thing",
    value: {},
    text: emptyThing,
    reason: "an answer prints its empty scalars, lists and maps, and no enum",
  },
  {
    desc: "Thing",
    value: {
      uid: "u",
      displayName: 'a "b"',
      count: -1,
      size: 9007199254740993n,
      enabled: true,
      color: 1,
      tags: ["x", "ä"],
      labels: { k: "v", "": "" },
      createTime: time,
      detail: { title: "t", level: 0, lines: [] },
      note: "",
      parts: [{ title: "p" }, {}],
      line1: "1",
      legacy: "l",
      extra: { a: [1, null] },
    },
    text:
      '{"uid":"u","displayName":"a \\"b\\"","count":-1,"size":"9007199254740993","enabled":true,"color":"COLOR_RED",' +
      '"tags":["x","ä"],"labels":{"k":"v","":""},"createTime":"2026-01-01T00:00:00.005Z","detail":{"title":"t","level":0,"lines":[]},' +
      `"note":"","parts":[{"title":"p","level":0,"lines":[]},${emptyDetail}],"line1":"1","legacyName":"l","extra":{"a":[1,null]}}`,
    reason: "everything set; what is nested prints its empties as well",
  },
  { desc: "Thing", value: { secret: "s" }, text: emptyThing, reason: "INPUT_ONLY is never printed" },
  { desc: "Thing", value: { color: 0 }, text: emptyThing, reason: "nor an enum at zero" },
  {
    desc: "Thing",
    value: { color: 9 },
    text: emptyThing.replace('"tags"', '"color":9,"tags"'),
    reason: "unknown enum: its number",
  },
  {
    desc: "ListThingsResponse",
    value: {},
    text: '{"things":[],"skipped":0}',
    reason: "an empty list: no page token, no count unless it is set",
  },
  {
    desc: "ListThingsResponse",
    value: { things: [{}], nextPageToken: "t", totalCount: 0n, skipped: 3 },
    text: `{"things":[${emptyThing}],"nextPageToken":"t","totalCount":"0","skipped":3}`,
    reason: "elements of a list are resources; an optional count prints when set, even at zero",
  },
  {
    desc: "ListThingsResponse",
    value: { things: [{ parts: [{}], detail: {} }] },
    text: `{"things":[${emptyThing.replace('"parts":[]', `"detail":${emptyDetail},"parts":[${emptyDetail}]`)}],"skipped":0}`,
    reason: "and so is what is nested in them",
  },
  { desc: "ThingList", value: { items: [{}] }, text: `{"items":[${emptyThing}]}`, reason: "the older form of a list" },
  {
    desc: "CreateThingRequest",
    value: { thing: {} },
    text: `{"parent":"","thing":${emptyThing},"validateOnly":false}`,
    reason: "nested",
  },
  { desc: "TouchRequest", value: {}, text: "{}", reason: "no fields" },
  { desc: "google.protobuf.Empty", value: {}, text: "{}", reason: "Empty" },
  { desc: "google.protobuf.Timestamp", value: time, text: '"2026-01-01T00:00:00.005Z"', reason: "a bare timestamp" },
  { desc: "google.protobuf.StringValue", value: { value: "x" }, text: '"x"', reason: "a bare wrapper" },
  { desc: "google.protobuf.StringValue", value: {}, text: '""', reason: "a bare wrapper of nothing" },
];

for (const { desc, value, text, reason } of responses) {
  test(`answers ${desc}: ${reason}`, () => {
    const message = featureMessage(desc);
    assert.equal(writers.answer(message)(value), text, "from an init object");
    assert.equal(writers.answer(message)(create(message, value as Record<string, unknown>)), text, "from a message");
  });
}

const str = (value: string) => create(StringValueSchema, { value });
const nested: readonly { value: Record<string, unknown>; text: string; reason: string }[] = [
  { value: {}, text: "{}", reason: "nothing" },
  {
    value: { doubleValue: Number.NaN, floatValue: -Infinity },
    text: '{"doubleValue":"NaN","floatValue":"-Infinity"}',
    reason: "no numbers",
  },
  { value: { doubleValue: 1e21, floatValue: 0.5 }, text: '{"doubleValue":1e+21,"floatValue":0.5}', reason: "numbers" },
  { value: { doubleValue: -0 }, text: '{"doubleValue":-0}', reason: "minus zero is not zero" },
  {
    value: { int64Value: -1n, uint64Value: 2n ** 64n - 1n },
    text: '{"int64Value":"-1","uint64Value":"18446744073709551615"}',
    reason: "64 bits",
  },
  { value: { stringLong: "12" }, text: '{"stringLong":"12"}', reason: "64 bits kept as string" },
  { value: { stringLong: "0" }, text: "{}", reason: "64 bits kept as string, zero" },
  { value: { bytesValue: new Uint8Array([255, 254, 253, 252]) }, text: '{"bytesValue":"//79/A=="}', reason: "bytes" },
  {
    value: { bytesValue: Buffer.from("xhix").subarray(1, 3) },
    text: '{"bytesValue":"aGk="}',
    reason: "bytes within others",
  },
  {
    value: { optionalInt32: 0, optionalString: "", optionalBool: false },
    text: '{"optionalInt32":0,"optionalString":"","optionalBool":false}',
    reason: "optional",
  },
  { value: { optionalInt32: undefined }, text: "{}", reason: "optional and unset" },
  { value: { colors: [0, 1, 7] }, text: '{"colors":["COLOR_UNSPECIFIED","COLOR_RED",7]}', reason: "enums in a list" },
  { value: { doubles: [0, Number.NaN] }, text: '{"doubles":[0,"NaN"]}', reason: "doubles in a list" },
  { value: { longs: [0n, 1n] }, text: '{"longs":["0","1"]}', reason: "64 bits in a list" },
  { value: { numberMap: { "-1": 5n } }, text: '{"numberMap":{"-1":"5"}}', reason: "map of numbers" },
  {
    value: { colorMap: { true: 0, false: 2 } },
    text: '{"colorMap":{"true":"COLOR_UNSPECIFIED","false":"COLOR_BLUE"}}',
    reason: "map of enums",
  },
  {
    value: { detailMap: { a: {}, "b\n": { title: "x" } } },
    text: '{"detailMap":{"a":{},"b\\n":{"title":"x"}}}',
    reason: "map of messages",
  },
  {
    value: { timestamp: { seconds: -1n, nanos: 999_999_999 } },
    text: '{"timestamp":"1969-12-31T23:59:59.999Z"}',
    reason: "before 1970, cut off",
  },
  { value: { timestamp: {} }, text: '{"timestamp":"1970-01-01T00:00:00.000Z"}', reason: "the beginning of time" },
  { value: { duration: { seconds: 3n, nanos: 1_000 } }, text: '{"duration":"3.000001s"}', reason: "duration" },
  { value: { fieldMask: { paths: ["a_b.c_d", "*"] } }, text: '{"fieldMask":"aB.cD,*"}', reason: "mask" },
  { value: { struct: {} }, text: '{"struct":{}}', reason: "empty struct" },
  {
    value: { value: { kind: { case: "nullValue", value: 0 } } },
    text: '{"value":null}',
    reason: "a value that is null",
  },
  {
    value: {
      value: { kind: { case: "structValue", value: { fields: { a: { kind: { case: "boolValue", value: true } } } } } },
    },
    text: '{"value":{"a":true}}',
    reason: "a value that is an object, as init",
  },
  {
    value: {
      listValue: {
        values: [{ kind: { case: "numberValue", value: 1 } }, { kind: { case: "stringValue", value: "x" } }],
      },
    },
    text: '{"listValue":[1,"x"]}',
    reason: "list",
  },
  { value: { empty: {} }, text: '{"empty":{}}', reason: "Empty as a field" },
  {
    value: { stringWrapper: "", int64Wrapper: 0n, boolWrapper: false, doubleWrapper: -Infinity },
    text: '{"stringWrapper":"","int64Wrapper":"0","boolWrapper":false,"doubleWrapper":"-Infinity"}',
    reason: "wrappers",
  },
  { value: { bytesWrapper: new Uint8Array([1]) }, text: '{"bytesWrapper":"AQ=="}', reason: "wrapper of bytes" },
  {
    value: { stringWrappers: [str("a"), { value: "b" }] },
    text: '{"stringWrappers":["a","b"]}',
    reason: "wrappers in a list",
  },
  { value: { choice: { case: "choiceString", value: "" } }, text: '{"choiceString":""}', reason: "oneof, empty" },
  {
    value: { choice: { case: "choiceWrapper", value: str("x") } },
    text: '{"choiceWrapper":"x"}',
    reason: "oneof, wrapper",
  },
  { value: { choice: { case: "choiceDetail", value: {} } }, text: '{"choiceDetail":{}}', reason: "oneof, message" },
  { value: { choice: { case: undefined } }, text: "{}", reason: "oneof, unset" },
  {
    value: { choice: { case: "choiceColor", value: 0 } },
    text: '{"choiceColor":"COLOR_UNSPECIFIED"}',
    reason: "oneof, enum at zero",
  },
  { value: { optionalColor: 0 }, text: '{"optionalColor":"COLOR_UNSPECIFIED"}', reason: "optional enum at zero" },
  {
    value: { detail: { inner: { inner: { level: 1 } } } },
    text: '{"detail":{"inner":{"inner":{"level":1}}}}',
    reason: "a message that holds itself",
  },
  {
    value: { any: anyPack(detail, create(detail, { title: "t" })) },
    text: '{"any":{"@type":"type.googleapis.com/arbor.test.feature.Detail","title":"t"}}',
    reason: "Any",
  },
  {
    value: { any: anyPack(detail, create(detail)) },
    text: '{"any":{"@type":"type.googleapis.com/arbor.test.feature.Detail"}}',
    reason: "Any of an empty message",
  },
  {
    value: { any: anyPack(StringValueSchema, str("x")) },
    text: '{"any":{"@type":"type.googleapis.com/google.protobuf.StringValue","value":"x"}}',
    reason: "Any of a type with a form of its own",
  },
  { value: { any: {} }, text: '{"any":{}}', reason: "an empty Any" },
];

for (const { value, text, reason } of nested) {
  test(`prints only what is set: ${reason}`, () => {
    assert.equal(writers.details.writerOf(kinds)(value), text, "from an init object");
    assert.equal(writers.details.writerOf(kinds)(create(kinds, value)), text, "from a message");
  });
}

test("a field that stands for the whole answer", () => {
  const field = (name: string): DescField => {
    const found = [...thing.fields, ...kinds.fields].find((f) => f.name === name);
    assert.ok(found);
    return found;
  };
  assert.equal(writers.responseField(field("labels"))({ a: "b" }), '{"a":"b"}');
  assert.equal(writers.responseField(field("labels"))(undefined), "{}");
  assert.equal(writers.responseField(field("tags"))(["a"]), '["a"]');
  assert.equal(writers.responseField(field("tags"))(undefined), "[]");
  assert.equal(writers.responseField(field("detail"))({ level: 1 }), '{"title":"","level":1,"lines":[]}');
  assert.equal(writers.responseField(field("detail"))(undefined), "{}");
  assert.equal(writers.responseField(field("parts"))([{}]), `[${emptyDetail}]`);
  assert.equal(writers.responseField(field("detail_map"))({ a: {} }), `{"a":${emptyDetail}}`);
  assert.equal(writers.responseField(field("size"))(7n), '"7"');
  assert.equal(writers.responseField(field("size"))(undefined), '"0"');
  assert.equal(writers.responseField(field("color"))(undefined), '"COLOR_UNSPECIFIED"');
});

const unset = ["timestamp", "duration", "fieldMask", "struct", "value", "listValue", "any", "stringWrapper"];
for (const name of [...unset, "optionalInt32", "optionalColor", "choiceString", "choiceWrapper"]) {
  test(`null stands for a whole answer that is an unset ${name}`, () => {
    const field = kinds.fields.find(({ jsonName }) => jsonName === name);
    assert.ok(field);
    assert.equal(writers.responseField(field)(undefined), "null");
  });
}

test("an answer prints an enum at zero unless its name says that nothing is said", () => {
  for (const [zero, text] of [
    ["TAG_ACTIVE", '{"state":"TAG_ACTIVE"}'],
    ["STATE_UNSPECIFIED", "{}"],
    ["UNKNOWN", "{}"],
    ["Unknown", "{}"],
    ["WELL_KNOWN", '{"state":"WELL_KNOWN"}'],
  ]) {
    const file = create(FileDescriptorProtoSchema, {
      name: "state.proto",
      syntax: "proto3",
      enumType: [{ name: "State", value: [{ name: zero ?? "", number: 0 }] }],
      messageType: [
        { name: "Tag", field: [{ name: "state", jsonName: "state", number: 1, type: Type.ENUM, typeName: ".State" }] },
      ],
    });
    const tag = createFileRegistry(file, () => undefined).getMessage("Tag");
    assert.ok(tag);
    assert.equal(writers.answer(tag)({}), text);
    assert.equal(writers.details.writerOf(tag)({ state: 0 }), "{}");
  }
});

test("times are cut to milliseconds for every day there is", () => {
  const ms = fc.integer({ min: -62_135_596_800_000, max: 253_402_300_799_999 });
  fc.assert(
    fc.property(ms, fc.integer({ min: 0, max: 999_999 }), (at, rest) => {
      const { seconds, nanos } = timestampFromDate(new Date(at));
      assert.equal(formatTimestamp(seconds, nanos + rest, "milliseconds"), `"${new Date(at).toISOString()}"`);
    }),
  );
  assert.throws(() => formatTimestamp(253_402_300_800n, 0, "exact"), RangeError);
  assert.throws(() => formatTimestamp(-62_135_596_801n, 0, "exact"), RangeError);
});

test("durations have as many digits as they need, in threes", () => {
  assert.equal(formatDuration(0n, 0), '"0s"');
  assert.equal(formatDuration(-1n, -500_000_000), '"-1.500s"');
  assert.equal(formatDuration(0n, -1), '"-0.000000001s"');
  assert.equal(formatDuration(315_576_000_000n, 0), '"315576000000s"');
});

test("strings are quoted as JSON.stringify does", () => {
  fc.assert(fc.property(fc.string({ unit: "binary", maxLength: 120 }), (text) => quote(text) === JSON.stringify(text)));
  assert.equal(quote("</script>\u2028"), JSON.stringify("</script>\u2028"));
});
