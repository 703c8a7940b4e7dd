// A login for a program that gets a code: RFC 6749, RFC 7636, RFC 8252, RFC 9700.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { personUid, providerPersonUid } from "../../../src/kernel/ids.js";
import { identityKind } from "../../../src/store/iam/identities.js";
import { identityProviderKind } from "../../../src/store/iam/identity-providers.js";
import { roleBindingKind } from "../../../src/store/iam/role-bindings.js";
import { setLimits } from "../../support/quotas.js";
import {
  Agent,
  alice,
  claimsOf,
  codeRequest,
  type LoginKit,
  linksIn,
  newPkce,
  PROGRAM,
  postForm,
  type Seen,
  startLogin,
} from "./login-kit.js";

let kit: LoginKit;

before(async () => {
  kit = await startLogin();
});

beforeEach(() => {
  kit.provider.account = alice;
});

after(() => kit?.stop());

function oauth(parameters: Readonly<Record<string, string>>): string {
  return `${kit.url}/oauth?${new URLSearchParams(parameters)}`;
}

async function login(more: Readonly<Record<string, string>> = {}, agent = new Agent()) {
  const { verifier, challenge } = newPkce();
  const page = await agent.decide(await agent.get(oauth(codeRequest(challenge, more))));
  return { verifier, page, code: page.program?.get("code") ?? "" };
}

function redeem(code: string, verifier: string, more: Readonly<Record<string, string>> = {}) {
  return postForm(`${kit.url}/oauth/token`, {
    grant_type: "authorization_code",
    client_id: "arbor-cli",
    redirect_uri: PROGRAM,
    code,
    code_verifier: verifier,
    ...more,
  });
}

function renew(refreshToken: unknown) {
  return postForm(`${kit.url}/oauth/token`, { grant_type: "refresh_token", refresh_token: String(refreshToken) });
}

test("a person signs in, and the program gets a token and a refresh token", async () => {
  const { page, code, verifier } = await login({ create_refresh_token: "true" });
  assert.equal(page.program?.get("state"), "state of the program");
  assert.equal(page.program?.get("iss"), kit.url);
  const { status, headers, body } = await redeem(code, verifier);
  assert.equal(status, 200);
  assert.equal(headers.get("cache-control"), "no-store");
  assert.equal(headers.get("pragma"), "no-cache");
  assert.equal(body.token_type, "Bearer");
  assert.ok(Number(body.expires_in) > 3_590 && Number(body.expires_in) <= 3_600);
  const claims = claimsOf(body.access_token);
  assert.equal(claims.sub, personUid(kit.provider.issuer, "alice"));
  assert.equal(claims.aud, kit.url);
  assert.equal(claims.email, "alice@example.org");
  const renewed = await renew(body.refresh_token);
  assert.equal(renewed.status, 200);
  assert.notEqual(renewed.body.refresh_token, body.refresh_token);
  assert.equal(claimsOf(renewed.body.access_token).sub, claims.sub);
});

test("a refresh token is issued only on request", async () => {
  const { code, verifier } = await login();
  const { body } = await redeem(code, verifier);
  assert.equal("refresh_token" in body, false);
});

test("a refresh token that comes again ends the login", async () => {
  const { code, verifier } = await login({ create_refresh_token: "true" });
  const first = (await redeem(code, verifier)).body.refresh_token;
  const second = (await renew(first)).body.refresh_token;
  const third = (await renew(second)).body.refresh_token;
  assert.equal((await renew(first)).body.error, "invalid_grant");
  assert.equal((await renew(third)).body.error, "invalid_grant");
});

test("a refresh token whose answer was lost may come again once, within ten seconds", async () => {
  const { code, verifier } = await login({ create_refresh_token: "true" });
  const first = (await redeem(code, verifier)).body.refresh_token;
  const lost = await renew(first);
  const repeated = await renew(first);
  assert.deepEqual([lost.status, repeated.status], [200, 200]);
  assert.equal((await renew(repeated.body.refresh_token)).status, 200);
  assert.equal((await renew(lost.body.refresh_token)).body.error, "invalid_grant");
});

test("a reused code is rejected, and the tokens it gave are revoked", async () => {
  const { code, verifier } = await login({ create_refresh_token: "true" });
  const first = (await redeem(code, verifier)).body.refresh_token;
  const second = (await renew(first)).body.refresh_token;
  const again = await redeem(code, verifier);
  assert.equal(again.status, 400);
  assert.equal(again.body.error, "invalid_grant");
  assert.equal((await renew(second)).body.error, "invalid_grant");
});

