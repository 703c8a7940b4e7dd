// ID tokens of device logins: what clients verify, and the one exchange of each.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, before, beforeEach, describe, test } from "node:test";
import { createRemoteJWKSet, decodeProtectedHeader, type JWTPayload, jwtVerify, SignJWT } from "jose";
import { revokeTokens } from "../../../src/iam/operator/operate.js";
import { personUid, randomIds } from "../../../src/kernel/ids.js";
import { groupKind } from "../../../src/store/iam/groups.js";
import { identityKind } from "../../../src/store/iam/identities.js";
import { type Harness, startHarness } from "../../support/harness.js";
import { ask } from "../sts/ask.js";
import { idTokenNodesSuite } from "./id-token-suite.js";
import { alice, claimsOf } from "./login-kit.js";
import { deviceLogin, discover, exchange, type LoginWorld, makeIdToken, startLoginWorld } from "./login-world.js";

const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const TYPE = "urn:ietf:params:oauth:token-type:";

let world: LoginWorld;
let harness: Harness;
let url = "";

before(async () => {
  world = await startLoginWorld();
  harness = world.harness;
  url = harness.url;
});

beforeEach(() => {
  world.provider.account = alice;
  harness.skewMs = 0;
});

after(() => world?.stop());

function nowMs(): number {
  return Date.now() + harness.skewMs;
}

/** An ID token of a new person, or of this one. */
async function idTokenOf(login: Parameters<typeof makeIdToken>[2]): Promise<string> {
  return makeIdToken(harness, url, login, nowMs());
}

test("rights by mappings end an hour after the login, whenever its ID token is exchanged", async () => {
  const { uid } = await harness.identity();
  const atMs = nowMs() - 540_000;
  const lifeOf = async (mappings: readonly string[]) => {
    const idToken = await idTokenOf({ identityUid: uid, atMs, grant: { audience: url, mappings, mappedMs: atMs } });
    const { json } = await exchange(url, idToken);
    const { iat, exp } = claimsOf(String(json.token));
    return Number(exp) - Number(iat);
  };
  const mapped = await lifeOf([randomIds.newUid(randomIds.newUid())]);
  assert.ok(mapped >= 3_600 - 545 && mapped <= 3_600 - 540, `${mapped} s`);
  assert.equal(await lifeOf([]), 3_600);
});

test("a client verifies the ID token by discovery, and exchanges it for the person who approved", async () => {
  const metadata = await discover(url);
  const { id_token, access_token, refresh_token } = await deviceLogin(url);
  const { payload, protectedHeader } = await jwtVerify(
    String(id_token),
    createRemoteJWKSet(new URL(metadata.jwks_uri)),
    {
      issuer: metadata.issuer,
      audience: "auth0",
      algorithms: metadata.id_token_signing_alg_values_supported as string[],
    },
  );
  const person = personUid(world.provider.issuer, "alice");
  const { iat, exp, jti, ...rest } = payload;
  assert.deepEqual(rest, { iss: url, sub: person, aud: "auth0", email: "alice@example.org", email_verified: true });
  assert.equal(Number(exp) - Number(iat), 600);
  assert.match(String(jti), /^[A-Za-z0-9_-]{43}$/);
  assert.equal(protectedHeader.typ, "JWT");
  assert.equal(decodeProtectedHeader(String(access_token)).typ, "at+jwt");
  assert.equal(refresh_token, undefined);

  const { status, json } = await exchange(url, id_token);
  assert.deepEqual([status, Object.keys(json).sort()], [200, ["expiry", "refreshToken", "token"]]);
  assert.equal(json.refreshToken, "");
  assert.equal(claimsOf(json.token).sub, person);
  const whoAmI = await ask(url, "/auth/v1/ok", { bearer: String(json.token) });
  assert.deepEqual([whoAmI.status, whoAmI.json.subject], [200, person]);

  const again = await exchange(url, id_token);
  assert.deepEqual([again.status, again.json.code], [401, 16]);
});

test("an OAuth client exchanges the ID token at the token endpoint, once", async () => {
  const { id_token } = await deviceLogin(url);
  const form = { grant_type: EXCHANGE, subject_token: String(id_token), subject_token_type: `${TYPE}id_token` };
  const statuses: number[] = [];
  for (let i = 0; i < 2; i++) {
    const response = await fetch(`${url}/oauth/token`, { method: "POST", body: new URLSearchParams(form) });
    statuses.push(response.status);
    const body = (await response.json()) as Record<string, unknown>;
    assert.equal("refresh_token" in body || "id_token" in body, false);
  }
  assert.deepEqual(statuses, [200, 400]);
});

