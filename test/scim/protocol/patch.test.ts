import assert from "node:assert/strict";
import { test } from "node:test";
import type { ScimErrorType } from "../../../src/scim/protocol/error.js";
import { applyPatch, readPatch } from "../../../src/scim/protocol/patch.js";
import { groupType, type ResourceType, userType } from "../../../src/scim/protocol/schemas.js";
import { assertRejected } from "./reject.js";

const ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";
const person = {
  externalId: "e",
  userName: "a",
  name: { familyName: "F", givenName: "G" },
  active: true,
  emails: [
    { value: "w@x", type: "work", primary: true },
    { value: "h@x", type: "home" },
  ],
  addresses: [{ locality: "Berlin", type: "home" }],
  [ENTERPRISE]: { department: "Sales", manager: { value: "M1" } },
};
const group = { displayName: "g", members: [{ value: "1" }, { value: "2", $ref: "https://x.example/2" }] };

interface Operation {
  readonly op: string;
  readonly path?: string;
  readonly value?: unknown;
}

function patch(resource: Record<string, unknown>, type: ResourceType, ...operations: readonly Operation[]) {
  const before = structuredClone(resource);
  try {
    return applyPatch(resource, readPatch({ Operations: operations }, type), type);
  } finally {
    assert.deepEqual(resource, before);
  }
}

const changes: readonly { what: string; operation: Operation; changed: object }[] = [
  { what: "add sets", operation: { op: "add", path: "title", value: "T" }, changed: { title: "T" } },
  {
    what: "add replaces a single value",
    operation: { op: "add", path: "userName", value: "b" },
    changed: { userName: "b" },
  },
  {
    what: "add to a complex attribute keeps its other parts",
    operation: { op: "add", path: "name", value: { GIVENNAME: "H", formatted: "X" } },
    changed: { name: { formatted: "X", familyName: "F", givenName: "H" } },
  },
  {
    what: "replace of a complex attribute keeps its other parts, and null removes one",
    operation: { op: "replace", path: "name", value: { givenName: null, formatted: "X" } },
    changed: { name: { formatted: "X", familyName: "F" } },
  },
  {
    what: "add of a value that is there changes nothing",
    operation: {
      op: "add",
      path: "emails",
      value: [
        { type: "work", value: "W@X" },
        { value: "h@x", type: "home" },
      ],
    },
    changed: { emails: [{ value: "W@X", type: "work", primary: true }, person.emails[1]] },
  },
  {
    what: "add of an equal value without `value` changes nothing",
    operation: { op: "add", path: "addresses", value: { type: "HOME", locality: "berlin" } },
    changed: { addresses: [{ locality: "berlin", type: "HOME" }] },
  },
  {
    what: "a primary value that is added takes that from the others",
    operation: { op: "add", path: "emails", value: { value: "n@x", primary: true } },
    changed: {
      emails: [{ ...person.emails[0], primary: false }, person.emails[1], { value: "n@x", primary: true }],
    },
  },
  {
    what: "so does one that is made primary",
    operation: { op: "replace", path: 'emails[type eq "home"].primary', value: true },
    changed: {
      emails: [
        { ...person.emails[0], primary: false },
        { ...person.emails[1], primary: true },
      ],
    },
  },
  {
    what: "replace of a list",
    operation: { op: "replace", path: "emails", value: [{ value: "n@x" }] },
    changed: { emails: [{ value: "n@x" }] },
  },
  {
    what: "replace of an element",
    operation: { op: "replace", path: 'emails[type eq "work"]', value: { value: "n@x", type: "other" } },
    changed: { emails: [{ value: "n@x", type: "other" }, person.emails[1]] },
  },
  {
    what: "add to an element",
    operation: { op: "add", path: 'emails[type eq "home"]', value: { display: "D" } },
    changed: { emails: [person.emails[0], { value: "h@x", type: "home", display: "D" }] },
  },
  {
    what: "a new element has what its filter says",
    operation: { op: "replace", path: 'emails[type eq "other" and display eq "D"]', value: { value: "n@x" } },
    changed: { emails: [...person.emails, { value: "n@x", type: "other", display: "D" }] },
  },
  { what: "remove", operation: { op: "remove", path: "name" }, changed: { name: undefined } },
  {
    what: "remove of a part",
    operation: { op: "remove", path: "name.givenName" },
    changed: { name: { familyName: "F" } },
  },
  {
    what: "remove of an element",
    operation: { op: "remove", path: 'emails[value ew "@x" and type eq "work"]' },
    changed: { emails: [person.emails[1]] },
  },
  {
    what: "remove of the last one",
    operation: { op: "remove", path: "addresses[type pr]" },
    changed: { addresses: undefined },
  },
  {
    what: "remove of a part of elements",
    operation: { op: "remove", path: "emails.type" },
    changed: { emails: [{ value: "w@x", primary: true }, { value: "h@x" }] },
  },
  { what: "remove of what is not there", operation: { op: "remove", path: "title" }, changed: {} },
  { what: "and of an element", operation: { op: "remove", path: 'emails[type eq "x"].value' }, changed: {} },
  {
    what: "replace with null removes",
    operation: { op: "replace", path: "externalId", value: null },
    changed: { externalId: undefined },
  },
  {
    what: "an empty list as well",
    operation: { op: "replace", path: "emails", value: [] },
    changed: { emails: undefined },
  },
  { what: "add of null changes nothing", operation: { op: "add", path: "externalId", value: null }, changed: {} },
  {
    what: "an extension",
    operation: { op: "replace", path: ENTERPRISE, value: { division: "D", manager: { value: "M2" } } },
    changed: { [ENTERPRISE]: { division: "D", department: "Sales", manager: { value: "M2" } } },
  },
  {
    what: "remove of an extension",
    operation: { op: "remove", path: ENTERPRISE },
    changed: { [ENTERPRISE]: undefined },
  },
  {
    what: "without a path, unknown and read-only attributes are dropped",
    operation: { op: "replace", value: { id: "x", meta: {}, schemas: [], nothing: 1, "nothing.at": 1, title: "T" } },
    changed: { title: "T" },
  },
  { what: "the password is dropped", operation: { op: "replace", path: "password", value: "p" }, changed: {} },
];
for (const { what, operation, changed } of changes) {
  test(`patch: ${what}`, () => {
    const entries = Object.entries({ ...person, ...changed }).filter(([, value]) => value !== undefined);
    assert.deepEqual(patch(person, userType, operation), Object.fromEntries(entries));
  });
}