const wrongRedemptions = {
  "a verifier of 42 characters": { code_verifier: "v".repeat(42) },
  "a verifier of 129 characters": { code_verifier: "v".repeat(129) },
  "another verifier": { code_verifier: "v".repeat(43) },
  "another client": { client_id: "other" },
  "another redirect_uri": { redirect_uri: `${PROGRAM}?x` },
} as const;

for (const [name, wrong] of Object.entries(wrongRedemptions)) {
  test(`${name} is rejected, and the code is deleted`, async () => {
    const { code, verifier } = await login();
    const { status, body } = await redeem(code, verifier, wrong);
    assert.deepEqual([status, body.error], [400, "invalid_grant"]);
    assert.equal((await redeem(code, verifier)).body.error, "invalid_grant");
  });
}

test("a code is valid for a minute", async () => {
  const { code, verifier } = await login();
  kit.skewMs = 61_000;
  try {
    assert.equal((await redeem(code, verifier)).body.error, "invalid_grant");
  } finally {
    kit.skewMs = 0;
  }
});

test("a code is invalid after the person's logins were revoked", async () => {
  kit.provider.account = { subject: "leaver" };
  const { code, verifier } = await login();
  const notBefore = Math.ceil(Date.now() / 1000) + 1;
  await kit.store.write((tx) =>
    tx.table(identityKind).update(personUid(kit.provider.issuer, "leaver"), { notBefore }, 0),
  );
  assert.equal((await redeem(code, verifier)).body.error, "invalid_grant");
});

const { challenge } = newPkce();
const rejectedRequests: readonly (readonly [string, Readonly<Record<string, string>>, string])[] = [
  ["no challenge", { code_challenge: "" }, "invalid_request"],
  ["a challenge that is too short", { code_challenge: challenge.slice(1) }, "invalid_request"],
  ["a challenge that is no base64url", { code_challenge: `${challenge.slice(1)}+` }, "invalid_request"],
  ["no method", { code_challenge_method: "" }, "invalid_request"],
  ["the method plain", { code_challenge_method: "plain" }, "invalid_request"],
  ["response_type token", { response_type: "token" }, "unsupported_response_type"],
  ["another audience", { audience: "https://other.example" }, "invalid_target"],
  ["two audiences", { audience: "https://a.example,https://b.example" }, "invalid_target"],
  ["a scope that is no uid and no name", { scope: "every/thing" }, "invalid_scope"],
  ["an unknown name as scope, when the person is known,", { scope: "unknown.example" }, "invalid_scope"],
  ["a capability that does not exist", { cap: "groups.fly" }, "invalid_scope"],
  ["an unknown connection", { connection: "nobody" }, "invalid_request"],
  ["an unknown identity provider", { idp_id: `${"0".repeat(40)}/${"0".repeat(16)}` }, "invalid_request"],
  ["an identity", { identity: "0".repeat(40) }, "invalid_request"],
];

for (const [name, more, error] of rejectedRequests) {
  test(`${name} is an error redirect to the program`, async () => {
    const agent = new Agent();
    const { program } = await agent.decide(await agent.get(oauth(codeRequest(challenge, more))));
    assert.equal(program?.get("error"), error);
    assert.equal(program?.get("state"), "state of the program");
    assert.ok(program?.get("error_description"));
    assert.equal(program?.get("code"), null);
  });
}

const brokenRequests: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
  ["a redirect to another host", { redirect_uri: "http://127.0.0.1.evil.example:1/" }],
  ["a custom scheme", { redirect_uri: "com.example.app:/callback" }],
  ["no client_id", { client_id: "" }],
  ["a client_id that reads as a sentence", { client_id: "Your bank, please approve" }],
  ["two forms at once", { redirect: PROGRAM }],
  ["a state with control characters", { state: "a\nb" }],
];

for (const [name, more] of brokenRequests) {
  test(`${name} is an error page without a redirect`, async () => {
    const agent = new Agent();
    const { status, text } = await agent.get(oauth(codeRequest(challenge, more)));
    assert.equal(status, 400);
    assert.match(text, /<h1>This cannot be done<\/h1>/);
    assert.equal(agent.visited.length, 1);
  });
}

