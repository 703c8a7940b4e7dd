// Requests that mean harm: deep, long, costly, and with the names of what all objects inherit.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseFilter } from "../../../src/scim/protocol/filter.js";
import { readResource } from "../../../src/scim/protocol/input.js";
import { readSearchRequest } from "../../../src/scim/protocol/list.js";
import { matches } from "../../../src/scim/protocol/match.js";
import { applyPatch, MAX_EXAMINED, readPatch } from "../../../src/scim/protocol/patch.js";
import { projectResource } from "../../../src/scim/protocol/project.js";
import { resolveName, userType } from "../../../src/scim/protocol/schemas.js";
import { assertRejected } from "./reject.js";

const ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";
const INHERITED = [
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "hasOwnProperty",
  "__defineGetter__",
  "valueOf",
];
const person = { userName: "a", name: { givenName: "G" }, emails: [{ value: "w@x", type: "work" }] };

function patch(operations: readonly unknown[]): unknown {
  return applyPatch(person, readPatch({ Operations: operations }, userType), userType);
}

function assertUnpolluted(): void {
  assert.equal(({} as Record<string, unknown>).polluted, undefined);
  assert.deepEqual(Object.keys(Object.prototype), []);
  assert.equal((Object as unknown as Record<string, unknown>).polluted, undefined);
}

// As JSON.parse reads it: __proto__ is then a property of the object itself.
const parse = (text: string): unknown => JSON.parse(text);

test("deep and long filters are rejected", () => {
  const nest = (depth: number, open = "(") => `${open.repeat(depth)}title pr${")".repeat(depth)}`;
  assert.ok(parseFilter(nest(32), userType));
  for (const filter of [
    ...[
      nest(33),
      nest(33, "not ("),
      nest(2_000),
      nest(20_000),
      "(".repeat(20_000),
      "(".repeat(4_096),
      "not(".repeat(1_000),
    ],
    ...[
      `${"(".repeat(31)}emails[((type pr))]${")".repeat(31)}`,
      `title eq "${"a".repeat(4_100)}"`,
      `title pr${" ".repeat(5_000)}`,
    ],
    ...["[".repeat(4_000), `emails${"[type".repeat(800)}`, '"'.repeat(4_095), "\\".repeat(4_000), "and ".repeat(1_000)],
    Array.from({ length: 101 }, () => "id pr").join(" or "),
  ]) {
    assertRejected(() => parseFilter(filter, userType), "invalidFilter", filter.slice(0, 40));
  }
  assert.ok(parseFilter(Array.from({ length: 100 }, () => "id pr").join(" or "), userType));
  for (const path of [`emails[${nest(20_000)}].value`, "(".repeat(20_000), `emails[${"a".repeat(5_000)}`]) {
    assertRejected(() => patch([{ op: "add", path, value: "x" }]), "invalidPath", path.slice(0, 40));
  }
  for (const filter of [nest(33, "("), Array.from({ length: 6 }, () => "type pr").join(" or ")]) {
    assertRejected(() => patch([{ op: "remove", path: `emails[${filter}]` }]), "invalidFilter");
  }
});

test("a deep body is read only as deep as the schema is", () => {
  const depth = 5_000;
  const deep = parse(`${'{"name":'.repeat(depth)}1${"}".repeat(depth)}`) as object;
  assert.deepEqual(readResource({ ...deep, userName: "a" }, userType), { userName: "a" });
  const lists = parse(`${"[".repeat(depth)}1${"]".repeat(depth)}`);
  assertRejected(() => readResource({ userName: "a", emails: lists }, userType), "invalidValue");
  assertRejected(() => patch([{ op: "add", path: "title", value: lists }]), "invalidValue");
});

test("inherited names are no attributes", () => {
  for (const name of INHERITED) {
    for (const text of [name, `${name}.polluted`, `name.${name}`, `${ENTERPRISE}:${name}`, `emails.${name}`]) {
      assert.equal(resolveName(userType, text), undefined, text);
      assertRejected(() => parseFilter(`${text} eq "x"`, userType), "invalidFilter", text);
      assertRejected(() => parseFilter(`${text} pr`, userType), "invalidFilter", text);
      assertRejected(() => patch([{ op: "add", path: text, value: "x" }]), "invalidPath", text);
      assertRejected(() => patch([{ op: "remove", path: text }]), "invalidPath", text);
      assertRejected(() => readSearchRequest({ sortBy: text }, userType), "invalidPath", text);
      assert.deepEqual(
        projectResource({ id: "1", ...person }, userType, { attributes: [text], excludedAttributes: [] }),
        {
          id: "1",
        },
      );
    }
    assertRejected(() => parseFilter(`emails[${name} eq "x"]`, userType), "invalidFilter");
    assertRejected(() => patch([{ op: "add", path: `emails[type eq "work"].${name}`, value: "x" }]), "invalidPath");
    assertRejected(() => patch([{ op: "add", path: `emails[${name} eq "x"].value`, value: "x" }]), "invalidFilter");
    assertRejected(() => patch([{ op: name, path: "title", value: "x" }]), "invalidSyntax");
  }
  assertUnpolluted();
});

