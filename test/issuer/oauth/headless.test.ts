// Logins for terminals without a browser, with the terminal's side written anew.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { takeHeadlessSession } from "../../../src/issuer/oauth/headless.js";
import { Agent, alice, claimsOf, hiddenIn, type LoginKit, linksIn, startLogin } from "./login-kit.js";
import { terminal } from "./terminal.js";

let kit: LoginKit;

before(async () => {
  kit = await startLogin();
});

beforeEach(() => {
  kit.provider.account = alice;
  kit.skewMs = 0;
});

after(() => kit?.stop());

function take(key: string, at = kit) {
  return at.store.write((tx) => takeHeadlessSession(tx, key, at.deps.clock()));
}

function begin(agent: Agent, key: string, more: Readonly<Record<string, string>> = {}, at = kit) {
  return agent.get(`${at.url}/oauth?${new URLSearchParams({ headless_code: key, ...more })}`);
}

function confirm(agent: Agent, page: string, code: string, at = kit) {
  return agent.post(`${at.url}/oauth`, { ...hiddenIn(page), user_code: code });
}

async function logIn(key: string, code: string, more: Readonly<Record<string, string>> = {}, agent = new Agent()) {
  const page = await begin(agent, key, more);
  const confirmed = await confirm(agent, page.text, code);
  const [link = ""] = linksIn(confirmed);
  return { page, confirmed, done: await agent.get(link) };
}

test("the terminal gets the ID token of the provider, once", async () => {
  const { key, code, open } = terminal();
  assert.equal(await take(key), undefined);
  const requestCount = kit.provider.requests.length;
  const { page, confirmed, done } = await logIn(key, code);
  assert.match(page.text, /127\.0\.0\.1/);
  assert.match(page.text, /UTC/);
  assert.match(confirmed.text, /<h1>Code confirmed<\/h1>/);
  assert.match(done.text, /<h1>Signed in<\/h1>/);
  assert.ok(kit.provider.requests.length > requestCount);
  const session = await take(key);
  assert.ok(session);
  const claims = claimsOf(open(session));
  assert.deepEqual([claims.iss, claims.sub, claims.aud], [kit.provider.issuer, "alice", kit.provider.clientId]);
  assert.equal(await take(key), undefined);
});

test("a token of an organisation's provider comes with the uid of the provider", async () => {
  const { provider } = await kit.organisation("terminals.example");
  const { key, code, open } = terminal();
  await logIn(key, code, { idp_id: "terminals.example" });
  const session = await take(key);
  assert.ok(session);
  const { id_token, identity_provider, ...rest } = JSON.parse(open(session)) as Record<string, string>;
  assert.equal(identity_provider, provider);
  assert.equal(claimsOf(id_token).sub, "alice");
  assert.deepEqual(rest, {});
});

test("only the terminal can open the answer", async () => {
  const { key, code } = terminal();
  await logIn(key, code);
  const session = await take(key);
  assert.ok(session);
  assert.throws(() => terminal().open(session));
});

test("the browser is not sent to a provider before the code was typed", async () => {
  const { key } = terminal();
  const requestCount = kit.provider.requests.length;
  const page = await begin(new Agent(), key, { connection: "test" });
  assert.equal(page.status, 200);
  assert.equal(linksIn(page).length, 0);
  assert.equal(kit.provider.requests.length, requestCount);
});

test("a wrong code leads back to the page, the tenth locks the login everywhere", async () => {
  const locked = await startLogin();
  try {
    const { key, code } = terminal();
    const agent = new Agent();
    const page = await begin(agent, key, {}, locked);
    for (let i = 0; i < 10; i++) {
      const wrong = await confirm(agent, page.text, "AAAA-AAAA", locked);
      assert.equal(wrong.status, 400);
      assert.match(wrong.text, /That is not the code/);
    }
    const late = await confirm(agent, page.text, code, locked);
    assert.equal(late.status, 429);
    assert.match((await begin(new Agent(), key, {}, locked)).text, /<h1>This login is over<\/h1>/);
    const another = terminal();
    const other = await begin(agent, another.key, {}, locked);
    assert.match((await confirm(agent, other.text, another.code, locked)).text, /Code confirmed/);
  } finally {
    await locked.stop();
  }
});

test("a login that was answered cannot be answered again, taken or not", async () => {
  const { key, code } = terminal();
  const agent = new Agent();
  const page = await begin(agent, key);
  const [first, second] = [await confirm(agent, page.text, code), await confirm(agent, page.text, code)];
  await agent.get(linksIn(first)[0] ?? "");
  const again = await agent.get(linksIn(second)[0] ?? "");
  assert.match(again.text, /<h1>This login is over<\/h1>/);
  assert.ok(await take(key));
  assert.match((await begin(agent, key)).text, /<h1>This login is over<\/h1>/);
});

test("an answer waits ten minutes", async () => {
  const { key, code } = terminal();
  await logIn(key, code);
  kit.skewMs = 601_000;
  assert.equal(await take(key), undefined);
});

test("a confirmed login goes on in its own browser alone, and for ten minutes", async () => {
  const { key, code } = terminal();
  const agent = new Agent();
  const confirmed = await confirm(agent, (await begin(agent, key)).text, code);
  assert.match((await new Agent().get(confirmed.url)).text, /<h1>This login is over<\/h1>/);
  kit.skewMs = 601_000;
  assert.match((await agent.get(confirmed.url)).text, /<h1>This login is over<\/h1>/);
});

test("the form of another browser, or none, confirms nothing", async () => {
  const { key, code } = terminal();
  const { text } = await begin(new Agent(), key);
  const answer = await confirm(new Agent(), text, code);
  assert.equal(answer.status, 400);
  assert.match(answer.text, /allow cookies/);
});

test("an unknown person gets an error page, and the terminal gets nothing", async () => {
  const invited = await startLogin(() => ({ registration: "invite" }));
  try {
    const { key, code } = terminal();
    const agent = new Agent();
    const confirmed = await confirm(agent, (await begin(agent, key, {}, invited)).text, code, invited);
    const done = await agent.get(linksIn(confirmed)[0] ?? "");
    assert.equal(done.status, 404);
    assert.match(done.text, /<h1>You have no account here<\/h1>/);
    assert.equal(await take(key, invited), undefined);
  } finally {
    await invited.stop();
  }
});

const wrongKeys: readonly (readonly [string, string])[] = [
  ["31 bytes", Buffer.alloc(31, 1).toString("base64url")],
  ["33 bytes", Buffer.alloc(33, 1).toString("base64url")],
  ["another alphabet", Buffer.alloc(32, 255).toString("base64")],
  ["stray bits at the end", `${"A".repeat(42)}B`],
  ["a point of low order: 0", Buffer.alloc(32).toString("base64url")],
  ["a point of low order: 1", Buffer.from([1, ...Array(31).fill(0)]).toString("base64url")],
  ["markup", "<script>"],
];

for (const [name, key] of wrongKeys) {
  test(`a key of ${name} is rejected`, async () => {
    const page = await begin(new Agent(), key);
    assert.equal(page.status, 400);
    assert.match(page.text, /headless_code must be/);
    assert.doesNotMatch(page.text, /<script>/);
  });
}
