// Logins for devices: RFC 8628.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { builtinRoleUid, personUid, providerPersonUid, randomIds } from "../../../src/kernel/ids.js";
import { identityKind } from "../../../src/store/iam/identities.js";
import { roleBindingKind } from "../../../src/store/iam/role-bindings.js";
import { bindingRow } from "../../support/rows.js";
import { Agent, alice, claimsOf, type LoginKit, linksIn, postForm, readHiddenFields, startLogin } from "./login-kit.js";

const DEVICE = "urn:ietf:params:oauth:grant-type:device_code";

let kit: LoginKit;

before(async () => {
  kit = await startLogin(({ origin }) => ({
    origin: { ...origin, audiences: [...origin.audiences, "https://arbor.example", "registry.example"] },
  }));
});

beforeEach(() => {
  kit.provider.account = alice;
  kit.skewMs = 0;
});

after(() => kit?.stop());

async function ask(more: Readonly<Record<string, string>> = {}, at = kit) {
  const { status, body } = await postForm(`${at.url}/oauth/device_authorization`, { client_id: "robot", ...more });
  assert.equal(status, 200, JSON.stringify(body));
  return body as Record<"device_code" | "user_code" | "verification_uri" | "verification_uri_complete", string>;
}

function poll(deviceCode: string, more: Readonly<Record<string, string>> = {}) {
  const form = { grant_type: DEVICE, client_id: "robot", device_code: deviceCode, ...more };
  return postForm(`${kit.url}/oauth/token`, form);
}

async function type(agent: Agent, userCode: string, at = kit) {
  const page = await agent.get(`${at.url}/activate`);
  return agent.post(`${at.url}/activate`, { ...readHiddenFields(page.text), user_code: userCode });
}

/** Runs the login up to the page with the decision. */
async function signIn(agent: Agent, userCode: string) {
  const chosen = await type(agent, userCode);
  const [link = ""] = linksIn(chosen);
  return { chosen, page: await agent.get(link) };
}

async function decide(agent: Agent, page: string, decision: string) {
  return agent.post(`${kit.url}/activate`, { ...readHiddenFields(page), decision });
}

test("the answer to a device is that of the RFC", async () => {
  const { status, headers, body } = await postForm(`${kit.url}/oauth/device_authorization`, { client_id: "robot" });
  assert.equal(status, 200);
  assert.equal(headers.get("cache-control"), "no-store");
  const { device_code, user_code, ...rest } = body;
  assert.match(String(device_code), /^[A-Za-z0-9_-]{43}$/);
  assert.match(String(user_code), /^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/);
  assert.deepEqual(rest, {
    verification_uri: `${kit.url}/activate`,
    verification_uri_complete: `${kit.url}/activate?user_code=${user_code}`,
    expires_in: 900,
    interval: 5,
  });
});

test("a device polls, a person approves, and the device gets tokens once", async () => {
  const { device_code, user_code } = await ask({ scope: "openid offline_access" });
  assert.equal((await poll(device_code)).body.error, "authorization_pending");
  const agent = new Agent();
  const { chosen, page } = await signIn(agent, user_code.toLowerCase().replace("-", " "));
  for (const text of ["robot", "127.0.0.1", "UTC"]) {
    assert.ok(chosen.text.includes(text), `${text} is not shown before signing in`);
    assert.ok(page.text.includes(text), `${text} is not shown before approving`);
  }
  assert.ok(page.text.includes("alice@example.org"));
  assert.ok(page.text.includes(user_code));
  kit.skewMs = 6_000;
  assert.equal((await poll(device_code)).body.error, "authorization_pending");
  const done = await decide(agent, page.text, "approve");
  assert.match(done.text, /<h1>Approved<\/h1>/);
  const { status, body } = await poll(device_code);
  assert.equal(status, 200);
  assert.equal(claimsOf(body.access_token).sub, personUid(kit.provider.issuer, "alice"));
  assert.equal(claimsOf(body.id_token).iss, kit.url);
  assert.ok(body.refresh_token);
  assert.equal((await poll(device_code)).body.error, "invalid_grant");
});