test("parameters without a value count as absent, at every endpoint", async () => {
  const names = ["headless_code", "redirect", "exit", "idp_id", "connection", "invite", "identity", "nonce", "cap"];
  const empty = Object.fromEntries([...names, "scope", "audience", "continue"].map((name) => [name, ""]));
  const { code, verifier, page } = await login({ ...empty, create_refresh_token: "true" });
  assert.ok(code, page.text);
  const nothing = { resource: "", audience: "", scope: "", cap: "", actor_token: "", requested_token_type: "" };
  const { status, body } = await redeem(code, verifier, nothing);
  assert.equal(status, 200, JSON.stringify(body));
  const renewed = await postForm(`${kit.url}/oauth/token`, {
    ...nothing,
    grant_type: "refresh_token",
    refresh_token: String(body.refresh_token),
  });
  assert.equal(renewed.status, 200, JSON.stringify(renewed.body));
  const exchanged = await postForm(`${kit.url}/oauth/token`, {
    ...nothing,
    grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
    subject_token_type: "urn:ietf:params:oauth:token-type:id_token",
    subject_token: await kit.provider.signIdToken({ sub: "alice", aud: kit.provider.clientId }),
    identity: "",
    identity_provider: "",
  });
  assert.equal(exchanged.status, 200, JSON.stringify(exchanged.body));
  const device = await postForm(`${kit.url}/oauth/device_authorization`, { ...nothing, client_id: "robot" });
  assert.equal(device.status, 200, JSON.stringify(device.body));
  // An empty value beside a value is no second value; the control is a second value.
  const twice = new URLSearchParams([
    ["client_id", "robot"],
    ["client_id", ""],
  ]);
  assert.equal((await postForm(`${kit.url}/oauth/device_authorization`, twice)).status, 200);
  twice.append("client_id", "robot");
  assert.equal((await postForm(`${kit.url}/oauth/device_authorization`, twice)).body.error, "invalid_request");
});

test("a parameter given twice is rejected", async () => {
  const { program } = await new Agent().get(`${oauth(codeRequest(challenge))}&code_challenge=${challenge}`);
  assert.match(program?.get("error_description") ?? "", /code_challenge must be given once/);
});

async function beforeCallback(agent: Agent): Promise<string> {
  const response = await agent.decide(await agent.get(oauth(codeRequest(challenge))));
  assert.ok(response.program?.get("code"));
  const callback = agent.visited.find((url) => url.startsWith(`${kit.url}/oauth/callback`));
  assert.ok(callback);
  return callback;
}

function isOver({ status, text }: Seen): void {
  assert.equal(status, 400);
  assert.match(text, /<h1>This login is over<\/h1>/);
}

test("a state leads to one login", async () => {
  const agent = new Agent();
  const callback = await beforeCallback(agent);
  isOver(await agent.get(callback));
});

test("a login of one browser cannot be completed in another, and still can in its own", async () => {
  const agent = new Agent();
  const first = await fetch(oauth(codeRequest(challenge)), { redirect: "manual" });
  const [, cookie = ""] = /^(arbor-login=[^;]+);/.exec(first.headers.get("set-cookie") ?? "") ?? [];
  const state = new URL(first.headers.get("location") ?? "").searchParams.get("state") ?? "";
  const callback = `${kit.url}/oauth/callback?${new URLSearchParams({ state, error: "access_denied", iss: kit.provider.issuer })}`;
  isOver(await new Agent().get(callback));
  await agent.get(oauth(codeRequest(challenge)));
  isOver(await agent.get(callback));
  const own = await fetch(callback, { redirect: "manual", headers: { cookie } });
  assert.equal(new URL(own.headers.get("location") ?? "").searchParams.get("error"), "access_denied");
});

test("a login may take ten minutes", async () => {
  const agent = new Agent();
  const first = await fetch(oauth(codeRequest(challenge)), { redirect: "manual" });
  const [, cookie = ""] = /^(arbor-login=[^;]+);/.exec(first.headers.get("set-cookie") ?? "") ?? [];
  const state = new URL(first.headers.get("location") ?? "").searchParams.get("state") ?? "";
  agent.jar.set(new URL(kit.url).host, new Map([["arbor-login", cookie.slice("arbor-login=".length)]]));
  kit.skewMs = 601_000;
  try {
    isOver(await agent.get(`${kit.url}/oauth/callback?${new URLSearchParams({ state, code: "any" })}`));
  } finally {
    kit.skewMs = 0;
  }
});

test("two logins go on side by side in one browser", async () => {
  const agent = new Agent();
  const one = await login({}, agent);
  const other = await login({}, agent);
  assert.equal((await redeem(one.code, one.verifier)).status, 200);
  assert.equal((await redeem(other.code, other.verifier)).status, 200);
});