test("inherited names in bodies become properties of nothing", () => {
  const pollution = INHERITED.map((name) => `${JSON.stringify(name)}:{"polluted":"yes","value":"x"}`).join(",");
  const body = parse(
    `{${pollution},"userName":"a","name":{${pollution},"givenName":"G"},"emails":[{${pollution},"value":"w@x","type":"work"}],"${ENTERPRISE}":{${pollution}}}`,
  );
  const read = readResource(body, userType);
  assert.deepEqual(read, person);
  assert.equal(Object.getPrototypeOf(read), Object.prototype);
  const operations = [
    { op: "add", value: body },
    { op: "replace", value: parse(`{${pollution},"__proto__.polluted":"yes","constructor.prototype.polluted":"yes"}`) },
    { op: "add", path: "name", value: parse(`{${pollution}}`) },
    { op: "add", path: 'emails[type eq "work"]', value: parse(`{${pollution},"value":"w@x"}`) },
    { op: "replace", path: ENTERPRISE, value: parse(`{${pollution}}`) },
    parse(`{${pollution},"op":"add","path":"title","value":"T"}`),
  ];
  assert.deepEqual(patch(operations), { ...person, title: "T" });
  assertUnpolluted();
});

test("values may be inherited names", () => {
  for (const name of INHERITED) {
    assert.deepEqual(readResource({ userName: name }, userType), { userName: name });
    assert.ok(matches(parseFilter(`userName eq "${name}"`, userType), { userName: name }, userType));
    const operation = { op: "add", path: `emails[type eq "${name}"].value`, value: name };
    assert.deepEqual(patch([{ op: "remove", path: "emails" }, operation]), {
      ...{ userName: "a", name: person.name },
      emails: [{ value: name, type: name }],
    });
  }
});

test("the numbers of operations and of the values that they examine are bounded", () => {
  const operation = { op: "add", path: "title", value: "T" };
  assert.ok(patch(Array.from({ length: 1_000 }, () => operation)));
  assertRejected(() => patch(Array.from({ length: 1_001 }, () => operation)), "invalidSyntax");
  const names = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`x${index}`, 1]));
  assert.ok(patch([{ op: "add", value: names(1_000) }]));
  assertRejected(() => patch([{ op: "add", value: names(1_001) }]), "invalidSyntax");
  assertRejected(() => patch(Array.from({ length: 501 }, () => ({ op: "add", value: names(2) }))), "invalidSyntax");

  const roles = Array.from({ length: 1_000 }, (_, index) => ({ value: `r${index}` }));
  const changes = (count: number) =>
    Array.from({ length: count }, (_, index) => ({
      op: "add",
      path: `roles[value eq "r${index}"].display`,
      value: "D",
    }));
  const apply = (count: number) =>
    applyPatch({ userName: "a", roles }, readPatch({ Operations: changes(count) }, userType), userType);
  assert.ok(apply(MAX_EXAMINED / 1_000));
  assertRejected(() => apply(MAX_EXAMINED / 1_000 + 1), "invalidValue");
});

// What the largest filter costs: each of its conditions reads each value of a person once, and stops at what decides.
test("the largest filter reads each value once for each condition", () => {
  const roles = Array.from({ length: 1_000 }, (_, index) => ({ value: `role ${index}` }));
  let reads = 0;
  const counted = roles.map(
    (role) =>
      new Proxy(role, {
        get(target, name, receiver) {
          reads++;
          return Reflect.get(target, name, receiver);
        },
      }),
  );
  const filter = parseFilter(Array.from({ length: 100 }, (_, index) => `roles co "${index}x"`).join(" or "), userType);
  assert.equal(matches(filter, { userName: "a", roles: counted }, userType), false);
  assert.equal(reads, 100 * 1_000);
});
