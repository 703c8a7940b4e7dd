import assert from "node:assert/strict";
import { test } from "node:test";
import { create, toJson } from "@bufbuild/protobuf";
import { getFieldsByName } from "../../../src/codec/fields.js";
import { createQueryBinder, MAX_QUERY_PARAMETERS, type QueryRules } from "../../../src/transport/rest/query.js";
import { featureMessage, featureRegistry } from "../../support/feature/feature.js";

const kinds = featureMessage("Kinds");
const list = featureMessage("ListThingsRequest");

function bindQuery(query: string, rules: Partial<QueryRules> = {}): unknown {
  const input = rules.input ?? kinds;
  const bind = createQueryBinder({ input, body: "none", inPath: new Set(), ignoreUnknown: false, ...rules });
  const message = create(input);
  bind(message, query);
  return toJson(input, message, { registry: featureRegistry });
}

const rows: readonly { query: string; json: unknown; reason: string }[] = [
  { query: "", json: {}, reason: "nothing" },
  { query: "&&", json: {}, reason: "separators alone" },
  { query: "stringValue=a", json: { stringValue: "a" }, reason: "camelCase" },
  { query: "string_value=a", json: { stringValue: "a" }, reason: "snake_case" },
  { query: "stringValue=a&", json: { stringValue: "a" }, reason: "a separator at the end" },
  { query: "stringValue=a+b%20c", json: { stringValue: "a b c" }, reason: "plus and %20 are spaces" },
  { query: "stringValue=a%2Bb", json: { stringValue: "a+b" }, reason: "an escaped plus is one" },
  { query: "stringValue=a=b", json: { stringValue: "a=b" }, reason: "the first = separates" },
  { query: "stringValue=%C3%A4%F0%9F%98%80", json: { stringValue: "ä😀" }, reason: "UTF-8" },
  { query: "stringValue=a%26b%3Dc", json: { stringValue: "a&b=c" }, reason: "escaped separators" },
  { query: "stringValue=a;b", json: { stringValue: "a;b" }, reason: "semicolons separate nothing" },
  { query: "%73tring_value=a", json: { stringValue: "a" }, reason: "names may be escaped" },
  { query: "optionalString=", json: { optionalString: "" }, reason: "an empty string is given" },
  { query: "optionalString", json: { optionalString: "" }, reason: "so it is without =" },
  { query: "boolValue=true", json: { boolValue: true }, reason: "true" },
  { query: "boolValue=TRUE", json: { boolValue: true }, reason: "case of true" },
  { query: "boolValue=1", json: { boolValue: true }, reason: "1 is true" },
  { query: "optionalBool=False", json: { optionalBool: false }, reason: "false is given" },
  { query: "optionalBool=0", json: { optionalBool: false }, reason: "0 is false" },
  { query: "int32Value=-2147483648", json: { int32Value: -2147483648 }, reason: "least int32" },
  { query: "int32Value=2147483647", json: { int32Value: 2147483647 }, reason: "greatest int32" },
  { query: "int32Value=007", json: { int32Value: 7 }, reason: "leading zeros" },
  { query: "optionalInt32=0", json: { optionalInt32: 0 }, reason: "optional and zero" },
  { query: "optionalInt32=-0", json: { optionalInt32: 0 }, reason: "minus zero is zero" },
  { query: "uint32Value=4294967295", json: { uint32Value: 4294967295 }, reason: "greatest uint32" },
  { query: "sint32Value=-5", json: { sint32Value: -5 }, reason: "sint32" },
  { query: "fixed32Value=5", json: { fixed32Value: 5 }, reason: "fixed32" },
  { query: "sfixed32Value=-5", json: { sfixed32Value: -5 }, reason: "sfixed32" },
  { query: "int64Value=-9223372036854775808", json: { int64Value: "-9223372036854775808" }, reason: "least int64" },
  { query: "int64Value=9007199254740993", json: { int64Value: "9007199254740993" }, reason: "every digit counts" },
  {
    query: "uint64Value=18446744073709551615",
    json: { uint64Value: "18446744073709551615" },
    reason: "greatest uint64",
  },
  { query: "sint64Value=-1", json: { sint64Value: "-1" }, reason: "sint64" },
  { query: "fixed64Value=1", json: { fixed64Value: "1" }, reason: "fixed64" },
  { query: "sfixed64Value=-1", json: { sfixed64Value: "-1" }, reason: "sfixed64" },
  { query: "stringLong=12", json: { stringLong: "12" }, reason: "64 bits kept as string" },
  { query: "doubleValue=1.5e3", json: { doubleValue: 1500 }, reason: "exponent" },
  { query: "doubleValue=-0.25", json: { doubleValue: -0.25 }, reason: "fraction" },
  { query: "doubleValue=NaN", json: { doubleValue: "NaN" }, reason: "NaN" },
  { query: "doubleValue=-Infinity", json: { doubleValue: "-Infinity" }, reason: "infinity" },
  { query: "floatValue=0.5", json: { floatValue: 0.5 }, reason: "float" },
  { query: "bytesValue=aGk%3D", json: { bytesValue: "aGk=" }, reason: "padded base64" },
  { query: "bytesValue=aGk", json: { bytesValue: "aGk=" }, reason: "base64 without padding" },
  { query: "bytesValue=-_8", json: { bytesValue: "+/8=" }, reason: "the URL alphabet" },
  { query: "bytesValue=%2B/8", json: { bytesValue: "+/8=" }, reason: "the standard alphabet" },
  { query: "colorValue=COLOR_RED", json: { colorValue: "COLOR_RED" }, reason: "enum by name" },
  { query: "colorValue=2", json: { colorValue: "COLOR_BLUE" }, reason: "enum by number" },
  { query: "strings=a&strings=b,c", json: { strings: ["a", "b,c"] }, reason: "repeated, commas are text" },
  { query: "strings=", json: { strings: [""] }, reason: "an empty element" },
  { query: "longs=1&longs=2", json: { longs: ["1", "2"] }, reason: "repeated 64 bits" },
  { query: "colors=COLOR_RED&colors=2", json: { colors: ["COLOR_RED", "COLOR_BLUE"] }, reason: "repeated enum" },
  { query: "doubles=1&doubles=NaN", json: { doubles: [1, "NaN"] }, reason: "repeated double" },
  { query: "detail.title=a&detail.level=2", json: { detail: { title: "a", level: 2 } }, reason: "nested" },
  { query: "detail.inner.inner.title=a", json: { detail: { inner: { inner: { title: "a" } } } }, reason: "deeper" },
  { query: "detail.lines=a&detail.lines=b", json: { detail: { lines: ["a", "b"] } }, reason: "nested, repeated" },
  { query: "stringMap[a.b]=c", json: { stringMap: { "a.b": "c" } }, reason: "map" },
  { query: "string_map%5Ba%5D=b&stringMap[c]=", json: { stringMap: { a: "b", c: "" } }, reason: "map, escaped" },
  { query: "stringMap[]=a", json: { stringMap: { "": "a" } }, reason: "map with an empty key" },
  { query: "numberMap[-1]=5", json: { numberMap: { "-1": "5" } }, reason: "map of numbers" },
  { query: "colorMap[true]=COLOR_RED", json: { colorMap: { true: "COLOR_RED" } }, reason: "map of bools" },
  { query: "timestamp=2026-01-31T09:30:00Z", json: { timestamp: "2026-01-31T09:30:00Z" }, reason: "timestamp" },
  {
    query: "timestamp=2026-01-31T09:30:00.5%2B02:00",
    json: { timestamp: "2026-01-31T07:30:00.500Z" },
    reason: "timestamp with offset",
  },
  { query: "duration=1.5s", json: { duration: "1.500s" }, reason: "duration" },
  { query: "duration=-3s", json: { duration: "-3s" }, reason: "negative duration" },
  {
    query: "fieldMask=name,claimMatch.issuer",
    json: { fieldMask: "name,claimMatch.issuer" },
    reason: "mask, camelCase",
  },
  { query: "field_mask=claim_match.issuer", json: { fieldMask: "claimMatch.issuer" }, reason: "mask, snake_case" },
  { query: "fieldMask=%20a%20,+b", json: { fieldMask: "a,b" }, reason: "mask with spaces" },
  { query: "fieldMask=a,a", json: { fieldMask: "a,a" }, reason: "mask with repetition" },
  { query: "fieldMask=", json: { fieldMask: "" }, reason: "empty mask" },
  { query: "timestamp.seconds=1769851800", json: { timestamp: "2026-01-31T09:30:00Z" }, reason: "a part of a time" },
  {
    query: "timestamp.nanos=500000000&timestamp.seconds=253402300799",
    json: { timestamp: "9999-12-31T23:59:59.500Z" },
    reason: "both parts of a time",
  },
  {
    query: "timestamp=9999-12-31T23:59:59.999Z",
    json: { timestamp: "9999-12-31T23:59:59.999Z" },
    reason: "the last time",
  },
  {
    query: "duration.seconds=-1&duration.nanos=-500000000",
    json: { duration: "-1.500s" },
    reason: "parts of a duration",
  },
  { query: "fieldMask.paths=name", json: { fieldMask: "name" }, reason: "a path of a mask" },
  {
    query: "field_mask.paths=claim_match.issuer&fieldMask.paths=claimMatch.subject",
    json: { fieldMask: "claimMatch.issuer,claimMatch.subject" },
    reason: "paths of a mask, in either spelling",
  },
  { query: "stringWrapper.value=a", json: { stringWrapper: "a" }, reason: "the value of a wrapper" },
  { query: "int64Wrapper.value=9007199254740993", json: { int64Wrapper: "9007199254740993" }, reason: "of 64 bits" },
  { query: "choiceWrapper.value=", json: { choiceWrapper: "" }, reason: "of a wrapper in a oneof" },
  { query: "struct=%7B%22a%22:[1]%7D", json: { struct: { a: [1] } }, reason: "struct as JSON" },
  { query: "value=[1,null]", json: { value: [1, null] }, reason: "value as JSON" },
  { query: "value=null", json: { value: null }, reason: "value null" },
  { query: "listValue=[true]", json: { listValue: [true] }, reason: "list as JSON" },
  { query: "stringWrapper=", json: { stringWrapper: "" }, reason: "wrapper of an empty string" },
  { query: "int64Wrapper=9007199254740993", json: { int64Wrapper: "9007199254740993" }, reason: "wrapper of 64 bits" },
  { query: "boolWrapper=false", json: { boolWrapper: false }, reason: "wrapper of false" },
  { query: "bytesWrapper=aGk", json: { bytesWrapper: "aGk=" }, reason: "wrapper of bytes" },
  { query: "doubleWrapper=0", json: { doubleWrapper: 0 }, reason: "wrapper of zero" },
  { query: "stringWrappers=a&string_wrappers=", json: { stringWrappers: ["a", ""] }, reason: "list of wrappers" },
  {
    query: "timestamps=2026-01-31T09:30:00Z&timestamps=1970-01-01T00:00:00Z",
    json: { timestamps: ["2026-01-31T09:30:00Z", "1970-01-01T00:00:00Z"] },
    reason: "list of timestamps",
  },
  { query: "choiceString=a", json: { choiceString: "a" }, reason: "oneof" },
  { query: "choiceInt32=0", json: { choiceInt32: 0 }, reason: "oneof, zero" },
  { query: "choiceWrapper=a", json: { choiceWrapper: "a" }, reason: "oneof, wrapper" },
  {
    query: "choiceDetail.title=a&choiceDetail.level=1",
    json: { choiceDetail: { title: "a", level: 1 } },
    reason: "oneof, message",
  },
  { query: "optionalColor=0", json: { optionalColor: "COLOR_UNSPECIFIED" }, reason: "optional enum at zero" },
];