test("a login that was cancelled at the provider is access_denied", async () => {
  kit.provider.account = undefined;
  const { page } = await login();
  assert.equal(page.program?.get("error"), "access_denied");
  assert.equal(page.program?.get("status_code"), "403");
});

test("rejects a wrong code of the provider", async () => {
  const first = await fetch(oauth(codeRequest(challenge)), { redirect: "manual" });
  const [, cookie = ""] = /^(arbor-login=[^;]+);/.exec(first.headers.get("set-cookie") ?? "") ?? [];
  const state = new URL(first.headers.get("location") ?? "").searchParams.get("state") ?? "";
  const query = new URLSearchParams({ state, code: "made-up", iss: kit.provider.issuer });
  const response = await fetch(`${kit.url}/oauth/callback?${query}`, { redirect: "manual", headers: { cookie } });
  const program = new URL(response.headers.get("location") ?? "").searchParams;
  assert.equal(program.get("error"), "server_error");
  assert.match(kit.problems.at(-1) ?? "", /invalid_grant/);
});

test("an organisation's provider signs in its own people, without a refresh token", async () => {
  const { provider } = await kit.organisation("staff.example");
  for (const idp_id of [provider, "staff.example"]) {
    const { code, verifier } = await login({ idp_id, create_refresh_token: "true" });
    const { status, body } = await redeem(code, verifier);
    assert.equal(status, 200);
    assert.equal("refresh_token" in body, false);
    assert.equal(claimsOf(body.access_token).sub, providerPersonUid(provider, kit.provider.issuer, "alice"));
  }
});

test("people of a provider without a default role sign in, and get no role", async () => {
  const { provider, group } = await kit.organisation("roleless.example");
  const { store } = kit;
  // There is room for the binding of the owner alone.
  await setLimits(store, group, { bindings: 1 });
  const { page } = await login({ idp_id: provider });
  assert.ok(page.program?.has("error"), "control: the binding of a default role has no room");
  await store.write(async (tx) => {
    const row = await tx.table(identityProviderKind).find(provider);
    assert.ok(row);
    await tx.table(identityProviderKind).replace({ ...row, lacksDefaultRole: true });
  });
  const { code, verifier } = await login({ idp_id: provider });
  const { status, body } = await redeem(code, verifier);
  assert.equal(status, 200);
  const person = providerPersonUid(provider, kit.provider.issuer, "alice");
  assert.equal(claimsOf(body.access_token).sub, person);
  assert.deepEqual(await store.read((tx) => tx.table(roleBindingKind).findByIdentity(person)), []);
  assert.notEqual(await store.read((tx) => tx.table(identityKind).find(person)), undefined);
});

test("the name of an organisation that was not verified leads nowhere", async () => {
  await kit.organisation("pretender.example", false);
  const { page } = await login({ idp_id: "pretender.example" });
  assert.equal(page.program?.get("error"), "invalid_request");
});

test("a registration has an audit row, a later login has none", async () => {
  kit.provider.account = { subject: "newcomer" };
  const uid = personUid(kit.provider.issuer, "newcomer");
  const rows = () =>
    kit.store.read(async (tx) => (await tx.audit.listNewest(100)).filter((row) => row.actorUid === uid));
  await login();
  const [row, ...more] = await rows();
  assert.equal(row?.type, "dev.chainguard.api.auth.registered.v1");
  assert.equal(row?.method, "/oauth/callback");
  const bodies = await kit.store.read((tx) => tx.audit.readBodies(row ? [row] : []));
  assert.deepEqual(JSON.parse(bodies.get(row?.id ?? 0) ?? "{}").after, { identity: uid });
  assert.equal(more.length, 0);
  await login();
  assert.equal((await rows()).length, 1);
});

test("with several providers people choose, and the links carry the request", async () => {
  const several = await startLogin(({ loginProviders }) => ({
    loginProviders: loginProviders.flatMap((one) => [one, { ...one, name: "other", title: "<Other & more>" }]),
  }));
  try {
    const parameters = new URLSearchParams(codeRequest(challenge, { scope: "openid", invite: "a&b" }));
    const page = await new Agent().get(`${several.url}/oauth?${parameters}`);
    assert.equal(page.status, 200);
    assert.match(page.text, /Continue with &lt;Other &amp; more&gt;/);
    const [one, two] = linksIn(page).map((link) => new URL(link).searchParams);
    assert.equal(one?.get("connection"), "test");
    assert.equal(two?.get("connection"), "other");
    one?.delete("connection");
    assert.deepEqual([...(one ?? [])].sort(), [...parameters].sort());
  } finally {
    await several.stop();
  }
});
