// AccessService over REST: what its answers say, and what bad requests get.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { builtinRoleUid } from "../../src/kernel/ids.js";
import { restAs } from "../contract/rest.js";
import { type IamWorld, type Somebody, startIamWorld } from "../iam/iam-world.js";

let world: IamWorld;
let admin: Somebody;
let workload: string;

const service = "chainguard.platform.iam.v2beta1.GroupsService";

before(async () => {
  world = await startIamWorld();
  admin = await world.caller(["role_bindings.list", "roles.list", "groups.list", "identity.list"]);
  workload = await world.identity(world.child);
  await world.harness.bind(workload, "viewer", world.child);
});
after(() => world.stop());

// biome-ignore lint/suspicious/noExplicitAny: the JSON of several messages
type Json = any;

const query = (values: Readonly<Record<string, string>>) => new URLSearchParams(values).toString();

async function ask(who: Somebody, path: string, values: Readonly<Record<string, string>>) {
  const { status, json } = await restAs(world.url, who.token, "/access/v1")("GET", `/${path}?${query(values)}`);
  return { status, body: json as Json };
}

test("Check says what a workload may do, and what it lacks", async () => {
  const at = { identity: workload, resource: world.grandchild };
  const yes = await ask(admin, "check", { ...at, actions: `${service}.GetGroup` });
  assert.deepEqual(yes.body, {
    allowed: true,
    missingCapabilities: [],
    methodRule: "",
    partial: false,
    unconfirmed: false,
  });
  const no = await ask(admin, "check", { ...at, actions: "groups.update" });
  assert.equal(no.body.allowed, false);
  assert.deepEqual(no.body.missingCapabilities, ["groups.update"]);
  const above = await ask(admin, "check", { ...at, resource: world.root, actions: `${service}.GetGroup` });
  assert.equal(above.body.allowed, false);
});

test("Explain names the binding, its role and its group", async () => {
  const { body } = await ask(admin, "explanation", {
    identity: workload,
    resource: world.grandchild,
    actions: `${service}.GetGroup`,
  });
  assert.equal(body.allowed, true);
  assert.equal(body.grants.length, 1);
  const [grant] = body.grants;
  assert.equal(grant.group.uid, world.child);
  assert.deepEqual(grant.role, { uid: builtinRoleUid("viewer"), name: "viewer" });
  assert.deepEqual(
    [grant.origin, grant.effect, grant.capabilities],
    ["ORIGIN_BOUND", "EFFECT_COUNTS", ["groups.list"]],
  );
  assert.ok(grant.roleBinding.startsWith(`${world.child}/`));
});

test("ListSubjects lists who may at a group, and ListAccess what an identity may", async () => {
  const subjects = await ask(admin, "subjects", { actions: "groups.list", resource: world.grandchild });
  const uids = subjects.body.subjects.map((one: Json) => one.identity?.uid);
  assert.ok(uids.includes(workload) && uids.includes(admin.uid) && uids.includes(world.owner.uid));
  assert.deepEqual(uids, [...uids].sort());
  const access = await ask(admin, "grants", { identity: workload });
  assert.deepEqual(
    access.body.grants.map((grant: Json) => [grant.group.uid, grant.role.name, grant.effect]),
    [[world.child, "viewer", "EFFECT_COUNTS"]],
  );
  assert.ok(access.body.grants[0].capabilities.includes("groups.list"));
});

test("callers ask about themselves without any capability, and about others with role_bindings.list", async () => {
  const nobody = await world.caller([]);
  const own = await ask(nobody, "check", { actions: "groups.list", resource: world.root });
  assert.equal(own.body.allowed, false);
  const other = await ask(nobody, "check", { identity: workload, actions: "groups.list", resource: world.child });
  assert.equal(other.status, 403);
  assert.equal((await ask(nobody, "subjects", { actions: "groups.list", resource: world.root })).status, 403);
  assert.deepEqual((await ask(nobody, "grants", { identity: workload })).body.grants, []);
});

test("the bindings of groups above that the caller does not see are left out", async () => {
  const lead = await world.caller(["role_bindings.list", "roles.list"], world.child);
  await world.harness.bind(workload, "editor", world.root);
  const at = { identity: workload, resource: world.grandchild, actions: "repo.create" };
  const seen = await ask(lead, "check", at);
  assert.deepEqual([seen.body.allowed, seen.body.partial], [false, true]);
  const whole = await ask(admin, "check", at);
  assert.deepEqual([whole.body.allowed, whole.body.partial], [true, false]);
});

test("SearchNames finds by the beginning of names what lists show", async () => {
  const found = await ask(admin, "names", { prefix: "ou" });
  assert.deepEqual(
    found.body.resources.map((one: Json) => [one.kind, one.uid, one.name]),
    [["NAMED_KIND_GROUP", world.root, "ours"]],
  );
  assert.deepEqual((await ask(admin, "names", { prefix: "theirs" })).body.resources, []);
  assert.deepEqual((await ask(admin, "names", { prefix: "OU" })).body.resources, []);
});

test("a token is not tested by a GET, whose address proxies log", async () => {
  const message = Buffer.from(JSON.stringify({ identity: workload, token: "aaa.bbb.ccc" })).toString("base64url");
  const query = `connect=v1&encoding=json&base64=1&message=${message}`;
  const path = "/arbor.access.v1.AccessService";
  const get = (method: string) => restAs(world.url, admin.token, path)("GET", `/${method}?${query}`);
  assert.equal((await get("TestClaims")).status, 405);
  // The control: other questions may be asked so.
  assert.notEqual((await get("ListAccess")).status, 405);
});

for (const [path, values, field] of [
  ["check", {}, "actions"],
  ["check", { actions: "x.Y" }, "actions"],
  ["check", { actions: "groups.fly", resource: "0".repeat(40) }, "actions"],
  ["check", { actions: "groups.list" }, "resource"],
  ["check", { actions: "groups.list", resource: "nothing" }, "resource"],
  ["check", { actions: "groups.list", resource: "0".repeat(40), identity: "ci" }, "identity"],
  ["explanation", { actions: `${service}.GetGroup` }, "resource"],
  ["subjects", { actions: "groups.list" }, "resource"],
  ["subjects", { actions: `${service}.LookupGroup`, resource: "ROOT" }, "actions"],
  ["subjects", { actions: "groups.list", resource: "ROOT", pageSize: "-1" }, "pageSize"],
  ["subjects", { actions: "groups.list", resource: "ROOT", pageToken: "abc" }, "pageToken"],
  ["grants", { identity: "ci" }, "identity"],
  ["grants", { group: "acme" }, "group"],
  ["names", {}, "prefix"],
  ["names", { prefix: "a", group: "acme" }, "group"],
] as const) {
  test(`${path} ${JSON.stringify(values)} is INVALID_ARGUMENT about ${field}`, async () => {
    const given = Object.fromEntries(
      Object.entries(values).map(([name, value]) => [name, value === "ROOT" ? world.root : value]),
    );
    const { status, body } = await ask(admin, path, given);
    assert.equal(status, 400);
    assert.equal(body.details.find((one: Json) => one.fieldViolations)?.fieldViolations[0].field, field);
  });
}