for (const { query, json, reason } of rows) {
  test(`?${query}: ${reason}`, () => assert.deepEqual(bindQuery(query), json));
}

const int32 = "must be an integer between -2147483648 and 2147483647";
const int64 = "must be an integer between -9223372036854775808 and 9223372036854775807";
const PATHS = "must be field paths separated by commas";
const color = "must be one of COLOR_UNSPECIFIED, COLOR_RED, COLOR_BLUE";

const rejected: readonly { query: string; field: string; rule: string; reason: string }[] = [
  ...["", "a", "1.5", "1e2", "+5", "%205", "5%20", "0x5", "2147483648", "-2147483649", "--1", "9".repeat(400)].map(
    (text) => ({
      query: `int32Value=${text}`,
      field: "int32Value",
      rule: int32,
      reason: "no int32",
    }),
  ),
  { query: "int32_value=x", field: "int32Value", rule: int32, reason: "errors say camelCase" },
  { query: "int32Value", field: "int32Value", rule: int32, reason: "no value" },
  {
    query: "uint32Value=-1",
    field: "uint32Value",
    rule: "must be an integer between 0 and 4294967295",
    reason: "sign",
  },
  { query: "int64Value=9223372036854775808", field: "int64Value", rule: int64, reason: "beyond int64" },
  {
    query: "uint64Value=-1",
    field: "uint64Value",
    rule: "must be an integer between 0 and 18446744073709551615",
    reason: "sign of uint64",
  },
  { query: "boolValue", field: "boolValue", rule: "must be true or false", reason: "a bare flag" },
  { query: "boolValue=", field: "boolValue", rule: "must be true or false", reason: "an empty flag" },
  { query: "boolValue=yes", field: "boolValue", rule: "must be true or false", reason: "yes" },
  { query: "doubleValue=", field: "doubleValue", rule: "must be a number", reason: "empty" },
  { query: "doubleValue=1e999", field: "doubleValue", rule: "must be a number", reason: "beyond a double" },
  { query: "doubleValue=inf", field: "doubleValue", rule: "must be a number", reason: "another spelling" },
  { query: "doubleValue=0x1p3", field: "doubleValue", rule: "must be a number", reason: "hexadecimal" },
  { query: "floatValue=1e39", field: "floatValue", rule: "must be a number", reason: "beyond a float" },
  { query: "bytesValue=a", field: "bytesValue", rule: "must be base64", reason: "one digit too many" },
  { query: "bytesValue=%2B_8", field: "bytesValue", rule: "must be base64", reason: "two alphabets" },
  { query: "bytesValue=a.b", field: "bytesValue", rule: "must be base64", reason: "no digit of base64" },
  { query: "colorValue=red", field: "colorValue", rule: color, reason: "unknown name" },
  { query: "colorValue=7", field: "colorValue", rule: color, reason: "unknown number" },
  { query: "colorValue=", field: "colorValue", rule: color, reason: "empty name" },
  { query: "stringValue=a&stringValue=a", field: "stringValue", rule: "is given twice", reason: "twice" },
  {
    query: "stringValue=a&string_value=b",
    field: "stringValue",
    rule: "is given twice",
    reason: "twice, spelt differently",
  },
  { query: "detail.title=a&detail.title=b", field: "detail.title", rule: "is given twice", reason: "twice, nested" },
  { query: "stringMap[a]=1&stringMap[a]=2", field: "stringMap", rule: "has the key a twice", reason: "a key twice" },
  { query: "stringMap[__proto__]=1", field: "stringMap", rule: "must not have a key __proto__", reason: "prototype" },
  { query: "numberMap[x]=1", field: "numberMap", rule: int32, reason: "a key of another type" },
  { query: "stringValue=%00", field: "stringValue", rule: "must not hold U+0000", reason: "NUL" },
  {
    query: "choiceString=a&choiceInt32=1",
    field: "choiceInt32",
    rule: "cannot be given together with choiceString",
    reason: "two of a oneof",
  },
  {
    query: "choiceString=a&choiceDetail.title=1",
    field: "choiceDetail.title",
    rule: "cannot be given together with choiceString",
    reason: "two of a oneof, one of them nested",
  },
  {
    query: "timestamp=2026-01-31",
    field: "timestamp",
    rule: "must be a time of RFC 3339 such as 2026-01-31T09:30:00Z",
    reason: "a date",
  },
  {
    query: "duration=1h30m",
    field: "duration",
    rule: "must be seconds with the suffix s such as 1.5s",
    reason: "hours",
  },
  {
    query: "timestamps=1970-01-01T00:00:00Z&timestamps=x",
    field: "timestamps",
    rule: "must be a time of RFC 3339 such as 2026-01-31T09:30:00Z",
    reason: "an element of a list",
  },
  { query: "duration=5", field: "duration", rule: "must be seconds with the suffix s such as 1.5s", reason: "no unit" },
  { query: "fieldMask=,", field: "fieldMask", rule: "must be field paths separated by commas", reason: "empty paths" },
  { query: "fieldMask=a[0]", field: "fieldMask", rule: "must be field paths separated by commas", reason: "an index" },
  {
    query: "fieldMask=a..b",
    field: "fieldMask",
    rule: "must be field paths separated by commas",
    reason: "an empty name",
  },
  ...["253402300800", "-62135596801"].map((seconds) => ({
    query: `timestamp.seconds=${seconds}`,
    field: "timestamp",
    rule: "must be a time of RFC 3339 such as 2026-01-31T09:30:00Z",
    reason: "seconds beyond the years there are",
  })),
  ...["1000000000", "-1"].map((nanos) => ({
    query: `timestamp.seconds=1&timestamp.nanos=${nanos}`,
    field: "timestamp",
    rule: "must be a time of RFC 3339 such as 2026-01-31T09:30:00Z",
    reason: "nanoseconds that are no part of a second",
  })),
  { query: "timestamp.seconds=1.5", field: "timestamp.seconds", rule: int64, reason: "a part of another type" },
  {
    query: "duration.seconds=315576000001",
    field: "duration",
    rule: "must be seconds with the suffix s such as 1.5s",
    reason: "too long",
  },
  { query: "fieldMask.paths=a,b", field: "fieldMask.paths", rule: PATHS, reason: "two paths in one" },
  { query: "fieldMask.paths=", field: "fieldMask.paths", rule: PATHS, reason: "an empty path" },
  ...["fieldMask=a&fieldMask.paths=b", "fieldMask.paths=b&field_mask=a"].map((query) => ({
    query,
    field: "fieldMask",
    rule: "is given twice",
    reason: "as a whole and in parts",
  })),
  ...["timestamp=1970-01-01T00:00:00Z&timestamp.seconds=1", "timestamp.nanos=1&timestamp=1970-01-01T00:00:00Z"].map(
    (query) => ({ query, field: "timestamp", rule: "is given twice", reason: "as a whole and in parts" }),
  ),
  {
    query: "timestamp.seconds=1&timestamp.seconds=1",
    field: "timestamp.seconds",
    rule: "is given twice",
    reason: "a part twice",
  },
  {
    query: "stringWrapper=a&stringWrapper.value=b",
    field: "stringWrapper",
    rule: "is given twice",
    reason: "a wrapper",
  },
  { query: "struct=[]", field: "struct", rule: "must be a JSON object", reason: "no object" },
  { query: "listValue={}", field: "listValue", rule: "must be a JSON array", reason: "no array" },
  { query: "struct=x", field: "struct", rule: "is not valid JSON at position 1", reason: "no JSON" },
];