test("the exchange of an ID token has what the device asked for, or less", async () => {
  const { group } = await harness.organisation("devices.example");
  const other = (await harness.organisation("other.example")).group;
  const { id_token } = await deviceLogin(url, { scope: `openid ${group}`, cap: "groups.list" });
  const wider = await exchange(url, id_token, { scopes: other });
  assert.deepEqual([wider.status, wider.json.code], [400, 3]);
  const { json } = await exchange(url, id_token, { cap: ["groups.list", "groups.create"] });
  const requested = await exchange(url, (await deviceLogin(url)).id_token, { scopes: group, cap: "groups.list" });
  assert.deepEqual(claimsOf(json.token).lim, claimsOf(requested.json.token).lim);
  assert.deepEqual((claimsOf(json.token).lim as { scope: unknown }).scope, [group]);
});

test("an ID token is valid for ten minutes", async () => {
  const { uid } = await harness.identity();
  const [early, late] = [await idTokenOf({ identityUid: uid }), await idTokenOf({ identityUid: uid })];
  harness.skewMs = 590_000;
  assert.equal((await exchange(url, early)).status, 200);
  harness.skewMs = 601_000;
  assert.equal((await exchange(url, late)).status, 401);
});

test("a person who was revoked or deleted since the login gets nothing", async () => {
  const { store } = harness.app.installation;
  const [revoked, deleted, other] = [await harness.identity(), await harness.identity(), await harness.identity()];
  const idTokens = [
    await idTokenOf({ identityUid: revoked.uid }),
    await idTokenOf({ identityUid: deleted.uid }),
    await idTokenOf({ identityUid: other.uid }),
  ];
  await store.write((tx) => revokeTokens(tx, revoked.uid, { ids: randomIds, nowMs: nowMs() }));
  await store.write((tx) => tx.table(identityKind).delete(deleted.uid));
  const statuses = await Promise.all(idTokens.map(async (idToken) => (await exchange(url, idToken)).status));
  assert.deepEqual(statuses, [401, 401, 200]);
  // A revocation ends the logins before it, not those after it.
  harness.skewMs = 2_000;
  assert.equal((await exchange(url, await idTokenOf({ identityUid: revoked.uid }))).status, 200);
});

test("a rejected request does not use the ID token up", async () => {
  const { store } = harness.app.installation;
  const { group, identity } = await harness.organisation("tries.example");
  const foreign = await harness.organisation("foreign.example");
  await store.write(async (tx) => {
    for (const one of [group, foreign.group]) await tx.table(groupKind).update(one, { verified: true }, nowMs());
  });
  const { uid } = await harness.identity();
  await harness.bind(uid, "viewer", group);
  const providerUid = randomIds.newUid(group);
  const idToken = await idTokenOf({ identityUid: uid, providerUid });
  const requests: readonly (readonly [Readonly<Record<string, string>>, number])[] = [
    [{ aud: "https://other.example" }, 400],
    [{ scopes: "nothing" }, 400],
    [{ identity }, 401],
    [{ identity: uid }, 401],
    [{ identity_provider: randomIds.newUid(group) }, 401],
  ];
  for (const [parameters, status] of requests) {
    assert.equal((await exchange(url, idToken, parameters)).status, status, JSON.stringify(parameters));
  }
  const [unknown, rejected] = [
    await exchange(url, idToken, { scopes: "unknown.example" }),
    await exchange(url, idToken, { scopes: "foreign.example" }),
  ];
  assert.deepEqual([rejected.status, rejected.json], [400, unknown.json]);
  const right = await exchange(url, idToken, { identity_provider: providerUid, scopes: "tries.example" });
  assert.deepEqual([right.status, claimsOf(right.json.token).lim], [200, { scope: [group] }]);
});

test("an ID token is accepted nowhere but at the exchange", async () => {
  const { uid } = await harness.identity();
  const idToken = await idTokenOf({ identityUid: uid });
  const bearer = { authorization: `Bearer ${idToken}` };
  const json = { ...bearer, "content-type": "application/json" };
  const password = { authorization: `Basic ${Buffer.from(`_token:${idToken}`).toString("base64")}` };
  const requests: readonly (readonly [string, RequestInit])[] = [
    ["/iam/v2beta1/groups", { headers: bearer }],
    ["/auth/v1/ok", { headers: bearer }],
    ["/auth/v1/register", { method: "POST", headers: json, body: JSON.stringify({ code: "" }) }],
    ["/sts/exchange_refresh_token", { method: "POST", headers: bearer }],
    ["/token?service=arbor&scope=repository:a/b:pull", { headers: password }],
  ];
  for (const [path, request] of requests) assert.equal((await fetch(url + path, request)).status, 401, path);
  assert.equal((await exchange(url, idToken)).status, 200);
});

