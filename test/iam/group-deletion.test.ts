// What keeps a group from being deleted, and what goes with it.
import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { builtinRoleUid, personUid } from "../../src/kernel/ids.js";
import { precondition } from "../contract/expectations.js";
import { placeAdvisory } from "../contract/registry-things.js";
import { restAs } from "../contract/rest.js";
import { claimMatch, type IamWorld, startIamWorld } from "./iam-world.js";

const viewer = builtinRoleUid("viewer");
const provider = {
  name: "p",
  defaultRole: viewer,
  oidc: { issuer: "https://login.example", clientId: "id", clientSecret: "s" },
};

let world: IamWorld;
before(async () => {
  world = await startIamWorld();
});
after(() => world.stop());

const guards: readonly { children: string; path: string; body: () => object }[] = [
  { children: "groups", path: "groups", body: () => ({ name: "g" }) },
  { children: "identities", path: "identities", body: () => ({ name: "i", claimMatch: claimMatch() }) },
  { children: "roles", path: "roles", body: () => ({ name: "r", capabilities: ["CAP_IAM_GROUPS_LIST"] }) },
  {
    children: "role bindings",
    path: "roleBindings",
    body: () => ({ identityUid: personUid("i", "s"), roleUid: viewer }),
  },
];

for (const { children, path, body } of guards) {
  it(`${children} keep a group`, async () => {
    const group = await world.group();
    const { json, status } = await world.owner.rest("POST", `/${path}/${group}`, body());
    assert.equal(status, 200);
    const kept = precondition("RESOURCE_NOT_EMPTY", `cannot delete group with child ${children}`);
    assert.deepEqual((await world.owner.rest("DELETE", `/groups/${group}`)).outcome, kept);
    assert.equal((await world.owner.rest("DELETE", `/${path}/${json?.uid}`)).status, 200);
    assert.equal((await world.owner.rest("DELETE", `/groups/${group}`)).status, 200);
  });
}

it("identity providers keep a root, which goes with its founder's binding once they are gone", async () => {
  const { group, token } = await world.harness.organisation("short-lived");
  const rest = restAs(world.url, token);
  const { json } = await rest("POST", `/identityProviders/${group}`, provider);
  const kept = precondition("RESOURCE_NOT_EMPTY", "cannot delete group with child identity providers");
  assert.deepEqual((await rest("DELETE", `/groups/${group}`)).outcome, kept);
  assert.equal((await rest("DELETE", `/identityProviders/${json?.uid}`)).status, 200);
  assert.equal((await rest("DELETE", `/groups/${group}`)).status, 200);
});

it("advisories keep a group until they are withdrawn, and go with it then", async () => {
  const group = await world.group();
  const advisories: string[] = [];
  for (const text of ["one", "two"]) advisories.push(await world.write((tx) => placeAdvisory(tx, group, text)));
  const kept = precondition("RESOURCE_NOT_EMPTY", "cannot delete group with child advisories");
  const { rest, token, uid } = world.owner;
  await world.harness.bind(uid, "advisories.admin", world.root);
  for (const advisory of advisories) {
    assert.deepEqual((await rest("DELETE", `/groups/${group}`)).outcome, kept);
    const withdraw = restAs(world.url, token, "/vulnerabilities/v1");
    assert.equal((await withdraw("DELETE", `/advisories/${advisory}`)).status, 200);
  }
  assert.equal((await rest("DELETE", `/groups/${group}`)).status, 200);
  const left = await world.write(async (tx) => [
    await tx.advisories.get(advisories[0] ?? ""),
    await tx.advisories.events(advisories),
  ]);
  assert.deepEqual(left, [undefined, []]);
});

it("invites, accounts and accepted terms go with their group", async () => {
  const group = await world.group();
  const { rest } = world.owner;
  const invite = await rest("POST", `/groupInvites/${group}`, { roleUid: viewer, ttl: "60s" });
  assert.equal((await rest("POST", `/accountAssociations/${group}`, { name: "a" })).status, 200);
  assert.equal((await rest("POST", `/terms/${group}`, { documentIds: ["eula"] })).status, 200);
  assert.equal((await rest("DELETE", `/groups/${group}`)).status, 200);
  for (const path of [`/groupInvites/${invite.json?.uid}`, `/accountAssociations/${group}`]) {
    assert.equal((await rest("GET", path)).status, 404, path);
  }
  assert.equal((await rest("GET", `/groupInvites?uidp.ids=${invite.json?.uid}`)).json?.totalCount, "0");
});