for (const { query, field, rule, reason } of rejected) {
  test(`rejects ?${query.slice(0, 60)}: ${reason}`, () => {
    assert.throws(() => bindQuery(query), {
      name: "ApiError",
      message: `Invalid argument: ${field}: ${field} ${rule}`,
    });
  });
}

const unknown: readonly { query: string; shown: string; hint: string; reason: string }[] = [
  { query: "nonsense=1", shown: "nonsense", hint: "", reason: "nothing near" },
  { query: "pagesize=1", shown: "pagesize", hint: ", did you mean pageSize?", reason: "case" },
  { query: "pageSzie=1", shown: "pageSzie", hint: ", did you mean pageSize?", reason: "swapped letters" },
  {
    query: "page_sise=1",
    shown: "page_sise",
    hint: ", did you mean page_size?",
    reason: "in the spelling of the caller",
  },
  {
    query: "filter.descendants=1",
    shown: "filter.descendants",
    hint: ", did you mean filter.descendantsOf?",
    reason: "nested",
  },
  { query: "filter=1", shown: "filter", hint: "", reason: "a message" },
  { query: "filter.details=1", shown: "filter.details", hint: "", reason: "a list of messages" },
  { query: "filter.details.title=1", shown: "filter.details.title", hint: "", reason: "through a list" },
  {
    query: "pageSize[]=1",
    shown: "pageSize[]",
    hint: ", did you mean pageSize?",
    reason: "brackets of another dialect",
  },
  { query: "pageSize.x=1", shown: "pageSize.x", hint: ", did you mean pageSize?", reason: "below a scalar" },
  { query: "pageSize.value=1", shown: "pageSize.value", hint: "", reason: "below a scalar, as of a wrapper" },
  { query: "=1", shown: "", hint: "", reason: "no name" },
  { query: "__proto__=1", shown: "__proto__", hint: "", reason: "prototype" },
  { query: "constructor=1", shown: "constructor", hint: "", reason: "constructor" },
  { query: `${"a".repeat(300)}=1`, shown: "a".repeat(100), hint: "", reason: "no more than 100 letters come back" },
];

