import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeRequest } from "../../support/feature/decoded.js";

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
  {
    method: "GetThing",
    captures: ["a"],
    query: "view_name=x",
    json: { uid: "a", viewName: "x" },
    reason: "path and query",
  },
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
  {
    method: "CreateThing",
    captures: ["p"],
    body: " null\n",
    json: { parent: "p" },
    reason: "null: the field is unset",
  },
  { method: "SetTags", captures: ["u"], body: "null", json: { uid: "u" }, reason: "null for a list" },
  { method: "Echo", captures: [], body: "null", json: {}, reason: "null for everything" },
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
  {
    method: "SetTags",
    captures: ["u"],
    body: '["a","b"]',
    json: { uid: "u", tags: ["a", "b"] },
    reason: "a repeated body",
  },
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
    assert.deepEqual(decodeRequest(method, captures, query, body), json);
  });
}

test("a list may hold more messages than may nest", () => {
  const parts = Array.from({ length: 300 }, (_, i) => ({ level: i + 1 }));
  const json = { parent: "p", thing: { parts } };
  assert.deepEqual(decodeRequest("CreateThing", ["p"], "", JSON.stringify({ parts })), json);
});

test("raw bytes go into a field of type HttpBody with their type", () => {
  const body = { bytes: Buffer.from([0xff, 0x00]), contentType: "image/png" };
  assert.deepEqual(decodeRequest("Upload", ["f"], "", body), {
    uid: "f",
    file: { contentType: "image/png", data: "/wA=" },
  });
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
  test(`Content-Type ${contentType} is ${ok ? "accepted" : "rejected"} for a body, and ignored without one`, () => {
    const run = (text: string) => decodeRequest("CreateThing", ["p"], "", { bytes: Buffer.from(text), contentType });
    assert.deepEqual(run(""), { parent: "p" });
    if (ok) assert.deepEqual(run("{}"), { parent: "p", thing: {} });
    else
      assert.throws(() => run("{}"), {
        name: "HttpError",
        status: 415,
        headers: { "accept-post": "application/json" },
      });
  });
}

test("rejects bytes that are not UTF-8", () => {
  for (const bytes of [[0xff], [0xc0, 0xaf], [0xfe, 0xff, 0x00, 0x7b]]) {
    assert.throws(
      () => decodeRequest("CreateThing", ["p"], "", { bytes: Buffer.from(bytes), contentType: undefined }),
      {
        message: "Invalid argument: body: body must be UTF-8",
      },
    );
  }
});
