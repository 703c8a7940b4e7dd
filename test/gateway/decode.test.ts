import assert from "node:assert/strict";
import { test } from "node:test";
import { toJson } from "@bufbuild/protobuf";
import { bindingsOf } from "../../src/gateway/binding.js";
import { createDecode, type DecodeOptions, type ReadBody } from "../../src/gateway/decode.js";
import { entryOf, featureMethod, featureRegistry } from "../support/feature/feature.js";

function decoded(
  method: string,
  captures: readonly string[],
  query: string,
  body: string | ReadBody | undefined,
  options: Partial<DecodeOptions> = {},
): unknown {
  const entry = entryOf(featureMethod(method));
  const [binding] = bindingsOf(entry);
  assert.ok(binding);
  const decode = createDecode(binding, {
    registry: featureRegistry,
    strictBody: false,
    ignoreUnknownQuery: false,
    ...options,
  });
  const read = typeof body === "string" ? { bytes: Buffer.from(body), contentType: "application/json" } : body;
  return toJson(entry.desc.input, decode(captures, query, read), { registry: featureRegistry });
}

const rows: readonly {
  method: string;
  captures: readonly string[];
  query?: string;
  body?: string;
  json: unknown;
  reason: string;
}[] = [
  { method: "GetThing", captures: ["a/b"], json: { uid: "a/b" }, reason: "path alone" },
  { method: "GetThing", captures: ["a"], query: "uid=a", json: { uid: "a" }, reason: "path and query agree" },
  { method: "GetThing", captures: ["a"], query: "view_name=x", json: { uid: "a", viewName: "x" }, reason: "path and query" },
  {
    method: "GetTyped",
    captures: ["-5", "18446744073709551615", "true", "COLOR_RED"],
    json: { int32Value: -5, uint64Value: "18446744073709551615", boolValue: true, colorValue: "COLOR_RED" },
    reason: "typed variables",
  },
  {
    method: "CreateThing",
    captures: ["p"],
    body: '{"displayName":"x"}',
    json: { parent: "p", thing: { displayName: "x" } },
    reason: "a body that is one field",
  },
  {
    method: "CreateThing",
    captures: ["p"],
    query: "validateOnly=true",
    body: "{}",
    json: { parent: "p", thing: {}, validateOnly: true },
    reason: "body, path and query",
  },
  { method: "CreateThing", captures: ["p"], body: "", json: { parent: "p" }, reason: "no bytes: the field is unset" },
  {
    method: "CreateThing",
    captures: ["p"],
    body: '{"display_name":"x","nope":{"deep":[1]}}',
    json: { parent: "p", thing: { displayName: "x" } },
    reason: "names of the proto; unknown fields passed over",
  },
  {
    method: "CreateThing",
    captures: ["p"],
    body: '{"detail":{"nope":1,"title":"t"},"parts":[{"nope":1,"level":2}],"color":"COLOR_RED"}',
    json: { parent: "p", thing: { detail: { title: "t" }, parts: [{ level: 2 }], color: "COLOR_RED" } },
    reason: "unknown fields passed over at every depth",
  },
  {
    method: "CreateThing",
    captures: ["p"],
    body: '{"constructor":1,"toString":"x","hasOwnProperty":{}}',
    json: { parent: "p", thing: {} },
    reason: "names that objects inherit are unknown fields",
  },
  {
    method: "CreateThing",
    captures: ["p"],
    body: '{"displayName":null,"createTime":null,"tags":null,"labels":null,"detail":null}',
    json: { parent: "p", thing: {} },
    reason: "null is unset",
  },
  {
    method: "CreateThing",
    captures: ["p"],
    body: '{"size":"9007199254740993","count":"12"}',
    json: { parent: "p", thing: { size: "9007199254740993", count: 12 } },
    reason: "numbers as strings",
  },
  {
    method: "CreateThing",
    captures: ["p"],
    body: '{"size":9007199254740991,"extra":{"big":1e300}}',
    json: { parent: "p", thing: { size: "9007199254740991", extra: { big: 1e300 } } },
    reason: "numbers within 2^53; a double may be any number",
  },
  {
    method: "CreateThing",
    captures: ["p"],
    body: '{"legacyName":"x","line1":"y"}',
    json: { parent: "p", thing: { legacyName: "x", line1: "y" } },
    reason: "json_name",
  },
  {
    method: "ReplaceThing",
    captures: ["u"],
    body: '{"thing":{"uid":"u","count":1},"updateMask":"count,displayName"}',
    json: { thing: { uid: "u", count: 1 }, updateMask: "count,displayName" },
    reason: "a body that is everything, agreeing with the path",
  },
  {
    method: "ReplaceThing",
    captures: ["u"],
    body: '{"thing":{"uid":""},"update_mask":"display_name, create_time"}',
    json: { thing: { uid: "u" }, updateMask: "displayName,createTime" },
    reason: "an empty second value yields; a mask in snake_case",
  },
  { method: "ReplaceThing", captures: ["u"], body: "{}", json: { thing: { uid: "u" } }, reason: "an empty object" },
  {
    method: "ArchiveThing",
    captures: ["u"],
    body: '{"reason":"r","since":"2026-01-31T09:30:00.123Z"}',
    json: { uid: "u", reason: "r", since: "2026-01-31T09:30:00.123Z" },
    reason: "a verb with a body",
  },
  { method: "SetTags", captures: ["u"], body: '["a","b"]', json: { uid: "u", tags: ["a", "b"] }, reason: "a repeated body" },
  { method: "SetTags", captures: ["u"], body: "[]", json: { uid: "u" }, reason: "a repeated body without elements" },
  {
    method: "Echo",
    captures: [],
    body: '{"any":{"@type":"type.googleapis.com/arbor.test.feature.Detail","title":"t"}}',
    json: { any: { "@type": "type.googleapis.com/arbor.test.feature.Detail", title: "t" } },
    reason: "Any of a known type",
  },
  { method: "Echo", captures: [], body: '{"value":null}', json: { value: null }, reason: "a null that is a value" },
  {
    method: "Echo",
    captures: [],
    body: '{"doubleValue":9007199254740993,"int64Wrapper":"1"}',
    json: { doubleValue: 9007199254740992, int64Wrapper: "1" },
    reason: "a double may be a long whole number",
  },
];

