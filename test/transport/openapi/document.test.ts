// What the document says of GroupsService, written out by hand from
// docs/api-rules.md#requests.
import assert from "node:assert/strict";
import { test } from "node:test";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { IdentitiesService } from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { buildBindings } from "../../../src/transport/http/http-binding.js";
import { type ApiDocument, operationsOf, type PlacedOperation } from "../../support/openapi/document.js";
import {
  commentWithName,
  documentOf,
  groupsDocument,
  protoComments,
  routesOf,
} from "../../support/openapi/documents.js";

const document: ApiDocument = groupsDocument();
const operations = operationsOf(document);
const GROUP = "chainguard.platform.iam.v2beta1.Group";

function operation(name: string): PlacedOperation {
  const found = operations.find(({ operationId }) => operationId === `v2beta1_GroupsService_${name}`);
  assert.ok(found, name);
  return found;
}

const schemaOf = (name: string) => {
  const schema = document.components.schemas[name];
  assert.ok(schema, name);
  return schema as { required?: string[]; properties: Record<string, Record<string, unknown>> };
};

const rows: readonly { name: string; at: string; path: string[]; query: string[]; body?: object; rights: RegExp }[] = [
  { name: "GetGroup", at: "GET /iam/v2beta1/groups/{uid}", path: ["uid"], query: [], rights: /`groups.list` there/ },
  {
    name: "DeleteGroup",
    at: "DELETE /iam/v2beta1/groups/{uid}",
    path: ["uid"],
    query: [],
    rights: /`groups.delete` there/,
  },
  {
    name: "CreateGroup",
    at: "POST /iam/v2beta1/groups/{uid}",
    path: ["uid"],
    query: [],
    body: { name: "team", description: "What it is for" },
    rights: /Works where the caller holds `groups.create`/,
  },
  {
    name: "UpdateGroup",
    at: "PATCH /iam/v2beta1/groups/{uid}",
    path: ["uid"],
    query: ["updateMask"],
    body: { name: "team", description: "What it is for" },
    rights: /`groups.update` there/,
  },
  {
    name: "ListGroups",
    at: "GET /iam/v2beta1/groups",
    path: [],
    query: [
      "uidp.ancestors_of",
      "uidp.descendants_of",
      "uidp.children_of",
      "uidp.in_root",
      "uidp.ids",
      "name",
      "page_size",
      "page_token",
      "order_by",
      "skip",
    ],
    rights: /Works where the caller holds `groups.list`/,
  },
  { name: "LookupGroup", at: "GET /iam/v2beta1/groups:lookupGroup", path: [], query: [], rights: /NOT_FOUND/ },
  {
    name: "RequestGroupAccess",
    at: "POST /iam/v2beta1/groups/{group_uid}:requestGroupAccess",
    path: ["group_uid"],
    query: [],
    body: {},
    rights: /RESOURCE_EXHAUSTED/,
  },
  { name: "CheckEligibility", at: "GET /iam/v2beta1/groups:checkEligibility", path: [], query: [], rights: /^$/ },
];

for (const { name, at, path, query, body, rights } of rows) {
  test(`${name}: path, parameters, body and rights`, () => {
    const found = operation(name);
    const names = (location: string) => found.parameters.filter((one) => one.in === location).map((one) => one.name);
    assert.equal(`${found.method} ${found.path}`, at);
    assert.deepEqual(names("path"), path);
    assert.deepEqual(names("query"), query);
    assert.deepEqual(found.requestBody?.content["application/json"]?.example, body);
    assert.match(found.description ?? "", rights);
    assert.ok(found.parameters.every((one) => one.description !== undefined && one.description !== ""));
    assert.deepEqual(Object.keys(found.responses), ["200", "4XX", "5XX"]);
    assert.equal(found.security, undefined);
  });
}

test("nothing but the operations of the service is described", () => {
  assert.deepEqual(
    operations.map(({ operationId }) => operationId.split("_")[2]).sort(),
    rows.map((row) => row.name).sort(),
  );
});

test("an answer requires what is always printed, and a list of groups holds whole groups", () => {
  assert.deepEqual(schemaOf(GROUP).required, ["uid", "name", "description", "resourceLimits", "verified"]);
  const list = schemaOf("chainguard.platform.iam.v2beta1.ListGroupsResponse");
  assert.deepEqual(list.required, ["groups", "skipped"]);
  assert.deepEqual(list.properties.groups?.items, { $ref: `#/components/schemas/${GROUP}` });
  assert.equal(list.properties.nextPageToken?.minLength, 1, "an empty token is never printed");
});

test("a group within an answer is as whole as the answer itself", () => {
  const lookup = schemaOf("chainguard.platform.iam.v2beta1.LookupGroupResponse");
  assert.deepEqual(lookup.properties.group, { ...lookup.properties.group, $ref: `#/components/schemas/${GROUP}` });
});

test("a body has no fields that only the service sets, and requires the name on create alone", () => {
  const inputs = ["name", "description", "verified", "kind"];
  assert.deepEqual(Object.keys(schemaOf(`${GROUP}-body`).properties), inputs);
  assert.deepEqual(schemaOf(`${GROUP}-body`).required, ["name"]);
  assert.equal(operation("CreateGroup").requestBody?.required, true);
  assert.deepEqual(Object.keys(schemaOf(`${GROUP}-patch`).properties), inputs);
  assert.equal(schemaOf(`${GROUP}-patch`).required, undefined);
  assert.equal(operation("UpdateGroup").requestBody?.required, undefined, "a mask alone clears fields");
});

