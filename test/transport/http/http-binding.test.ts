import assert from "node:assert/strict";
import { test } from "node:test";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HttpRuleSchema } from "#gen/google/api/http_pb.js";
import type { MethodEntry } from "../../../src/pipeline/method-table.js";
import { buildBindings } from "../../../src/transport/http/http-binding.js";
import { Gateway } from "../../../src/transport/rest/gateway.js";
import { entryOf, featureMethod, featureService, methodWithRule } from "../../support/feature/feature.js";

type Rule = Exclude<MessageInitShape<typeof HttpRuleSchema>, { $typeName: string }>;
const get = (path: string): Rule => ({ pattern: { case: "get", value: path } });
const post = (path: string, body = ""): Rule => ({ pattern: { case: "post", value: path }, body });

const rejected: readonly { rule: Rule; message: string; reason: string }[] = [
  { rule: {}, message: "google.api.http names no HTTP method", reason: "no pattern" },
  {
    rule: get("/v1/{nope}"),
    message: 'path template "/v1/{nope}", column 5: arbor.test.feature.Kinds has no field nope',
    reason: "unknown variable",
  },
  {
    rule: get("/v1/{stringValue}"),
    message: 'path template "/v1/{stringValue}", column 5: arbor.test.feature.Kinds has no field stringValue',
    reason: "templates use the names of the proto",
  },
  {
    rule: get("/v1/{detail}"),
    message: 'path template "/v1/{detail}", column 5: detail: a path cannot set a message field',
    reason: "message variable",
  },
  {
    rule: get("/v1/{strings}"),
    message: 'path template "/v1/{strings}", column 5: strings: a path cannot set a repeated field',
    reason: "repeated variable",
  },
  {
    rule: get("/v1/{string_map}"),
    message: 'path template "/v1/{string_map}", column 5: string_map: a path cannot set a map field',
    reason: "map variable",
  },
  {
    rule: get("/v1/{detail.lines}"),
    message: 'path template "/v1/{detail.lines}", column 5: detail.lines: a path cannot set a repeated field',
    reason: "repeated below a message",
  },
  {
    rule: get("/v1/{details.title}"),
    message:
      'path template "/v1/{details.title}", column 5: details.title: details is no message that a path can lead through',
    reason: "through a repeated field",
  },
  {
    rule: get("/v1/{string_value.x}"),
    message:
      'path template "/v1/{string_value.x}", column 5: string_value.x: string_value is no message that a path can lead through',
    reason: "through a scalar",
  },
  {
    rule: get("/v1/{timestamp.seconds}"),
    message:
      'path template "/v1/{timestamp.seconds}", column 5: timestamp.seconds: timestamp is no message that a path can lead through',
    reason: "into a well-known type",
  },
  {
    rule: get("/v1/{string_value}/{detail.nope}"),
    message: 'path template "/v1/{string_value}/{detail.nope}", column 20: arbor.test.feature.Detail has no field nope',
    reason: "the column of the second variable",
  },
  { rule: post("/v1", "nope"), message: 'body "nope" is no field of arbor.test.feature.Kinds', reason: "unknown body" },
  {
    rule: post("/v1", "detail.title"),
    message: 'body "detail.title" is no field of arbor.test.feature.Kinds',
    reason: "a body is a field of the request itself",
  },
  {
    rule: post("/v1", "stringValue"),
    message: 'body "stringValue" is no field of arbor.test.feature.Kinds',
    reason: "bodies use the names of the proto",
  },
  {
    rule: post("/v1/{string_value}", "string_value"),
    message: 'body "string_value" is a variable of the path as well',
    reason: "body and variable",
  },
  { rule: { ...get("/v1"), body: "*" }, message: "a GET rule cannot have a body", reason: "GET with body" },
  {
    rule: { ...get("/v1"), responseBody: "nope" },
    message: 'response_body "nope" is no field of arbor.test.feature.Thing',
    reason: "unknown response_body",
  },
  {
    rule: { ...get("/v1"), additionalBindings: [{ ...get("/v2"), additionalBindings: [get("/v3")] }] },
    message: "additional_bindings cannot be nested",
    reason: "nested bindings",
  },
  {
    rule: { ...get("/v1"), additionalBindings: [get("/v2/{nope}")] },
    message: 'path template "/v2/{nope}", column 5: arbor.test.feature.Kinds has no field nope',
    reason: "additional bindings are checked too",
  },
  {
    rule: { pattern: { case: "custom", value: { kind: "pur ge", path: "/v1" } } },
    message: '"pur ge" is no HTTP method',
    reason: "custom kind",
  },
  {
    rule: get("/v1/{a=**}/**"),
    message: 'path template "/v1/{a=**}/**", column 12: ** may stand in a template only once',
    reason: "grammar",
  },
];

