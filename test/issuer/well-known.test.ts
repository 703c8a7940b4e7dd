// The discovery document and the public keys over HTTP, as relying parties request them.
import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { createRemoteJWKSet, jwtVerify } from "jose";
import { generateTokenKey } from "../../src/issuer/keys/key-generation.js";
import type { KeyRing } from "../../src/issuer/keys/key-ring.js";
import { addSuccessor, rotateKey } from "../../src/issuer/keys/key-states.js";
import { issueToken } from "../../src/issuer/tokens.js";
import { createWellKnownRoutes } from "../../src/issuer/well-known.js";
import { unavailable } from "../../src/kernel/errors.js";
import { randomIds } from "../../src/kernel/ids.js";
import type { Store } from "../../src/store/store.js";
import { createWeb, type Web } from "../../src/transport/http/web-routes.js";
import { beginHttp1 } from "../transport/requests.js";
import { type KeyKit, openKit, SECOND } from "./keys/key-kit.js";

const CONFIGURATION = "/.well-known/openid-configuration";
const JWKS = "/.well-known/jwks.json";
const issuer = "https://api.example.org";

let server: Server;
let url: string;
let web: Web;
let kit: KeyKit;
let ring: KeyRing;
let down = false;

before(async () => {
  server = createServer((req, res) => {
    const { pathname } = new URL(req.url ?? "", issuer);
    if (!web.handle(beginHttp1(req, res), pathname)) res.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
after(() => {
  server.closeAllConnections();
  server.close();
});

beforeEach(async () => {
  kit = await openKit();
  down = false;
  const store: Store = {
    ...kit.store,
    read(unit, options) {
      if (down) throw unavailable("the database cannot be reached");
      return kit.store.read(unit, options);
    },
  };
  ring = await kit.node(0, store);
  web = createWeb({
    routes: createWellKnownRoutes({ keys: ring, issuer, maxAgeS: 300, connections: ["corp"] }),
    errorDomain: "iam.example.org",
    onInternalError: (error) => assert.fail(error),
  });
});
afterEach(() => kit.close());

const get = (path: string, headers: Readonly<Record<string, string>> = {}) => fetch(`${url}${path}`, { headers });

async function kidsAt(path = JWKS): Promise<string[]> {
  const { keys } = (await (await get(path)).json()) as { readonly keys: readonly { readonly kid: string }[] };
  return keys.map(({ kid }) => kid);
}

describe("discovery", () => {
  test("the document names what there is", async () => {
    const response = await get(CONFIGURATION);
    assert.equal(response.status, 200);
    assert.equal(response.headers.get("content-type"), "application/json");
    assert.deepEqual(await response.json(), {
      issuer,
      jwks_uri: `${issuer}/.well-known/jwks.json`,
      authorization_endpoint: `${issuer}/oauth`,
      token_endpoint: `${issuer}/oauth/token`,
      device_authorization_endpoint: `${issuer}/oauth/device_authorization`,
      revocation_endpoint: `${issuer}/oauth/revoke`,
      response_types_supported: ["code"],
      grant_types_supported: [
        "authorization_code",
        "refresh_token",
        "urn:ietf:params:oauth:grant-type:device_code",
        "urn:ietf:params:oauth:grant-type:token-exchange",
      ],
      code_challenge_methods_supported: ["S256"],
      subject_types_supported: ["public"],
      id_token_signing_alg_values_supported: ["ES256"],
      token_endpoint_auth_methods_supported: ["none"],
      revocation_endpoint_auth_methods_supported: ["none"],
      authorization_response_iss_parameter_supported: true,
      scopes_supported: ["openid"],
      connections_supported: ["corp"],
      claims_supported: ["iss", "sub", "aud", "iat", "exp", "jti", "act", "cap", "email", "email_verified", "upstream"],
    });
  });

  for (const path of [CONFIGURATION, JWKS]) {
    test(`${path} may be cached by everybody, and revalidated`, async () => {
      const first = await get(path);
      const etag = first.headers.get("etag") ?? "";
      assert.match(etag, /^"[\w-]{43}"$/);
      assert.equal(first.headers.get("cache-control"), "public, max-age=300");
      assert.equal(first.headers.get("access-control-allow-origin"), "*");
      const kept: readonly [ifNoneMatch: string, status: number][] = [
        [etag, 304],
        [`W/${etag}`, 304],
        [`"other", ${etag}`, 304],
        [`"other",W/${etag} `, 304],
        ["*", 304],
        ['"other"', 200],
        [etag.slice(1, -1), 200],
        [`W/"other"`, 200],
      ];
      for (const [ifNoneMatch, status] of kept) {
        const again = await get(path, { "if-none-match": ifNoneMatch });
        assert.equal(again.status, status, ifNoneMatch);
        assert.equal(again.headers.get("etag"), etag);
        assert.equal(again.headers.get("cache-control"), "public, max-age=300");
        assert.equal(await again.text(), status === 304 ? "" : await (await get(path)).text());
      }
      const head = await fetch(`${url}${path}`, { method: "HEAD" });
      assert.deepEqual([head.status, head.headers.get("etag"), await head.text()], [200, etag, ""]);
      const post = await fetch(`${url}${path}`, { method: "POST" });
      assert.deepEqual([post.status, post.headers.get("allow")], [405, "GET, HEAD"]);
    });
  }
});

describe("the public keys", () => {
  test("are those of API tokens, in every state, the newest first", async () => {
    const first = ring.getSigningKey().kid;
    const second = await generateTokenKey("ES256", kit.masterKey, kit.nowMs + 1);
    const third = await generateTokenKey("ES256", kit.masterKey, kit.nowMs + 2);
    assert.ok(second && third);
    await kit.store.write((tx) => rotateKey(tx, second));
    await kit.store.write((tx) => addSuccessor(tx, third));
    kit.nowMs += SECOND;
    const response = await get(JWKS);
    assert.equal(response.headers.get("content-type"), "application/jwk-set+json");
    assert.deepEqual(await response.json(), {
      keys: [
        third,
        second,
        { kid: first, publicJwk: JSON.stringify(ring.findVerifyingKey(first)?.export({ format: "jwk" })) },
      ].map(({ kid, publicJwk }) => ({ ...JSON.parse(publicJwk), kid, alg: "ES256", use: "sig" })),
    });
  });

  test("change their tag when another node changes them, and are read again within a second", async () => {
    const before = await get(JWKS);
    const row = await generateTokenKey("ES256", kit.masterKey, kit.nowMs + 1);
    await kit.store.write((tx) => rotateKey(tx, row));
    kit.nowMs += SECOND;
    const now = await get(JWKS, { "if-none-match": before.headers.get("etag") ?? "" });
    assert.equal(now.status, 200);
    assert.equal((await kidsAt())[0], row.kid);
    assert.notEqual(now.headers.get("etag"), before.headers.get("etag"));
  });

  test("are UNAVAILABLE, and not stale, while the store cannot be read", async () => {
    down = true;
    kit.nowMs += SECOND;
    const response = await get(JWKS);
    assert.equal(response.status, 503);
    assert.equal(response.headers.get("cache-control"), "no-store");
    down = false;
    assert.equal((await get(JWKS)).status, 200);
  });

  test("verify tokens for relying parties", async () => {
    const nowMs = Date.now();
    const token = await issueToken(
      { issuer, audience: issuer, identity: "a".repeat(40), lifeS: 60, atMs: nowMs },
      ring,
      randomIds,
    );
    const options = { issuer, audience: issuer, typ: "at+jwt", algorithms: ["ES256"] };
    const { protectedHeader } = await jwtVerify(token, createRemoteJWKSet(new URL(`${url}${JWKS}`)), options);
    assert.equal(protectedHeader.kid, ring.getSigningKey().kid);
  });
});