for (const { method, captures, query = "", body, json, reason } of rows) {
  test(`${method} ${captures.join(" ")} ?${query} ${body ?? ""}: ${reason}`, () => {
    assert.deepEqual(decoded(method, captures, query, body), json);
  });
}

const refused: readonly {
  method: string;
  captures?: readonly string[];
  query?: string;
  body?: string;
  strict?: boolean;
  field: string;
  rule: string;
  reason: string;
}[] = [
  {
    method: "GetThing",
    query: "uid=other",
    field: "uid",
    rule: "is set by the path, the query must not say otherwise",
    reason: "path against query",
  },
  {
    method: "GetThing",
    query: "uid=",
    field: "uid",
    rule: "is set by the path, the query must not say otherwise",
    reason: "path against an empty query",
  },
  {
    method: "ReplaceThing",
    body: '{"thing":{"uid":"other"}}',
    field: "thing.uid",
    rule: "is set by the path, the body must not say otherwise",
    reason: "path against body",
  },
  {
    method: "UpdateThing",
    body: '{"uid":"other"}',
    field: "uid",
    rule: "is set by the path, the body must not say otherwise",
    reason: "path against a body that is one field",
  },
  {
    method: "UpdateThing",
    query: "thing.displayName=x",
    body: "{}",
    field: "thing.displayName",
    rule: "belongs in the body of this request",
    reason: "query into the body",
  },
  {
    method: "UpdateThing",
    query: "thing.uid=x",
    body: "{}",
    field: "thing.uid",
    rule: "belongs in the body of this request",
    reason: "query into the body, set by the path",
  },
  {
    method: "ReplaceThing",
    query: "updateMask=a",
    body: "{}",
    field: "updateMask",
    rule: "belongs in the body of this request",
    reason: "query beside a body that is everything",
  },
  { method: "CreateThing", body: "null", field: "body", rule: "must be a JSON object", reason: "null" },
  { method: "CreateThing", body: "[]", field: "body", rule: "must be a JSON object", reason: "array" },
  { method: "CreateThing", body: '"x"', field: "body", rule: "must be a JSON object", reason: "string" },
  { method: "CreateThing", body: "1", field: "body", rule: "must be a JSON object", reason: "number" },
  { method: "Echo", body: "[]", field: "body", rule: "must be a JSON object", reason: "array for everything" },
  { method: "SetTags", body: "{}", field: "tags", rule: "must be a JSON array", reason: "object for a list" },
  { method: "SetTags", body: "null", field: "tags", rule: "must be a JSON array", reason: "null for a list" },
  { method: "SetTags", body: '["a",1]', field: "tags[1]", rule: "must be a string", reason: "element" },
  { method: "SetTags", body: '["a",null]', field: "tags[1]", rule: "must be a string", reason: "null element" },
  { method: "CreateThing", body: '{"displayName":1}', field: "displayName", rule: "must be a string", reason: "string" },
  {
    method: "CreateThing",
    body: '{"count":"abc"}',
    field: "count",
    rule: "must be an integer between -2147483648 and 2147483647",
    reason: "int32",
  },
  {
    method: "CreateThing",
    body: '{"count":1.5}',
    field: "count",
    rule: "must be an integer between -2147483648 and 2147483647",
    reason: "fraction",
  },
  {
    method: "CreateThing",
    body: '{"count":2147483648}',
    field: "count",
    rule: "must be an integer between -2147483648 and 2147483647",
    reason: "beyond int32",
  },
  { method: "CreateThing", body: '{"enabled":"true"}', field: "enabled", rule: "must be true or false", reason: "bool" },
  {
    method: "CreateThing",
    body: '{"color":"RED"}',
    field: "color",
    rule: "must be one of COLOR_UNSPECIFIED, COLOR_RED, COLOR_BLUE",
    reason: "unknown name of an enum, though unknown fields are passed over",
  },
  {
    method: "CreateThing",
    body: '{"createTime":"yesterday"}',
    field: "createTime",
    rule: "must be a time of RFC 3339 such as 2026-01-31T09:30:00Z",
    reason: "timestamp",
  },
  { method: "CreateThing", body: '{"tags":"a"}', field: "tags", rule: "must be a JSON array", reason: "no list" },
  { method: "CreateThing", body: '{"labels":[]}', field: "labels", rule: "must be a JSON object", reason: "no map" },
  { method: "CreateThing", body: '{"labels":{"a":1}}', field: "labels.a", rule: "must be a string", reason: "map value" },
  { method: "CreateThing", body: '{"detail":"x"}', field: "detail", rule: "must be a JSON object", reason: "no message" },
  {
    method: "CreateThing",
    body: '{"detail":{"inner":{"level":"x"}}}',
    field: "detail.inner.level",
    rule: "must be an integer between -2147483648 and 2147483647",
    reason: "deep",
  },
  {
    method: "CreateThing",
    body: '{"nope":1,"parts":[{},{"title":5}]}',
    field: "parts[1].title",
    rule: "must be a string",
    reason: "in a list, beside an unknown field",
  },
  {
    method: "CreateThing",
    body: '{"detail":{"word":"a","number":"1"}}',
    field: "detail.number",
    rule: "cannot be given together with word",
    reason: "two of a oneof",
  },
  {
    method: "CreateThing",
    body: '{"displayName":"a","display_name":"b"}',
    field: "displayName",
    rule: "is given twice, as displayName and as display_name",
    reason: "twice under two names",
  },
  {
    method: "CreateThing",
    body: '{"displayName":"a","display_name":null}',
    field: "displayName",
    rule: "is given twice, as displayName and as display_name",
    reason: "twice, once null",
  },
  { method: "CreateThing", body: '{"count":1,"count":1}', field: "count", rule: "is given twice", reason: "twice" },
  {
    method: "CreateThing",
    body: '{"size":9007199254740993}',
    field: "size",
    rule: "must be a string of digits, as it is beyond 2^53",
    reason: "64 bits as a number that a double cannot hold",
  },
  {
    method: "Echo",
    body: '{"longs":[1,1e18]}',
    field: "longs[1]",
    rule: "must be a string of digits, as it is beyond 2^53",
    reason: "the same in a list",
  },
  {
    method: "Echo",
    body: '{"int64Wrapper":9007199254740993}',
    field: "int64Wrapper",
    rule: "must be a string of digits, as it is beyond 2^53",
    reason: "the same in a wrapper",
  },
  {
    method: "Echo",
    body: '{"numberMap":{"1":9007199254740993}}',
    field: "numberMap.1",
    rule: "must be a string of digits, as it is beyond 2^53",
    reason: "the same in a map",
  },
  {
    method: "Echo",
    body: '{"any":{"@type":"type.googleapis.com/no.Such"}}',
    field: "any",
    rule: "must be an object whose @type is known",
    reason: "Any of an unknown type",
  },
  { method: "Echo", body: '{"bytesValue":"*"}', field: "bytesValue", rule: "must be base64", reason: "bytes" },
  {
    method: "Echo",
    body: '{"fieldMask":{"paths":[]}}',
    field: "fieldMask",
    rule: "must be field paths separated by commas",
    reason: "a mask as an object",
  },
  {
    method: "CreateThing",
    body: '{"nope":1}',
    strict: true,
    field: "nope",
    rule: "is not a field of this request",
    reason: "unknown, strict",
  },
  {
    method: "CreateThing",
    body: '{"detail":{"nope":1}}',
    strict: true,
    field: "detail.nope",
    rule: "is not a field of this request",
    reason: "unknown, deep, strict",
  },
  {
    method: "CreateThing",
    body: '{"display_name":"x","parts":[{"nope":1}]}',
    strict: true,
    field: "parts[0].nope",
    rule: "is not a field of this request",
    reason: "unknown, in a list, strict",
  },
  { method: "UpdateThing", body: "", field: "body", rule: "must be given unless updateMask is", reason: "nothing to change" },
];