test("a request may hold null where a field may be absent, and the number of an enum", () => {
  const { name, description, verified, kind } = schemaOf(`${GROUP}-body`).properties;
  assert.deepEqual(
    [name?.type, description?.type, verified?.type],
    ["string", ["string", "null"], ["boolean", "null"]],
  );
  const orNumber = "chainguard.platform.iam.v2beta1.OrgKind-or-number";
  assert.deepEqual(kind?.anyOf, [{ $ref: `#/components/schemas/${orNumber}` }, { type: "null" }]);
  assert.deepEqual(document.components.schemas[orNumber]?.anyOf, [
    { $ref: "#/components/schemas/chainguard.platform.iam.v2beta1.OrgKind" },
    { type: "integer", format: "int32" },
  ]);
  assert.equal(schemaOf(`${GROUP}-patch`).properties.name?.type, "string", "nor can an update clear it");
});

test("a uid has its pattern, and may be empty where it may be absent", () => {
  const uid = "[0-9a-f]{40}(?:/[0-9a-f]{16})*";
  const query = (name: string) => operation("ListGroups").parameters.find((one) => one.name === name)?.schema;
  assert.equal(operation("GetGroup").parameters[0]?.schema.pattern, `^(?:${uid})$`);
  assert.equal(schemaOf(GROUP).properties.uid?.pattern, `^(?:${uid})$`);
  assert.equal(query("uidp.descendants_of")?.pattern, `^(?:${uid})?$`);
  assert.equal(query("uidp.children_of")?.pattern, `^(?:/|${uid})?$`);
  assert.equal(query("name")?.pattern, undefined);
});

test("a time has no pattern: clients read it as a moment", () => {
  assert.deepEqual(schemaOf(GROUP).properties.createTime, {
    type: "string",
    format: "date-time",
    description: "When the group was created.",
  });
});

test("enums are their names, each explained", () => {
  const kind = document.components.schemas["chainguard.platform.iam.v2beta1.OrgKind"];
  assert.ok(JSON.stringify(kind?.enum).includes("ORG_KIND_STARTER"));
  assert.match(String(kind?.description), /- `ORG_KIND_STARTER`: An organisation that tries the service out\./);
});

test("texts come from the comments of the protos", () => {
  assert.equal(operation("GetGroup").summary, "Returns one group");
  assert.equal(schemaOf(GROUP).properties.createTime?.description, "When the group was created.");
  assert.match(document.tags[0]?.description ?? "", /^Manages the tree of groups\./);
});

test("a path without its last variable says what an empty one does", () => {
  const [route] = routesOf(GroupsService).filter(({ name }) => name.endsWith(".CreateGroup"));
  assert.ok(route);
  const { paths } = documentOf(buildBindings({ ...route.entry, allowEmptyPath: true }), protoComments());
  assert.equal(paths["/iam/v2beta1/groups/"]?.post?.summary, "Creates a root group");
  assert.match(paths["/iam/v2beta1/groups/{parent}"]?.post?.summary ?? "", /^Creates a group in another group/);
});

test("a deletion answers with nothing", () => {
  assert.deepEqual(operation("DeleteGroup").responses["200"], { description: "Done. There is no body." });
});

test("two versions of a service have operations of different names", () => {
  const routes = routesOf(GroupsService);
  const [first] = routes;
  assert.ok(first);
  const elsewhere = {
    ...first,
    name: "other.v2beta1.GroupsService.GetGroup",
    template: { ...first.template, verb: "x" },
  };
  const ids = operationsOf(documentOf([first, elsewhere], commentWithName)).map(({ operationId }) => operationId);
  assert.deepEqual(ids, [
    "chainguard_platform_iam_v2beta1_GroupsService_GetGroup",
    "other_v2beta1_GroupsService_GetGroup",
  ]);
});

test("two routes that OpenAPI cannot tell apart are an error", () => {
  const [first] = routesOf(GroupsService);
  assert.ok(first);
  assert.throws(() => documentOf([first, first], commentWithName), {
    message:
      "chainguard.platform.iam.v2beta1.GroupsService.GetGroup: GET /iam/v2beta1/groups/{uid=**} has the same path as " +
      "another route",
  });
});

test("servers are the base URL and wherever the document came from", () => {
  assert.deepEqual(
    document.servers.map(({ url }) => url),
    ["https://api.example.org", "/"],
  );
  assert.deepEqual(
    documentOf([], commentWithName, "").servers.map(({ url }) => url),
    ["/"],
  );
});

// The comments say nothing here, so the options of the fields decide.
test("of required members of a oneof, a request has one", () => {
  const { schemas } = documentOf(routesOf(IdentitiesService), commentWithName).components;
  const { required, properties, not } = schemas["chainguard.platform.iam.v2beta1.Identity.ClaimMatch-body"] as {
    required?: readonly string[];
    properties: Record<string, Record<string, unknown>>;
    not?: unknown;
  };
  assert.equal(required, undefined);
  for (const one of ["issuer", "issuerPattern", "subject", "subjectPattern"]) {
    assert.equal(properties[one]?.minLength, undefined, one);
    assert.match(String(properties[one]?.description), /Exactly one is set of/);
  }
  assert.match(String(properties.audience?.description), /At most one is set of `audience`, `audiencePattern`/);
  const empty = { type: ["string", "null"], maxLength: 0 };
  assert.deepEqual(not, {
    anyOf: [
      { properties: { issuer: empty, issuerPattern: empty } },
      { properties: { subject: empty, subjectPattern: empty } },
    ],
  });
});
