import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeRequest } from "../../support/feature/decoded.js";

const rejected: readonly {
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
  { method: "CreateThing", body: "[]", field: "body", rule: "must be a JSON object", reason: "array" },
  { method: "CreateThing", body: '"x"', field: "body", rule: "must be a JSON object", reason: "string" },
  { method: "CreateThing", body: "1", field: "body", rule: "must be a JSON object", reason: "number" },
  { method: "Echo", body: "[]", field: "body", rule: "must be a JSON object", reason: "array for everything" },
  { method: "SetTags", body: "{}", field: "tags", rule: "must be a JSON array", reason: "object for a list" },
  { method: "SetTags", body: '["a",1]', field: "tags[1]", rule: "must be a string", reason: "element" },
  { method: "SetTags", body: '["a",null]', field: "tags[1]", rule: "must be a string", reason: "null element" },
  {
    method: "CreateThing",
    body: '{"displayName":1}',
    field: "displayName",
    rule: "must be a string",
    reason: "string",
  },
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
  {
    method: "CreateThing",
    body: '{"enabled":"true"}',
    field: "enabled",
    rule: "must be true or false",
    reason: "bool",
  },
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
  {
    method: "CreateThing",
    body: '{"labels":{"a":1}}',
    field: "labels.a",
    rule: "must be a string",
    reason: "map value",
  },
  {
    method: "CreateThing",
    body: '{"detail":"x"}',
    field: "detail",
    rule: "must be a JSON object",
    reason: "no message",
  },
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
];

for (const { method, captures = ["u"], query = "", body, strict = false, field, rule, reason } of rejected) {
  test(`rejects ${method} ?${query} ${body ?? ""}: ${reason}`, () => {
    assert.throws(() => decodeRequest(method, captures, query, body, { strictBody: strict }), {
      name: "ApiError",
      message: `Invalid argument: ${field}: ${field} ${rule}`,
    });
  });
}
