// TokensService: whoever may update an identity revokes its tokens, and each kind of credential is refused from the next
// call on.
import assert from "node:assert/strict";
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { after, afterEach, before, describe, it } from "node:test";
import { TokensService } from "#gen/arbor/tokens/v1/tokens_pb.js";
import { MAX_REVOKED_TOKENS } from "../../src/iam/identities/revocation.js";
import { revokeTokens as revokeOnHost } from "../../src/iam/operator/operate.js";
import { deleteExpired } from "../../src/issuer/maintenance.js";
import { createTokens } from "../../src/issuer/tokens.js";
import { builtinRoleUid, randomIds } from "../../src/kernel/ids.js";
import { MAX_TOKEN_LIFE_S } from "../../src/pipeline/auth/api-token.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import type { AuditRow } from "../../src/store/tables/audit.js";
import { permissionDenied } from "../contract/expectations.js";
import { rawGrpc, requestOf } from "../contract/iam-clients.js";
import { askToken } from "../registry/token-kit.js";
import { signToken } from "../support/local-issuer.js";
import { invite, register } from "./auth-world.js";
import { makeIdToken } from "./oauth/login-world.js";
import { type Answer, ask, queryOf } from "./sts/ask.js";
import { claimsOf, type ExchangeWorld, type Somebody, startExchangeWorld } from "./sts/exchange-world.js";
import { makeProvider, type ProviderKit } from "./sts/provider-people.js";

const { revokeTokens, revokePersonTokens } = TokensService.method;

let world: ExchangeWorld;
before(async () => {
  world = await startExchangeWorld();
});
after(() => world.stop());
afterEach(() => {
  world.harness.skewMs = 0;
});

const nowMs = () => Date.now() + world.harness.skewMs;
const pass = (ms: number) => {
  world.harness.skewMs += ms;
};
const issuer = () => createTokens({ keys: world.harness.app.installation.keys, ids: randomIds, issuer: world.url });
const tokenIdOf = (token: string) => String(claimsOf(token).jti);

function revoke(uid: string, by: string, body: object = {}): Promise<Answer> {
  return ask(world.url, `/tokens/v1/identities/${uid}:revokeTokens`, { method: "POST", bearer: by, json: body });
}

function revokePerson(provider: string, by: string, body: object): Promise<Answer> {
  const path = `/tokens/v1/identityProviders/${provider}:revokePersonTokens`;
  return ask(world.url, path, { method: "POST", bearer: by, json: body });
}

async function revokeAll(uid: string, by = world.owner.token): Promise<Answer["json"]> {
  const { status, json, text } = await revoke(uid, by);
  assert.equal(status, 200, text);
  return json;
}

/** Whether a call with an API token is authenticated. */
async function isAccepted(token: string): Promise<boolean> {
  const { status } = await ask(world.url, "/auth/v1/ok", { bearer: token });
  assert.ok(status === 200 || status === 401, String(status));
  return status === 200;
}

async function refresh(bearer: string): Promise<Answer> {
  return ask(world.url, `/sts/exchange_refresh_token?${queryOf({ aud: world.url })}`, { method: "POST", bearer });
}

const createRefreshToken = (uid: string) =>
  world.write((tx) => issuer().createRefreshToken(tx, uid, { audience: world.url }, nowMs()));

const newest = (count: number): Promise<AuditRow[]> => world.write((tx) => tx.audit.listNewest(count));

/** An identity of the organisation with static keys, and the key that signs its pull tokens. */
async function makePullTokens(): Promise<{ uid: string; sign: (claims?: object) => string }> {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const jwk = { ...publicKey.export({ format: "jwk" }), kid: "1", alg: "ES256" };
  const expirationTime = new Date(Date.now() + 300 * 86_400_000).toISOString();
  const keys = { issuer: "https://pull.example", subject: "puller", issuerKeys: JSON.stringify({ keys: [jwk] }) };
  const uid = await world.assumable({ staticKeys: { ...keys, expirationTime } }, { role: "registry.pull" });
  return { uid, sign: (claims = {}) => signPullToken(privateKey, claims) };
}

