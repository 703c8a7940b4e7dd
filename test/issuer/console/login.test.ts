// Signing in to the console in a browser, with a real OpenID Provider and a real service.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import { formatSecretContext } from "../../../src/iam/identity-providers/identity-provider.js";
import { builtinRoleUid, personUid, randomIds } from "../../../src/kernel/ids.js";
import { identityProviderKind } from "../../../src/store/iam/identity-providers.js";
import { roleBindingKind } from "../../../src/store/iam/role-bindings.js";
import { restAs } from "../../contract/rest.js";
import { bindingRow } from "../../support/rows.js";
import { Agent, alice, claimsOf, codeRequest, newPkce, PROGRAM, type Seen, startLogin } from "../oauth/login-kit.js";
import { type LoginWorld, startLoginWorld } from "../oauth/login-world.js";
import { assertNoSession, assertOpen, bearerOf, type CodeGrant, ConsoleBrowser } from "./browser.js";

const HOUR_MS = 3_600_000;

let world: LoginWorld;
let url: string;
let group: string;
let owner: string;
let idpId: string;
let count = 0;

before(async () => {
  world = await startLoginWorld();
  ({ url } = world.harness);
  ({ group, token: owner } = await world.harness.organisation("staff.example"));
  idpId = await createProvider();
});
beforeEach(() => {
  world.provider.account = { ...alice, subject: `person ${++count}` };
});
after(() => world?.stop());

const nowMs = () => Date.now() + world.harness.skewMs;
const api = (token: string) => restAs(url, token, "/iam/v2beta1");

/** An identity provider of the organisation, at the same OpenID Provider. */
async function createProvider(): Promise<string> {
  const uid = randomIds.newUid(group);
  const { provider, harness } = world;
  provider.allowRedirect(`${url}/oauth/callback/${uid}`);
  const { store, masterKey } = harness.app.installation;
  const { issuer, clientId, clientSecret = "" } = provider;
  const oidc = { issuer, clientId, additionalScopes: [], groupsClaim: "" };
  await store.write((tx) =>
    tx.table(identityProviderKind).insert({
      ...{ uid, groupUid: group, name: "staff", description: "", lacksDefaultRole: false, oidc },
      defaultRole: builtinRoleUid("viewer"),
      sealedSecret: masterKey.seal(Buffer.from(clientSecret), formatSecretContext(uid)),
      scim: { enabled: false, tokenHash: "", previousHash: "", revoked: false, etag: "" },
      ...{ createTimeMs: nowMs(), updateTimeMs: nowMs() },
    }),
  );
  return uid;
}

async function later<T>(skewMs: number, work: () => Promise<T>): Promise<T> {
  world.harness.skewMs = skewMs;
  try {
    return await work();
  } finally {
    world.harness.skewMs = 0;
  }
}

type Parameters = Readonly<Record<string, string>>;

function consoleRequest(challenge: string, more: Parameters = {}): string {
  const own = { client_id: "console", redirect_uri: `${url}/console/callback`, state: "state of the tab" };
  return `${url}/oauth?${new URLSearchParams({ ...codeRequest(challenge), ...own, ...more })}`;
}

/** What the page of the console got: the parameters of its callback; undefined where the browser is elsewhere. */
function outcomeOf({ url: at }: Seen): URLSearchParams | undefined {
  return at.startsWith(`${url}/console/callback?`) ? new URL(at).searchParams : undefined;
}

const isConsent = ({ url: at }: Seen) => new URL(at).pathname === "/oauth/consent";

/** Goes to the login, and decides where it asks. */
async function login(agent: Agent, more: Parameters = {}): Promise<{ grant: CodeGrant; page: Seen; asked: boolean }> {
  const { verifier, challenge } = newPkce();
  const first = await agent.get(consoleRequest(challenge, more));
  const page = await agent.decide(first);
  const code = outcomeOf(page)?.get("code") ?? "";
  const secret = agent.jar.get(new URL(url).host)?.get("arbor-login") ?? "";
  return { grant: { code, codeVerifier: verifier, login: `arbor-login=${secret}` }, page, asked: isConsent(first) };
}

async function errorOf(agent: Agent, more: Parameters): Promise<string | null | undefined> {
  return outcomeOf(await agent.get(consoleRequest(newPkce().challenge, more)))?.get("error");
}

/** A person who has signed in before, in a browser that the provider knows. */
async function knownPerson(more: Parameters = {}): Promise<Agent> {
  const agent = new Agent();
  assert.ok((await login(agent, more)).grant.code);
  return agent;
}

const textOf = ({ text }: Seen) =>
  text
    .replace(/<style>.*<\/style>/s, "")
    .replace(/<[^>]*>/g, " ")
    .replace(/\s+/g, " ");

