// The validation of provider responses. The provider in this test answers as configured.
import assert from "node:assert/strict";
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, beforeEach, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { SignJWT, UnsecuredJWT } from "jose";
import { createConfigurationCache, createOidcClient } from "../../../src/issuer/oauth/oidc.js";
import type { Provider } from "../../../src/issuer/oauth/provider-selection.js";
import { createGuardedFetch } from "../../../src/outbound/guarded-fetch.js";

const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const other = generateKeyPairSync("ec", { namedCurve: "P-256" });
const proofs = { state: "s".repeat(43), nonce: "n".repeat(43), verifier: "v".repeat(43) };

let issuer = "";
let metadata: Record<string, unknown> = {};
let idToken: unknown;
let problems: string[] = [];
const server = createServer((req, res) => {
  const responses: Record<string, unknown> = {
    "/.well-known/openid-configuration": metadata,
    "/token": { access_token: "the access token", token_type: "Bearer", id_token: idToken },
    "/jwks": { keys: [{ ...publicKey.export({ format: "jwk" }), kid: "a", alg: "ES256" }] },
  };
  res.setHeader("content-type", "application/json").end(JSON.stringify(responses[req.url ?? ""]));
});

before(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

beforeEach(() => {
  problems = [];
  metadata = {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    jwks_uri: `${issuer}/jwks`,
    id_token_signing_alg_values_supported: ["ES256"],
  };
});

after(() => server.close());

function oidc(trustedOrigins = [issuer]) {
  const fetch = createGuardedFetch({ trustedOrigins });
  return createOidcClient({ fetch, onProblem: (problem) => problems.push(problem) });
}

function provider(values: Partial<Provider> = {}): Provider {
  const callbackPath = "/oauth/callback";
  return {
    ...{ id: "test", title: "Test", issuer, clientId: "arbor", clientSecret: "s", scopes: ["openid"], callbackPath },
    secretMethods: ["client_secret_basic"],
    ...values,
  };
}

async function signToken(claims: Readonly<Record<string, unknown>>, key: KeyObject = privateKey, header?: object) {
  const now = Math.floor(Date.now() / 1000);
  const all = { iss: issuer, sub: "alice", aud: "arbor", nonce: proofs.nonce, iat: now, exp: now + 60, ...claims };
  return new SignJWT(all).setProtectedHeader({ alg: "ES256", kid: "a", ...header }).sign(key);
}

function finish(query = "code=c", from = provider()) {
  return oidc().exchangeCode(
    from,
    new URL(`http://arbor.example/oauth/callback?state=${proofs.state}&${query}`),
    proofs,
  );
}

test("a valid ID token identifies the person", async () => {
  idToken = await signToken({ email: "alice@example.org" });
  const verified = await finish();
  assert.ok("subject" in verified);
  assert.equal(verified.subject, "alice");
  assert.equal(verified.idToken, idToken);
  assert.equal(verified.claims.email, "alice@example.org");
});

const now = Math.floor(Date.now() / 1000);
const tokens: Readonly<Record<string, () => Promise<unknown>>> = {
  "of another key": () => signToken({}, other.privateKey),
  "of a key that is not known": () => signToken({}, privateKey, { kid: "b" }),
  "that is not signed": async () =>
    new UnsecuredJWT({ nonce: proofs.nonce, exp: now + 60, iat: now })
      .setIssuer(issuer)
      .setSubject("alice")
      .setAudience("arbor")
      .encode(),
  "of another issuer": () => signToken({ iss: "http://127.0.0.1:1" }),
  "of another spelling of the issuer": () => signToken({ iss: `${issuer}/` }),
  "for another client": () => signToken({ aud: "somebody" }),
  "for several clients": () => signToken({ aud: ["arbor", "somebody"], azp: "somebody" }),
  "of another login": () => signToken({ nonce: "m".repeat(43) }),
  "without a nonce": () => signToken({ nonce: undefined }),
  "that has expired": () => signToken({ exp: now - 120 }),
  "that is not valid yet": () => signToken({ nbf: now + 600 }),
  // A little longer than 24 KiB.
  "that is too long": () => signToken({ padding: "x".repeat(18_200) }),
  "without a subject": () => signToken({ sub: undefined }),
  "that is none": async () => "not a token",
  "that is missing": async () => undefined,
};

for (const [name, make] of Object.entries(tokens)) {
  test(`a token ${name} is rejected`, async () => {
    idToken = await make();
    const result = await finish();
    assert.ok("error" in result, "it was accepted");
    assert.equal(result.error, "server_error");
    assert.equal(problems.length, 1);
    assert.doesNotMatch(problems.join(), /eyJ|access token/);
  });
}

const responses: readonly (readonly [string, string, string])[] = [
  ["another state", "code=c&state=other", "server_error"],
  ["another issuer in the answer", "code=c&iss=http%3A%2F%2F127.0.0.1%3A1", "server_error"],
  ["access_denied", "error=access_denied", "access_denied"],
  ["another error", "error=server_error", "server_error"],
  ["no code", "", "server_error"],
];

for (const [name, query, error] of responses) {
  test(`${name} ends with ${error}`, async () => {
    idToken = await signToken({});
    const result = await finish(query);
    assert.equal("error" in result && result.error, error);
  });
}

const documents: Readonly<Record<string, () => object>> = {
  "another issuer": () => ({ issuer: "http://127.0.0.1:1" }),
  "another spelling of the issuer": () => ({ issuer: `${issuer}/` }),
  "no authorization endpoint": () => ({ authorization_endpoint: undefined }),
  "an authorization endpoint that is a script": () => ({ authorization_endpoint: "javascript:alert(1)" }),
};

for (const [name, change] of Object.entries(documents)) {
  test(`metadata with ${name} are rejected`, async () => {
    metadata = { ...metadata, ...change() };
    const result = await oidc().authorizationUrl(provider(), "http://arbor.example/oauth/callback", proofs);
    assert.ok(typeof result === "object");
    assert.equal(result.error, "server_error");
  });
}

test("the authorization request carries state, nonce and code challenge", async () => {
  const url = await oidc().authorizationUrl(provider(), "http://arbor.example/oauth/callback", proofs);
  assert.ok(typeof url === "string");
  const query = Object.fromEntries(new URL(url).searchParams);
  const { code_challenge, ...rest } = query;
  assert.equal(code_challenge?.length, 43);
  assert.deepEqual(rest, {
    client_id: "arbor",
    response_type: "code",
    redirect_uri: "http://arbor.example/oauth/callback",
    scope: "openid",
    state: proofs.state,
    nonce: proofs.nonce,
    code_challenge_method: "S256",
  });
});

test("a provider that may not be fetched, or is not there, cannot be reached", async () => {
  for (const [origins, values] of [
    [[], {}],
    [["http://127.0.0.1:9"], { issuer: "http://127.0.0.1:9" }],
  ] as const) {
    const result = await oidc([...origins]).authorizationUrl(provider(values), "http://arbor.example/cb", proofs);
    assert.equal(typeof result === "object" && result.error, "temporarily_unavailable");
  }
});

test("cached metadata are used while a provider fails, and failing providers are not requested again at once", async () => {
  const times = { freshMs: 300, pauseMs: 300, staleMs: 60_000 };
  let isDown = false;
  let requestCount = 0;
  const configurationOf = createConfigurationCache(async (name: string) => {
    requestCount++;
    if (isDown) throw new Error("down");
    return { name, requestCount };
  }, times);
  assert.equal((await configurationOf("a", "p", "p")).requestCount, 1);
  isDown = true;
  await sleep(400);
  assert.equal((await configurationOf("a", "p", "p")).requestCount, 1, "the last answer");
  await assert.rejects(configurationOf("b", "p", "p"), /down/, "another organisation has none");
  await assert.rejects(configurationOf("b", "p", "p"), /down/);
  assert.equal(requestCount, 3, "and waits before it asks again");
  isDown = false;
  await sleep(400);
  assert.equal((await configurationOf("b", "p", "p")).requestCount, 4);
  assert.equal((await configurationOf("a", "p", "p")).requestCount, 5);
});

test("many providers of one organisation evict none of another organisation or of the operator", async () => {
  let requestCount = 0;
  const configurationOf = createConfigurationCache(async () => ({ requestCount: ++requestCount }));
  await configurationOf(undefined, "own", "own");
  await configurationOf("b", "own", "own");
  for (let i = 0; i < 300; i++) await configurationOf("a", `p${i}`, "p");
  assert.equal((await configurationOf(undefined, "own", "own")).requestCount, 1);
  assert.equal((await configurationOf("b", "own", "own")).requestCount, 2);
  // The control: those of the organisation itself made room for each other.
  assert.equal((await configurationOf("a", "p0", "p")).requestCount, 303);
});