function signPullToken(key: KeyObject, claims: object): string {
  const iat = Math.floor(nowMs() / 1000);
  const all = { iss: "https://pull.example", sub: "puller", aud: world.url, iat, exp: iat + 200 * 86_400, ...claims };
  return signToken({ alg: "ES256", kid: "1", typ: "JWT" }, all, key);
}

describe("a revocation of all tokens refuses", () => {
  it("API tokens, and not those of others", async () => {
    const { uid, token } = await world.harness.identity({}, world.root);
    const second = await world.harness.token(uid);
    const other = await world.harness.identity({}, world.root);
    assert.deepEqual(
      [await isAccepted(token), await isAccepted(second), await isAccepted(other.token)],
      [true, true, true],
    );
    const json = await revokeAll(uid);
    assert.deepEqual([json.uid, json.endedSessions ?? 0, json.tokenId], [uid, 0, undefined]);
    assert.deepEqual(
      [await isAccepted(token), await isAccepted(second), await isAccepted(other.token)],
      [false, false, true],
    );
  });

  it("sessions: the refresh token, and the tokens that it was exchanged for", async () => {
    const { uid, token } = await world.harness.identity();
    const [first, second] = [await createRefreshToken(uid), await createRefreshToken(uid)];
    const { json } = await refresh(first);
    const { refreshToken, token: derived } = json as Record<string, { token: string }>;
    assert.equal(await isAccepted(String(derived?.token)), true);
    const revocation = await revokeAll(uid, token);
    assert.equal(revocation.endedSessions, 2);
    assert.equal(await isAccepted(String(derived?.token)), false);
    for (const bearer of [first, second, String(refreshToken?.token)])
      assert.equal((await refresh(bearer)).status, 401);
  });

  it("tokens that were exchanged, and the other issuer's token that they were exchanged for", async () => {
    const uid = await world.workload("leaky", { role: "viewer" });
    const upstream = world.token({ sub: "leaky" });
    const exchanged = await world.exchangeToken({ identity: uid }, upstream);
    await revokeAll(uid);
    assert.equal(await isAccepted(exchanged), false);
    const again = await world.exchange({ identity: uid }, upstream);
    assert.equal(again.status, 403, again.text);
    assert.match(again.text, /revoked after this one was issued/);
    assert.equal((await askToken(world.url, { user: uid, password: upstream })).status, 401);
    // The workload goes on with a new one.
    pass(1_000);
    assert.equal(await isAccepted(await world.exchangeToken({ identity: uid }, world.token({ sub: "leaky" }))), true);
  });

  it("pull tokens, at /token and at the exchange", async () => {
    const { uid, sign } = await makePullTokens();
    const leaked = sign();
    const timeless = sign({ iat: undefined });
    const request = (password: string) => askToken(world.url, { user: uid, password });
    assert.deepEqual([(await request(leaked)).status, (await request(timeless)).status], [200, 200]);
    await revokeAll(uid);
    assert.deepEqual([(await request(leaked)).status, (await request(timeless)).status], [401, 401]);
    assert.equal((await world.exchange({ identity: uid }, sign({ iat: Math.floor(nowMs() / 1000) - 5 }))).status, 401);
    pass(1_000);
    assert.equal((await request(sign())).status, 200, "who has the key signs another");
  });

  it("API tokens as passwords of the registry", async () => {
    const { uid, token } = await world.harness.identity({}, world.root);
    const request = () => askToken(world.url, { user: "_token", password: token });
    assert.equal((await request()).status, 200);
    await revokeAll(uid);
    assert.equal((await request()).status, 401);
  });

  it("ID tokens of logins, and ID tokens of a login provider", async () => {
    const { uid, token } = await world.person("leaver");
    const login = { identityUid: uid, atMs: nowMs(), revokeTimeMs: 0 };
    const idToken = await makeIdToken(world.harness, world.url, login, nowMs());
    const upstream = world.idToken({ sub: "leaver" });
    assert.equal((await world.exchange({}, upstream)).status, 200);
    await revokeAll(uid, token);
    assert.equal((await world.exchange({}, idToken)).status, 401);
    assert.equal((await world.exchange({}, upstream)).status, 403);
    pass(1_000);
    assert.equal((await world.exchange({}, world.idToken({ sub: "leaver" }))).status, 200);
  });

  it("ID tokens of a login provider at registrations, with an invite as well", async () => {
    const { uid, token } = await world.person("returning");
    const { code } = await invite(world);
    const leaked = world.idToken({ sub: "returning" });
    assert.equal((await register(world, leaked, {})).status, 200, "the control");
    await revokeAll(uid, token);
    for (const json of [{}, { code }]) {
      const { status, text } = await register(world, leaked, json);
      assert.equal(status, 403, text);
      assert.match(text, /revoked after this one was issued/);
    }
    assert.equal(
      await world.write((tx) => tx.table(roleBindingKind).findSame(world.root, uid, builtinRoleUid("viewer"))),
      undefined,
    );
    // People who are not registered have revoked nothing.
    assert.equal(
      (await register(world, world.idToken({ sub: "newcomer", iat: Math.floor(nowMs() / 1000) - 5 }), { code })).status,
      200,
    );
    pass(1_000);
    assert.equal((await register(world, world.idToken({ sub: "returning" }), { code })).status, 200);
  });

  it("the caller's own, with the call that revokes them", async () => {
    const { uid, token } = await world.harness.identity();
    await revokeAll(uid, token);
    assert.equal((await revoke(uid, token)).status, 401);
  });

  it("what is open: a stream of events ends with the next event", async () => {
    const { uid, token } = await world.harness.identity({}, world.root);
    await world.harness.bind(uid, "owner", world.root);
    const response = await fetch(`${world.url}/audit/v1/events:tail?scope=${world.root}`, {
      headers: { authorization: `Bearer ${token}` },
    });
    const body = Readable.fromWeb(response.body as Parameters<typeof Readable.fromWeb>[0]);
    body.on("error", () => {});
    const lines = createInterface({ input: body })[Symbol.asyncIterator]();
    assert.equal((await lines.next()).done, false);
    // The revocation itself is an event.
    await revokeAll(uid);
    const ended = async () => {
      for (;;) {
        const { value, done } = await lines.next();
        if (done) return undefined;
        const { error } = JSON.parse(value || "{}") as { error?: { code: number } };
        if (error !== undefined) return error.code;
      }
    };
    assert.equal(await ended(), 16);
  });

  it("nothing that is issued after it, in the same second and in the same millisecond", async () => {
    const { uid } = await world.harness.identity({}, world.root);
    const atMs = 1_000 * Math.ceil(Date.now() / 1_000);
    const issue = async (at: number) =>
      issuer().sign(await world.write((tx) => issuer().issue(tx, uid, { audience: world.url }, at)));
    const login = (at: number) =>
      world.write((tx) => issuer().createRefreshToken(tx, uid, { audience: world.url }, at));
    const [before, loginBefore] = [(await issue(atMs)).token, await login(atMs)];
    await world.write((tx) => revokeOnHost(tx, uid, { ids: randomIds, nowMs: atMs }));
    const [same, later] = [(await issue(atMs)).token, (await issue(atMs + 10)).token];
    const loginAfter = await login(atMs);
    assert.deepEqual([await isAccepted(before), await isAccepted(same), await isAccepted(later)], [false, true, true]);
    assert.deepEqual([(await refresh(loginBefore)).status, (await refresh(loginAfter)).status], [401, 200]);
    // A second revocation within the same millisecond refuses those as well.
    await world.write((tx) => revokeOnHost(tx, uid, { ids: randomIds, nowMs: atMs }));
    assert.deepEqual([await isAccepted(same), await isAccepted(later)], [false, false]);
    assert.equal(await isAccepted((await issue(atMs)).token), true);
  });

  it("nothing of a person who was deleted and registers again, but the tokens from before", async () => {
    const { uid, token } = await world.person("returner");
    const row = await world.write((tx) => tx.table(identityKind).find(uid));
    await revokeAll(uid, token);
    const between = await world.harness.token(uid);
    await world.write(async (tx) => {
      await tx.table(identityKind).delete(uid);
      const notBefore = Math.floor(nowMs() / 1000) + 1;
      if (row) await tx.table(identityKind).insert({ ...row, notBefore, revokeTimeMs: 0 });
    });
    assert.deepEqual([await isAccepted(token), await isAccepted(between)], [false, false]);
    pass(1_000);
    assert.equal(await isAccepted(await world.harness.token(uid)), true);
  });
});

