// Who gets a registry token, and its claims, read by an independent verifier.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { after, before, test } from "node:test";
import { createLocalJWKSet, jwtVerify } from "jose";
import { computeLibtrustFingerprint } from "../../src/issuer/keys/key-generation.js";
import { builtinIdentityUid } from "../../src/kernel/ids.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { claimsOf, type ExchangeWorld, startExchangeWorld } from "../issuer/sts/exchange-world.js";
import { signToken } from "../support/local-issuer.js";
import { askToken, type TokenRequest } from "./token-kit.js";

const KID = /^[A-Z2-7]{4}(?::[A-Z2-7]{4}){11}$/;
const ANONYMOUS = builtinIdentityUid("anonymous");

let world: ExchangeWorld;
let member: { readonly uid: string; readonly token: string };
let workload: string;
let scope: string;

before(async () => {
  world = await startExchangeWorld();
  member = await world.harness.identity({}, world.root);
  await world.harness.bind(member.uid, "registry.pull", world.root);
  workload = await world.workload("ci", { role: "registry.pull" });
  scope = `repository:${world.root}/app:pull,push`;
});
after(() => world.stop());

const requestToken = (request: TokenRequest) =>
  askToken(world.url, { ...request, parameters: [["scope", scope], ...(request.parameters ?? [])] });

test("the token is what a registry takes", async () => {
  const { status, headers, text, token } = await requestToken({ user: "_token", password: member.token });
  assert.equal(status, 200);
  assert.equal(headers.get("cache-control"), "no-store");
  const body = JSON.parse(text) as Record<string, unknown>;
  assert.deepEqual(Object.keys(body), ["token", "access_token", "token_type", "scope", "expires_in", "issued_at"]);
  assert.deepEqual([body.access_token, body.token_type], [token, "Bearer"]);
  assert.equal(body.scope, `repository:${world.root}/app:pull`, "what was granted, not what was requested");
  assert.equal(body.expires_in, 300);
  const { keys } = world.harness.app.installation;
  const trusted = keys.listRegistryKeys().map(({ publicKey }) => {
    return { ...publicKey.export({ format: "jwk" }), kid: computeLibtrustFingerprint(publicKey), alg: "ES256" };
  });
  const { payload, protectedHeader } = await jwtVerify(token, createLocalJWKSet({ keys: trusted as never }), {
    issuer: world.url,
    audience: "arbor",
    subject: member.uid,
    typ: "JWT",
    algorithms: ["ES256"],
    maxTokenAge: 300,
    requiredClaims: ["exp", "nbf", "iat", "jti", "access"],
  });
  assert.deepEqual(Object.keys(protectedHeader).sort(), ["alg", "kid", "typ"]);
  assert.match(String(protectedHeader.kid), KID);
  assert.equal(payload.aud, "arbor");
  assert.ok([payload.exp, payload.nbf, payload.iat].every(Number.isInteger));
  assert.equal(Number(payload.exp) - Number(payload.iat), 300);
  assert.equal(Date.parse(String(body.issued_at)), Number(payload.iat) * 1000);
  assert.deepEqual(payload.access, [{ type: "repository", name: `${world.root}/app`, actions: ["pull"] }]);
  // The keys of API tokens, which are published, verify none of it.
  const published = createLocalJWKSet({ keys: [...keys.listPublicJwks()] as never });
  await assert.rejects(jwtVerify(token, published));
});

const accepted: readonly (readonly [string, () => TokenRequest, () => string])[] = [
  ["an API token of _token", () => ({ user: "_token", password: member.token }), () => member.uid],
  ["an API token of user", () => ({ user: "user", password: member.token }), () => member.uid],
  ["an API token of its identity", () => ({ user: member.uid, password: member.token }), () => member.uid],
  ["an OIDC token", () => ({ user: workload, password: world.token({ sub: "ci" }) }), () => workload],
  ["nothing", () => ({}), () => ANONYMOUS],
  [
    "a form with a password",
    () => ({ form: { grant_type: "password", username: "_token", password: member.token, client_id: "docker" } }),
    () => member.uid,
  ],
  [
    "a form with an identity token",
    () => ({ form: { grant_type: "refresh_token", refresh_token: member.token, client_id: "docker" } }),
    () => member.uid,
  ],
  [
    "the account of somebody else, which decides nothing",
    () => ({ user: "_token", password: member.token, parameters: [["account", world.owner.uid]] }),
    () => member.uid,
  ],
  [
    "empty parameters, which count as absent",
    () => ({
      form: { grant_type: "password", username: "_token", password: member.token, client_id: "" },
      parameters: [
        ["service", ""],
        ["service", "arbor"],
        ["scope", ""],
        ["access_type", ""],
      ],
    }),
    () => member.uid,
  ],
  [
    "a wish for a refresh token, which is not given",
    () => ({ user: "_token", password: member.token, parameters: [["offline_token", "true"]] }),
    () => member.uid,
  ],
];

