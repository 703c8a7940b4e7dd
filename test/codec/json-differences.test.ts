// Every deliberate difference between this service's JSON and that of protobuf-es, which are documented in
// docs/transcoding.md#json. Each row says what either of them does, so that a row which no longer holds fails.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  create,
  createFileRegistry,
  createRegistry,
  type DescMessage,
  fromJsonString,
  type JsonValue,
  type Message,
  toBinary,
  toJson,
  toJsonString,
} from "@bufbuild/protobuf";
import {
  AnySchema,
  anyPack,
  FieldMaskSchema,
  FileDescriptorProtoSchema,
  FieldDescriptorProto_Label as Label,
  StringValueSchema,
  StructSchema,
  FieldDescriptorProto_Type as Type,
} from "@bufbuild/protobuf/wkt";
import { encodeFrame } from "../../src/codec/frame-writer.js";
import { createJsonWriters } from "../../src/codec/json-writer.js";
import { createBodyReader } from "../../src/transport/rest/decode.js";
import { featureMessage, featureRegistry as registry } from "../support/feature/feature.js";

const kinds = featureMessage("Kinds");
const thing = featureMessage("Thing");
const detail = featureMessage("Detail");
const writers = createJsonWriters(registry);
const prefix = "type.googleapis.com/";

// What is read of a text, as JSON that does not tell who read it; undefined where it is rejected.
function readHere(desc: DescMessage, text: string, strict: boolean): JsonValue | undefined {
  return readBy(desc, () => createBodyReader(desc, "all", registry, strict)(text).message);
}

function readThere(desc: DescMessage, text: string, strict: boolean): JsonValue | undefined {
  return readBy(desc, () => fromJsonString(desc, text, { registry, ignoreUnknownFields: !strict }));
}

function readBy(desc: DescMessage, read: () => Message): JsonValue | undefined {
  let message: Message;
  try {
    message = read();
  } catch {
    return undefined;
  }
  return toJson(desc, message, { registry });
}

const deep = (levels: number) => `${'{"inner":'.repeat(levels)}{}${"}".repeat(levels)}`;