describe("a revocation of one token", () => {
  it("refuses it alone, with the cache of verified tokens full of it", async () => {
    const { uid, token } = await world.harness.identity({}, world.root);
    const other = await world.harness.token(uid);
    const session = await createRefreshToken(uid);
    for (let i = 0; i < 3; i++) assert.equal(await isAccepted(token), true);
    const tokenId = tokenIdOf(token);
    const { status, json } = await revoke(uid, world.owner.token, { tokenId });
    assert.deepEqual([status, json], [200, { uid, tokenId, endedSessions: 0 }]);
    assert.deepEqual([await isAccepted(token), await isAccepted(other)], [false, true]);
    assert.equal((await askToken(world.url, { user: "_token", password: token })).status, 401);
    assert.equal((await askToken(world.url, { user: "_token", password: other })).status, 200);
    assert.equal((await refresh(session)).status, 200);
  });

  it("is refused in every way to authorize a call", async () => {
    const { uid, token } = await world.harness.identity({}, world.root);
    await world.harness.bind(uid, "owner", world.root);
    const paths = [
      `/iam/v2beta1/groups/${world.root}`,
      "/iam/v2beta1/groups",
      "/iam/v1/groups",
      "/sessions/v1/sessions",
    ];
    const statuses = () =>
      Promise.all(paths.map(async (path) => (await ask(world.url, path, { bearer: token })).status));
    assert.deepEqual(await statuses(), [200, 200, 200, 200]);
    const write = () =>
      ask(world.url, `/iam/v2beta1/groups/${world.root}`, { method: "POST", bearer: token, json: { name: "one" } });
    assert.equal((await write()).status, 200);
    assert.equal((await revoke(uid, token, { tokenId: tokenIdOf(token) })).status, 200);
    assert.deepEqual(await statuses(), [401, 401, 401, 401]);
    assert.equal((await write()).status, 401);
  });

  it("takes the id from the audit log", async () => {
    const { uid, token } = await world.harness.identity({}, world.root);
    await world.harness.bind(uid, "owner", world.root);
    const json = { name: "made with a leaked token" };
    const made = await ask(world.url, `/iam/v2beta1/groups/${world.root}`, { method: "POST", bearer: token, json });
    const query = queryOf({ scope: world.root, subject: String(made.json.uid) });
    const { json: log } = await ask(world.url, `/audit/v1/events?${query}`, { bearer: world.owner.token });
    const [{ actorUid = "", tokenId = "" } = {}] = log.events as Record<string, string>[];
    assert.deepEqual([actorUid, tokenId], [uid, tokenIdOf(token)]);
    assert.equal((await revoke(actorUid, world.owner.token, { tokenId })).status, 200);
    assert.equal(await isAccepted(token), false);
  });

  it("of another identity leaves a token with the same id alone", async () => {
    const victim = await world.harness.identity({}, world.foreign);
    const own = await world.harness.identity({}, world.root);
    assert.equal((await revoke(own.uid, world.owner.token, { tokenId: tokenIdOf(victim.token) })).status, 200);
    assert.equal(await isAccepted(victim.token), true);
  });

  it("is accepted for an unknown id, and a second time, which leaves no second row", async () => {
    const { uid } = await world.harness.identity({}, world.root);
    const body = { tokenId: randomIds.newId() };
    const first = await revoke(uid, world.owner.token, body);
    const rows = await newest(1);
    const again = await revoke(uid, world.owner.token, body);
    assert.deepEqual([first.status, again.status], [200, 200]);
    assert.deepEqual(again.json, first.json);
    assert.deepEqual(await newest(1), rows);
  });

  it("is for ids of tokens: neither empty, nor a token", async () => {
    const { uid, token } = await world.harness.identity({}, world.root);
    for (const tokenId of ["", " ", token, "x".repeat(129), "a b"]) {
      const { status, text } = await revoke(uid, world.owner.token, { tokenId });
      assert.equal(status, 400, text);
    }
    assert.equal(await isAccepted(token), true);
  });

  it("is kept for as long as the token is valid, and then deleted", async () => {
    const { uid, token } = await world.harness.identity({}, world.root);
    await revoke(uid, world.owner.token, { tokenId: tokenIdOf(token) });
    const { store } = world.harness.app.installation;
    const sweep = (ms: number) => deleteExpired(store, nowMs() + ms, () => false);
    const isKept = () => world.write((tx) => tx.revokedTokens.isRevoked(uid, tokenIdOf(token)));
    const lifeMs = MAX_TOKEN_LIFE_S * 1000;
    await sweep(lifeMs + 60_000);
    assert.equal(await isKept(), true);
    await sweep(lifeMs + 400_000);
    assert.equal(await isKept(), false);
    // Another identity with the same id keeps its own.
    const other = await world.harness.identity({}, world.root);
    const row = { tokenId: tokenIdOf(token), expireTimeMs: nowMs() - 1 };
    await world.write(async (tx) => {
      await tx.revokedTokens.insert({ ...row, identityUid: other.uid });
      await tx.revokedTokens.insert({ ...row, identityUid: uid, expireTimeMs: nowMs() + lifeMs });
    });
    await sweep(0);
    assert.deepEqual([await isKept(), await isAccepted(token)], [true, false]);
  });

  it("is limited for each identity, and a revocation of all is not", async () => {
    const { uid } = await world.harness.identity({}, world.root);
    const revokeNext = () => revoke(uid, world.owner.token, { tokenId: randomIds.newId() });
    await world.write(async (tx) => {
      for (let i = 1; i < MAX_REVOKED_TOKENS; i++)
        await tx.revokedTokens.insert({ identityUid: uid, tokenId: String(i), expireTimeMs: nowMs() + 60_000 });
    });
    assert.equal((await revokeNext()).status, 200);
    const { status, text } = await revokeNext();
    assert.equal(status, 400);
    assert.match(text, /TOO_MANY_REVOKED_TOKENS/);
    await revokeAll(uid);
    // They expire.
    pass(61_000);
    assert.equal((await revokeNext()).status, 200);
  });
});