for (const [name, request, subject] of accepted) {
  test(`accepts ${name}`, async () => {
    const { status, text, token } = await requestToken(request());
    assert.equal(status, 200, text);
    const claims = claimsOf(token);
    assert.equal(claims.sub, subject());
    assert.equal((claims.access as unknown[]).length, subject() === ANONYMOUS ? 0 : 1);
    assert.ok(!text.includes("refresh_token"));
  });
}

const stranger = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
const refused: readonly (readonly [string, () => TokenRequest])[] = [
  ["a token that is none", () => ({ user: "_token", password: "wrong" })],
  ["an unknown user", () => ({ user: "nobody", password: "wrong" })],
  ["no password", () => ({ user: "_token", password: "" })],
  ["a colon alone", () => ({ user: "", password: "" })],
  ["another scheme", () => ({ authorization: `Bearer ${member.token}` })],
  ["no base64", () => ({ authorization: "Basic %%%" })],
  ["a forged API token", () => ({ user: "_token", password: signToken({}, claimsOf(member.token), stranger) })],
  ["an OIDC token without its identity", () => ({ user: "_token", password: world.token({ sub: "ci" }) })],
  ["an OIDC token of somebody else", () => ({ user: workload, password: world.token({ sub: "x" }) })],
  ["an OIDC token for somebody else", () => ({ user: workload, password: world.token({ sub: "ci", aud: "x" }) })],
  ["an identity that is not there", () => ({ user: `${world.root}/${"0".repeat(16)}`, password: "a.b.c" })],
  ["an identity without a relationship", () => ({ user: member.uid, password: world.token({ sub: "ci" }) })],
  ["everybody by name", () => ({ user: ANONYMOUS, password: world.token({ sub: "ci" }) })],
  ["a wrong form", () => ({ form: { grant_type: "refresh_token", refresh_token: "wrong" } })],
  ["a form without a password", () => ({ form: { grant_type: "password", username: "_token" } })],
];

test("rejects every wrong credential with the same text", async () => {
  const seen = new Set<string>();
  for (const [name, request] of refused) {
    const { status, headers, text } = await requestToken(request());
    assert.equal(status, 401, name);
    assert.equal(headers.get("www-authenticate"), `Basic realm="${world.url}/token", charset="UTF-8"`);
    seen.add(JSON.stringify([text, ...[...headers].filter(([field]) => !/date|request-id/.test(field))]));
  }
  assert.equal(seen.size, 1, [...seen].join("\n"));
});

test("rejects an identity that was revoked or deleted", async () => {
  const gone = await world.harness.identity({}, world.root);
  const revoked = await world.harness.identity({}, world.root);
  await world.write(async (tx) => {
    await tx.table(identityKind).delete(gone.uid);
    await tx.table(identityKind).update(revoked.uid, { notBefore: Math.floor(Date.now() / 1000) + 5 }, Date.now());
  });
  for (const { token } of [gone, revoked]) {
    assert.equal((await requestToken({ user: "_token", password: token })).status, 401);
  }
});

test("a valid API token never waits for wrong ones of its address", async () => {
  const user = "_token";
  const forged = signToken({}, claimsOf(member.token), stranger);
  const guess = (i: number) => requestToken({ user, password: i % 2 === 0 ? "wrong" : forged });
  for (let i = 0; i < 60; i++) assert.equal((await guess(i)).status, 401);
  const flood = Array.from({ length: 120 }, (_, i) => guess(i));
  const statuses: number[] = [];
  for (let i = 0; i < 10; i++) statuses.push((await requestToken({ user, password: member.token })).status);
  assert.deepEqual(statuses, Array(10).fill(200));
  const seen = new Set((await Promise.all(flood)).map(({ status }) => status));
  assert.ok(seen.has(429), "the control: the queue of the others was full");
});

test("wrong passwords slow down who guesses, and the right one passes all the same", async () => {
  const user = "guesser";
  const guess = () => requestToken({ user, password: "wrong" });
  for (let i = 0; i < 20; i++) assert.equal((await guess()).status, 401);
  const start = performance.now();
  for (let i = 0; i < 10; i++) assert.equal((await guess()).status, 401);
  assert.ok(performance.now() - start > 300, "twenty a second at most");
  const flood = Array.from({ length: 60 }, guess);
  const right = await requestToken({ user: "user", password: member.token });
  assert.equal(right.status, 200, "another name is not held up");
  const responses = await Promise.all(flood);
  const statuses = new Set(responses.map(({ status }) => status));
  assert.deepEqual([...statuses].sort(), [401, 429], "a full queue refuses");
  const full = responses.find(({ status }) => status === 429);
  assert.ok(Number(full?.headers.get("retry-after")) > 0);
  assert.equal((await requestToken({ user, password: member.token })).status, 200, "nor is the right password");
});
