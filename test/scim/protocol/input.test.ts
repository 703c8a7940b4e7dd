import assert from "node:assert/strict";
import { test } from "node:test";
import { readResource } from "../../../src/scim/protocol/input.js";
import { buildSchemasList } from "../../../src/scim/protocol/resource.js";
import { groupType, userType } from "../../../src/scim/protocol/schemas.js";
import { assertRejected } from "./reject.js";

const ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";

const readUser = (body: object) => readResource({ userName: "a", ...body }, userType);
/** What a body gives besides the user name. */
function readRest(body: object): unknown {
  const { userName: _name, ...rest } = readUser(body);
  return rest;
}

test("names are in the spelling and the order of the schema", () => {
  const body = {
    [ENTERPRISE.toUpperCase()]: { DEPARTMENT: "d" },
    EMAILS: [{ TYPE: "work", Value: "a@x" }],
    displayname: "A",
    USERNAME: "a",
  };
  assert.equal(
    JSON.stringify(readResource(body, userType)),
    JSON.stringify({
      userName: "a",
      displayName: "A",
      emails: [{ value: "a@x", type: "work" }],
      [ENTERPRISE]: { department: "d" },
    }),
  );
});

const kept: readonly { what: string; body: object; rest: object }[] = [
  { what: "unknown attributes are dropped", body: { x: 1, name: { y: 1 }, "urn:z": { a: 1 } }, rest: {} },
  { what: "unknown schemas are not read", body: { schemas: ["urn:x"] }, rest: {} },
  { what: "read-only ones are dropped", body: { id: "x", meta: {}, groups: [{ value: "g" }] }, rest: {} },
  { what: "the password is dropped", body: { password: "p" }, rest: {} },
  { what: "so is the name of the manager", body: { [ENTERPRISE]: { manager: { displayName: "m" } } }, rest: {} },
  { what: "null and [] are no value", body: { title: null, emails: [], roles: [null, {}], name: {} }, rest: {} },
  { what: "an empty text is one", body: { title: "" }, rest: { title: "" } },
  { what: "a boolean as text", body: { active: "True" }, rest: { active: true } },
  { what: "one value without a list", body: { roles: { value: "r" } }, rest: { roles: [{ value: "r" }] } },
  {
    what: "the last primary value stays",
    body: { roles: [{ value: "a", primary: true }, { value: "b", primary: "TRUE" }, { value: "c" }] },
    rest: { roles: [{ value: "a", primary: false }, { value: "b", primary: true }, { value: "c" }] },
  },
  {
    what: "a manager as the text of its id",
    body: { [ENTERPRISE]: { manager: "m" } },
    rest: { [ENTERPRISE]: { manager: { value: "m" } } },
  },
  { what: "the longest text", body: { title: "😀".repeat(8_192) }, rest: { title: "😀".repeat(8_192) } },
  { what: "an external id", body: { externalId: "X".repeat(256) }, rest: { externalId: "X".repeat(256) } },
];
for (const { what, body, rest } of kept) {
  test(what, () => assert.deepEqual(readRest(body), rest));
}

const wrong: readonly { what: string; body: object }[] = [
  { what: "a number as text", body: { title: 1 } },
  { what: "a text as boolean", body: { active: "yes" } },
  { what: "a number as boolean", body: { active: 1 } },
  { what: "a text as object", body: { name: "a" } },
  { what: "an object as text", body: { title: {} } },
  { what: "a list as text", body: { title: ["a"] } },
  { what: "a list as object", body: { name: [{}, {}] } },
  { what: "texts as elements", body: { emails: ["a@x"] } },
  { what: "lists as elements", body: { emails: [[{ value: "a@x" }]] } },
  { what: "a text that is too long", body: { title: "a".repeat(8_193) } },
  { what: "too many values", body: { roles: Array.from({ length: 1_001 }, () => ({ value: "r" })) } },
  { what: "too much in all", body: { roles: Array.from({ length: 100 }, () => ({ value: "r".repeat(700) })) } },
  { what: "U+0000", body: { title: "a\0" } },
  { what: "half a surrogate pair", body: { title: "\ud800" } },
  { what: "an empty user name", body: { userName: "" } },
  { what: "no user name", body: { userName: null } },
  { what: "a user name that is too long", body: { userName: "a".repeat(257) } },
  { what: "a control character in a user name", body: { userName: "a\n" } },
  { what: "an empty external id", body: { externalId: "" } },
  { what: "a control character in an external id", body: { externalId: "\u0085" } },
];
for (const { what, body } of wrong) {
  test(`${what} is rejected`, () => assertRejected(() => readUser(body), "invalidValue"));
}

test("a body that is no object, and names given twice, are rejected", () => {
  for (const body of [undefined, null, 1, "a", [], [{ userName: "a" }]]) {
    assertRejected(() => readResource(body, userType), "invalidSyntax");
  }
  assertRejected(() => readUser({ USERNAME: "b" }), "invalidSyntax");
  assertRejected(() => readUser({ name: { givenName: "a", GIVENNAME: "b" } }), "invalidSyntax");
});

test("groups have members by thousands", () => {
  const members = Array.from({ length: 10_000 }, (_, index) => ({ value: `id-${index}` }));
  assert.deepEqual(readResource({ displayName: "g", members }, groupType), { displayName: "g", members });
  assertRejected(() => readResource({ members }, groupType), "invalidValue");
});

test("a resource has the schemas of its attributes", () => {
  assert.deepEqual(buildSchemasList(readUser({}), userType), ["urn:ietf:params:scim:schemas:core:2.0:User"]);
  assert.deepEqual(buildSchemasList(readUser({ [ENTERPRISE]: { division: "d" } }), userType), [
    "urn:ietf:params:scim:schemas:core:2.0:User",
    ENTERPRISE,
  ]);
});
