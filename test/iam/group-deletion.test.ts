// What keeps a group from being deleted, and what goes with it.
import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { acceptInvite, requireInvite } from "../../src/iam/people/accept-invite.js";
import { builtinRoleUid, personUid, randomIds } from "../../src/kernel/ids.js";
import { precondition } from "../contract/expectations.js";
import { createAdvisory } from "../contract/registry-things.js";
import { restAs } from "../contract/rest.js";
import { chooseScale } from "../support/scale.js";
import { claimMatch, type IamWorld, startIamWorld } from "./iam-world.js";

const viewer = builtinRoleUid("viewer");
const provider = {
  name: "p",
  defaultRole: viewer,
  oidc: { issuer: "https://login.example", clientId: "id", clientSecret: "s" },
};

const versions = ["v1", "v2beta1", "v2"];

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
  { children: "group invites", path: "groupInvites", body: () => ({ roleUid: viewer, ttl: "60s" }) },
  { children: "account associations", path: "accountAssociations", body: () => ({ name: "a" }) },
];

for (const { children, path, body } of guards) {
  it(`${children} restrict the deletion of a group`, async () => {
    const group = await world.group();
    const { json, status } = await world.owner.rest("POST", `/${path}/${group}`, body());
    assert.equal(status, 200);
    const kept = precondition("RESOURCE_NOT_EMPTY", `cannot delete group with child ${children}`);
    for (const version of versions) {
      const rest = restAs(world.url, world.owner.token, `/iam/${version}`);
      assert.deepEqual((await rest("DELETE", `/groups/${group}`)).outcome, kept, version);
    }
    assert.equal((await world.owner.rest("DELETE", `/${path}/${json?.uid}`)).status, 200);
    assert.equal((await world.owner.rest("DELETE", `/groups/${group}`)).status, 200);
  });
}

it("identity providers restrict the deletion of a root group, whose first owner is deleted with it", async () => {
  const { group, token } = await world.harness.organisation("short-lived");
  const rest = restAs(world.url, token);
  const { json } = await rest("POST", `/identityProviders/${group}`, provider);
  const kept = precondition("RESOURCE_NOT_EMPTY", "cannot delete group with child identity providers");
  assert.deepEqual((await rest("DELETE", `/groups/${group}`)).outcome, kept);
  assert.equal((await rest("DELETE", `/identityProviders/${json?.uid}`)).status, 200);
  assert.equal((await rest("DELETE", `/groups/${group}`)).status, 200);
});

it("advisories restrict the deletion of a group until they are withdrawn, and are deleted with it", async () => {
  const group = await world.group();
  const advisories: string[] = [];
  for (const text of ["one", "two"]) advisories.push(await world.write((tx) => createAdvisory(tx, group, text)));
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
    await tx.advisories.find(advisories[0] ?? ""),
    await tx.advisories.listEvents(advisories),
  ]);
  assert.deepEqual(left, [undefined, []]);
});

it("accepted terms are deleted with their group", async () => {
  const group = await world.group();
  const { rest } = world.owner;
  assert.equal((await rest("POST", `/terms/${group}`, { documentIds: ["eula"] })).status, 200);
  assert.equal((await rest("DELETE", `/groups/${group}`)).status, 200);
  assert.deepEqual(await world.write((tx) => tx.terms.findByGroup(group)), []);
});

it("the error names the kinds in their order: the first that restricts", async () => {
  const group = await world.group();
  const { rest } = world.owner;
  const remove: string[] = [];
  for (const { path, body } of guards) {
    const { json } = await rest("POST", `/${path}/${group}`, body());
    remove.push(`/${path}/${json?.uid}`);
  }
  for (const [i, { children }] of guards.entries()) {
    const kept = precondition("RESOURCE_NOT_EMPTY", `cannot delete group with child ${children}`);
    assert.deepEqual((await rest("DELETE", `/groups/${group}`)).outcome, kept);
    assert.equal((await rest("DELETE", remove[i] ?? "")).status, 200);
  }
  assert.equal((await rest("DELETE", `/groups/${group}`)).status, 200);
});

it("an invite that was used up restricts no deletion", async () => {
  const group = await world.group();
  const { rest, uid } = world.owner;
  const body = { roleUid: viewer, ttl: "60s", singleUse: true };
  const { json } = await rest("POST", `/groupInvites/${group}`, body);
  const binding = await world.write(async (tx) => {
    const nowMs = Date.now();
    const invite = await requireInvite(tx, String(json?.code), nowMs);
    const identity = await tx.identities.find(uid);
    assert.ok(identity);
    await acceptInvite(tx, invite, identity, { ids: randomIds, nowMs });
    return tx.roleBindings.findSame(group, uid, viewer);
  });
  assert.equal((await rest("DELETE", `/roleBindings/${binding?.uid}`)).status, 200);
  assert.equal((await rest("DELETE", `/groups/${group}`)).status, 200);
});

// Several times as many as one unit of work deletes.
const EXPIRED = chooseScale(2_100, 350);

it("live invites restrict the deletion of a group; expired ones are deleted with it, however many", async () => {
  const { rest, token } = world.owner;
  const v1 = restAs(world.url, token, "/iam/v1");
  for (const remove of [rest, v1]) {
    const group = await world.group();
    const invite = await rest("POST", `/groupInvites/${group}`, { roleUid: viewer, ttl: "60s" });
    const kept = precondition("RESOURCE_NOT_EMPTY", "cannot delete group with child group invites");
    assert.deepEqual((await remove("DELETE", `/groups/${group}`)).outcome, kept);
    assert.equal((await rest("DELETE", `/groupInvites/${invite.json?.uid}`)).status, 200);
    await insertExpiredInvites(group, EXPIRED);
    const path = `/groupInvites?uidp.childrenOf=${group}`;
    assert.equal((await rest("GET", path)).json?.totalCount, `${EXPIRED}`);
    assert.equal((await remove("DELETE", `/groups/${group}`)).status, 200);
    assert.equal((await rest("GET", path)).json?.totalCount, "0");
  }
});

// As many units of work as keep others waiting no longer than the service itself does.
async function insertExpiredInvites(groupUid: string, count: number): Promise<void> {
  const times = { expireTimeMs: 2_000, createTimeMs: 1_000, updateTimeMs: 1_000 };
  for (let done = 0; done < count; done += 300) {
    await world.write(async (tx) => {
      for (let i = done; i < Math.min(done + 300, count); i++) {
        const uid = randomIds.newUid(groupUid);
        const secret = { keyId: uid.slice(-16), codeHash: "0".repeat(64) };
        const row = { uid, groupUid, roleUid: viewer, email: "", singleUse: i % 2 === 0, createdBy: "", ...secret };
        await tx.groupInvites.insert({ ...row, ...times });
      }
    });
  }
}