for (const { method, captures = ["u"], query = "", body, strict = false, field, rule, reason } of refused) {
  test(`refuses ${method} ?${query} ${body ?? ""}: ${reason}`, () => {
    assert.throws(() => decoded(method, captures, query, body, { strictBody: strict }), {
      name: "ApiError",
      message: `Invalid argument: ${field}: ${field} ${rule}`,
    });
  });
}

const masks: readonly { body: string; query?: string; mask: string | undefined; reason: string }[] = [
  { body: '{"displayName":"x"}', mask: "displayName", reason: "a key that is present" },
  { body: '{"display_name":"x"}', mask: "displayName", reason: "by the name of the proto" },
  { body: '{"displayName":""}', mask: "displayName", reason: "an empty string clears" },
  { body: '{"displayName":null}', mask: "displayName", reason: "so does null" },
  { body: '{"count":0,"enabled":false}', mask: "count,enabled", reason: "zero and false, sorted" },
  { body: '{"uid":"u","count":1}', mask: "count", reason: "not what the path sets" },
  { body: '{"detail":{"title":"t"}}', mask: "detail.title", reason: "the leaf of a message" },
  { body: '{"detail":{"title":"t","inner":{"level":1}}}', mask: "detail.inner.level,detail.title", reason: "deep leaves" },
  { body: '{"detail":{}}', mask: "detail", reason: "an empty message is a leaf" },
  { body: '{"detail":null}', mask: "detail", reason: "so is null" },
  { body: '{"detail":{"nope":1}}', mask: undefined, reason: "but not one of unknown fields" },
  { body: '{"tags":[]}', mask: "tags", reason: "a list is a leaf" },
  { body: '{"parts":[{"title":"x"}]}', mask: "parts", reason: "a list of messages too" },
  { body: '{"labels":{"a":"b"}}', mask: "labels", reason: "a map is a leaf" },
  { body: '{"createTime":"2026-01-31T09:30:00Z"}', mask: "createTime", reason: "a well-known type is a leaf" },
  { body: '{"extra":{"a":{"b":1}}}', mask: "extra", reason: "free JSON is a leaf" },
  { body: '{"nope":1,"count":1}', mask: "count", reason: "unknown fields are none" },
  { body: "{}", mask: undefined, reason: "nothing is present" },
  { body: '{"count":1}', query: "updateMask=displayName", mask: "displayName", reason: "a mask that is given wins" },
  { body: '{"count":1}', query: "update_mask=display_name", mask: "displayName", reason: "in either spelling" },
  { body: '{"count":1}', query: "updateMask=*", mask: "*", reason: "everything" },
  { body: '{"count":1}', query: "updateMask=", mask: "count", reason: "an empty mask is none" },
  { body: '{"count":1}', query: "updateMask=%20count%20,tags", mask: "count,tags", reason: "trimmed" },
  { body: "", query: "updateMask=count", mask: "count", reason: "no bytes, but a mask" },
];

