// The rights of callers without credentials: roles to pull with, no others by any method, and no organisation.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { bindIdentity } from "../../src/iam/operator/operate.js";
import { builtinRoles } from "../../src/iam/roles/builtin-roles.js";
import { ANONYMOUS_UID, builtinRoleUid, personUid, randomIds } from "../../src/kernel/ids.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { invalid, precondition } from "../contract/expectations.js";
import { restAs } from "../contract/rest.js";
import { bindingRow } from "../support/rows.js";
import { type IamWorld, startIamWorld } from "./iam-world.js";

const pull = builtinRoleUid("registry.pull");
const push = builtinRoleUid("registry.push");
const rule = "must grant no more than registry.pull does where the identity is anonymous";
const refused = invalid(["roleUid", `roleUid ${rule}`]);

let world: IamWorld;
before(async () => {
  world = await startIamWorld();
});
after(() => world.stop());

const bind = (roleUid: string, identityUid = ANONYMOUS_UID, group = world.child) =>
  world.owner.rest("POST", `/roleBindings/${group}`, { identityUid, roleUid });

describe("anonymous", () => {
  for (const name of Object.keys(builtinRoles)) {
    const isPull = name === "registry.pull";
    it(`${isPull ? "can" : "cannot"} be bound to ${name}`, async () => {
      const { status, outcome } = await bind(builtinRoleUid(name));
      if (isPull) assert.equal(status, 200);
      else assert.equal(status === 200, false, JSON.stringify(outcome));
    });
  }

  it("is rejected with more rights by every method", async () => {
    assert.deepEqual((await bind(push)).outcome, refused);
    const batch = { parent: world.child, requests: [{ roleBinding: { identityUid: ANONYMOUS_UID, roleUid: push } }] };
    const inBatch = await world.owner.rest("POST", "/roleBindings:batchCreate", batch);
    assert.deepEqual(inBatch.outcome, invalid(["requests[0].roleBinding.roleUid", `roleUid ${rule}`]));
    const v1 = restAs(world.url, world.owner.token, "/iam/v1");
    const byV1 = await v1("POST", `/rolebindings/${world.child}`, { identity: ANONYMOUS_UID, role: push });
    assert.deepEqual(byV1.outcome, invalid(["role", `role ${rule}`]));
    const group = await world.group();
    const { json } = await bind(pull, ANONYMOUS_UID, group);
    assert.deepEqual(
      (await world.owner.rest("PATCH", `/roleBindings/${json?.uid}`, { roleUid: push })).outcome,
      refused,
    );
    const somebodys = (await bind(push, personUid("https://issuer.example", "s"))).json;
    const handedOver = await world.owner.rest("PATCH", `/roleBindings/${somebodys?.uid}`, {
      identityUid: ANONYMOUS_UID,
    });
    assert.deepEqual(handedOver.outcome, refused);
    const context = { ids: randomIds, nowMs: Date.now() };
    const byHost = { identity: ANONYMOUS_UID, role: push, group };
    await assert.rejects(() => world.write((tx) => bindIdentity(tx, byHost, context)), { message: new RegExp(rule) });
    const rights = await world.write((tx) => tx.table(roleBindingKind).findByIdentity(ANONYMOUS_UID));
    assert.deepEqual([...new Set(rights.map(({ roleUid }) => roleUid))], [pull]);
  });

  it("can have a role of the organisation's own that grants no more, which then cannot come to grant more", async () => {
    const role = await world.role(["repo.blobs.get", "manifest.list", "tag.list"]);
    assert.equal((await bind(role)).status, 200);
    const change = (capabilities: string[]) => world.owner.rest("PATCH", `/roles/${role}`, { capabilities });
    const text = "a role that is bound to anonymous can grant no more than registry.pull";
    const wider = await change(["CAP_REPO_BLOBS_GET", "CAP_MANIFEST_CREATE"]);
    assert.deepEqual(wider.outcome, precondition("ROLE_IS_PUBLIC", text));
    assert.equal((await change(["CAP_REPO_BLOBS_GET"])).status, 200);
    const own = await world.role(["repo.blobs.get"]);
    const open = await world.owner.rest("PATCH", `/roles/${own}`, { capabilities: ["CAP_MANIFEST_CREATE"] });
    assert.equal(open.status, 200, "a role that nobody holds may");
  });

  it("does not count as the owner of a root group", async () => {
    const { group, roleBinding, token } = await world.harness.organisation("kept");
    // As it could be stored before.
    const row = bindingRow(randomIds.newUid(group), ANONYMOUS_UID, builtinRoleUid("owner"));
    await world.write((tx) => tx.table(roleBindingKind).insert(row));
    const dropped = await restAs(world.url, token)("DELETE", `/roleBindings/${roleBinding}`);
    assert.deepEqual(dropped.outcome, precondition("OWNER_REQUIRED", "a root group must keep an owner"));
  });
});
