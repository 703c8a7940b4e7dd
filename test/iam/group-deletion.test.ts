// What goes with a group that is deleted. What keeps it from that is in test/contract/rules.
import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { acceptInvite, requireInvite } from "../../src/iam/people/accept-invite.js";
import { builtinRoleUid, randomIds } from "../../src/kernel/ids.js";
import { advisoryKind } from "../../src/store/advisories/advisories.js";
import { groupInviteKind } from "../../src/store/iam/group-invites.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { roleKind } from "../../src/store/iam/roles.js";
import { precondition } from "../contract/expectations.js";
import { createAdvisory } from "../contract/registry-things.js";
import { restAs } from "../contract/rest.js";
import { roleRow } from "../support/rows.js";
import { chooseScale } from "../support/scale.js";
import { type IamWorld, startIamWorld } from "./iam-world.js";

const viewer = builtinRoleUid("viewer");
let world: IamWorld;
before(async () => {
  world = await startIamWorld();
});
after(() => world.stop());

it("advisories restrict the deletion of a group until they are withdrawn, and are deleted with it", async () => {
  const group = await world.group();
  const advisories: string[] = [];
  for (const text of ["one", "two"]) advisories.push(await world.write((tx) => createAdvisory(tx, group, text)));
  const { rest, token, uid } = world.owner;
  await world.harness.bind(uid, "advisories.admin", world.root);
  for (const [i, advisory] of advisories.entries()) {
    const kept = precondition("RESOURCE_NOT_EMPTY", "cannot delete group with child advisories", {
      advisories: String(advisories.length - i),
    });
    assert.deepEqual((await rest("DELETE", `/groups/${group}`)).outcome, kept);
    const withdraw = restAs(world.url, token, "/vulnerabilities/v1");
    assert.equal((await withdraw("DELETE", `/advisories/${advisory}`)).status, 200);
  }
  assert.equal((await rest("DELETE", `/groups/${group}`)).status, 200);
  const left = await world.write(async (tx) => [
    await tx.table(advisoryKind).find(advisories[0] ?? ""),
    await tx.table(advisoryKind).listEvents(advisories),
  ]);
  assert.deepEqual(left, [undefined, []]);
});

it("the error names every kind that keeps a group, and counts up to a hundred of each", async () => {
  const group = await world.group();
  const { rest } = world.owner;
  for (const name of ["one", "two"]) await rest("POST", `/groups/${group}`, { name });
  await world.write(async (tx) => {
    for (let i = 0; i < 150; i++) {
      const uid = randomIds.newUid(group);
      await tx.table(roleKind).insert(roleRow(uid, { groupUid: group, name: `role ${i}` }));
    }
  });
  const kept = (roles: string) => {
    const rules = ["groups", "roles"].map((children) => `cannot delete group with child ${children}`);
    return precondition("RESOURCE_NOT_EMPTY", rules, { groups: "2", roles });
  };
  assert.deepEqual((await rest("DELETE", `/groups/${group}`)).outcome, kept("more than 100"));
  const uids = await world.write((tx) => tx.table(roleKind).findUidsWhere("groupUid", group));
  for (const uid of uids.slice(0, 50)) await rest("DELETE", `/roles/${uid}`);
  assert.deepEqual((await rest("DELETE", `/groups/${group}`)).outcome, kept("100"));
});

it("the error has both what is in a group and what names it", async () => {
  const group = await world.group();
  const { rest } = world.owner;
  const oidc = { issuer: "https://idp.example", clientId: "id", pkceEnabled: true };
  const provider = (await rest("POST", `/identityProviders/${world.root}`, { name: "idp", defaultRole: viewer, oidc }))
    .json?.uid;
  await rest("POST", `/groups/${group}`, { name: "one" });
  await rest("POST", `/externalGroupRoleMappings/${provider}`, {
    ...{ externalGroupId: "builders", roleUid: viewer, scope: group },
  });
  const { outcome } = await rest("DELETE", `/groups/${group}`);
  assert.ok("message" in outcome);
  assert.equal(outcome.message, "Precondition failed: cannot delete group with child groups");
  const [info, { violations }] = outcome.details as [object, { violations: object[] }];
  assert.deepEqual(violations, [
    { type: "RESOURCE_NOT_EMPTY", description: "cannot delete group with child groups" },
    { type: "RESOURCE_IN_USE", description: "cannot delete group that external group role mappings name" },
  ]);
  assert.deepEqual((info as { metadata: object }).metadata, { groups: "1", externalGroupRoleMappings: "1" });
});

it("an invite that was used up restricts no deletion", async () => {
  const group = await world.group();
  const { rest, uid } = world.owner;
  const body = { roleUid: viewer, ttl: "60s", singleUse: true };
  const { json } = await rest("POST", `/groupInvites/${group}`, body);
  const binding = await world.write(async (tx) => {
    const nowMs = Date.now();
    const invite = await requireInvite(tx, String(json?.code), nowMs);
    const identity = await tx.table(identityKind).find(uid);
    assert.ok(identity);
    await acceptInvite(tx, invite, identity, { ids: randomIds, nowMs });
    return tx.table(roleBindingKind).findSame(group, uid, viewer);
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
    const kept = precondition("RESOURCE_NOT_EMPTY", "cannot delete group with child group invites", {
      groupInvites: "1",
    });
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
        await tx.table(groupInviteKind).insert({ ...row, ...times });
      }
    });
  }
}
