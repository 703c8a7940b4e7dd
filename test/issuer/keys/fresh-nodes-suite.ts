// What a call sees that arrives at one node after another process had acknowledged a change of the keys, on either database.
// Nothing is waited for or repeated: each answer must be right at once.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { generateKey, generateTokenKey } from "../../../src/issuer/keys/key-generation.js";
import { revokeKey, rotateKey, rotateRegistryKey } from "../../../src/issuer/keys/key-states.js";
import { createTokens } from "../../../src/issuer/tokens.js";
import { randomIds } from "../../../src/kernel/ids.js";
import { restAs } from "../../contract/rest.js";
import { askToken } from "../../registry/token-kit.js";
import type { Harness } from "../../support/harness.js";
import { exchange, makeIdToken } from "../oauth/login-world.js";

function decode(token: unknown): { readonly kid: string; readonly iss: string } {
  const parts = String(token).split(".", 2);
  return Object.assign({}, ...parts.map((part) => JSON.parse(Buffer.from(part, "base64url").toString())));
}

/**
 * Declares the tests.
 *
 * @param start starts two nodes of one installation
 */
export function freshNodesSuite(name: string, start: () => Promise<readonly [Harness, Harness]>): void {
  describe(`${name}: the first call at a node after a change of keys at another`, () => {
    let here: Harness;
    let there: Harness;
    let group: string;
    let owner: string;
    before(async () => {
      [here, there] = await start();
      ({ group, identity: owner } = await here.organisation("acme.example"));
    });
    after(() => Promise.all([here, there].map((node) => node?.stop())));

    /** Revokes the key that signs, as `arbor admin keys revoke` does, and returns the kid of the one that replaces it. */
    async function revokeSigningKey(): Promise<{ revoked: string; next: string }> {
      const { store, keys, masterKey, clock } = here.app.installation;
      await keys.refresh();
      const { kid: revoked } = keys.getSigningKey();
      const spare = await generateTokenKey("ES256", masterKey, clock());
      await store.write((tx) => revokeKey(tx, revoked, spare));
      return { revoked, next: spare.kid };
    }

    /** A token that `here` has signed with the newest key. */
    async function newToken(): Promise<string> {
      await here.app.installation.keys.refresh();
      return here.token(owner);
    }

    /** Calls of every kind of authorization, each of them by its status. */
    async function callsBy(token: string): Promise<Record<string, number>> {
      const rest = restAs(there.url, token);
      const call = async (method: string, path: string, body?: object) => (await rest(method, path, body)).status;
      return {
        "a read at a group": await call("GET", `/groups/${group}`),
        "a list of everything": await call("GET", "/groups"),
        "a write at a group": await call("PATCH", `/groups/${group}`, { description: randomIds.newId() }),
        "a write at no group": await call("POST", "/groups/", { name: `${randomIds.newId()}.example` }),
        "a token for the registry": (await askToken(there.url, { user: "user", password: token })).status,
      };
    }

    test("refuses what a revoked key has signed, though the node has verified it before, and accepts the new key", async () => {
      const token = await newToken();
      assert.deepEqual(new Set(Object.values(await callsBy(token))), new Set([200]));
      await revokeSigningKey();
      const fresh = await newToken();
      assert.deepEqual(new Set(Object.values(await callsBy(token))), new Set([401]));
      assert.deepEqual(new Set(Object.values(await callsBy(fresh))), new Set([200]));
    });

    test("signs API tokens with the key that replaced a revoked one", async () => {
      const { store, keys, clock } = here.app.installation;
      const { iss } = decode(await newToken());
      const tokens = createTokens({ keys, ids: randomIds, issuer: iss });
      const bearer = await store.write((tx) => tokens.createRefreshToken(tx, owner, { audience: iss }, clock()));
      const { next } = await revokeSigningKey();
      const form = new URLSearchParams({ grant_type: "refresh_token", refresh_token: bearer });
      const response = await fetch(`${there.url}/oauth/token`, { method: "POST", body: form });
      const { access_token: token } = (await response.json()) as { access_token: string };
      assert.equal(decode(token).kid, next);
      assert.equal((await restAs(here.url, token)("GET", `/groups/${group}`)).status, 200);
    });

    test("takes no ID token that a revoked key has signed, and one of the key that replaced it", async () => {
      const { iss } = decode(await newToken());
      const login = { identityUid: owner };
      const idToken = await makeIdToken(here, iss, login, Date.now());
      const { next } = await revokeSigningKey();
      assert.equal((await exchange(there.url, idToken, { aud: iss })).status, 401);
      const again = await makeIdToken(here, iss, login, Date.now());
      assert.equal(decode(again).kid, next);
      assert.equal((await exchange(there.url, again, { aud: iss })).status, 200);
    });

    test("publishes the key that replaced a revoked one, and the revoked one no more", async () => {
      const { revoked, next } = await revokeSigningKey();
      const response = await fetch(`${there.url}/.well-known/jwks.json`);
      const kids = ((await response.json()) as { keys: { kid: string }[] }).keys.map(({ kid }) => kid);
      assert.deepEqual([kids.includes(next), kids.includes(revoked)], [true, false]);
    });

    test("continues a list whose page token has a new key", async () => {
      const token = await newToken();
      const { store, keys, masterKey, clock } = here.app.installation;
      for (const name of ["first", "second"]) {
        assert.equal((await restAs(here.url, token)("POST", `/groups/${group}`, { name })).status, 200);
      }
      await store.write((tx) => rotateKey(tx, generateKey("page-token", masterKey, clock())));
      await keys.refresh();
      for (const path of ["/iam/v2beta1/groups?", `/audit/v1/events?scope=${group}&`]) {
        const page = await restAs(here.url, token, "")("GET", `${path}pageSize=1`);
        const pageToken = String(page.json?.nextPageToken);
        const next = await restAs(there.url, token, "")("GET", `${path}pageSize=1&pageToken=${pageToken}`);
        assert.equal(next.status, 200, next.text);
        assert.notDeepEqual(next.json, page.json);
      }
    });

    test("shows the new key of the audit log", async () => {
      const token = await newToken();
      const { store, masterKey, clock } = here.app.installation;
      const key = generateKey("audit", masterKey, clock());
      await store.write((tx) => rotateKey(tx, key));
      const { json } = await restAs(there.url, token, "")("GET", `/audit/v1/chain?scope=${group}`);
      assert.match(String(json?.jwks), new RegExp(key.kid));
    });

    test("signs tokens for the registry with its new key", async () => {
      const token = await newToken();
      const { store, masterKey, clock } = here.app.installation;
      const first = decode((await askToken(there.url, { user: "user", password: token })).token).kid;
      await store.write((tx) => rotateRegistryKey(tx, generateKey("registry", masterKey, clock())));
      const keys = await store.read((tx) => tx.keys.list());
      const active = keys.find(({ purpose, state }) => purpose === "registry" && state === "active");
      const second = decode((await askToken(there.url, { user: "user", password: token })).token).kid;
      assert.equal(second, active?.kid);
      assert.notEqual(second, first);
    });
  });
}
