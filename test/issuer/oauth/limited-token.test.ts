// The second token of a login, for a program such as docker: what it is good for, and what it is not.
import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { REGISTRY_CAPABILITIES } from "../../../src/cli/remote/auth/registry-limit.js";
import { bootstrap } from "../../../src/iam/operator/bootstrap.js";
import { listCapabilityNames } from "../../../src/iam/roles/capability-names.js";
import { builtinRoleUid, personUid, randomIds } from "../../../src/kernel/ids.js";
import { roleBindingKind } from "../../../src/store/iam/role-bindings.js";
import { askToken } from "../../registry/token-kit.js";
import { bindingRow } from "../../support/rows.js";
import { Agent, claimsOf, codeRequest, newPkce, PROGRAM, postForm } from "./login-kit.js";
import { type LoginWorld, startLoginWorld } from "./login-world.js";

let world: LoginWorld;
let url: string;
let root: string;

before(async () => {
  world = await startLoginWorld();
  url = world.harness.url;
  const { store } = world.harness.app.installation;
  const uid = personUid(world.provider.issuer, "alice");
  ({ group: root } = await store.write((tx) => bootstrap(tx, { org: "docker.example" }, randomIds, Date.now())));
  const owner = bindingRow(randomIds.newUid(root), uid, builtinRoleUid("owner"), { pending: false });
  await redeem({});
  await store.write((tx) => tx.table(roleBindingKind).insert(owner));
});
after(() => world?.stop());

/** Signs Alice in and redeems the code. */
async function redeem(form: Readonly<Record<string, string>> | readonly [string, string][], more = {}) {
  const { verifier, challenge } = newPkce();
  const agent = new Agent();
  const { program } = await agent.decide(
    await agent.get(`${url}/oauth?${new URLSearchParams(codeRequest(challenge, more))}`),
  );
  const fields = new URLSearchParams(form as Record<string, string>);
  for (const [name, value] of Object.entries({
    grant_type: "authorization_code",
    client_id: "arbor-cli",
    redirect_uri: PROGRAM,
    code: program?.get("code") ?? "",
    code_verifier: verifier,
  })) {
    fields.append(name, value);
  }
  return { ...(await postForm(`${url}/oauth/token`, fields)), fields };
}

const registryForm = () => REGISTRY_CAPABILITIES.map((name): [string, string] => ["limited_cap", name]);
const limitOf = (token: unknown) => (claimsOf(token).lim as { cap?: string } | undefined)?.cap;
const groups = async (token: unknown) =>
  (await fetch(`${url}/iam/v2beta1/groups`, { headers: { authorization: `Bearer ${token}` } })).status;

it("does everything at the registry, and nothing else", async () => {
  const { body } = await redeem(registryForm());
  const { access_token: whole, limited_token: limited } = body;
  assert.deepEqual([limitOf(whole), claimsOf(limited).sub], [undefined, claimsOf(whole).sub]);
  assert.deepEqual(listCapabilityNames(limitOf(limited) as never).sort(), [...REGISTRY_CAPABILITIES]);
  const scope = `repository:${root}/new:pull,push,delete`;
  for (const password of [whole, limited]) {
    const { status, token } = await askToken(url, {
      user: "_token",
      password: String(password),
      parameters: [["scope", scope]],
    });
    assert.equal(status, 200);
    const access = [{ type: "repository", name: `${root}/new`, actions: ["pull", "push", "delete"] }];
    assert.deepEqual(claimsOf(token).access, access);
  }
  const read = async (token: unknown) => {
    const headers = { authorization: `Bearer ${token}` };
    return (await fetch(`${url}/iam/v2beta1/groups/${root}`, { headers })).status;
  };
  assert.deepEqual([await read(limited), await read(whole)], [403, 200]);
});

it("is had again from the refresh token, with the same limit", async () => {
  const { body } = await redeem(registryForm(), { create_refresh_token: "true" });
  const renewed = await postForm(`${url}/oauth/token`, [
    ["grant_type", "refresh_token"],
    ["refresh_token", String(body.refresh_token)],
    ...REGISTRY_CAPABILITIES.map((name): [string, string] => ["cap", name]),
  ] as never);
  assert.equal(limitOf(renewed.body.access_token), limitOf(body.limited_token));
});

it("has no more than the login, and is given only on request", async () => {
  const { body } = await redeem(registryForm(), { cap: "tag.list groups.list" });
  assert.deepEqual(listCapabilityNames(limitOf(body.limited_token) as never), ["tag.list"]);
  assert.equal("limited_token" in (await redeem({})).body, false);
  assert.equal(await groups((await redeem({})).body.access_token), 200);
});

it("is not given for a capability that does not exist, and the code stays valid", async () => {
  const { status, body, fields } = await redeem({ limited_cap: "groups.fly" });
  assert.deepEqual([status, body.error], [400, "invalid_request"]);
  assert.match(String(body.error_description), /limited_cap must name capabilities/);
  fields.delete("limited_cap");
  assert.equal((await postForm(`${url}/oauth/token`, fields)).status, 200);
});