describe("who may revoke tokens", () => {
  it("is who may update the identity, and people of themselves", async () => {
    const { uid, token } = await world.harness.identity({}, world.root);
    const caller = async (role: string, group = world.root): Promise<Somebody> => {
      const made = await world.harness.identity({}, group);
      await world.harness.bind(made.uid, role, group);
      return made;
    };
    const [viewer, foreign] = [await caller("viewer"), await caller("owner", world.foreign)];
    const denied = permissionDenied(`identity.update at ${uid}`);
    for (const who of [viewer, foreign, { uid, token }]) {
      for (const body of [{}, { tokenId: tokenIdOf(token) }]) {
        const { outcome } = await revoke(uid, who.token, body);
        assert.deepEqual(outcome, denied);
      }
    }
    assert.equal(
      (await ask(world.url, `/tokens/v1/identities/${uid}:revokeTokens`, { method: "POST", json: {} })).status,
      401,
    );
    assert.equal(await isAccepted(token), true);
    const person = await world.harness.identity();
    assert.equal((await revoke(person.uid, person.token)).status, 200);
  });

  it("does not include owners of an organisation where a person has a binding, whoever the person is", async () => {
    const person = await world.harness.identity();
    await world.harness.bind(person.uid, "viewer", world.root);
    const unknown = "f".repeat(40);
    for (const uid of [person.uid, unknown, world.foreignOwner.uid]) {
      assert.deepEqual((await revoke(uid, world.owner.token)).outcome, permissionDenied(`identity.update at ${uid}`));
    }
    assert.deepEqual([await isAccepted(person.token), await isAccepted(world.foreignOwner.token)], [true, true]);
  });

  it("does not include a token that is limited, of the person as well", async () => {
    const { uid } = await world.harness.identity();
    await world.harness.bind(uid, "viewer", world.root);
    const limit = { scope: [world.root] };
    const limited = await issuer().sign(
      await world.write((tx) => issuer().issue(tx, uid, { audience: world.url, limit }, nowMs())),
    );
    assert.equal((await revoke(uid, limited.token)).status, 403);
  });

  it("includes the last owner, who keeps all rights", async () => {
    const { group, identity, token } = await world.harness.organisation("alone.example");
    await revokeAll(identity, token);
    assert.equal(await isAccepted(token), false);
    const again = await world.harness.token(identity);
    assert.equal((await ask(world.url, `/iam/v2beta1/groups/${group}`, { bearer: again })).status, 200);
  });

  it("is NOT_FOUND of an identity that does not exist, to those who may list its group", async () => {
    const uid = randomIds.newUid(world.root);
    assert.equal((await revoke(uid, world.owner.token)).status, 404);
    assert.equal((await revoke(uid, world.foreignOwner.token)).status, 403);
  });
});

