// What the document says of a service that uses all that google.api.http offers.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type AnyObject, operationsOf, type PlacedOperation } from "../../support/openapi/document.js";
import { featureDocument, featureRoutes } from "../../support/openapi/documents.js";

const document = featureDocument();
const operations = operationsOf(document);

function operation(id: string): PlacedOperation {
  const found = operations.find(({ operationId }) => operationId === id);
  assert.ok(found, id);
  return found;
}

const parameter = (id: string, name: string) => {
  const found = operation(id).parameters.find((one) => one.name === name);
  assert.ok(found, name);
  return found as unknown as AnyObject;
};
const bodyOf = (id: string) => operation(id).requestBody?.content;
const responseOf = (id: string) => operation(id).responses["200"]?.content;
const component = (name: string) => document.components.schemas[`arbor.test.feature.${name}`] as AnyObject | undefined;

const propertiesOf = (schema: AnyObject | undefined) => (schema?.properties ?? {}) as Record<string, AnyObject>;

test("every route is described but those whose method OpenAPI has no word for", () => {
  const told = featureRoutes().filter(({ method }) => method !== "*" && method !== "PURGE");
  assert.equal(featureRoutes().length - told.length, 2);
  assert.equal(operations.length, told.length);
  assert.equal(new Set(operations.map(({ operationId }) => operationId)).size, operations.length);
});

const cases: readonly { id: string; at: string; reason: string }[] = [
  { id: "FeatureService_GetThing", at: "GET /feature/v1/things/{uid}", reason: "the first binding" },
  { id: "FeatureService_GetThing_2", at: "GET /feature/v1/aliases/{uid}", reason: "an additional one" },
  {
    id: "FeatureService_CreateThing",
    at: "POST /feature/v1/things/{uid}",
    reason: "the name of the path, not its own",
  },
  { id: "FeatureService_ArchiveThing", at: "POST /feature/v1/things/{uid}:archive", reason: "a verb" },
  {
    id: "FeatureService_GetTyped",
    at: "GET /feature/v1/typed/{int32_value}/{uint64_value}/{bool_value}/{color_value}",
    reason: "several variables",
  },
];
for (const { id, at, reason } of cases) {
  test(`${id}: ${reason}`, () => {
    const { method, path } = operation(id);
    assert.equal(`${method} ${path}`, at);
  });
}

test("variables have the types of their fields, and examples of them", () => {
  const shown = operation("FeatureService_GetTyped").parameters.slice(0, 4);
  assert.deepEqual(
    shown.map(({ schema, example }) => ({ ...schema, example })),
    [
      { type: "integer", format: "int32", example: 1 },
      { type: "string", format: "uint64", pattern: "^[0-9]{1,20}$", example: "1" },
      { type: "boolean", example: true },
      { type: "string", enum: ["COLOR_UNSPECIFIED", "COLOR_RED", "COLOR_BLUE"], example: "COLOR_RED" },
    ],
  );
});

test("a variable of several segments says that slashes are welcome", () => {
  assert.match(String(parameter("FeatureService_GetThing", "uid").description), /slashes/);
  assert.doesNotMatch(String(parameter("FeatureService_GetThing_2", "uid").description), /slashes/);
});

const queries: readonly { name: string; is: AnyObject; reason: string }[] = [
  { name: "color_value", is: { enum: ["COLOR_UNSPECIFIED", "COLOR_RED", "COLOR_BLUE"] }, reason: "an enum by name" },
  { name: "bool_value", is: { type: "boolean" }, reason: "a bool" },
  { name: "timestamp", is: { type: "string", format: "date-time" }, reason: "a well-known type" },
  { name: "string_wrapper", is: { type: "string" }, reason: "a wrapper as what it wraps" },
  { name: "detail.inner.title", is: { type: "string" }, reason: "a field of a nested message" },
];
for (const { name, is, reason } of queries) {
  test(`query parameter ${name}: ${reason}`, () => {
    const { schema } = parameter("FeatureService_Search", name) as { schema: AnyObject };
    for (const [key, value] of Object.entries(is)) assert.deepEqual(schema[key], value);
  });
}

test("an enum in a query tells what its values mean", () => {
  const { description } = parameter("FeatureService_Search", "color_value") as { description: string };
  assert.match(
    description,
    /^About arbor\.test\.feature\.Kinds\.color_value\. And more\.\n\nAbout arbor\.test\.feature\.Color\./,
  );
  assert.match(description, /- `COLOR_RED`: About arbor\.test\.feature\.Color\.COLOR_RED\./);
});

