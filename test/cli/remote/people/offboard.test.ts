// `arbor members offboard`: nothing that it took authorises a call afterwards, and what remains is listed.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { create } from "@bufbuild/protobuf";
import { GetGroupRequestSchema, GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { connectTo, staticToken } from "../../../../src/client/index.js";
import { builtinRoleUid, randomIds } from "../../../../src/kernel/ids.js";
import { identityKind } from "../../../../src/store/iam/identities.js";
import { roleBindingKind } from "../../../../src/store/iam/role-bindings.js";
import { bearerOf, ConsoleBrowser, makeCode } from "../../../issuer/console/browser.js";
import { ask } from "../../../issuer/sts/ask.js";
import { type ExchangeWorld, startExchangeWorld } from "../../../issuer/sts/exchange-world.js";
import { makeProvider, type ProviderKit } from "../../../issuer/sts/provider-people.js";
import { askToken } from "../../../registry/token-kit.js";
import { runCommand } from "../../../support/command.js";
import { bindingRow } from "../../../support/rows.js";
import { insertScimUser } from "../../../support/scim-people.js";

const EMAIL = "bob@acme.example";
let world: ExchangeWorld;
let provider: ProviderKit;
before(async () => {
  world = await startExchangeWorld();
  provider = await makeProvider(world);
});
after(() => world?.stop());

function offboard(token: string, ...args: readonly string[]) {
  return runCommand(["members", "offboard", ...args], { ARBOR_API: world.url, ARBOR_TOKEN: token });
}

const post = async (path: string, json: object, bearer = world.owner.token) => {
  const answer = await ask(world.url, path, { method: "POST", json, bearer });
  assert.equal(answer.status, 200, answer.text);
  return answer.json;
};
const createGroup = async (name: string) => String((await post(`/iam/v2beta1/groups/${world.root}`, { name })).uid);

/** Whether a token is allowed a call, over each of these. */
const protocols: Readonly<Record<string, (token: string, group: string) => Promise<boolean>>> = {
  REST: async (bearer, group) => (await ask(world.url, `/iam/v2beta1/groups/${group}`, { bearer })).status === 200,
  "version 1": async (bearer, group) => {
    const { status, text } = await ask(world.url, `/iam/v1/groups?id=${group}`, { bearer });
    return status === 200 && text.includes(group);
  },
  Connect: async (bearer, uid) => {
    const path = "/chainguard.platform.iam.v2.GroupsService/GetGroup";
    return (await ask(world.url, path, { method: "POST", json: { uid }, bearer })).status === 200;
  },
  gRPC: async (token, uid) => {
    const connection = connectTo({ baseUrl: world.url, token: staticToken(token) });
    try {
      await connection.client(GroupsService).getGroup(create(GetGroupRequestSchema, { uid }));
      return true;
    } catch {
      return false;
    } finally {
      connection.close();
    }
  },
  registry: async (password, group) => {
    const parameters = [["scope", `repository:${group}/app:pull`]] as const;
    const { status, token } = await askToken(world.url, { user: "_token", password, parameters });
    if (status !== 200) return false;
    const { access = [] } = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
    return (access as { actions: string[] }[]).some(({ actions }) => actions.includes("pull"));
  },
};

async function listAllowed(token: string, group: string): Promise<string[]> {
  const allowed: string[] = [];
  for (const [name, call] of Object.entries(protocols)) if (await call(token, group)) allowed.push(name);
  return allowed;
}

describe("members offboard", () => {
  it("leaves nothing that authorises a call to a person of an organisation's provider", async () => {
    const subject = "bob";
    const row = await world.write((tx) => insertScimUser(tx, provider.uid, { externalId: subject, userName: EMAIL }));
    const uid = await provider.signIn(subject);
    const group = await createGroup("team");
    await world.harness.bind(uid, "owner", group);
    await world.harness.bind(uid, "registry.pull", group);
    const invited = { roleUid: builtinRoleUid("viewer"), ttl: "600s", email: EMAIL };
    const invite = String((await post(`/iam/v2beta1/groupInvites/${group}`, invited)).uid);
    const token = await world.harness.token(uid);
    const browser = new ConsoleBrowser(world.url);
    const session = await browser.signIn(await makeCode(world.harness, world.url, uid, Date.now()));
    // The person has made a workload and an invite.
    const workload = {
      ...{ name: "back-door", claimMatch: { issuer: "https://idp.example", subject: "x" } },
    };
    await post(`/iam/v2beta1/identities/${group}`, workload, token);
    await post(`/iam/v2beta1/groupInvites/${group}`, { ...invited, email: "eve@elsewhere.example" }, token);
    // The control: each works before.
    assert.deepEqual(await listAllowed(token, group), Object.keys(protocols));
    assert.deepEqual(await listAllowed(bearerOf(session), group), Object.keys(protocols));
    assert.equal((await browser.renew()).status, 200);

    const dry = await offboard(world.owner.token, EMAIL, "--group", world.root, "--dry-run");
    assert.equal(dry.code, 0, dry.stderr);
    assert.match(dry.stdout, /^would take 3 role bindings, 1 group invite from .*bob@acme\.example/);
    assert.deepEqual(await listAllowed(token, group), Object.keys(protocols));

    const ended = await offboard(world.owner.token, EMAIL, "--yes");
    assert.equal(ended.code, 0, ended.stderr);
    assert.match(
      ended.stdout,
      /^took 3 role bindings, 1 group invite, all tokens and 1 session from bob@acme\.example/,
    );
    assert.deepEqual(await listAllowed(token, group), []);
    assert.deepEqual(await listAllowed(bearerOf(session), group), []);
    assert.equal((await browser.renew()).status, 401);
    assert.equal(
      (await ask(world.url, `/iam/v2beta1/groupInvites/${invite}`, { bearer: world.owner.token })).status,
      404,
    );
    assert.ok(await world.write((tx) => tx.table(identityKind).find(uid)), "the identity stays");
    for (const line of [
      /SCIM user +bob@acme\.example, which the directory of directory sends as active/,
      /identity provider +directory gives its default role at the next sign-in/,
      /workload +back-door, which the person has created/,
      /group invite +for eve@elsewhere\.example as viewer, by the person/,
      /registry tokens/,
    ])
      assert.match(ended.stdout, line);
    assert.ok(row);

    const again = await offboard(world.owner.token, EMAIL, "--yes", "-o", "json");
    const { taken, remains } = JSON.parse(again.stdout);
    assert.deepEqual(taken, { roleBindings: [], groupInvites: [], tokensRevoked: true, endedSessions: 0 });
    assert.ok(remains.length >= 5);
    assert.match((await offboard(world.owner.token, uid, "--yes")).stdout, /^nothing is left to take from /);
  });

  it("takes from a person of the service what is in the group, and says what goes on", async () => {
    const group = await createGroup("ops");
    const below = String((await post(`/iam/v2beta1/groups/${group}`, { name: "below" })).uid);
    const person = await world.person("carol", { email: "carol@acme.example", name: "Carol" });
    await world.harness.bind(person.uid, "viewer", world.root);
    for (const at of [group, below]) await world.harness.bind(person.uid, "owner", at);
    const update = (at: string) =>
      ask(world.url, `/iam/v2beta1/groups/${at}`, {
        method: "PATCH",
        json: { description: "x" },
        bearer: person.token,
      });
    for (const at of [group, below]) assert.equal((await update(at)).status, 200);
    const { code, stdout, stderr } = await offboard(world.owner.token, person.uid, "--group", group, "--yes");
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^took 2 role bindings from /);
    for (const at of [group, below]) assert.equal((await update(at)).status, 403);
    // The role in the group above still counts.
    assert.equal((await ask(world.url, `/iam/v2beta1/groups/${group}`, { bearer: person.token })).status, 200);
    assert.match(stdout, /role binding +viewer in .*it counts here as well/);
    assert.match(stdout, /sessions +the login provider of the person is none of this organisation/);
  });

  it("takes nothing from the last owner, a workload, or the caller, nor without the right", async () => {
    const { owner, foreign, foreignOwner } = world;
    const sole = await world.harness.identity();
    const root = String((await post("/iam/v2beta1/groups/", { name: "sole.example" }, sole.token)).uid);
    const helper = await world.harness.identity();
    // With the rights of an owner from a role of the organisation.
    const { json } = await ask(world.url, `/iam/v2beta1/roles/${builtinRoleUid("owner")}`, { bearer: sole.token });
    const { capabilities } = json;
    const made = await post(`/iam/v2beta1/roles/${root}`, { name: "all", capabilities }, sole.token);
    const bound = bindingRow(randomIds.newUid(root), helper.uid, String(made.uid));
    await world.write((tx) => tx.table(roleBindingKind).insert(bound));
    const last = await offboard(helper.token, sole.uid, "--group", root, "--yes");
    assert.match(last.stderr, /nothing was removed: this is the last owner of the organisation/);
    assert.equal(last.code, 6);
    const workload = await world.workload("w", { role: "viewer" });
    assert.match((await offboard(owner.token, workload, "--yes")).stderr, /person: is a workload/);
    assert.match((await offboard(sole.token, sole.uid, "--yes")).stderr, /person: is you/);
    const viewer = await world.harness.identity();
    await world.harness.bind(viewer.uid, "viewer", foreign);
    const lacking = await offboard(viewer.token, randomIds.newUid(""), "--group", foreign, "--yes");
    assert.equal(lacking.code, 0, lacking.stderr);
    const other = await world.harness.identity();
    await world.harness.bind(other.uid, "editor", foreign);
    const refused = await offboard(viewer.token, other.uid, "--group", foreign, "--yes");
    assert.match(refused.stderr, /nothing was removed: you lack role_bindings\.delete/);
    assert.equal(refused.code, 4);
    assert.ok(foreignOwner);
  });

  it("needs a group where the caller has roles in several organisations", async () => {
    const { uid, token } = await world.harness.identity();
    for (const at of [world.root, world.foreign]) await world.harness.bind(uid, "owner", at);
    const { code, stderr } = await offboard(token, EMAIL, "--yes");
    assert.equal(code, 2);
    assert.match(stderr, /--group: is required, because you have roles in several organisations: /);
  });
});