test("the name of an organisation counts for a person who holds a role there, and is rejected for others", async () => {
  const { group } = await kit.organisation("scoped.example");
  const person = personUid(kit.provider.issuer, "alice");
  const { device_code, user_code } = await ask({ scope: "scoped.example" });
  const rejected = await signIn(new Agent(), user_code);
  const other = await signIn(new Agent(), (await ask({ scope: "unknown.example" })).user_code);
  assert.equal(rejected.page.status, 400);
  assert.match(rejected.page.text, /names of verified organisations/);
  assert.equal(rejected.page.text, other.page.text);
  const binding = bindingRow(randomIds.newUid(group), person, builtinRoleUid("viewer"));
  await kit.store.write((tx) => tx.table(roleBindingKind).insert(binding));
  // The rejected login decided nothing.
  const agent = new Agent();
  const { page } = await signIn(agent, user_code);
  await decide(agent, page.text, "approve");
  const { body } = await poll(device_code);
  assert.deepEqual(claimsOf(body.access_token).lim, { scope: [group] });
});

test("a denied device gets access_denied once", async () => {
  const { device_code, user_code } = await ask();
  const agent = new Agent();
  const { page } = await signIn(agent, user_code);
  assert.match((await decide(agent, page.text, "deny")).text, /<h1>Denied<\/h1>/);
  assert.equal((await poll(device_code)).body.error, "access_denied");
  assert.equal((await poll(device_code)).body.error, "invalid_grant");
});

test("a device gets nothing when the person's logins were revoked after the approval", async () => {
  kit.provider.account = { subject: "leaver" };
  const { device_code, user_code } = await ask();
  const agent = new Agent();
  const { page } = await signIn(agent, user_code);
  await decide(agent, page.text, "approve");
  const notBefore = Math.ceil(Date.now() / 1000) + 1;
  await kit.store.write((tx) =>
    tx.table(identityKind).update(personUid(kit.provider.issuer, "leaver"), { notBefore }, 0),
  );
  assert.equal((await poll(device_code)).body.error, "invalid_grant");
});

test("nothing but approve approves", async () => {
  const { device_code, user_code } = await ask();
  const agent = new Agent();
  const { page } = await signIn(agent, user_code);
  await decide(agent, page.text, "");
  assert.equal((await poll(device_code)).body.error, "access_denied");
});

test("a device that polls too fast must slow down, by five seconds each time", async () => {
  const { device_code } = await ask();
  const errors: unknown[] = [];
  for (const atMs of [0, 1_000, 8_000, 24_000, 40_000]) {
    kit.skewMs = atMs;
    errors.push((await poll(device_code)).body.error);
  }
  // The interval is 5 s, then 10, then 15.
  assert.deepEqual(errors, [
    "authorization_pending",
    "slow_down",
    "slow_down",
    "authorization_pending",
    "authorization_pending",
  ]);
});

test("after fifteen minutes a device gets expired_token, and cannot be approved", async () => {
  const { device_code, user_code } = await ask();
  const agent = new Agent();
  kit.skewMs = 890_000;
  const { page } = await signIn(agent, user_code);
  kit.skewMs = 901_000;
  const late = await decide(agent, page.text, "approve");
  assert.match(late.text, /<h1>This login is over<\/h1>/);
  assert.equal((await poll(device_code)).body.error, "expired_token");
  assert.equal((await type(new Agent(), user_code)).status, 400);
});

test("a code that was decided on cannot be typed again", async () => {
  const { user_code } = await ask();
  const agent = new Agent();
  const { page } = await signIn(agent, user_code);
  await decide(agent, page.text, "deny");
  assert.match((await type(agent, user_code)).text, /That is not the code/);
});

test("a device gets nothing with the code of another client", async () => {
  const { device_code } = await ask();
  assert.equal((await poll(device_code, { client_id: "other" })).body.error, "invalid_grant");
});

test("approving takes the browser that signed in, its form, and happens once", async () => {
  const { device_code, user_code } = await ask();
  const agent = new Agent();
  const { page } = await signIn(agent, user_code);
  const hidden = readHiddenFields(page.text);
  const stranger = new Agent();
  assert.equal((await stranger.get(page.url)).status, 400);
  const own = readHiddenFields((await stranger.get(`${kit.url}/activate`)).text);
  for (const form of [{ ...hidden, ...own }, hidden, { ...hidden, form: "" }]) {
    assert.equal((await stranger.post(`${kit.url}/activate`, { ...form, decision: "approve" })).status, 400);
  }
  const forged = await agent.post(`${kit.url}/activate`, { ...hidden, form: "x".repeat(43), decision: "approve" });
  assert.equal(forged.status, 400);
  assert.equal((await poll(device_code)).body.error, "authorization_pending");
  assert.match((await decide(agent, page.text, "approve")).text, /Approved/);
  assert.match((await decide(agent, page.text, "approve")).text, /This login is over/);
});