for (const { body, query = "", mask, reason } of masks) {
  test(`PATCH ?${query} ${body}: ${reason}`, () => {
    const { updateMask } = decoded("UpdateThing", ["u"], query, body) as { updateMask?: string };
    assert.equal(updateMask, mask);
  });
}

test("masks reach handlers as the proto spells them, whatever case conversion would make of it", () => {
  const [binding] = bindingsOf(entryOf(featureMethod("UpdateThing")));
  assert.ok(binding);
  const decode = createDecode(binding, { registry: featureRegistry, strictBody: false, ignoreUnknownQuery: false });
  const pathsOf = (query: string, body: string) => {
    const read = { bytes: Buffer.from(body), contentType: undefined };
    return (decode(["u"], query, read) as unknown as { updateMask: { paths: string[] } }).updateMask.paths;
  };
  assert.deepEqual(pathsOf("", '{"line1":"x","legacyName":"y","createTime":null}'), ["create_time", "legacy", "line_1"]);
  assert.deepEqual(pathsOf("updateMask=line1,legacyName,legacy_name,line_1,createTime,nope.atAll", "{}"), [
    "line_1",
    "legacy",
    "legacy",
    "line_1",
    "create_time",
    "nope.at_all",
  ]);
});

test("raw bytes go into a field of type HttpBody with their type", () => {
  const body = { bytes: Buffer.from([0xff, 0x00]), contentType: "image/png" };
  assert.deepEqual(decoded("Upload", ["f"], "", body), { uid: "f", file: { contentType: "image/png", data: "/wA=" } });
});

