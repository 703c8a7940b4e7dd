// Navigation alone must not complete a login: where a person is signed in at the provider already, any page can lead
// the browser through it. Each negative test has a control in which consent is given.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { revokeTokens } from "../../../src/iam/operator/operate.js";
import { personUid } from "../../../src/kernel/ids.js";
import { groupKind } from "../../../src/store/iam/groups.js";
import { identityKind } from "../../../src/store/iam/identities.js";
import { roleBindingKind } from "../../../src/store/iam/role-bindings.js";
import { groupRow, identityRow } from "../../support/rows.js";
import {
  Agent,
  alice,
  claimsOf,
  codeRequest,
  inviteTo,
  type LoginKit,
  newPkce,
  PROGRAM,
  readHiddenFields,
  type Seen,
  startLogin,
} from "./login-kit.js";

let kit: LoginKit;
let root: string;
let owner: string;
let child: string;
let count = 0;

before(async () => {
  kit = await startLogin(() => ({ registration: "invite" }));
  ({ group: root, owner } = await kit.organisation("inviting.example", false));
  child = `${root}/${"c".repeat(16)}`;
  await kit.store.write((tx) => tx.table(groupKind).insert(groupRow(child, { name: "builders" })));
});

beforeEach(() => {
  kit.provider.account = { ...alice, subject: `guest ${++count}` };
});

after(() => kit?.stop());

const uidOf = () => personUid(kit.provider.issuer, kit.provider.account?.subject ?? "");
const person = () => kit.store.read((tx) => tx.table(identityKind).find(uidOf()));
const bindings = () => kit.store.read((tx) => tx.table(roleBindingKind).findByIdentity(uidOf()));

const redirectRequest = (more: Readonly<Record<string, string>> = {}) =>
  `${kit.url}/oauth?${new URLSearchParams({ exit: "redirect", redirect: `${PROGRAM}?token=true`, ...more })}`;
const codeRequestUrl = (more: Readonly<Record<string, string>> = {}) =>
  `${kit.url}/oauth?${new URLSearchParams(codeRequest(newPkce().challenge, more))}`;

function assertConsentPage(page: Seen, title: string): void {
  assert.deepEqual([page.status, page.program], [200, undefined], page.text);
  assert.match(page.url, /\/oauth\/consent\?login=/);
  assert.ok(page.text.includes(`<h1>${title}</h1>`), page.text);
}

/** The text of a page, as people read it. */
const textOf = ({ text }: Seen) =>
  text
    .replace(/<style>.*<\/style>/s, "")
    .replace(/<[^>]*>/g, " ")
    .replace(/\s+/g, " ");

for (const [name, url] of Object.entries({
  "with the token in the redirect": redirectRequest,
  "with a code": codeRequestUrl,
})) {
  test(`an invite is not accepted by navigation alone, ${name}`, async () => {
    const invite = await inviteTo(kit, child, owner, { role: "editor" });
    const agent = new Agent();
    const page = await agent.get(url({ invite }));
    assertConsentPage(page, "Accept this invite?");
    assert.deepEqual([await person(), await bindings()], [undefined, []]);
    const text = textOf(page);
    assert.match(text, /You are Alice \(alice@example\.org\)/);
    assert.match(text, /Organisation inviting\.example \(a name that nobody has verified\)/);
    assert.match(text, /Group builders Role editor/);
    assert.match(text, /Invited by \S+/);
    assert.match(text, /groups\.list/);
    assert.match(
      text,
      name.includes("code") ? /Program arbor-cli on this computer, at 127\.0\.0\.1:9 / : /127\.0\.0\.1:9 /,
    );

    const { program } = await agent.decide(page);
    assert.ok(program?.get("token") ?? program?.get("code"), String(program));
    assert.deepEqual(
      (await bindings()).map(({ groupUid }) => groupUid),
      [child],
    );
  });

  test(`a declined invite is not accepted and stays valid, ${name}`, async () => {
    const invite = await inviteTo(kit, child, owner);
    const agent = new Agent();
    const { program } = await agent.decide(await agent.get(url({ invite })), "decline");
    assert.deepEqual(
      [program?.get("error"), program?.get("code"), program?.get("token")],
      ["access_denied", null, null],
    );
    assert.deepEqual([await person(), await bindings()], [undefined, []]);
    const later = await agent.decide(await agent.get(url({ invite })));
    assert.ok(later.program?.get("code") ?? later.program?.get("token"));
    assert.equal((await bindings()).length, 1);
  });
}