for (const { query, shown, hint, reason } of unknown) {
  test(`rejects the unknown ?${query.slice(0, 40)}: ${reason}`, () => {
    assert.throws(() => bindQuery(query, { input: list }), {
      message: `Invalid argument: ${shown}: ${`${shown} is`.trim()} not a parameter of this method${hint}`,
    });
    assert.deepEqual(bindQuery(query, { input: list, ignoreUnknown: true }), {}, "and passes it over where told so");
  });
}

const broken: readonly { query: string; rule: string; reason: string }[] = [
  { query: "a=%", rule: "a percent escape is malformed or not UTF-8", reason: "percent alone" },
  { query: "a=%zz", rule: "a percent escape is malformed or not UTF-8", reason: "no hex" },
  { query: "a=%ff", rule: "a percent escape is malformed or not UTF-8", reason: "not UTF-8" },
  { query: "%ff=a", rule: "a percent escape is malformed or not UTF-8", reason: "a name that is not UTF-8" },
  { query: "a=ä", rule: "characters outside printable ASCII must be percent-encoded", reason: "raw bytes" },
  { query: "a=a b", rule: "characters outside printable ASCII must be percent-encoded", reason: "a raw space" },
];

for (const { query, rule, reason } of broken) {
  test(`rejects ?${query}: ${reason}`, () => {
    assert.throws(() => bindQuery(query), { message: `Invalid argument: query: ${rule}` });
  });
}

test("1,024 parameters are taken, 1,025 are not", () => {
  const many = (count: number) => Array.from({ length: count }, () => "strings=a").join("&");
  assert.equal((bindQuery(many(MAX_QUERY_PARAMETERS)) as { strings: string[] }).strings.length, MAX_QUERY_PARAMETERS);
  assert.throws(() => bindQuery(many(MAX_QUERY_PARAMETERS + 1)), {
    message: "Invalid argument: query: at most 1024 parameters are allowed",
  });
  assert.throws(() => bindQuery(many(100_000)), {
    message: "Invalid argument: query: at most 1024 parameters are allowed",
  });
});

test("a rule whose body is everything leaves the query nothing", () => {
  assert.throws(() => bindQuery("string_value=a", { body: "all" }), {
    message: "Invalid argument: stringValue: stringValue belongs in the body of this request",
  });
});

test("a field that is the body cannot be given in the query, in whole or in part", () => {
  const body = getFieldsByName(kinds).get("detail") ?? "none";
  assert.throws(() => bindQuery("detail.title=a", { body }), {
    message: "Invalid argument: detail.title: detail.title belongs in the body of this request",
  });
  assert.deepEqual(bindQuery("stringValue=a", { body }), { stringValue: "a" });
});
