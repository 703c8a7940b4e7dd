// A login in the form of published clients: the token comes in the redirect.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { createInviteCode } from "../../../src/iam/group-invites/group-invite.js";
import { signIn } from "../../../src/iam/people/sign-in.js";
import { builtinRoleUid, personUid, randomIds } from "../../../src/kernel/ids.js";
import { identityRow } from "../../support/rows.js";
import { Agent, alice, claimsOf, inviteTo, type LoginKit, PROGRAM, postForm, startLogin } from "./login-kit.js";

let kit: LoginKit;

before(async () => {
  kit = await startLogin(() => ({ registration: "invite" }));
  const { store, ids } = kit.deps;
  // A person with an account.
  await store.write(async (tx) => {
    const { issuer } = kit.provider;
    await signIn(tx, { issuer, subject: "alice", claims: {}, register: true }, { ids, nowMs: 1_000 });
  });
});

beforeEach(() => {
  kit.provider.account = alice;
});

after(() => kit?.stop());

// The query of published clients; the placeholder values tell the server which parameters they accept.
const redirect = `${PROGRAM}?token=true&error=true`;

async function login(more: Readonly<Record<string, string>> = {}) {
  const query = new URLSearchParams({ exit: "redirect", redirect, client_id: "any", ...more });
  const agent = new Agent();
  const page = await agent.decide(await agent.get(`${kit.url}/oauth?${query}`));
  return { page, program: page.program ?? new URLSearchParams() };
}

test("the token replaces its placeholder, and no error parameter remains", async () => {
  const { program } = await login({ audience: `${kit.url},${kit.url}/` });
  assert.deepEqual([...program.keys()], ["token"]);
  const claims = claimsOf(program.get("token"));
  assert.equal(claims.sub, personUid(kit.provider.issuer, "alice"));
  assert.ok([kit.url, `${kit.url}/`].includes(String(claims.aud)));
});

test("a refresh token is issued on request, and is valid", async () => {
  const { program } = await login({ create_refresh_token: "true" });
  const { status } = await postForm(`${kit.url}/oauth/token`, {
    grant_type: "refresh_token",
    refresh_token: program.get("refresh_token") ?? "",
  });
  assert.equal(status, 200);
});

test("scopes are unescaped twice", async () => {
  const { group } = await kit.organisation("scoped.example");
  const child = `${group}/${"a".repeat(16)}`;
  const { program } = await login({ scope: encodeURIComponent(child) });
  assert.deepEqual(claimsOf(program.get("token")).lim, { scope: [child] });
  const wrong = await login({ scope: "%" });
  assert.equal(wrong.program.get("error"), "invalid_request");
});

test("an unknown person gets account not found with a status, and no token", async () => {
  kit.provider.account = { subject: "stranger" };
  for (const more of [{}, { skip_registration: "true" }]) {
    const { program } = await login(more as Record<string, string>);
    assert.equal(program.get("token"), null);
    assert.equal(program.get("error"), "account not found");
    assert.equal(program.get("status_code"), "404");
    assert.ok(program.get("error_description"));
  }
  const uid = personUid(kit.provider.issuer, "stranger");
  assert.equal(await kit.store.read((tx) => tx.identities.get(uid)), undefined);
});

test("an invite registers an unknown person with its role", async () => {
  const { group, owner } = await kit.organisation("inviting.example");
  const code = await inviteTo(kit, group, owner);
  kit.provider.account = { subject: "guest" };
  const { program } = await login({ invite: code });
  assert.ok(program.get("token"), String(program));
  const uid = personUid(kit.provider.issuer, "guest");
  const bindings = await kit.store.read((tx) => tx.roleBindings.ofIdentity(uid));
  assert.deepEqual(
    bindings.map(({ groupUid, roleUid }) => [groupUid, roleUid]),
    [[group, builtinRoleUid("viewer")]],
  );
  kit.provider.account = { subject: "second" };
  const again = await login({ invite: code });
  assert.equal(again.program.get("status_code"), "403");
});

test("wrong invites are counted", async () => {
  const { code } = createInviteCode("0".repeat(40));
  const statuses: (string | null)[] = [];
  for (let i = 0; i < 6; i++) statuses.push((await login({ invite: code })).program.get("status_code"));
  assert.equal(statuses[0], "403");
  assert.equal(statuses.at(-1), "429");
});

test("an identity is assumed with a matching ID token only", async () => {
  const { group } = await kit.organisation("assumed.example");
  const uid = randomIds.newUid(group);
  const { issuer, clientId } = kit.provider;
  const relationship = { claimMatch: { issuer, subject: "alice", audience: clientId } };
  await kit.store.write((tx) => tx.identities.insert(identityRow(uid, { relationship })));
  const { program } = await login({ identity: uid, create_refresh_token: "true" });
  assert.equal(claimsOf(program.get("token")).sub, uid, String(program));
  assert.equal(program.get("refresh_token"), null);
  kit.provider.account = { subject: "bob" };
  const refused = await login({ identity: uid });
  assert.equal(refused.program.get("status_code"), "403");
  assert.equal(refused.program.get("token"), null);
});

test("a cancelled login is access_denied", async () => {
  kit.provider.account = undefined;
  const { program } = await login();
  assert.equal(program.get("error"), "access_denied");
  assert.equal(program.get("token"), null);
});

for (const [name, more] of Object.entries({
  "another exit": { exit: "page" },
  "a redirect elsewhere": { redirect: "http://127.0.0.1.evil.example:1/" },
})) {
  test(`${name} is an error page`, async () => {
    const { page } = await login(more as Record<string, string>);
    assert.equal(page.status, 400);
    assert.equal(page.program, undefined);
  });
}