test("lists repeat and maps go in brackets", () => {
  const { schema } = parameter("FeatureService_Search", "strings");
  assert.deepEqual(schema, { type: "array", items: { type: "string" } });
  const { style, explode, schema: map } = parameter("FeatureService_Search", "string_map");
  assert.deepEqual(
    { style, explode, map },
    {
      style: "deepObject",
      explode: true,
      map: { type: "object", additionalProperties: { type: "string" } },
    },
  );
});

test("messages in lists and maps are no parameters, nor is recursion without end", () => {
  const names = operation("FeatureService_Search").parameters.map(({ name }) => name);
  for (const name of ["details", "detail_map", "any", "detail", "detail.inner"]) assert.ok(!names.includes(name), name);
  assert.ok(names.every((name) => name.split(".").length <= 4));
});

test("a body that is everything leaves the query nothing, and what the path sets out", () => {
  const { parameters } = operation("FeatureService_ArchiveThing");
  assert.deepEqual(
    parameters.map((one) => one.in),
    ["path"],
  );
  const schema = bodyOf("FeatureService_ArchiveThing")?.["application/json"]?.schema;
  assert.deepEqual(Object.keys(propertiesOf(schema)), ["reason", "since"]);
  assert.deepEqual(bodyOf("FeatureService_ArchiveThing")?.["application/json"]?.example, { reason: "reason" });
});

test("what the path sets within a message is left out of that message alone", () => {
  const schema = bodyOf("FeatureService_ReplaceThing")?.["application/json"]?.schema;
  const thing = propertiesOf(propertiesOf(schema).thing);
  assert.ok(!("uid" in thing) && "displayName" in thing);
  assert.ok("uid" in propertiesOf(component("Thing-body")), "elsewhere it stays");
});

test("a body may be a list, and an answer a part of one", () => {
  assert.deepEqual(bodyOf("FeatureService_SetTags")?.["application/json"]?.schema, {
    type: "array",
    items: { type: "string" },
  });
  assert.deepEqual(bodyOf("FeatureService_SetTags")?.["application/json"]?.example, ["latest"]);
  assert.deepEqual(responseOf("FeatureService_GetLabels")?.["application/json"]?.schema, {
    type: "object",
    additionalProperties: { type: "string" },
  });
});

test("google.api.HttpBody is bytes of any type, both ways", () => {
  assert.deepEqual(bodyOf("FeatureService_Upload"), { "*/*": {} });
  assert.deepEqual(responseOf("FeatureService_Download"), { "*/*": {} });
});

test("an empty answer is an empty object, except to DELETE", () => {
  assert.deepEqual(responseOf("FeatureService_Touch")?.["application/json"]?.example, {});
  assert.equal(responseOf("FeatureService_DeleteThing"), undefined);
});

test("fields said by the caller alone are in no answer", () => {
  assert.ok(!("secret" in propertiesOf(component("Thing"))));
  assert.ok("secret" in propertiesOf(component("Thing-body")));
});

test("an answer requires no field that has presence, and no member of a oneof", () => {
  const required = component("Kinds")?.required as string[];
  for (const name of ["optionalInt32", "detail", "timestamp", "colorValue", "choiceString", "any"]) {
    assert.ok(!required.includes(name), name);
  }
  for (const name of ["int64Value", "bytesValue", "strings", "detailMap"]) assert.ok(required.includes(name), name);
});

test("a list in the older form holds whole elements too", () => {
  assert.deepEqual(propertiesOf(component("ThingList")).items?.items, {
    $ref: "#/components/schemas/arbor.test.feature.Thing",
  });
});

test("members of a oneof name each other", () => {
  assert.match(
    String(propertiesOf(component("Detail-body")).word?.description),
    /At most one is set of `word`, `number`\./,
  );
});

test("a stream is lines of JSON or events, of whole answers or of a part of each", () => {
  for (const id of ["StreamService_Watch", "StreamService_Watch_2", "StreamService_WatchLabels"]) {
    const content = responseOf(id);
    assert.deepEqual(Object.keys(content ?? {}), ["application/x-ndjson", "text/event-stream"]);
    const line = content?.["application/x-ndjson"]?.schema?.contentSchema as { oneOf: AnyObject[] };
    assert.deepEqual(
      line.oneOf.map(({ required }) => required),
      [["result"], ["error"]],
    );
  }
});

test("a stream of bytes is bytes", () => {
  assert.deepEqual(responseOf("StreamService_Export"), { "*/*": {} });
});

test("methods open to everybody ask for no token", () => {
  assert.deepEqual(operation("FeatureService_GetThing").security, []);
});
