// The algorithm of API tokens: how it changes, who agrees on it, and what others can verify.
import assert from "node:assert/strict";
import { createHook } from "node:async_hooks";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { createLocalJWKSet, createRemoteJWKSet, jwtVerify } from "jose";
import { allowInsecureRequests, discovery } from "openid-client";
import { generateTokenKey } from "../../../src/issuer/keys/key-generation.js";
import { type KeyRing, storeTokenAlgorithm } from "../../../src/issuer/keys/key-ring.js";
import { encodeJwt, signJwt, type TokenAlgorithm, tokenAlgorithms } from "../../../src/kernel/jws.js";
import { type Harness, startHarness } from "../../support/harness.js";
import { DAY, HOUR, type KeyKit, MINUTE, openKit, SECOND, schedule } from "./key-kit.js";

const PENDING = 330 * SECOND;

let kit: KeyKit;
beforeEach(async () => {
  kit = await openKit();
});
afterEach(() => kit.close());

const algorithmsOf = (ring: KeyRing) => ring.listPublicJwks().map(({ alg }) => alg);
const store = (algorithm: TokenAlgorithm) => kit.store.write((tx) => storeTokenAlgorithm(tx, algorithm));

/** The kinds of work that were given to threads of the pool meanwhile. */
async function collectPoolWork(work: () => Promise<unknown>): Promise<ReadonlySet<string>> {
  const types = new Set<string>();
  const hook = createHook({ init: (_id, type) => void types.add(type) }).enable();
  try {
    await work();
  } finally {
    hook.disable();
  }
  return types;
}

for (const algorithm of tokenAlgorithms) {
  test(`${algorithm}: keys are generated and used in the pool, and others verify what they sign`, async () => {
    const generated = await collectPoolWork(() => generateTokenKey(algorithm, kit.masterKey, kit.nowMs));
    assert.ok(generated.has("KEYPAIRGENREQUEST"), [...generated].join());
    const ring = await kit.node(0, kit.store, algorithm);
    const jwt = encodeJwt("JWT", { sub: "s", iss: "i" }, ring.getSigningKey());
    let token = "";
    const signed = await collectPoolWork(async () => {
      token = await signJwt(jwt);
    });
    assert.ok(signed.has("SIGNREQUEST"), [...signed].join());
    assert.equal(token.length, jwt.length);
    const keys = createLocalJWKSet({ keys: ring.listPublicJwks() as never });
    const { protectedHeader } = await jwtVerify(token, keys, { algorithms: [algorithm], typ: "JWT" });
    assert.deepEqual(protectedHeader, { alg: algorithm, kid: ring.getSigningKey().kid, typ: "JWT" });
  });
}

describe("a change of the algorithm", () => {
  test("is a rotation: the old key is published until its tokens have expired", async () => {
    const ring = await kit.node();
    await ring.advanceKeys(schedule);
    const former = ring.getSigningKey().kid;
    await store("RS256");
    const states = async (ms: number) => {
      kit.nowMs += ms;
      return (await ring.advanceKeys(schedule)).map(({ state }) => state);
    };
    assert.deepEqual(await states(SECOND), ["pending"]);
    assert.equal(ring.tokenAlgorithm(), "RS256");
    assert.deepEqual(algorithmsOf(ring), ["RS256", "ES256"], "announced before it is used");
    assert.equal(ring.getSigningKey().kid, former);
    assert.deepEqual(await states(PENDING - 1), []);
    assert.deepEqual(await states(1), ["verify", "active"]);
    assert.equal(ring.getSigningKey().key.asymmetricKeyType, "rsa");
    assert.ok(ring.findVerifyingKey(former));
    assert.deepEqual(await states(HOUR + 30 * SECOND - 1), []);
    assert.deepEqual(algorithmsOf(ring), ["RS256", "ES256"]);
    assert.deepEqual(await states(1), ["removed"]);
    assert.deepEqual(algorithmsOf(ring), ["RS256"]);
  });

  test("follows when a key of the old algorithm was waiting already", async () => {
    const ring = await kit.node();
    await ring.advanceKeys(schedule);
    kit.nowMs += 30 * DAY - PENDING;
    assert.deepEqual(await states(ring), ["pending"]);
    await store("RS256");
    kit.nowMs += PENDING;
    await ring.advanceKeys(schedule);
    assert.deepEqual(algorithmsOf(ring), ["ES256", "ES256"]);
    kit.nowMs += SECOND;
    assert.deepEqual(await states(ring), ["pending"]);
    assert.equal(algorithmsOf(ring)[0], "RS256");
  });

  const states = async (ring: KeyRing) => (await ring.advanceKeys(schedule)).map(({ state }) => state);

  test("nodes with different settings agree on that of the last that started", async () => {
    const one = await kit.node(0, kit.store, "ES256");
    const two = await kit.node(0, kit.store, "RS256");
    await store("ES256");
    await store("RS256");
    const kids = new Set<string>();
    for (let minute = 0; minute < 300; minute++) {
      kit.nowMs += MINUTE;
      for (const ring of [one, two]) await ring.advanceKeys(schedule);
      for (const ring of [one, two]) for (const { kid } of ring.listPublicJwks()) kids.add(String(kid));
    }
    assert.equal(kids.size, 2, "one rotation");
    assert.deepEqual([algorithmsOf(one), algorithmsOf(two)], [["RS256"], ["RS256"]]);
  });
});

describe("tokens of a service with default settings, in the hands of those who accept RS256 alone", () => {
  let service: Harness;
  before(async () => {
    service = await startHarness({ tokenAlgorithm: "RS256" });
  });
  after(() => service.stop());

  async function verifyToken(token: string, audience: string) {
    const config = await discovery(new URL(service.url), "client", undefined, undefined, {
      execute: [allowInsecureRequests],
    });
    const { issuer, jwks_uri = "", id_token_signing_alg_values_supported } = config.serverMetadata();
    assert.deepEqual(id_token_signing_alg_values_supported, ["RS256"]);
    return jwtVerify(token, createRemoteJWKSet(new URL(jwks_uri)), { issuer, audience, algorithms: ["RS256"] });
  }

  test("an API token is verified", async () => {
    const { identity, token } = await service.organisation("acme.example");
    const { payload, protectedHeader } = await verifyToken(token, service.url);
    assert.equal(payload.sub, identity);
    assert.equal(protectedHeader.typ, "at+jwt");
    const headers = { authorization: `Bearer ${token}` };
    assert.equal((await fetch(`${service.url}/iam/v2beta1/groups`, { headers })).status, 200);
  });

  test("a token for the receiver of events is verified, and is no API token", async () => {
    const nowS = Math.floor(Date.now() / 1000);
    const claims = { iss: service.url, sub: "webhook:acme", aud: "customer", iat: nowS, exp: nowS + 600 };
    const token = await signJwt(encodeJwt("JWT", claims, service.app.installation.keys.getSigningKey()));
    assert.equal((await verifyToken(token, "customer")).payload.sub, claims.sub);
    const headers = { authorization: `Bearer ${token}` };
    assert.equal((await fetch(`${service.url}/iam/v2beta1/groups`, { headers })).status, 401);
  });
});
