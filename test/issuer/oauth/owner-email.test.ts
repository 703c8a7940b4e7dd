// The owner whom `arbor bootstrap --owner-email` names: who signs in with the address becomes one, once, if a login provider
// of the service has confirmed it.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import { bootstrap } from "../../../src/iam/operator/bootstrap.js";
import { revokeTokens } from "../../../src/iam/operator/operate.js";
import type { AwaitedOwner } from "../../../src/iam/people/owner-invite.js";
import { builtinRoleUid, personUid, randomIds } from "../../../src/kernel/ids.js";
import { groupInviteKind } from "../../../src/store/iam/group-invites.js";
import { identityKind } from "../../../src/store/iam/identities.js";
import { roleBindingKind } from "../../../src/store/iam/role-bindings.js";
import { Agent, alice, type LoginKit, PROGRAM, startLogin } from "./login-kit.js";

const DAY_MS = 24 * 60 * 60 * 1000;

let kit: LoginKit;
let count = 0;
before(async () => {
  kit = await startLogin(() => ({ registration: "invite" }));
});
beforeEach(() => {
  kit.skewMs = 0;
});
after(() => kit?.stop());

const url = (more: Readonly<Record<string, string>> = {}) =>
  `${kit.url}/oauth?${new URLSearchParams({ exit: "redirect", redirect: `${PROGRAM}?token=true`, ...more })}`;
const newEmail = () => `owner${++count}@example.org`;
const create = (awaitedOwner: AwaitedOwner) =>
  kit.store.write((tx) => bootstrap(tx, { org: `org${++count}.example`, awaitedOwner }, randomIds, kit.deps.clock()));

/** Signs in at the login provider with these claims, as a new person unless a subject is given. */
async function login(claims: object, { subject = `person ${++count}`, ...more }: Record<string, string> = {}) {
  kit.provider.account = { subject, claims: { ...claims } as Record<string, unknown> };
  const agent = new Agent();
  const page = await agent.get(url(more));
  const { program } = await agent.decide(page);
  return { subject, text: page.text, token: program?.get("token") ?? undefined, error: program?.get("error") };
}
const isOwner = (group: string, uid: string) =>
  kit.store.read(
    async (tx) => (await tx.table(roleBindingKind).findSame(group, uid, builtinRoleUid("owner"))) !== undefined,
  );
const uidOf = (subject: string) => personUid(kit.provider.issuer, subject);

