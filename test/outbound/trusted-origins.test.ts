// What an issuer publishes leads to a private origin that the operator trusts only where the issuer is on that
// origin, or one of the operator's own: otherwise an organisation could send requests to other private services. The
// keys alone may be on another trusted origin if that of the issuer is trusted as well, as those of a Kubernetes cluster.
import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, beforeEach, test } from "node:test";
import { createOidcClient } from "../../src/issuer/oauth/oidc.js";
import { createIssuers } from "../../src/issuer/upstream/issuers.js";
import { parseUpstreamToken } from "../../src/issuer/upstream/token.js";
import { createGuardedFetch } from "../../src/outbound/guarded-fetch.js";
import { goodClaims, MAX_LIFE_S, NOW_S, signToken, testKey } from "../issuer/upstream/foreign-issuer.js";

const DISCOVERY = "/.well-known/openid-configuration";
const key = testKey("ES256", "k1");

interface Listener {
  readonly origin: string;
  readonly server: Server;
  readonly requests: string[];
  answers: Readonly<Record<string, unknown>>;
}

let issuer: Listener;
/** Another service that the operator trusts, such as the issuer of another organisation. */
let neighbour: Listener;

async function listen(): Promise<Listener> {
  const requests: string[] = [];
  const server = createServer((req, res) => {
    requests.push(`${req.method} ${req.url}`);
    res.setHeader("content-type", "application/json").end(JSON.stringify(listener.answers[req.url ?? ""] ?? {}));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const listener: Listener = { origin, server, requests, answers: {} };
  return listener;
}

before(async () => {
  [issuer, neighbour] = await Promise.all([listen(), listen()]);
});

beforeEach(() => {
  neighbour.requests.length = 0;
  neighbour.answers = { "/admin/restart": { keys: [key.publicJwk] } };
  issuer.answers = {
    [DISCOVERY]: {
      issuer: issuer.origin,
      jwks_uri: `${neighbour.origin}/admin/restart`,
      authorization_endpoint: `${issuer.origin}/authorize`,
      token_endpoint: `${neighbour.origin}/admin/restart`,
    },
  };
});

after(() => {
  for (const { server } of [issuer, neighbour]) {
    server.closeAllConnections();
    server.close();
  }
});

function guardOf(operatorIssuers: readonly string[]) {
  return createGuardedFetch({ trustedOrigins: [issuer.origin, neighbour.origin], operatorIssuers });
}

async function verifyToken(operatorIssuers: readonly string[], fetch = guardOf(operatorIssuers)): Promise<unknown> {
  const issuers = createIssuers({
    maxTokenLifeS: MAX_LIFE_S,
    fetch,
    clock: () => NOW_S * 1000,
    isOwnIssuer: () => false,
  });
  return issuers.verify(parseUpstreamToken(signToken(key, goodClaims(issuer.origin))), {
    organisation: "a".repeat(40),
  });
}

function finishLogin(operatorIssuers: readonly string[]) {
  const oidc = createOidcClient({ fetch: guardOf(operatorIssuers), onProblem: () => {} });
  const provider = {
    ...{ id: "x", title: "x", issuer: issuer.origin, clientId: "arbor", clientSecret: "s", scopes: ["openid"] },
    secretMethods: ["client_secret_basic"] as const,
    callbackPath: "/oauth/callback/x",
  };
  const proofs = { state: "s".repeat(43), nonce: "n".repeat(43), verifier: "v".repeat(43) };
  const callback = new URL(`http://arbor.example/oauth/callback/x?state=${proofs.state}&code=c`);
  return oidc.exchangeCode(provider, callback, proofs);
}

test("the keys of an issuer on a trusted origin are read from another one, as a cluster's are", async () => {
  assert.ok(await verifyToken([]));
  assert.deepEqual(neighbour.requests, ["GET /admin/restart"]);
});

test("the keys of an issuer are not read from a private origin that is not trusted", async () => {
  const fetch = createGuardedFetch({ trustedOrigins: [issuer.origin] });
  await assert.rejects(verifyToken([], fetch), /the keys of the token's issuer cannot be obtained/);
  assert.deepEqual(neighbour.requests, []);
});

test("an issuer on the internet leads to no trusted origin, for its keys neither", async () => {
  const reasons: string[] = [];
  const fetch = createGuardedFetch({ trustedOrigins: [neighbour.origin], onFailure: (reason) => reasons.push(reason) });
  for (const forKeys of [true, false]) {
    for (const from of ["https://issuer.example", issuer.origin, "no URL", ""])
      await assert.rejects(fetch(`${neighbour.origin}/admin/restart`, { issuer: from, forKeys }));
  }
  assert.deepEqual([...new Set(reasons)], [`${neighbour.origin}: the address is not https`]);
  assert.deepEqual(neighbour.requests, []);
});

test("what is not its keys is not requested from another trusted origin", async () => {
  await assert.rejects(guardOf([])(`${neighbour.origin}/admin/restart`, { issuer: issuer.origin }));
  assert.deepEqual(neighbour.requests, []);
});

test("the code of a login is not sent to another private origin", async () => {
  const result = await finishLogin([]);
  assert.ok("error" in result);
  assert.equal(result.error, "temporarily_unavailable");
  assert.deepEqual(neighbour.requests, []);
});

test("an issuer that the operator configured may have its endpoints on another trusted origin", async () => {
  assert.ok(await verifyToken([issuer.origin]));
  assert.deepEqual(neighbour.requests, ["GET /admin/restart"]);
  await finishLogin([issuer.origin]);
  assert.deepEqual(neighbour.requests, ["GET /admin/restart", "POST /admin/restart"]);
});

test("an issuer has all paths of its own origin", async () => {
  issuer.answers = {
    [DISCOVERY]: { issuer: issuer.origin, jwks_uri: `${issuer.origin}/any/path` },
    "/any/path": { keys: [key.publicJwk] },
  };
  assert.ok(await verifyToken([]));
});