for (const { rule, message, reason } of rejected) {
  test(`rejects at boot: ${reason}`, () => {
    assert.throws(() => buildBindings(entryOf(methodWithRule(rule))), {
      name: "TypeError",
      message: `bad.proto: bad.Service.Do: ${message}`,
    });
  });
}

const bindable = [
  "double_value",
  "int32_value",
  "uint64_value",
  "sfixed64_value",
  "bool_value",
  "string_value",
  "bytes_value",
  "color_value",
  "detail.inner.title",
  "optional_int32",
  "timestamp",
  "duration",
  "string_wrapper",
  "int64_wrapper",
  "choice_string",
];

for (const field of bindable) {
  test(`a path can set ${field}`, () => {
    const [binding] = buildBindings(entryOf(methodWithRule(get(`/v1/{${field}}`))));
    assert.equal(binding?.variables.length, 1);
  });
}

test("rejects at boot a method that takes a stream and has an HTTP rule", () => {
  assert.throws(() => buildBindings(entryOf(featureService("ChatService").methods[0] ?? featureMethod("Hidden"))), {
    name: "TypeError",
    message:
      "feature.proto: arbor.test.feature.ChatService.Chat: google.api.http is not served for methods that take a stream",
  });
});

test("a method without a rule has no binding", () => {
  assert.deepEqual(buildBindings(entryOf(featureMethod("Hidden"))), []);
});

test("additional bindings are bindings of their own", () => {
  const bindings = buildBindings(entryOf(featureMethod("GetThing")));
  assert.deepEqual(
    bindings.map((b) => [b.method, b.template.text, b.additional]),
    [
      ["GET", "/feature/v1/things/{uid=**}", false],
      ["GET", "/feature/v1/aliases/{uid}", true],
    ],
  );
});

const getThing = (path: string) => entryOf(methodWithRule(get(path)));
const pathsOf = (entry: MethodEntry) =>
  buildBindings(entry).map(({ template, current }) => [template.text, current?.text]);

test("a path may end where its ** begins, if its method is registered so", () => {
  const path = "/v1/{int32_value}/things/{string_value=**}";
  const [binding, empty] = buildBindings({ ...getThing(path), allowEmptyPath: true });
  assert.ok(binding && empty);
  assert.deepEqual([empty.template.text, empty.additional], ["/v1/{int32_value}/things/", true]);
  // The variable stays, so that a query cannot set its field.
  assert.deepEqual(empty.variables, binding.variables);
  for (const unfit of ["/v1/{string_value}", "/v1/things/**", "/v1/{string_value=**}/x", "/v1/{string_value=**}:x"]) {
    assert.throws(() => buildBindings({ ...getThing(unfit), allowEmptyPath: true }), TypeError, unfit);
  }
});

test("a former spelling of a path is a route beside the current one, and says which that is", () => {
  const formerPaths = [
    { current: "/smallThings", former: "/small_things" },
    { current: "/smallThings:find", former: "/small_things/find" },
  ];
  const current = "/v1/smallThings/{string_value=**}";
  const entry = { ...getThing(current), formerPaths };
  assert.deepEqual(pathsOf(entry), [
    [current, undefined],
    ["/v1/small_things/{string_value=**}", current],
  ]);
  assert.deepEqual(pathsOf({ ...getThing("/v1/smallThings:find"), formerPaths }), [
    ["/v1/smallThings:find", undefined],
    ["/v1/small_things:find", "/v1/smallThings:find"],
    ["/v1/small_things/find", "/v1/smallThings:find"],
  ]);
  assert.deepEqual(pathsOf({ ...getThing("/v1/others"), formerPaths }), [["/v1/others", undefined]]);
});

test("the gateway names both of two methods that match the same paths", () => {
  const entries = [
    entryOf(methodWithRule(get("/v1/{string_value}"))),
    entryOf(methodWithRule(get("/v1/{bytes_value}"))),
  ];
  const serve = { serve: async () => {}, refuse() {} };
  assert.throws(() => new Gateway({ methods: entries, serve }), {
    name: "TypeError",
    message: "bad.Service.Do (GET /v1/{bytes_value}) and bad.Service.Do (GET /v1/{string_value}) match the same paths",
  });
});