describe("the tokens of a person of the organisation's own provider", () => {
  let provider: ProviderKit;
  let foreign: ProviderKit;
  before(async () => {
    provider = await makeProvider(world);
    foreign = await makeProvider(world, { group: world.foreign, owner: world.foreignOwner, client: "theirs" });
  });

  it("are revoked by the organisation, all or one", async () => {
    const uid = await provider.signIn("employee");
    const [one, other] = [await world.harness.token(uid), await world.harness.token(uid)];
    const single = await revokePerson(provider.uid, world.owner.token, { uid, tokenId: tokenIdOf(one) });
    assert.equal(single.status, 200, single.text);
    assert.deepEqual([await isAccepted(one), await isAccepted(other)], [false, true]);
    const all = await revokePerson(provider.uid, world.owner.token, { uid });
    assert.equal(all.status, 200, all.text);
    assert.equal(await isAccepted(other), false);
    const upstream = provider.token({ sub: "employee", iat: Math.floor(nowMs() / 1000) - 5 });
    assert.equal((await world.exchange({ identityProvider: provider.uid }, upstream)).status, 403);
    pass(1_000);
    const fresh = provider.token({ sub: "employee" });
    assert.equal((await world.exchange({ identityProvider: provider.uid }, fresh)).status, 200);
  });

  it("are in the audit log of the organisation", async () => {
    const uid = await provider.signIn("audited");
    await revokePerson(provider.uid, world.owner.token, { uid });
    const [row] = await newest(1);
    assert.deepEqual(
      [row?.type, row?.rootUid, row?.subjectUid, row?.actorUid],
      ["dev.arbor.tokens.revoked.v1", world.root, provider.uid, world.owner.uid],
    );
    const query = queryOf({ scope: world.root, type: "dev.arbor.tokens.revoked.v1" });
    const { text } = await ask(world.url, `/audit/v1/events?${query}`, { bearer: world.owner.token });
    assert.ok(text.includes(uid), text);
  });

  it("are not those of others: people of another provider, of none, and unknown ones are not found", async () => {
    const person = await world.person("elsewhere");
    await world.harness.bind(person.uid, "viewer", world.root);
    const theirs = await foreign.signIn("employee");
    for (const uid of [person.uid, theirs, "e".repeat(40), world.owner.uid]) {
      const { status } = await revokePerson(provider.uid, world.owner.token, { uid });
      assert.equal(status, 404, uid);
    }
    assert.equal(await isAccepted(person.token), true);
    assert.equal(await isAccepted(await world.harness.token(theirs)), true);
    const uid = await provider.signIn("kept");
    const token = await world.harness.token(uid);
    for (const who of [world.foreignOwner.token, token]) {
      assert.equal((await revokePerson(provider.uid, who, { uid })).status, 403);
    }
    assert.equal(await isAccepted(token), true);
  });
});