test("an organisation's people approve without a refresh token", async () => {
  const { provider } = await kit.organisation("devices.example");
  const { device_code, user_code } = await ask({ scope: "offline_access" });
  const agent = new Agent();
  const chosen = await type(agent, user_code);
  const query = new URLSearchParams({ ...readHiddenFields(chosen.text), organisation: "devices.example" });
  const found = await agent.get(`${kit.url}/oauth?${query}`);
  const links = linksIn(found);
  assert.equal(links.length, 1);
  await decide(agent, (await agent.get(links[0] ?? "")).text, "approve");
  const { status, body } = await poll(device_code);
  assert.equal(status, 200);
  assert.equal("refresh_token" in body, false);
  const exchange = (identity_provider: string) =>
    postForm(`${kit.url}/oauth/token`, {
      grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
      subject_token: String(body.id_token),
      subject_token_type: "urn:ietf:params:oauth:token-type:id_token",
      identity_provider,
    });
  const { provider: another } = await kit.organisation("others.example");
  assert.equal((await exchange(another)).status, 400);
  const exchanged = await exchange(provider);
  assert.equal(exchanged.status, 200, JSON.stringify(exchanged.body));
  assert.equal(claimsOf(exchanged.body.access_token).sub, providerPersonUid(provider, kit.provider.issuer, "alice"));
});

test("an unknown or unverified organisation is an error, and people can try again", async () => {
  await kit.organisation("unverified.example", false);
  for (const organisation of ["unverified.example", "<nobody>"]) {
    const { user_code } = await ask();
    const agent = new Agent();
    const chosen = await type(agent, user_code);
    const query = new URLSearchParams({ ...readHiddenFields(chosen.text), organisation });
    const page = await agent.get(`${kit.url}/oauth?${query}`);
    assert.equal(page.status, 404);
    assert.match(page.text, /No verified organisation called/);
    assert.doesNotMatch(page.text, /<nobody>/);
    assert.equal(linksIn(page).length, 1);
  }
});

const broken: readonly (readonly [string, Readonly<Record<string, string>>, string])[] = [
  ["no client_id", { client_id: "" }, "invalid_request"],
  ["one of our audiences as client_id", { client_id: "arbor.example" }, "invalid_request"],
  ["an audience in other case as client_id", { client_id: "Registry.Example" }, "invalid_request"],
  ["the audience of events as client_id", { client_id: "customer" }, "invalid_request"],
  ["another audience", { audience: "https://other.example" }, "invalid_target"],
  ["a scope that is no uid and no name", { scope: "openid every/thing" }, "invalid_scope"],
];

for (const [name, more, error] of broken) {
  test(`a device request with ${name} is rejected`, async () => {
    const { status, body } = await postForm(`${kit.url}/oauth/device_authorization`, { client_id: "robot", ...more });
    assert.deepEqual([status, body.error], [400, error]);
  });
}

test("wrong codes slow down who guesses, and lock out nobody", async () => {
  const guessed = await startLogin();
  try {
    const { user_code } = await ask({}, guessed);
    const [guesser, honest] = [new Agent(), new Agent()];
    const form = readHiddenFields((await guesser.get(`${guessed.url}/activate`)).text);
    let count = 0;
    const guess = async () => {
      const code = [...(count++).toString(20).padStart(8, "0")].map((digit) => LETTERS[Number.parseInt(digit, 20)]);
      return (await guesser.post(`${guessed.url}/activate`, { ...form, user_code: code.join("") })).status;
    };
    for (let i = 0; i < 30; i++) assert.equal(await guess(), 400);
    const startMs = performance.now();
    for (let i = 0; i < 10; i++) assert.equal(await guess(), 400);
    assert.ok(performance.now() - startMs > 300, "twenty a second at most");
    const flood = Array.from({ length: 60 }, guess);
    const right = await type(honest, user_code, guessed);
    assert.match(right.text, /<h1>Sign in for a device<\/h1>/, "another browser at the address is not held up by it");
    assert.deepEqual([...new Set(await Promise.all(flood))].sort(), [400, 429], "a full queue rejects");
    const own = await ask({}, guessed);
    assert.match((await type(guesser, own.user_code, guessed)).text, /<h1>Sign in for a device<\/h1>/);
  } finally {
    await guessed.stop();
  }
});

const LETTERS = "BCDFGHJKLMNPQRSTVWXZ";