const errors: readonly (readonly [Operation | unknown, ScimErrorType])[] = [
  [{ op: "remove" }, "noTarget"],
  [{ op: "remove", path: "" }, "noTarget"],
  [{ op: "replace", path: 'emails[value sw "n"]', value: { value: "n@x" } }, "noTarget"],
  [{ op: "add", path: 'emails[not (type eq "home") and type eq "other"].value', value: "n@x" }, "noTarget"],
  [{ op: "add", path: 'emails[type eq "a" and type eq "b"].value', value: "n@x" }, "noTarget"],
  [{ op: "add", path: "nothing", value: 1 }, "invalidPath"],
  [{ op: "add", path: "name.nothing", value: 1 }, "invalidPath"],
  [{ op: "add", path: "urn:x:y", value: 1 }, "invalidPath"],
  [{ op: "add", path: 'emails[type eq "work"', value: 1 }, "invalidPath"],
  [{ op: "add", path: 'emails[type eq "work"]value', value: 1 }, "invalidPath"],
  [{ op: "add", path: 'emails[type eq "work"].nothing', value: 1 }, "invalidPath"],
  [{ op: "add", path: 'name[givenName eq "G"].familyName', value: "x" }, "invalidPath"],
  [{ op: "add", path: 1, value: 1 }, "invalidPath"],
  [{ op: "add", path: "emails[type is 1].value", value: "x" }, "invalidFilter"],
  [{ op: "add", path: "emails[].value", value: "x" }, "invalidFilter"],
  [{ op: "replace", path: "id", value: "x" }, "mutability"],
  [{ op: "replace", path: "meta.created", value: "x" }, "mutability"],
  [{ op: "add", path: "schemas", value: ["urn:x"] }, "mutability"],
  [{ op: "remove", path: "groups" }, "mutability"],
  [{ op: "remove", path: 'groups[value eq "g"]' }, "mutability"],
  [{ op: "add", path: "manager.displayName", value: "x" }, "mutability"],
  [{ op: "remove", path: "userName" }, "mutability"],
  [{ op: "replace", value: { userName: null } }, "mutability"],
  [{ op: "add", path: "title" }, "invalidValue"],
  [{ op: "add", path: "title", value: 1 }, "invalidValue"],
  [{ op: "add", path: "active", value: "maybe" }, "invalidValue"],
  [{ op: "add", path: "emails", value: "x" }, "invalidValue"],
  [{ op: "add", path: 'emails[type eq "work"]', value: [{ value: "1" }, { value: "2" }] }, "invalidValue"],
  [{ op: "add", value: "x" }, "invalidValue"],
  [{ op: "add", value: [] }, "invalidValue"],
  [{ op: "add", path: "userName", value: "" }, "invalidValue"],
  [{ op: "move", path: "title", value: "x" }, "invalidSyntax"],
  [{ op: { toString: 1 }, path: "title", value: "x" }, "invalidSyntax"],
  [{ path: "title", value: "x" }, "invalidSyntax"],
  [{ op: "add", OP: "add", path: "title", value: "x" }, "invalidSyntax"],
  ["add", "invalidSyntax"],
];
test("operations that cannot be applied are rejected, with all others", () => {
  for (const [operation, scimType] of errors) {
    const first = { op: "add", path: "title", value: "T" };
    assertRejected(() => patch(person, userType, first, operation as Operation), scimType, JSON.stringify(operation));
  }
});

test("a body without operations is rejected", () => {
  for (const body of [undefined, [], "x", {}, { Operations: {} }, { Operations: [] }]) {
    assertRejected(() => readPatch(body, userType), "invalidSyntax");
  }
  const twice = { Operations: [{ op: "remove", path: "title" }], operations: [{ op: "remove", path: "title" }] };
  assertRejected(() => readPatch(twice, userType), "invalidSyntax");
});

test("members of a group", () => {
  const patchGroup = (...operations: readonly Operation[]) => patch(group, groupType, ...operations).members;
  const [one, two] = group.members;
  const add = { op: "add", path: "members", value: [{ value: "2" }, { value: "3" }] };
  assert.deepEqual(patchGroup(add), [one, two, { value: "3" }]);
  assert.deepEqual(patchGroup({ op: "remove", path: 'members[value eq "1"]' }), [two]);
  assert.deepEqual(patchGroup({ op: "remove", path: "members", value: [] }), [one, two]);
  assert.equal(patchGroup({ op: "remove", path: "members" }), undefined);
  assertRejected(() => patchGroup({ op: "replace", path: 'members[value eq "1"].value', value: "3" }), "mutability");
});

test("operations see those before them", () => {
  const added = { op: "add", path: "emails", value: { value: "n@x", type: "other" } };
  const changed = { op: "replace", path: 'emails[type eq "other"].value', value: "m@x" };
  const removed = { op: "remove", path: 'emails[type eq "work"]' };
  assert.deepEqual(patch(person, userType, added, changed, removed).emails, [
    person.emails[1],
    { value: "m@x", type: "other" },
  ]);
});