test("a code is not handed to a program by navigation alone, however often the person agreed before", async () => {
  const agent = new Agent();
  await agent.decide(await agent.get(redirectRequest({ invite: await inviteTo(kit, root, owner) })));
  for (const redirect_uri of [PROGRAM, PROGRAM, `${PROGRAM}/other`, "http://localhost:7777/", "http://[::1]:7777/"]) {
    const page = await agent.get(codeRequestUrl({ redirect_uri, connection: "test" }));
    assertConsentPage(page, "Give a program access?");
    const { host } = new URL(redirect_uri);
    assert.ok(textOf(page).includes(`Program arbor-cli on this computer, at ${host} It may act in your name`));
    if (redirect_uri !== PROGRAM) continue;
    assert.ok((await agent.decide(page)).program?.get("code"), "the control");
  }
});

test("a declined login gives the program no code", async () => {
  const agent = new Agent();
  await agent.decide(await agent.get(redirectRequest({ invite: await inviteTo(kit, root, owner) })));
  const { program } = await agent.decide(await agent.get(codeRequestUrl()), "decline");
  assert.deepEqual([program?.get("error"), program?.get("code")], ["access_denied", null]);
  assert.equal(program?.get("state"), "state of the program");
});

test("a token is not handed to a program by navigation alone", async () => {
  const invite = await inviteTo(kit, root, owner);
  const agent = new Agent();
  await agent.decide(await agent.get(redirectRequest({ invite })));
  const page = await agent.get(redirectRequest({ create_refresh_token: "true", connection: "test" }));
  assertConsentPage(page, "Give a program access?");
  assert.match(textOf(page), /127\.0\.0\.1:9 It may act in your name Rights all of them For 30 days/);
  const { program } = await agent.decide(page);
  assert.equal(claimsOf(program?.get("token")).sub, uidOf());
  assert.ok(program?.get("refresh_token"));
});

test("the page shows the limits and the duration of the access", async () => {
  const agent = new Agent();
  await agent.decide(await agent.get(redirectRequest({ invite: await inviteTo(kit, root, owner) })));
  const page = await agent.get(redirectRequest({ cap: "groups.list", scope: child }));
  assert.match(textOf(page), new RegExp(`Rights groups\\.list In groups ${child} For an hour`));
});

test("a program gets no token for an identity by navigation alone", async () => {
  const uid = `${root}/${"d".repeat(16)}`;
  const { issuer, clientId } = kit.provider;
  const claimMatch = { issuer, subject: kit.provider.account?.subject, audience: clientId };
  await kit.store.write((tx) => tx.table(identityKind).insert(identityRow(uid, { relationship: { claimMatch } })));
  const agent = new Agent();
  const page = await agent.get(redirectRequest({ identity: uid }));
  assertConsentPage(page, "Give a program access?");
  assert.match(textOf(page), new RegExp(`It may act as the identity ${uid}`));
  const { program } = await agent.decide(page);
  assert.equal(claimsOf(program?.get("token")).sub, uid);
});

test("consent works once, with the form of the browser that signed in", async () => {
  const invite = await inviteTo(kit, root, owner);
  const [agent, other] = [new Agent(), new Agent()];
  const page = await agent.get(redirectRequest({ invite }));
  const hidden = readHiddenFields(page.text);
  const send = (from: Agent, form: Record<string, string>) =>
    from.post(`${kit.url}/oauth/consent`, { ...form, decision: "accept" });
  await other.get(`${kit.url}/activate`);
  const ownForm = readHiddenFields((await other.get(`${kit.url}/activate`)).text).form ?? "";
  const rejected = [
    await send(agent, { login: hidden.login ?? "" }),
    await send(agent, { ...hidden, form: ownForm }),
    await send(other, hidden),
    await send(other, { ...hidden, form: ownForm }),
    await send(new Agent(), hidden),
    await send(agent, { ...hidden, login: "x".repeat(43) }),
    await other.get(page.url),
    await agent.get(`${kit.url}/oauth/consent?${new URLSearchParams({ ...hidden, decision: "accept" })}`),
  ];
  const last = rejected.pop();
  for (const response of rejected) assert.deepEqual([response.status, response.program], [400, undefined]);
  assertConsentPage(last as Seen, "Accept this invite?");
  assert.deepEqual(await bindings(), []);
  assert.ok((await send(agent, hidden)).program?.get("token"), "the control");
  assert.equal((await bindings()).length, 1);
  assert.equal((await send(agent, hidden)).status, 400, "a second time");
});

