// What directories are known to send, and where that is documented. "Entra compatibility" is the page "Known issues and
// resolutions with SCIM 2.0 protocol compliance" of Microsoft Entra ID, "Entra tutorial" its page "Develop and plan
// provisioning for a SCIM endpoint", and "Okta reference" Okta's "SCIM 2.0 protocol reference".
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseFilter } from "../../../src/scim/protocol/filter.js";
import { readResource } from "../../../src/scim/protocol/input.js";
import { buildListResponse, readListQuery } from "../../../src/scim/protocol/list.js";
import { matches } from "../../../src/scim/protocol/match.js";
import { applyPatch, readPatch } from "../../../src/scim/protocol/patch.js";
import { groupType, userType } from "../../../src/scim/protocol/schemas.js";

const ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";
const PATCH_OP = "urn:ietf:params:scim:api:messages:2.0:PatchOp";
const person = { userName: "a", active: true };

function patch(resource: Record<string, unknown>, ...operations: readonly object[]): Record<string, unknown> {
  const type = "userName" in resource ? userType : groupType;
  return applyPatch(resource, readPatch({ schemas: [PATCH_OP], Operations: operations }, type), type);
}

// Entra tutorial: "Add", "Replace" and "Remove".
test("the operation in capital letters", () => {
  assert.equal(patch(person, { op: "Replace", path: "displayName", value: "A" }).displayName, "A");
  assert.equal(patch(person, { op: "ADD", path: "title", value: "T" }).title, "T");
});

// RFC 7643, section 2.1: names are not case-sensitive.
test("operations in small letters", () => {
  const body = { schemas: [PATCH_OP], operations: [{ OP: "add", Path: "TITLE", Value: "T" }] };
  assert.equal(applyPatch(person, readPatch(body, userType), userType).title, "T");
});

// Entra compatibility: without the flag aadOptscim062020.
test("active as a text", () => {
  for (const value of ["False", "false", false, "FALSE"]) {
    assert.deepEqual(patch(person, { op: "Replace", path: "active", value }), { userName: "a", active: false });
  }
  assert.deepEqual(readResource({ userName: "a", active: "True" }, userType), person);
});

// Okta reference: "Deactivate a User".
test("active without a path", () => {
  assert.deepEqual(patch(person, { op: "replace", value: { active: false } }), { userName: "a", active: false });
});

// Entra tutorial and its validator: they add and replace values that are absent.
test("an address of e-mail is created where there is none of its type", () => {
  for (const op of ["Add", "Replace"]) {
    const emails = [{ value: "h@x", type: "home" }];
    assert.deepEqual(patch({ ...person, emails }, { op, path: 'emails[type eq "work"].value', value: "w@x" }).emails, [
      ...emails,
      { value: "w@x", type: "work" },
    ]);
  }
});

// Entra tutorial: several parts of an address, each by an operation of its own.
test("an address is created part by part", () => {
  const parts = { streetAddress: "1 Main St", locality: "Berlin", formatted: "1 Main St, Berlin" };
  const operations = Object.entries(parts).map(([name, value]) => ({
    op: "Add",
    path: `addresses[type eq "work"].${name}`,
    value,
  }));
  assert.deepEqual(patch(person, ...operations).addresses, [{ type: "work", ...parts }]);
});

// Entra ID, "Tutorial: Customize user provisioning attribute-mappings": SingleAppRoleAssignment.
test("a primary role is created", () => {
  const operation = { op: "Add", path: 'roles[primary eq "True"].value', value: "admin" };
  assert.deepEqual(patch(person, operation).roles, [{ value: "admin", primary: true }]);
});

// Entra compatibility: names of parts and of extensions in the value of an operation without a path.
test("names with dots and with URNs in a value", () => {
  const value = {
    displayName: "A",
    "name.givenName": "G",
    "name.familyName": "F",
    'emails[type eq "work"].value': "w@x",
    [`${ENTERPRISE}:department`]: "Sales",
    [`${ENTERPRISE}:manager`]: "M1",
  };
  assert.deepEqual(patch(person, { op: "replace", value }), {
    ...person,
    name: { familyName: "F", givenName: "G" },
    displayName: "A",
    emails: [{ value: "w@x", type: "work" }],
    [ENTERPRISE]: { department: "Sales", manager: { value: "M1" } },
  });
});