describe("the owner whom an organisation awaits by e-mail address", () => {
  it("becomes an owner at the first login, with consent, and nobody after", async () => {
    const email = newEmail();
    const { group, identity, groupInvite = "" } = await create({ email });
    const first = await login({ email, email_verified: true });
    assert.match(first.text, /Accept this invite\?/);
    assert.match(first.text, /<dt>Invited by<\/dt><dd>who runs this service .*with arbor bootstrap, on its host/);
    assert.match(first.text, /and know who runs this service\./);
    assert.doesNotMatch(first.text, new RegExp(String(identity)), "the uid of an identity of the host");
    assert.ok(first.token);
    assert.equal(await isOwner(group, uidOf(first.subject)), true);
    assert.equal(await kit.store.read((tx) => tx.table(groupInviteKind).find(groupInvite)), undefined);
    const second = await login({ email, email_verified: true });
    assert.equal(second.error, "account not found");
    assert.equal(await isOwner(group, uidOf(second.subject)), false);
  });

  it("may write the address in another case of ASCII, and in no other way", async () => {
    const { group } = await create({ email: "Kate.Owner@Example.org" });
    const others = ["\u212aate.owner@example.org", "kate.owner@example.org.evil.example", "kate.owner@example.org "];
    for (const email of others) {
      assert.equal((await login({ email, email_verified: true })).error, "account not found", email);
    }
    const { subject } = await login({ email: "kate.owner@EXAMPLE.org", email_verified: true });
    assert.equal(await isOwner(group, uidOf(subject)), true);
  });

  it("is nobody whose address the provider has not confirmed", async () => {
    const email = newEmail();
    const { group } = await create({ email });
    for (const claims of [{}, { email_verified: false }, { email_verified: "true" }, { email_verified: 1 }]) {
      const { error, subject } = await login({ email, ...claims });
      assert.equal(error, "account not found", JSON.stringify(claims));
      assert.equal(await isOwner(group, uidOf(subject)), false);
    }
    const control = await login({ email, email_verified: true });
    assert.equal(await isOwner(group, uidOf(control.subject)), true);
  });

  it("is nobody of an organisation's own provider, whatever it confirms", async () => {
    const email = newEmail();
    const { group } = await create({ email });
    const { provider } = await kit.organisation(`tenant${++count}.example`, false);
    kit.provider.allowRedirect(`${kit.url}/oauth/callback/${provider}`);
    const tenant = await login({ email, email_verified: true }, { idp_id: provider });
    assert.ok(tenant.token, "the control: the person is signed in");
    const owners = await kit.store.read((tx) =>
      tx.table(roleBindingKind).findHolders(group, builtinRoleUid("owner"), 10),
    );
    assert.equal(owners.length, 1, "the one of the host");
    const control = await login({ email, email_verified: true });
    assert.equal(await isOwner(group, uidOf(control.subject)), true);
  });

  it("is known to the named issuer alone", async () => {
    const [foreign, own] = [newEmail(), newEmail()];
    const elsewhere = await create({ email: foreign, issuer: "https://idp.example" });
    assert.equal((await login({ email: foreign, email_verified: true })).error, "account not found");
    const here = await create({ email: own, issuer: kit.provider.issuer });
    const { subject } = await login({ email: own, email_verified: true });
    assert.equal(await isOwner(here.group, uidOf(subject)), true);
    assert.equal(await isOwner(elsewhere.group, uidOf(subject)), false);
  });

  it("is awaited for seven days, and not when the one of the host has been revoked", async () => {
    const [late, void_] = [newEmail(), newEmail()];
    await create({ email: late });
    kit.skewMs = 7 * DAY_MS + 1_000;
    assert.equal((await login({ email: late, email_verified: true })).error, "account not found");
    kit.skewMs = 0;
    const { identity } = await create({ email: void_ });
    await kit.store.write((tx) => revokeTokens(tx, identity, { ids: randomIds, nowMs: kit.deps.clock() }));
    assert.equal((await login({ email: void_, email_verified: true })).error, "account not found");
  });

  it("who is registered already signs in as before, and becomes one", async () => {
    const email = newEmail();
    const subject = "registered";
    const guest = await create({ email: newEmail() });
    await kit.store.write(async (tx) => {
      const person = (await tx.table(identityKind).find(guest.identity)) ?? assert.fail();
      const { issuer } = kit.provider;
      await tx.table(identityKind).insert({ ...person, uid: uidOf(subject), issuer, subject, name: "known" });
    });
    assert.ok((await login({ email, email_verified: true }, { subject })).token);
    const { group } = await create({ email });
    const declined = new Agent();
    await declined.decide(await declined.get(url()), "decline");
    assert.equal(await isOwner(group, uidOf(subject)), false);
    assert.ok((await login({ email, email_verified: true }, { subject })).token);
    assert.equal(await isOwner(group, uidOf(subject)), true);
  });

  it("is awaited by one organisation at a time, and must have an address", async () => {
    const email = newEmail();
    const { group } = await create({ email });
    await assert.rejects(
      create({ email: email.toUpperCase() }),
      new RegExp(`awaited as the owner of .* \\(${group}\\)`),
    );
    for (const wrong of ["", "owner", "a b@example.org", "a@b\n"]) {
      await assert.rejects(create({ email: wrong }), /Invalid argument: owner-email/, wrong);
    }
  });

  it("does not change what others get", async () => {
    await create({ email: newEmail() });
    kit.provider.account = alice;
    assert.equal((await login(alice.claims ?? {})).error, "account not found");
  });
});