describe("a login to the console", () => {
  it("leads back to it with a code, which begins a session", async () => {
    const agent = await knownPerson();
    const { grant, page, asked } = await login(agent);
    assert.equal(asked, false, "nothing is asked of a person with an account");
    const outcome = outcomeOf(page);
    assert.deepEqual([outcome?.get("state"), outcome?.get("iss")], ["state of the tab", url]);
    const browser = new ConsoleBrowser(url);
    const uid = personUid(world.provider.issuer, world.provider.account?.subject ?? "");
    const { accessToken, session } = assertOpen(await browser.signIn(grant));
    assert.deepEqual([claimsOf(accessToken).sub, session.renewal, session.idpId], [uid, "cookie", undefined]);
    assertOpen(await browser.renew());
  });

  it("is redeemed by the browser that logged in alone, also with the verifier", async () => {
    const agent = await knownPerson();
    for (const other of [`arbor-login=${"x".repeat(43)}`, ""]) {
      const { grant } = await login(agent);
      assertNoSession(await new ConsoleBrowser(url).signIn({ ...grant, login: other }), other);
    }
    assertOpen(await new ConsoleBrowser(url).signIn((await login(agent)).grant), "the control");
  });

  it("goes on after a restart of the service", async () => {
    const agent = await knownPerson();
    const browser = new ConsoleBrowser(url);
    const { grant } = await login(agent);
    await world.restart();
    const { session } = assertOpen(await browser.signIn(grant), "a code from before");
    await world.restart();
    assert.equal(assertOpen(await browser.renew()).session.id, session.id);
    assert.equal(assertOpen(await browser.signIn(grant)).session.id, session.id, "a repeat");
  });

  it("asks a person who would be registered, and names the console", async () => {
    const agent = new Agent();
    const page = await agent.get(consoleRequest(newPkce().challenge));
    assert.ok(isConsent(page));
    assert.match(textOf(page), /Sign in to the console\?.*You go on to the console of this service/);
    assert.equal(outcomeOf(await agent.decide(page, "decline"))?.get("error"), "access_denied");
    assert.equal((await login(agent)).asked, true, "declined: nobody was registered");
    assert.equal((await login(agent)).asked, false, "the control");
  });

  it("asks a person who has pending bindings, or an invite", async () => {
    const agent = await knownPerson();
    const uid = personUid(world.provider.issuer, world.provider.account?.subject ?? "");
    const binding = bindingRow(randomIds.newUid(group), uid, builtinRoleUid("viewer"), { pending: true });
    await world.harness.app.installation.store.write((tx) => tx.table(roleBindingKind).insert(binding));
    const pending = await login(agent);
    assert.ok(pending.asked && pending.grant.code, "bindings that others made");
    const body = { roleUid: builtinRoleUid("editor"), ttl: "3600s", singleUse: true };
    const invite = await api(owner)("POST", `/groupInvites/${group}`, body);
    assert.equal(invite.status, 200, invite.text);
    const { code = "" } = invite.json as { code?: string };
    const agent2 = new Agent();
    world.provider.account = { ...alice, subject: `person ${++count}` };
    assert.ok((await login(agent2)).grant.code);
    assert.equal((await login(agent2)).asked, false, "the control");
    const page = await agent2.get(consoleRequest(newPkce().challenge, { invite: code }));
    assert.match(textOf(page), /Accept this invite\?.*You go on to the console of this service/);
    assert.ok(outcomeOf(await agent2.decide(page))?.get("code"));
  });
});

describe("the redirect URI of the console", () => {
  const statusOf = async (more: Parameters) => {
    const query = new URLSearchParams({ ...codeRequest(newPkce().challenge), ...more });
    const response = await fetch(`${url}/oauth?${query}`, { redirect: "manual" });
    await response.arrayBuffer();
    return response.status;
  };
  const own = () => `${url}/console/callback`;

  it("is one, exactly", async () => {
    const others = ["/", "?a=b", "#a", "/x"].map((end) => own() + end);
    others.push(PROGRAM, `${url}/console`, own().replace("127.0.0.1", "localhost"), `https${own().slice(4)}`, "");
    for (const redirect_uri of others)
      assert.equal(await statusOf({ client_id: "console", redirect_uri }), 400, redirect_uri);
    assert.equal(await statusOf({ client_id: "console", redirect_uri: own() }), 303, "the control");
  });

  it("is for no other program", async () => {
    for (const client_id of ["arbor-cli", "Console", "console2"]) {
      for (const end of ["", "?a=b"])
        assert.equal(await statusOf({ client_id, redirect_uri: own() + end }), 400, client_id);
      assert.equal(await statusOf({ client_id, redirect_uri: PROGRAM }), 303, "the control");
    }
    const redirect = (to: string) =>
      fetch(`${url}/oauth?${new URLSearchParams({ redirect: to })}`, { redirect: "manual" });
    assert.deepEqual([(await redirect(own())).status, (await redirect(PROGRAM)).status], [400, 303]);
  });

  it("is the only use of its client id", async () => {
    const start = (client_id: string) =>
      fetch(`${url}/oauth/device_authorization`, { method: "POST", body: new URLSearchParams({ client_id }) });
    assert.deepEqual([(await start("console")).status, (await start("other")).status], [400, 200]);
  });
});