test("the page cannot be framed, and its form leads to the program alone", async () => {
  for (const [redirect, origin] of [
    [PROGRAM, "http://127.0.0.1:9"],
    ["http://localhost:1234/x", "http://localhost:1234"],
    ["http://[::1]:1234/x", "http:"],
  ] as const) {
    const agent = new Agent();
    await agent.decide(await agent.get(redirectRequest({ invite: await inviteTo(kit, root, owner) })));
    const { headers } = await agent.get(redirectRequest({ redirect }));
    const policy = headers.get("content-security-policy") ?? "";
    assert.ok(policy.includes(`form-action 'self' ${origin}; frame-ancestors 'none'`), policy);
    assert.equal(headers.get("x-frame-options"), "DENY");
    assert.equal(headers.get("cache-control"), "no-store");
  }
});

test("consent that takes too long, or comes after the invite ended, has no effect", async () => {
  const invite = await inviteTo(kit, root, owner, { singleUse: false });
  const agent = new Agent();
  const page = await agent.get(redirectRequest({ invite }));
  kit.skewMs = 10 * 60 * 1000 + 1;
  try {
    assert.equal((await agent.decide(page)).status, 400);
  } finally {
    kit.skewMs = 0;
  }
  const second = await agent.get(redirectRequest({ invite }));
  kit.skewMs = 61_000;
  try {
    const { program } = await agent.decide(second);
    assert.deepEqual([program?.get("error"), program?.get("status_code")], ["access_denied", "403"]);
  } finally {
    kit.skewMs = 0;
  }
  assert.deepEqual(await bindings(), []);
});

test("a login that cannot succeed gets an error without a consent page", async () => {
  const other = await inviteTo(kit, root, owner, { email: "somebody.else@example.org" });
  for (const more of [{ invite: other }, { invite: `${other}x` }, {}]) {
    const { program } = await new Agent().get(redirectRequest(more as Record<string, string>));
    assert.ok(["access_denied", "account not found"].includes(program?.get("error") ?? ""), String(program));
  }
});

test("a login that waits for consent ends with a revocation of all tokens of its person", async () => {
  const { store, ids, clock } = kit.deps;
  kit.provider.account = { ...alice, subject: "waiting" };
  const uid = personUid(kit.provider.issuer, "waiting");
  const revoke = () => store.write((tx) => revokeTokens(tx, uid, { ids, nowMs: clock() }));
  const pages = async (query: string) => {
    const agent = new Agent();
    return { agent, page: await agent.get(query) };
  };
  const decide = async ({ agent, page }: Awaited<ReturnType<typeof pages>>) => (await agent.decide(page)).program;
  const { group, owner: maker } = await kit.organisation("waiting.example");
  const invite = await inviteTo(kit, group, maker, { singleUse: false });
  const first = await decide(await pages(redirectRequest({ invite })));
  assert.ok(first?.get("token"), "the person is registered");
  const code = codeRequestUrl();
  // Never revoked before, and revoked before.
  for (let round = 0; round < 2; round++) {
    const [redirected, coded] = [await pages(redirectRequest()), await pages(code)];
    await revoke();
    for (const waiting of [redirected, coded]) {
      const program = await decide(waiting);
      assert.deepEqual([program?.get("token") ?? null, program?.get("code")], [null, null]);
      assert.deepEqual([program?.get("error"), program?.get("status_code")], ["access_denied", "403"]);
      assert.match(program?.get("error_description") ?? "", /revoked after this login began: log in again/);
    }
    assert.ok((await decide(await pages(redirectRequest())))?.get("token"), "the control: a login that began later");
  }
});

test("invites created before their creator was revoked are rejected, later ones are not", async () => {
  const { group, owner: maker } = await kit.organisation("revoked.example");
  const invite = await inviteTo(kit, group, maker, { singleUse: false });
  const agent = new Agent();
  const page = await agent.get(redirectRequest({ invite }));
  assertConsentPage(page, "Accept this invite?");
  const { store, ids, clock } = kit.deps;
  await store.write((tx) => revokeTokens(tx, maker, { ids, nowMs: clock() }));
  const consented = await agent.decide(page);
  assert.deepEqual([consented.program?.get("error"), consented.program?.get("status_code")], ["access_denied", "403"]);
  const anew = await new Agent().get(redirectRequest({ invite }));
  assert.equal(anew.program?.get("status_code"), "403");
  assert.deepEqual([await person(), await bindings()], [undefined, []]);

  kit.skewMs = 2_000;
  try {
    const later = await inviteTo(kit, group, maker);
    const second = await agent.decide(await agent.get(redirectRequest({ invite: later })));
    assert.ok(second.program?.get("token"), "the control");
  } finally {
    kit.skewMs = 0;
  }
});