describe("a token that this service did not issue as an ID token", () => {
  let idToken = "";
  let claims: JWTPayload = {};

  before(async () => {
    const { uid } = await harness.identity();
    idToken = await idTokenOf({ identityUid: uid });
    claims = claimsOf(idToken);
  });

  /** Signs with the key of the service. */
  async function signToken(header: object, changed: object): Promise<string> {
    const { key } = harness.app.installation.keys.getSigningKey();
    const { alg, kid = "" } = decodeProtectedHeader(idToken);
    const protectedHeader = { alg: String(alg), kid, typ: "JWT", ...header };
    return new SignJWT({ ...claims, ...changed }).setProtectedHeader(protectedHeader).sign(key);
  }
  const buildUnsigned = (header: object) => {
    const [, payload = ""] = idToken.split(".");
    return `${Buffer.from(JSON.stringify(header)).toString("base64url")}.${payload}`;
  };
  const now = () => Math.floor(nowMs() / 1000);

  const mutations: Readonly<Record<string, () => Promise<string> | string>> = {
    "an API token": async () => (await harness.organisation("api.example")).token,
    "an API token's type": () => signToken({ typ: "at+jwt" }, {}),
    "no type": () => signToken({ typ: undefined }, {}),
    "another type": () => signToken({ typ: "logout+jwt" }, {}),
    "an id of its own": () => signToken({}, { jti: "a".repeat(43) }),
    "no id": () => signToken({}, { jti: undefined }),
    "another spelling of the issuer": () => signToken({}, { iss: `${url}/` }),
    "a time that has passed": () => signToken({}, { iat: now() - 700, exp: now() - 100 }),
    "a time to come": () => signToken({}, { nbf: now() + 100 }),
    "no signature": () => `${buildUnsigned({ alg: "none", typ: "JWT" })}.`,
    "another key": () => signToken({ kid: "other" }, {}),
    "the public key as a secret": () => {
      const { keys } = harness.app.installation;
      const { kid = "" } = decodeProtectedHeader(idToken);
      const secret = keys.findVerifyingKey(kid)?.export({ format: "pem", type: "spki" }) ?? "";
      const input = buildUnsigned({ alg: "HS256", kid, typ: "JWT" });
      return `${input}.${createHmac("sha256", secret).update(input).digest("base64url")}`;
    },
    "a changed signature": () => idToken.replace(/.{8}$/, "AAAAAAAA"),
    "a changed subject": () => {
      const [header = "", , signature = ""] = idToken.split(".");
      const payload = Buffer.from(JSON.stringify({ ...claims, sub: "0".repeat(40) })).toString("base64url");
      return [header, payload, signature].join(".");
    },
  };

  for (const [name, make] of Object.entries(mutations)) {
    test(`with ${name} is rejected`, async () => {
      const response = await exchange(url, await make());
      assert.deepEqual([response.status, response.json.code], [401, 16]);
    });
  }

  test("is no API token with either's type or audience", async () => {
    const api = { lim: undefined, exp: now() + 600, iat: now() };
    const list = async (token: string) => (await ask(url, "/iam/v2beta1/groups", { bearer: token })).status;
    assert.equal(await list(await signToken({ typ: "at+jwt" }, api)), 401);
    assert.equal(await list(await signToken({}, { ...api, aud: url })), 401);
    assert.equal(await list(await signToken({ typ: "at+jwt" }, { ...api, aud: url })), 200, "the control");
  });

  test("does not use up the one it is made from", async () => {
    assert.equal(
      (await exchange(url, await signToken({}, {}))).status,
      200,
      "the control: the same claims, signed again",
    );
    assert.equal((await exchange(url, idToken)).status, 401);
  });
});

test("a restart forgets neither the ID tokens that were used nor the others", async () => {
  const { uid } = await harness.identity();
  const [used, unused] = [await idTokenOf({ identityUid: uid }), await idTokenOf({ identityUid: uid })];
  assert.equal((await exchange(url, used)).status, 200);
  await world.restart();
  harness = world.harness;
  assert.deepEqual([(await exchange(url, used)).status, (await exchange(url, unused)).status], [401, 200]);
  assert.equal((await exchange(url, unused)).status, 401);
});

idTokenNodesSuite("ID tokens on SQLite", async () => [await startHarness()]);
