// People who join an organisation with a full quota: by an invite, by a login in a browser, and through its own
// provider.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { createInviteCode } from "../../../src/iam/group-invites/group-invite.js";
import { personUid, providerPersonUid } from "../../../src/kernel/ids.js";
import { identityKind } from "../../../src/store/iam/identities.js";
import { overQuota, permissionDenied, resourceExhausted } from "../../contract/expectations.js";
import { changeInvite, invite, register } from "../../issuer/auth-world.js";
import { Agent, type LoginKit, PROGRAM, startLogin } from "../../issuer/oauth/login-kit.js";
import { type ExchangeWorld, startExchangeWorld } from "../../issuer/sts/exchange-world.js";
import { setLimits, usageOf } from "../../support/quotas.js";

const rule = (limit: number, plural: string) =>
  `the organisation's limit of ${plural} is ${limit}, and 1 more would exceed it`;

describe("an invite into an organisation with as many bindings as it may have", () => {
  let world: ExchangeWorld;
  before(async () => {
    world = await startExchangeWorld();
  });
  after(() => world.stop());
  const storeOf = () => world.harness.app.installation.store;

  it("admits no new member, tells only those who may accept it, and admits existing members", async () => {
    const { code } = await invite(world);
    const forAnother = await invite(world, { email: "another@example.org" });
    const member = world.idToken({ sub: "member" });
    assert.equal((await register(world, member, { code })).status, 200);
    const { bindings } = await usageOf(storeOf(), world.root);
    await setLimits(storeOf(), world.root, { bindings });
    const late = world.idToken({ sub: "late" });
    const refused = await register(world, late, { code });
    assert.equal(refused.status, 429);
    assert.deepEqual(
      { ...refused.json, code: "RESOURCE_EXHAUSTED" },
      overQuota(`group:${world.root}`, "bindings", rule(bindings, "role bindings")),
    );
    const uid = personUid(world.people.issuer, "late");
    assert.equal(await storeOf().read((tx) => tx.table(identityKind).find(uid)), undefined);
    const wrong = changeInvite(await invite(world), { sec: "0".repeat(32) });
    const { json } = await register(world, late, { code: wrong });
    assert.deepEqual({ ...json, code: "PERMISSION_DENIED" }, permissionDenied("accepting this invite"));
    const misdirected = await register(world, late, { code: forAnother.code });
    assert.match(String(misdirected.json.message), /^Permission denied: this invite is for an e-mail address/);
    assert.equal((await register(world, member, { code })).status, 200);
    await setLimits(storeOf(), world.root, { bindings: bindings + 1 });
    assert.equal((await register(world, late, { code })).status, 200);
    const last = await register(world, world.idToken({ sub: "last" }), { code });
    assert.equal(last.status, 429);
  });

  it("lets in no identity of a workload either", async () => {
    await setLimits(storeOf(), world.root, { bindings: undefined });
    const { code } = await invite(world, { role: "editor" });
    const identityId = await world.workload("runner");
    const { bindings } = await usageOf(storeOf(), world.root);
    await setLimits(storeOf(), world.root, { bindings });
    const join = () => register(world, world.token({ sub: "runner" }), { code, identityId });
    const { json } = await join();
    const full = overQuota(`group:${world.root}`, "bindings", rule(bindings, "role bindings"));
    assert.deepEqual({ ...json, code: "RESOURCE_EXHAUSTED" }, full);
    await setLimits(storeOf(), world.root, { bindings: bindings + 1 });
    assert.equal((await join()).status, 200);
  });

  it("counts wrong codes, and shows a quota only for a valid code", async () => {
    const good = await invite(world);
    await setLimits(storeOf(), world.root, { bindings: 0 });
    const guesser = (code: string) => register(world, world.idToken({ sub: "guesser" }), { code });
    const guess = () => guesser(changeInvite(good, { sec: "1".repeat(32) }));
    const statuses: number[] = [];
    for (let i = 0; i < 12; i++) statuses.push((await guess()).status);
    assert.equal(statuses[0], 403);
    assert.equal(statuses.at(-1), 429);
    const { json } = await guess();
    const { details } = json as { details: { "@type": string; retryDelay?: string }[] };
    const [, detail] = details;
    const told = { ...json, code: "RESOURCE_EXHAUSTED", details: [details[0], { ...detail, retryDelay: "<delay>" }] };
    assert.deepEqual(told, resourceExhausted("too many refused requests"));
    const right = await guesser(good.code);
    const full = overQuota(`group:${world.root}`, "bindings", rule(0, "role bindings"));
    assert.deepEqual({ ...right.json, code: "RESOURCE_EXHAUSTED" }, full);
  });
});

describe("a login in a browser", () => {
  let kit: LoginKit;
  before(async () => {
    kit = await startLogin(() => ({ registration: "invite" }));
  });
  after(() => kit.stop());

  const login = async (subject: string, more: Readonly<Record<string, string>>) => {
    kit.provider.account = { subject };
    const redirect = `${PROGRAM}?token=true&error=true`;
    const query = new URLSearchParams({ exit: "redirect", redirect, client_id: "any", ...more });
    const agent = new Agent();
    const seen = await agent.decide(await agent.get(`${kit.url}/oauth?${query}`));
    return seen.program ?? new URLSearchParams();
  };
  const full = (limit: number, kind: string, plural: string) => [
    null,
    "429",
    "temporarily_unavailable",
    `${kind}: ${rule(limit, plural)}`,
  ];
  const readProgram = (program: URLSearchParams) =>
    ["token", "status_code", "error", "error_description"].map((name) => program.get(name));

  it("registers nobody through the provider of a full organisation, and admits registered people", async () => {
    const { group, provider } = await kit.organisation("full.example");
    assert.ok((await login("first", { idp_id: provider })).get("token"));
    const { identities, bindings } = await usageOf(kit.store, group);
    assert.equal(identities, 1);
    await setLimits(kit.store, group, { identities });
    assert.deepEqual(readProgram(await login("second", { idp_id: provider })), full(1, "identities", "identities"));
    await setLimits(kit.store, group, { identities: undefined, bindings });
    const refused = readProgram(await login("second", { idp_id: provider }));
    assert.deepEqual(refused, full(bindings, "bindings", "role bindings"));
    const uid = providerPersonUid(provider, kit.provider.issuer, "second");
    assert.equal(await kit.store.read((tx) => tx.table(identityKind).find(uid)), undefined);
    assert.ok((await login("first", { idp_id: provider })).get("token"));
    await setLimits(kit.store, group, { bindings: undefined });
    assert.ok((await login("second", { idp_id: provider })).get("token"));
    assert.equal((await usageOf(kit.store, group)).identities, 2);
  });

  it("with an invalid invite is rejected in the same way, full or not", async () => {
    const { group } = await kit.organisation("closed.example");
    await setLimits(kit.store, group, { bindings: 0 });
    const program = await login("guest", { invite: createInviteCode(group).code });
    assert.deepEqual([program.get("token"), program.get("status_code")], [null, "403"]);
  });
});