/** Where `here` or `there` is undefined the text is rejected. */
const reading: readonly {
  reason: string;
  desc?: DescMessage;
  texts: readonly string[];
  lenient?: boolean;
  here?: JsonValue;
  there?: JsonValue;
}[] = [
  {
    reason: "null for other members of a oneof leaves them unset",
    texts: [
      '{"choiceString":"a","choiceDetail":null}',
      '{"choiceDetail":null,"choiceString":"a"}',
      '{"choiceColor":null,"choiceString":"a","choiceWrapper":null}',
    ],
    here: { choiceString: "a" },
  },
  {
    reason: "there is no 30 February",
    texts: ['{"timestamp":"2024-02-30T00:00:00Z"}', '{"timestamp":"2024-02-29T24:00:00Z"}'],
    there: { timestamp: "2024-03-01T00:00:00Z" },
  },
  {
    reason: "nor a 29 February in every year",
    texts: ['{"timestamp":"2023-02-29T00:00:00Z"}'],
    there: { timestamp: "2023-03-01T00:00:00Z" },
  },
  {
    reason: "a number beyond 2^53 has lost digits",
    texts: ['{"int64Value":9007199254740993}'],
    there: { int64Value: "9007199254740992" },
  },
  {
    reason: "in a list as well",
    texts: ['{"longs":[9007199254740993]}'],
    there: { longs: ["9007199254740992"] },
  },
  {
    reason: "in a map as well",
    texts: ['{"numberMap":{"1":9007199254740993}}'],
    there: { numberMap: { 1: "9007199254740992" } },
  },
  {
    reason: "in a wrapper as well",
    texts: ['{"int64Wrapper":9007199254740993}'],
    there: { int64Wrapper: "9007199254740992" },
  },
  {
    reason: "in an Any as well",
    texts: [`{"any":{"@type":"${prefix}arbor.test.feature.Thing","size":9007199254740993}}`],
    there: { any: { "@type": `${prefix}arbor.test.feature.Thing`, size: "9007199254740992" } },
  },
  {
    reason: "an Any of a wrapper as well",
    texts: [`{"any":{"@type":"${prefix}google.protobuf.Int64Value","value":9007199254740993}}`],
    there: { any: { "@type": `${prefix}google.protobuf.Int64Value`, value: "9007199254740992" } },
  },
  { reason: "U+0000", texts: ['{"stringWrapper":"\\u0000"}'], there: { stringWrapper: "\0" } },
  {
    reason: "half a surrogate pair in a Struct",
    texts: ['{"struct":{"a":"\\ud800"}}'],
    there: { struct: { a: "\ud800" } },
  },
  {
    reason: "a name that sets the prototype of objects in many languages",
    texts: ['{"detailMap":{"__proto__":{}}}'],
    there: JSON.parse('{"detailMap":{"__proto__":{}}}') as JsonValue,
  },
  {
    reason: "a number that a double cannot hold",
    texts: ['{"uid":"a","nope":1e400}'],
    lenient: true,
    desc: thing,
    there: { uid: "a" },
  },
  {
    reason: "integers of 32 bits as text are decimal",
    desc: thing,
    texts: ['{"count":"0x10"}', '{"count":"0b10000"}', '{"count":"0o20"}', '{"count":"+16"}', '{"count":"16."}'],
    there: { count: 16 },
  },
  {
    reason: "integers of 64 bits as well",
    texts: ['{"int64Value":"0x10"}', '{"int64Value":" 16\\n"}', '{"int64Value":"0b10000"}', '{"int64Value":"+16"}'],
    there: { int64Value: "16" },
  },
  { reason: "blanks are no integer", texts: ['{"longs":[" "]}'], there: { longs: ["0"] } },
  {
    reason: "numbers with a fraction as well",
    texts: ['{"doubleValue":".5"}', '{"doubleValue":"+0.5"}'],
    there: { doubleValue: 0.5 },
  },
  {
    reason: "numbers as text have 100 characters at most",
    texts: [`{"int64Value":"${"0".repeat(100)}1"}`],
    there: { int64Value: "1" },
  },
  {
    reason: "nothing follows the s of a duration",
    texts: ['{"duration":"1sec"}', '{"duration":"1s "}'],
    there: { duration: "1s" },
  },
  {
    reason: "paths of masks may be snake_case and have spaces around",
    texts: ['{"fieldMask":"a_b, c.d_e"}', '{"fieldMask":"aB,c.d_e"}'],
    here: { fieldMask: "aB,c.dE" },
  },
  {
    reason: "an Any keeps the prefix of its type",
    texts: ['{"any":{"@type":"example.com/x/google.protobuf.Empty"}}'],
    here: { any: { "@type": "example.com/x/google.protobuf.Empty" } },
    there: { any: { "@type": `${prefix}google.protobuf.Empty` } },
  },
  {
    reason: "an Any of a type with a form of its own has a value",
    texts: [`{"any":{"@type":"${prefix}google.protobuf.Struct","a":1}}`],
    there: { any: { "@type": `${prefix}google.protobuf.Struct`, value: { a: 1 } } },
  },
  {
    reason: "and nothing else where unknown fields are rejected",
    texts: [`{"any":{"@type":"${prefix}google.protobuf.StringValue","value":"a","nope":1}}`],
    there: { any: { "@type": `${prefix}google.protobuf.StringValue`, value: "a" } },
  },
  {
    reason: "an unknown name of an enum is never passed over",
    desc: thing,
    texts: ['{"color":"RED"}'],
    lenient: true,
    there: {},
  },
  { reason: "JSON nests 64 deep", desc: detail, texts: [deep(64)], there: JSON.parse(deep(64)) as JsonValue },
];

describe("JSON that is read otherwise than protobuf-es reads it", () => {
  for (const { reason, desc = kinds, texts, lenient = false, here, there } of reading) {
    for (const text of texts) {
      test(`${reason}: ${text.slice(0, 80)}`, () => {
        assert.deepEqual(readHere(desc, text, !lenient), here, "here");
        assert.deepEqual(readThere(desc, text, !lenient), there, "protobuf-es");
      });
    }
  }
});

const extended = createFileRegistry(
  create(FileDescriptorProtoSchema, {
    name: "extended.proto",
    package: "x",
    syntax: "proto2",
    messageType: [{ name: "Open", extensionRange: [{ start: 10, end: 20 }] }],
    extension: [
      { name: "more", number: 10, type: Type.INT32, label: Label.OPTIONAL, extendee: ".x.Open", jsonName: "more" },
    ],
  }),
  () => undefined,
);

test("extensions are neither read nor written", () => {
  const open = extended.getMessage("x.Open") as DescMessage;
  const text = '{"[x.more]":1}';
  const message = fromJsonString(open, text, { registry: extended });
  assert.equal(toJsonString(open, message, { registry: extended }), text);
  assert.throws(() => createBodyReader(open, "all", extended, true)(text));
  assert.equal(createJsonWriters(extended).answer(open)(message), "{}");
  assert.equal(encodeFrame(open, message).length, 5);
  assert.equal(toBinary(open, message).length, 2);
});

