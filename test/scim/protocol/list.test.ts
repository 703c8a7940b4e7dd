import assert from "node:assert/strict";
import { test } from "node:test";
import { readListQuery, readProjection, readSearchRequest } from "../../../src/scim/protocol/list.js";
import { projectResource } from "../../../src/scim/protocol/project.js";
import { userType } from "../../../src/scim/protocol/schemas.js";
import { createComparison, parseSortBy, type SortOrder } from "../../../src/scim/protocol/sort.js";
import { assertRejected } from "./reject.js";

const ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";

const readQuery = (text: string) => readListQuery(new URLSearchParams(text), userType);

test("a query without parameters has the defaults", () => {
  const defaults = {
    filter: undefined,
    startIndex: 1,
    count: 100,
    sortBy: undefined,
    sortOrder: "ascending",
    attributes: [],
    excludedAttributes: [],
  };
  assert.deepEqual(readQuery(""), defaults);
  assert.deepEqual(readQuery("filter=&startIndex=&count=&sortBy=&attributes=&unknown=1"), defaults);
  assert.deepEqual(readSearchRequest({ schemas: ["urn:x"], filter: null }, userType), defaults);
});

test("queries and bodies say the same", () => {
  const text = "filter=title+pr&startIndex=3&count=7&sortBy=name.givenName&sortOrder=Descending";
  const body = { filter: "title pr", startIndex: 3, count: 7, sortBy: "name.givenName", sortOrder: "descending" };
  const query = readQuery(`${text}&attributes=userName,+title&excludedAttributes=emails`);
  assert.deepEqual(
    query,
    readSearchRequest({ ...body, attributes: ["userName", "title"], EXCLUDEDATTRIBUTES: ["emails"] }, userType),
  );
  assert.deepEqual([query.startIndex, query.count, query.sortOrder], [3, 7, "descending"]);
  assert.deepEqual(
    query.sortBy?.map(({ name }) => name),
    ["name", "givenName"],
  );
  const names = { attributes: ["userName", "title"], excludedAttributes: ["emails"] };
  assert.deepEqual(readProjection(new URLSearchParams("attributes=userName,title&excludedAttributes=emails")), names);
});

test("numbers are bounded", () => {
  for (const [text, count, startIndex] of [
    ["count=0&startIndex=0", 0, 1],
    ["count=-5&startIndex=-5", 0, 1],
    ["count=1000&startIndex=999999999999999", 200, 2_147_483_647],
  ] as const) {
    assert.deepEqual([readQuery(text).count, readQuery(text).startIndex], [count, startIndex], text);
  }
});

test("wrong parameters are rejected", () => {
  for (const text of [
    "count=x",
    "count=1.5",
    "startIndex=1e3",
    "sortOrder=up",
    "count=1&COUNT=2",
    "attributes=a&attributes=b",
  ]) {
    assertRejected(() => readQuery(text), "invalidValue", text);
  }
  assertRejected(() => readQuery(`attributes=${"a,".repeat(101)}`), "invalidValue");
  assertRejected(() => readQuery("filter=nothing+pr"), "invalidFilter");
  for (const sortBy of ["nothing", "name", "addresses", "__proto__"]) {
    assertRejected(() => readQuery(`sortBy=${sortBy}`), "invalidPath", sortBy);
  }
  for (const body of [
    { count: {} },
    { count: 1.5 },
    { filter: 1 },
    { attributes: [1] },
    { attributes: {} },
    { sortOrder: [] },
  ]) {
    assertRejected(() => readSearchRequest(body, userType), "invalidValue", JSON.stringify(body));
  }
  assertRejected(() => readSearchRequest([], userType), "invalidSyntax");
});

test("resources are sorted by the primary value, and those without one come last in ascending order", () => {
  const people = [
    { id: "none" },
    { id: "b", emails: [{ value: "z" }, { value: "B", primary: true }] },
    { id: "a", emails: [{ value: "a" }, { value: "z" }], active: true },
    { id: "c", emails: [{ value: "C" }], active: false },
  ];
  const sort = (sortBy: string, order: SortOrder) =>
    people.toSorted(createComparison(parseSortBy(sortBy, userType), order)).map(({ id }) => id);
  assert.deepEqual(sort("emails", "ascending"), ["a", "b", "c", "none"]);
  assert.deepEqual(sort("EMAILS.value", "descending"), ["none", "c", "b", "a"]);
  assert.deepEqual(sort("active", "ascending"), ["c", "a", "none", "b"]);
});

test("times are sorted as times", () => {
  const people = ["2026-01-01T01:30:00+01:00", "2026-01-01T01:00:00Z"].map((lastModified) => ({
    meta: { lastModified },
  }));
  const compare = createComparison(parseSortBy("meta.lastModified", userType), "ascending");
  assert.equal(compare(people[0] ?? {}, people[1] ?? {}), -1);
});

const resource = {
  schemas: ["urn:ietf:params:scim:schemas:core:2.0:User", ENTERPRISE],
  id: "1",
  externalId: "e",
  meta: { resourceType: "User", version: 'W/"1"' },
  userName: "a",
  password: "never",
  name: { givenName: "G", familyName: "F" },
  emails: [{ value: "w@x", type: "work" }, { value: "h@x" }],
  [ENTERPRISE]: { department: "Sales", division: "D", manager: { value: "M1" } },
};
const { schemas, id } = resource;

test("a projection has what is named, and always schemas and id", () => {
  const project = (attributes: string, excludedAttributes = "") =>
    projectResource(resource, userType, {
      attributes: attributes === "" ? [] : attributes.split(","),
      excludedAttributes: excludedAttributes === "" ? [] : excludedAttributes.split(","),
    });
  const { password: _password, ...all } = resource;
  assert.deepEqual(project(""), all);
  assert.deepEqual(project("USERNAME"), { schemas, id, userName: "a" });
  assert.deepEqual(project("nothing,__proto__,name.nothing"), { schemas, id });
  assert.deepEqual(project("password"), { schemas, id });
  assert.deepEqual(project("name.givenName,emails.TYPE"), {
    schemas,
    id,
    name: { givenName: "G" },
    emails: [{ type: "work" }],
  });
  assert.deepEqual(project("name.givenName,name"), { schemas, id, name: resource.name });
  assert.deepEqual(project("name,name.givenName"), { schemas, id, name: resource.name });
  assert.deepEqual(project(`${ENTERPRISE}:department,urn:ietf:params:scim:schemas:core:2.0:User:userName`), {
    schemas,
    id,
    userName: "a",
    [ENTERPRISE]: { department: "Sales" },
  });
  assert.deepEqual(project(ENTERPRISE), { schemas, id, [ENTERPRISE]: resource[ENTERPRISE] });
  assert.deepEqual(project("", `id,schemas,meta,externalId,name.givenName,emails,${ENTERPRISE}:manager`), {
    schemas,
    id,
    userName: "a",
    name: { familyName: "F" },
    [ENTERPRISE]: { department: "Sales", division: "D" },
  });
  assert.deepEqual(project("", "name.givenName,name.familyName"), {
    ...Object.fromEntries(Object.entries(all).filter(([name]) => name !== "name")),
  });
  assert.deepEqual(project("name,userName", "name.givenName"), {
    schemas,
    id,
    userName: "a",
    name: { familyName: "F" },
  });
});
