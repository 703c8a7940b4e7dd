// Every organisation keeps an owner, and deleting an identity ends all that it holds.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { builtinRoleUid, personUid, randomIds } from "../../src/kernel/ids.js";
import { groupKind } from "../../src/store/iam/groups.js";
import { precondition } from "../contract/expectations.js";
import { type RestResponse, restAs } from "../contract/rest.js";
import { groupRow } from "../support/rows.js";
import { type IamWorld, startIamWorld } from "./iam-world.js";

const [viewer, owner] = ["viewer", "owner"].map(builtinRoleUid) as [string, string];

let world: IamWorld;
before(async () => {
  world = await startIamWorld();
});
after(() => world.stop());

const uidFrom = async (response: Promise<RestResponse>): Promise<string> => {
  const { status, json, text } = await response;
  assert.equal(status, 200, text);
  return String(json?.uid);
};

describe("owners", () => {
  const kept = precondition("OWNER_REQUIRED", "a root group must keep an owner");

  const createRoot = (token: string) => uidFrom(restAs(world.url, token)("POST", "/groups/", { name: "mine" }));

  async function createFounder() {
    const founder = await world.harness.identity();
    const rest = restAs(world.url, founder.token);
    const root = randomIds.newUid();
    await world.write((tx) => tx.table(groupKind).insert(groupRow(root)));
    const binding = await world.harness.bind(founder.uid, "owner", root);
    return { founder, rest, root, binding };
  }

  it("the last one cannot go: by deletion or update of the binding", async () => {
    const { rest, root, binding } = await createFounder();
    assert.deepEqual((await rest("DELETE", `/roleBindings/${binding}`)).outcome, kept);
    assert.deepEqual((await rest("PATCH", `/roleBindings/${binding}`, { roleUid: viewer })).outcome, kept);
    const nobodyYet = personUid("i", randomIds.newId());
    assert.deepEqual((await rest("PATCH", `/roleBindings/${binding}`, { identityUid: nobodyYet })).outcome, kept);
    // An owner who never came is none.
    assert.equal((await rest("POST", `/roleBindings/${root}`, { identityUid: nobodyYet, roleUid: owner })).status, 200);
    assert.deepEqual((await rest("DELETE", `/roleBindings/${binding}`)).outcome, kept);
    // Nor is one of a group below.
    const child = await world.group(root);
    const other = await world.harness.identity();
    await world.harness.bind(other.uid, "owner", child);
    assert.deepEqual((await rest("DELETE", `/roleBindings/${binding}`)).outcome, kept);
    assert.equal((await rest("POST", `/roleBindings/${root}`, { identityUid: other.uid, roleUid: owner })).status, 200);
    assert.equal((await rest("DELETE", `/roleBindings/${binding}`)).status, 200);
  });

  it("the last one cannot go: by deletion of the identity", async () => {
    const { rest, root, binding } = await createFounder();
    const workload = await world.identity(root);
    assert.equal((await rest("POST", `/roleBindings/${root}`, { identityUid: workload, roleUid: owner })).status, 200);
    assert.equal((await rest("DELETE", `/roleBindings/${binding}`)).status, 200);
    const asWorkload = restAs(world.url, await world.harness.token(workload));
    assert.deepEqual((await asWorkload("DELETE", `/identities/${workload}`)).outcome, kept);
    assert.equal((await asWorkload("GET", `/identities/${workload}`)).status, 200);
  });

  it("a root handed over to another owner can still be deleted", async () => {
    const founder = await world.harness.identity();
    const heir = await world.harness.identity();
    const [rest, heirs] = [restAs(world.url, founder.token), restAs(world.url, heir.token)];
    const root = await createRoot(founder.token);
    const { json } = await rest("GET", `/roleBindings?group=${root}`);
    const [first] = (json?.roleBindings ?? []) as { uid: string }[];
    await uidFrom(rest("POST", `/roleBindings/${root}`, { identityUid: heir.uid, roleUid: owner }));
    assert.equal((await heirs("DELETE", `/roleBindings/${first?.uid}`)).status, 200);
    assert.equal((await heirs("DELETE", `/groups/${root}`)).text, "");
    assert.equal((await heirs("GET", "/groups")).json?.totalCount, "0");
  });
});