const types: readonly { contentType: string | undefined; ok: boolean }[] = [
  { contentType: undefined, ok: true },
  { contentType: "application/json", ok: true },
  { contentType: "Application/JSON; Charset=UTF-8", ok: true },
  { contentType: 'application/json;charset="utf-8"', ok: true },
  { contentType: "application/merge-patch+json", ok: true },
  { contentType: "application/json; charset=utf-7", ok: false },
  { contentType: "application/json; charset=iso-8859-1", ok: false },
  { contentType: "text/plain", ok: false },
  { contentType: "text/json", ok: false },
  { contentType: "application/x-www-form-urlencoded", ok: false },
  { contentType: "multipart/form-data; boundary=x", ok: false },
  { contentType: "application/grpc+xml", ok: false },
  { contentType: "application/jsonx", ok: false },
  { contentType: "", ok: false },
];

for (const { contentType, ok } of types) {
  test(`Content-Type ${contentType} is ${ok ? "taken" : "refused"} for a body, and of no account without one`, () => {
    const run = (text: string) => decoded("CreateThing", ["p"], "", { bytes: Buffer.from(text), contentType });
    assert.deepEqual(run(""), { parent: "p" });
    if (ok) assert.deepEqual(run("{}"), { parent: "p", thing: {} });
    else assert.throws(() => run("{}"), { name: "HttpFault", status: 415, headers: { "accept-post": "application/json" } });
  });
}

test("bytes that are not UTF-8 are refused", () => {
  for (const bytes of [[0xff], [0xc0, 0xaf], [0xfe, 0xff, 0x00, 0x7b]]) {
    assert.throws(() => decoded("CreateThing", ["p"], "", { bytes: Buffer.from(bytes), contentType: undefined }), {
      message: "Invalid argument: body: body must be UTF-8",
    });
  }
});