describe("JSON that is written otherwise than protobuf-es writes it", () => {
  const time = { seconds: 1767225600n, nanos: 123_456_789 };
  const rows: readonly { reason: string; desc?: DescMessage; value: object; here: string; there: string }[] = [
    {
      reason: "timestamps have three digits",
      value: { timestamp: time },
      here: '{"timestamp":"2026-01-01T00:00:00.123Z"}',
      there: '{"timestamp":"2026-01-01T00:00:00.123456789Z"}',
    },
    {
      reason: "three also where there is no fraction",
      value: { timestamp: { seconds: 0n } },
      here: '{"timestamp":"1970-01-01T00:00:00.000Z"}',
      there: '{"timestamp":"1970-01-01T00:00:00Z"}',
    },
    {
      reason: "minus zero keeps its sign",
      value: { doubleValue: -0 },
      here: '{"doubleValue":-0}',
      there: '{"doubleValue":0}',
    },
    {
      reason: "integers kept as text lose zeros in front",
      value: { stringLong: "007" },
      here: '{"stringLong":"7"}',
      there: '{"stringLong":"007"}',
    },
    {
      reason: "what is INPUT_ONLY is left out",
      desc: thing,
      value: { secret: "s" },
      here: "{}",
      there: '{"secret":"s"}',
    },
  ];
  for (const { reason, desc = kinds, value, here, there } of rows) {
    test(reason, () => {
      const message = create(desc, value as Record<string, unknown>);
      assert.equal(writers.details.writerOf(desc)(message), here, "here");
      assert.equal(toJsonString(desc, message, { registry }), there, "protobuf-es");
    });
  }

  test("a service of somebody else has the timestamps of protobuf-es", () => {
    const foreign = createJsonWriters(registry, "exact").details.writerOf(kinds);
    for (const nanos of [0, 5_000_000, 5_000, 5, 999_999_999]) {
      const message = create(kinds, { timestamp: { seconds: -1n, nanos } } as Record<string, unknown>);
      assert.equal(foreign(message), toJsonString(kinds, message));
    }
  });

  test("answers leave out an enum at a zero that says nothing, and an empty page token", () => {
    const list = featureMessage("ListThingsResponse");
    const there = toJson(thing, create(thing), { alwaysEmitImplicit: true }) as Record<string, unknown>;
    assert.equal(there.color, "COLOR_UNSPECIFIED");
    assert.equal(Object.hasOwn(JSON.parse(writers.answer(thing)({})) as object, "color"), false);
    assert.match(toJsonString(list, create(list), { alwaysEmitImplicit: true }), /"nextPageToken":""/);
    assert.doesNotMatch(writers.answer(list)({}), /nextPageToken/);
  });
});