describe("a login without a page (prompt=none)", () => {
  const none = { connection: "test", prompt: "none" };

  it("gives a code to a person whom the provider knows", async () => {
    const agent = await knownPerson();
    const { grant, page } = await login(agent, none);
    assert.equal(outcomeOf(page)?.get("error"), null);
    assertOpen(await new ConsoleBrowser(url).signIn(grant));
    assert.ok((await login(agent, { prompt: "none" })).grant.code, "there is one provider");
  });

  it("passes on that the provider must ask", async () => {
    assert.equal(await errorOf(new Agent(), none), "login_required");
  });

  it("shows no page of this service", async () => {
    const agent = await knownPerson();
    const subject = `person ${++count}`;
    world.provider.account = { ...alice, subject };
    const other = new Agent();
    const consent = await other.get(consoleRequest(newPkce().challenge));
    assert.ok(isConsent(consent), "the provider knows the person, and this service does not");
    assert.equal(await errorOf(other, none), "interaction_required");
    assert.equal(await errorOf(agent, { ...none, invite: "x" }), "interaction_required");
    for (const named of [
      { connection: "unknown" },
      { idp_id: "unknown.example" },
      { idp_id: `${group}/${"0".repeat(16)}` },
    ])
      assert.equal(await errorOf(agent, { prompt: "none", ...named }), "invalid_request");
  });

  it("is one of three values, for the console alone", async () => {
    const agent = await knownPerson();
    for (const prompt of ["consent", "none login", "x"])
      assert.equal(await errorOf(agent, { prompt }), "invalid_request");
    for (const prompt of ["login", "select_account"]) {
      const location = await agent.locationOf(consoleRequest(newPkce().challenge, { prompt }));
      assert.equal(new URL(location).searchParams.get("prompt"), prompt);
    }
    const asked = () => world.provider.requests.filter((path) => path.startsWith("/interaction/")).length;
    const before = asked();
    assert.ok((await login(agent)).grant.code);
    assert.equal(asked(), before, "the control");
    assert.ok((await login(agent, { prompt: "login" })).grant.code);
    assert.equal(asked(), before + 1, "the provider asks a person whom it knows");
    const { challenge } = newPkce();
    const page = await new Agent().get(
      `${url}/oauth?${new URLSearchParams(codeRequest(challenge, { prompt: "none" }))}`,
    );
    assert.ok(isConsent(page), "other programs may send what they like, without effect");
  });
});

describe("a person of an organisation's provider", () => {
  const named = () => ({ idp_id: idpId });

  async function signedIn(): Promise<{ agent: Agent; browser: ConsoleBrowser; endMs: number }> {
    const agent = await knownPerson(named());
    const browser = new ConsoleBrowser(url);
    const { session, expiresIn, accessToken } = assertOpen(await browser.signIn((await login(agent, named())).grant));
    assert.deepEqual([session.renewal, session.idpId], ["redirect", idpId]);
    const endMs = Date.parse(session.expireTime);
    assert.ok(endMs <= Date.now() + HOUR_MS && expiresIn <= 3600);
    assert.equal(Number(claimsOf(accessToken).exp) * 1000, endMs, "the session ends with its first token");
    return { agent, browser, endMs };
  }

  it("has a session that ends within the hour, as do its tokens", async () => {
    const { browser, endMs, agent } = await signedIn();
    for (const minutes of [1, 20, 50]) {
      await later(minutes * 60_000, async () => {
        const renewed = await browser.renew();
        assert.equal(Date.parse(assertOpen(renewed).session.expireTime), endMs, "it is not extended");
        assert.equal(Number(claimsOf(bearerOf(renewed)).exp) * 1000, endMs, "nor is its token");
      });
    }
    await later(HOUR_MS, async () => assertNoSession(await browser.renew()));
    await later(HOUR_MS, async () => {
      const { grant } = await login(agent, { ...named(), prompt: "none" });
      assert.equal(assertOpen(await browser.signIn(grant)).session.renewal, "redirect", "a redirect goes on");
      assertOpen(await browser.renew());
    });
  });

  it("has none without the provider", async () => {
    idpId = await createProvider();
    const { browser, agent } = await signedIn();
    const { grant } = await login(agent, named());
    assertOpen(await browser.renew(), "the control");
    const removed = await api(owner)("DELETE", `/identityProviders/${idpId}`);
    assert.equal(removed.status, 200, removed.text);
    assertNoSession(await browser.renew());
    assertNoSession(await new ConsoleBrowser(url).signIn(grant));
    idpId = await createProvider();
  });
});

it("does not exist without the console", async () => {
  for (const served of [true, false]) {
    const kit = await startLogin(() => ({ console: served }));
    try {
      const redirect_uri = `${kit.url}/console/callback`;
      const query = new URLSearchParams({ ...codeRequest(newPkce().challenge), client_id: "console", redirect_uri });
      const { status } = await fetch(`${kit.url}/oauth?${query}`, { redirect: "manual" });
      const session = await new ConsoleBrowser(kit.url).renew();
      assert.deepEqual([status, session.status], served ? [303, 401] : [400, 404]);
    } finally {
      await kit.stop();
    }
  }
});