it("an invite that is made after a revocation is valid, also in the same second", async () => {
  const maker = await world.harness.identity({}, world.root);
  await world.harness.bind(maker.uid, "owner", world.root);
  const before = await invite(world, { by: maker });
  await revokeAll(maker.uid);
  const after = await invite(world, { by: { token: await world.harness.token(maker.uid) } });
  const statusOf = async (code: string, sub: string) =>
    (await register(world, world.idToken({ sub }), { code })).status;
  assert.deepEqual([await statusOf(before.code, "guest 1"), await statusOf(after.code, "guest 2")], [403, 200]);
});

describe("what a revocation leaves", () => {
  it("is a row that says what was revoked, and one that subscriptions get as an update", async () => {
    const { uid, token } = await world.harness.identity({ name: "ci" }, world.root);
    const tokenId = tokenIdOf(token);
    await revoke(uid, world.owner.token, { tokenId });
    await revokeAll(uid);
    const rows = await newest(4);
    const bodies = await world.write((tx) => tx.audit.readBodies(rows as never));
    const shown = rows.map((row) => [row.type, row.subjectUid, row.actorUid, row.method]);
    const method = "/arbor.tokens.v1.TokensService/RevokeTokens";
    const types = ["dev.arbor.tokens.revoked.v1", "dev.chainguard.api.iam.identity.updated.v1"];
    assert.deepEqual(
      shown,
      [...types, ...types].map((type) => [type, uid, world.owner.uid, method]),
    );
    const parsed = (rows as unknown as { id: number }[]).map(({ id }) => JSON.parse(bodies.get(id) ?? "{}"));
    const [all, , one, update] = parsed;
    assert.deepEqual([one.type, one.after], ["arbor.tokens.v1.Revocation", { uid, tokenId }]);
    assert.deepEqual([all.after.uid, all.after.tokenId], [uid, undefined]);
    assert.equal(update.type, "chainguard.platform.iam.v2.Identity");
    assert.equal(update.after.name, "ci");
    for (const row of rows) assert.notEqual(row.tokenId, "");
  });

  it("says from when on tokens of other issuers are exchanged", async () => {
    const { uid } = await world.harness.identity({}, world.root);
    const beforeMs = nowMs();
    const { notBefore } = await revokeAll(uid);
    const atMs = Date.parse(String(notBefore));
    assert.ok(atMs > beforeMs && atMs <= nowMs() + 1_000 && atMs % 1_000 === 0, String(notBefore));
  });
});

it("is the same over gRPC", async () => {
  const grpc = rawGrpc(world.url);
  try {
    const { uid, token } = await world.harness.identity({}, world.root);
    const other = await world.harness.token(uid);
    const one = await grpc.call(
      revokeTokens,
      requestOf(revokeTokens, { uid, tokenId: tokenIdOf(token) }),
      world.owner.token,
    );
    assert.equal(one.code, "OK", one.bytes);
    assert.deepEqual([await isAccepted(token), await isAccepted(other)], [false, true]);
    const all = await grpc.call(revokeTokens, requestOf(revokeTokens, { uid }), world.owner.token);
    assert.equal(all.code, "OK", all.bytes);
    const refused = await grpc.call(revokeTokens, requestOf(revokeTokens, { uid }), other);
    assert.equal(refused.code, "UNAUTHENTICATED", refused.bytes);
    const person = requestOf(revokePersonTokens, { identityProvider: randomIds.newUid(world.root), uid });
    assert.equal((await grpc.call(revokePersonTokens, person, world.owner.token)).code, "NOT_FOUND");
  } finally {
    grpc.close();
  }
});
