// A login in the form of published clients: the token comes in the redirect.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { createInviteCode } from "../../../src/iam/group-invites/group-invite.js";
import { signIn } from "../../../src/iam/people/sign-in.js";
import { builtinRoleUid, personUid, randomIds } from "../../../src/kernel/ids.js";
import { groupKind } from "../../../src/store/iam/groups.js";
import { identityKind } from "../../../src/store/iam/identities.js";
import { roleBindingKind } from "../../../src/store/iam/role-bindings.js";
import { directoryContext } from "../../support/directory-context.js";
import { bindingRow, groupRow, identityRow } from "../../support/rows.js";
import {
  Agent,
  alice,
  claimsOf,
  codeRequest,
  inviteTo,
  type LoginKit,
  newPkce,
  PROGRAM,
  postForm,
  startLogin,
} from "./login-kit.js";
import { terminal } from "./terminal.js";

let kit: LoginKit;

before(async () => {
  kit = await startLogin(() => ({ registration: "invite" }));
  const { store } = kit.deps;
  // A person with an account.
  await store.write(async (tx) => {
    const { issuer } = kit.provider;
    await signIn(tx, { issuer, subject: "alice", claims: {}, register: true }, directoryContext(1_000));
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

const SCOPES_RULE = "scopes must be at most 32 uids of groups or names of verified organisations";

/** Lets alice read a group. */
function bind(group: string) {
  const binding = bindingRow(
    randomIds.newUid(group),
    personUid(kit.provider.issuer, "alice"),
    builtinRoleUid("viewer"),
  );
  return kit.store.write((tx) => tx.table(roleBindingKind).insert(binding));
}

function refresh(token: string, scope: string) {
  return postForm(`${kit.url}/oauth/token`, { grant_type: "refresh_token", refresh_token: token, scope });
}

test("a scope may be the name of a verified organisation in which the person holds a role", async () => {
  const { group } = await kit.organisation("named.example");
  await bind(group);
  // Groups of the same name that nobody has verified, before and after it in the order of uids.
  await kit.store.write(async (tx) => {
    for (const digit of ["0", "f"])
      await tx.table(groupKind).insert(groupRow(digit.repeat(40), { name: "named.example" }));
  });
  const { program } = await login({ scope: "named.example" });
  assert.deepEqual(claimsOf(program.get("token")).lim, { scope: [group] });
  const first = (await login({ create_refresh_token: "true" })).program.get("refresh_token") ?? "";
  const { body } = await refresh(first, `named.example ${group}`);
  assert.deepEqual(claimsOf(body.access_token).lim, { scope: [group] });
});

test("a role below the root is enough, also one that comes with the invite of the login", async () => {
  const { group, owner } = await kit.organisation("teams.example");
  const child = randomIds.newUid(group);
  await kit.store.write((tx) => tx.table(groupKind).insert(groupRow(child)));
  const invite = await inviteTo(kit, child, owner);
  for (const more of [{ invite }, {}]) {
    const { program } = await login({ scope: "teams.example", ...more });
    assert.deepEqual(claimsOf(program.get("token")).lim, { scope: [group] });
  }
});

test("before the person is known, the answers are the same whether an organisation exists or not", async () => {
  await kit.organisation("hidden.example");
  await kit.organisation("unproven.example", false);
  const { url } = kit;
  const { challenge } = newPkce();
  const { key } = terminal();
  const post = async (path: string, form: Readonly<Record<string, string>>) => {
    const { status, body } = await postForm(`${url}${path}`, form);
    return [status, body.error, body.error_description, Object.keys(body)];
  };
  const leadsTo = async (query: Readonly<Record<string, string>>) => {
    const to = await new Agent().locationOf(`${url}/oauth?${new URLSearchParams(query)}`);
    return to.replace(/[\w-]{43}/g, "SECRET");
  };
  const pageOf = async (query: Readonly<Record<string, string>>) =>
    (await new Agent().get(`${url}/oauth?${new URLSearchParams(query)}`)).status;
  const responses = async (scope: string) => [
    await post("/oauth/device_authorization", { client_id: "robot", scope: `openid ${scope}` }),
    await leadsTo({ redirect, scope }),
    await leadsTo(codeRequest(challenge, { scope })),
    await pageOf({ headless_code: key, client_id: "arbor-cli", scope }),
    await post("/oauth/token", { grant_type: "refresh_token", refresh_token: "e30=", scope }),
    await post("/oauth/token", {
      grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
      subject_token_type: "urn:ietf:params:oauth:token-type:jwt",
      subject_token: await kit.provider.signIdToken({ sub: "alice", aud: "another" }),
      scope,
    }),
  ];
  const unknown = await responses("unknown.example");
  assert.equal((unknown[0] as unknown[])[0], 200);
  assert.match(String(unknown[1]), /state=SECRET/);
  assert.deepEqual(await responses("unproven.example"), unknown);
  assert.deepEqual(await responses("hidden.example"), unknown);
  // The control: a text that cannot be a name is an error at once.
  assert.equal((await responses("no,name"))[0]?.[1 as never], "invalid_scope");
});

test("a refresh with the name of another organisation is rejected as an unknown one, and ends nothing", async () => {
  await kit.organisation("elsewhere.example");
  const first = (await login({ create_refresh_token: "true" })).program.get("refresh_token") ?? "";
  for (const scope of ["unknown.example", "elsewhere.example", "elsewhere.example unknown.example"]) {
    const { status, body } = await refresh(first, scope);
    assert.deepEqual([status, body], [400, { error: "invalid_scope", error_description: SCOPES_RULE }], scope);
  }
  assert.equal((await refresh(first, "")).status, 200);
});

test("an unknown name, an unverified one, a foreign one and a malformed uid are the same error", async () => {
  const { group } = await kit.organisation("captured.example", false);
  await bind(group);
  await kit.organisation("foreign.example");
  const child = randomIds.newUid(group);
  await kit.store.write((tx) => tx.table(groupKind).insert(groupRow(child, { name: "below.example", verified: true })));
  const errors = new Set<string>();
  const names = ["nobody.example", "captured.example", "below.example", "foreign.example"];
  for (const scope of [...names, group.slice(1), `${group}/`, "a,b"]) {
    const { program } = await login({ scope });
    assert.equal(program.get("token"), null, scope);
    errors.add(`${program.get("error")}: ${program.get("error_description")}`);
  }
  assert.deepEqual([...errors], [`invalid_scope: ${SCOPES_RULE}`]);
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
  assert.equal(await kit.store.read((tx) => tx.table(identityKind).find(uid)), undefined);
});

test("an invite registers an unknown person with its role", async () => {
  const { group, owner } = await kit.organisation("inviting.example");
  const code = await inviteTo(kit, group, owner);
  kit.provider.account = { subject: "guest" };
  const { program } = await login({ invite: code });
  assert.ok(program.get("token"), String(program));
  const uid = personUid(kit.provider.issuer, "guest");
  const bindings = await kit.store.read((tx) => tx.table(roleBindingKind).findByIdentity(uid));
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
  await kit.store.write((tx) => tx.table(identityKind).insert(identityRow(uid, { relationship })));
  const { program } = await login({ identity: uid, create_refresh_token: "true" });
  assert.equal(claimsOf(program.get("token")).sub, uid, String(program));
  assert.equal(program.get("refresh_token"), null);
  kit.provider.account = { subject: "bob" };
  const rejected = await login({ identity: uid });
  assert.equal(rejected.program.get("status_code"), "403");
  assert.equal(rejected.program.get("token"), null);
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