// Entra tutorial: the department with its URN.
test("a path with a URN", () => {
  const operation = { op: "Add", path: `${ENTERPRISE}:department`, value: "Sales" };
  assert.deepEqual(patch(person, operation), { ...person, [ENTERPRISE]: { department: "Sales" } });
});

// Entra compatibility, customappsso: references in a list, with an empty $ref.
test("a manager as a list of one", () => {
  for (const value of ["M1", { value: "M1" }, [{ $ref: null, value: "M1" }]]) {
    const operation = { op: "Add", path: `${ENTERPRISE}:manager`, value };
    assert.deepEqual(patch(person, operation)[ENTERPRISE], { manager: { value: "M1" } });
  }
});

// Entra tutorial, "Check if the reference attribute exists": manager without its URN.
test("a filter by manager", () => {
  const filter = parseFilter('id eq "1" and manager eq "M1"', userType);
  assert.ok(matches(filter, { ...person, id: "1", [ENTERPRISE]: { manager: { value: "M1" } } }, userType));
  assert.ok(!matches(filter, { ...person, id: "1" }, userType));
});

// Entra compatibility, customappsso: the members to remove in the value.
test("members are removed by value", () => {
  const group = { displayName: "g", members: [{ value: "1", display: "One" }, { value: "2" }] };
  const operation = { op: "Remove", path: "members", value: [{ value: "1" }] };
  assert.deepEqual(patch(group, operation).members, [{ value: "2" }]);
  assert.deepEqual(patch(group, { ...operation, value: [{ $ref: null, value: "1" }] }).members, [{ value: "2" }]);
  assert.deepEqual(patch(group, { ...operation, value: { value: "1" } }).members, [{ value: "2" }]);
});

// Okta reference, "Update a specific Group name": with the id of the group.
test("a group is renamed by a value with its id", () => {
  const group = { displayName: "g", members: [{ value: "1" }] };
  const renamed = { ...group, displayName: "h" };
  assert.deepEqual(patch(group, { op: "replace", value: { id: "x", displayName: "h" } }), renamed);
});

// Okta reference: "Retrieve Users", and the first request of a new integration.
test("the first page of two", () => {
  const query = readListQuery(new URLSearchParams("startIndex=1&count=2"), userType);
  assert.deepEqual([query.startIndex, query.count, query.filter], [1, 2, undefined]);
  assert.deepEqual(buildListResponse([], 0, 1), {
    schemas: ["urn:ietf:params:scim:api:messages:2.0:ListResponse"],
    totalResults: 0,
    startIndex: 1,
    itemsPerPage: 0,
    Resources: [],
  });
});

// Okta reference, "Determine if the User already exists": a plus sign for each space.
test("a user is sought by name", () => {
  const text = "filter=userName+eq+%22test.user%40okta.local%22&startIndex=1&count=100";
  const { filter } = readListQuery(new URLSearchParams(text), userType);
  assert.ok(filter && matches(filter, { userName: "Test.User@okta.local" }, userType));
});

// Okta reference, "Create the User": with a password and an empty list of groups.
test("the user that Okta creates", () => {
  const body = {
    schemas: ["urn:ietf:params:scim:schemas:core:2.0:User"],
    userName: "test.user@okta.local",
    name: { givenName: "Test", familyName: "User" },
    emails: [{ primary: true, value: "test.user@okta.local", type: "work" }],
    displayName: "Test User",
    locale: "en-US",
    externalId: "00ujl29u0le5T6Aj10h7",
    groups: [],
    password: "1mz050nq",
    active: true,
  };
  const { schemas: _schemas, groups: _groups, password: _password, ...stored } = body;
  assert.deepEqual(readResource(body, userType), stored);
});

// Entra tutorial, "Create User": with meta, an empty list of roles, and attributes of a schema of the application.
test("the user that Entra ID creates", () => {
  const body = {
    schemas: ["urn:ietf:params:scim:schemas:core:2.0:User", "urn:ietf:params:scim:schemas:extension:custom:2.0:User"],
    externalId: "0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef",
    userName: "Test_User",
    active: "True",
    addresses: [],
    meta: { resourceType: "User" },
    roles: [],
    "urn:ietf:params:scim:schemas:extension:custom:2.0:User": { employeeNumber: "1" },
  };
  assert.deepEqual(readResource(body, userType), {
    externalId: "0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef",
    userName: "Test_User",
    active: true,
  });
});