describe("values of a handler that cannot be written are errors, where protobuf-es may write others", () => {
  const rows: readonly { reason: string; desc?: DescMessage; value: object; json?: "json" }[] = [
    { reason: "half a surrogate pair", desc: thing, value: { displayName: "a\ud800" } },
    { reason: "half a surrogate pair in a long text", desc: thing, value: { displayName: `${"x".repeat(300)}\udc00` } },
    { reason: "half a surrogate pair in a key", desc: thing, value: { labels: { "\ud800": "" } } },
    { reason: "half a surrogate pair in a list", desc: thing, value: { tags: ["\udfff"] } },
    { reason: "half a surrogate pair in a wrapper", value: { stringWrapper: "\ud800" } },
    { reason: "half a surrogate pair in a Struct", value: { struct: { a: "\ud800" } } },
    { reason: "a number for a text", desc: thing, value: { displayName: 5 } },
    { reason: "a list for a text", desc: thing, value: { displayName: [] } },
    { reason: "NaN for an integer", desc: thing, value: { count: Number.NaN } },
    { reason: "a fraction for an integer", desc: thing, value: { count: 1.5 } },
    { reason: "an integer beyond 32 bits", desc: thing, value: { count: 2 ** 31 } },
    { reason: "an integer beyond 64 bits", desc: thing, value: { size: 2n ** 63n } },
    { reason: "a negative number without sign", value: { uint64Value: -1n } },
    { reason: "a fraction for a long", desc: thing, value: { size: 0.5 } },
    { reason: "text for a long", value: { stringLong: "many" } },
    { reason: "a float beyond 32 bits", value: { floatValue: 3.5e38 } },
    { reason: "text for a number", value: { doubleValue: "1" } },
    { reason: "a number for a boolean", desc: thing, value: { enabled: 1 } },
    { reason: "text for an enum", desc: thing, value: { color: "COLOR_RED" } },
    { reason: "a fraction for an enum", desc: thing, value: { color: 0.5 } },
    { reason: "text for bytes", value: { bytesValue: "aGk=" } },
    { reason: "text for a list", desc: thing, value: { tags: "ab" } },
    { reason: "a list for a map", desc: thing, value: { labels: ["a"] } },
    { reason: "a Map for a map", desc: thing, value: { labels: new Map([["a", "b"]]) } },
    { reason: "a key that is no integer", value: { numberMap: { a: 1n } } },
    { reason: "a key that is no boolean", value: { colorMap: { yes: 1 } } },
    { reason: "text for a message", desc: thing, value: { detail: "x" } },
    { reason: "a list for a message", desc: thing, value: { detail: [] } },
    { reason: "nothing for a message in a list", desc: thing, value: { parts: [undefined] } },
    { reason: "nothing for a wrapper in a list", value: { stringWrappers: [undefined] } },
    { reason: "a message of another type", desc: thing, value: { detail: create(StringValueSchema) } },
    { reason: "a Date for a timestamp", value: { timestamp: new Date() } },
    { reason: "NaN in a Struct", value: { struct: { a: Number.NaN } } },
    { reason: "nothing in a Struct", value: { struct: { a: undefined } } },
    { reason: "a Date in a Struct", value: { struct: { a: new Date() } } },
    // What follows is a message in binary, but has no JSON.
    { reason: "a time before the year 1", value: { timestamp: { seconds: -62_135_596_801n } }, json: "json" },
    { reason: "a time after the year 9999", value: { timestamp: { seconds: 253_402_300_800n } }, json: "json" },
    { reason: "a second of 10^9 ns and more", value: { timestamp: { nanos: 1_000_000_000 } }, json: "json" },
    { reason: "negative nanoseconds", value: { timestamp: { seconds: 5n, nanos: -1 } }, json: "json" },
    {
      reason: "a duration of more than 10,000 years",
      value: { duration: { seconds: 315_576_000_001n } },
      json: "json",
    },
    { reason: "a duration of two signs", value: { duration: { seconds: 1n, nanos: -1 } }, json: "json" },
    { reason: "a Value that has none", value: { value: { kind: { case: undefined } } }, json: "json" },
    {
      reason: "a Value without end",
      value: { value: { kind: { case: "numberValue", value: Number.POSITIVE_INFINITY } } },
      json: "json",
    },
    { reason: "a path that would be read as another", value: { fieldMask: { paths: ["a__b"] } }, json: "json" },
    { reason: "a path in camelCase", value: { fieldMask: { paths: ["aB"] } }, json: "json" },
    { reason: "a path with a digit after _", value: { fieldMask: { paths: ["line_1"] } }, json: "json" },
    { reason: "a path with a comma", value: { fieldMask: { paths: ["a,b"] } }, json: "json" },
    { reason: "an Any of an unknown type", value: { any: { typeUrl: "x/no.Such" } }, json: "json" },
    { reason: "an Any of no type", value: { any: { value: new Uint8Array(1) } }, json: "json" },
    {
      reason: "an Any whose bytes are of another type",
      value: { any: { typeUrl: "x/arbor.test.feature.Detail", value: new Uint8Array([255]) } },
      json: "json",
    },
    {
      reason: "an Any within an Any of an unknown type",
      value: { any: anyPack(AnySchema, create(AnySchema, { typeUrl: "x/no.Such" })) },
      json: "json",
    },
  ];
  for (const { reason, desc = kinds, value, json } of rows) {
    test(reason, () => {
      for (const write of [writers.answer(desc), writers.details.writerOf(desc)])
        assert.throws(() => write(value), /is no |invalid|not|premature|range|illegal|prototype/i, "JSON");
      if (json === undefined) assert.throws(() => encodeFrame(desc, value), RangeError, "frame");
      else assert.ok(encodeFrame(desc, value).length > 5);
    });
  }

  test("those of them that are messages of their own", () => {
    assert.throws(() => writers.answer(FieldMaskSchema)("a,b"));
    assert.throws(() => writers.answer(StructSchema)({ fields: { a: 5 } }));
    assert.throws(() => createJsonWriters(createRegistry()).answer(AnySchema)(anyPack(detail, create(detail))));
  });
});
