// Whom tokens are for: the names of the service, one or several, the same for the exchange, the API and the registry.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { after, before, describe, it } from "node:test";
import { askToken } from "../../registry/token-kit.js";
import { signToken } from "../../support/local-issuer.js";
import { type Answer, ask, queryOf } from "./ask.js";
import { claimsOf, type ExchangeWorld, startExchangeWorld } from "./exchange-world.js";

const REGISTRY = "registry.example";
const OTHER = "https://other.example";

let world: ExchangeWorld;
let identity: string;
before(async () => {
  world = await startExchangeWorld({ audiences: `${REGISTRY},${OTHER}` });
  identity = await world.workload("ci", { role: "registry.pull" });
});
after(() => world.stop());

const bearer = (aud: string | readonly string[] = world.url) => world.token({ sub: "ci", aud });

type Ask = (aud: readonly string[]) => Promise<Pick<Answer, "status" | "json" | "text">>;
const ways: readonly [name: string, ask: Ask, token: string][] = [
  ["repeated", (aud) => world.exchange({ identity, aud }, bearer()), "token"],
  ["with commas", (aud) => world.exchange({ identity, aud: aud.join() }, bearer()), "token"],
  ["with commas and blanks", (aud) => world.exchange({ identity, aud: ` ${aud.join(" , ")} ,` }, bearer()), "token"],
  [
    "over Connect",
    (aud) => {
      const path = "/chainguard.platform.oidc.SecurityTokenService/Exchange";
      return ask(world.url, path, { method: "POST", json: { aud: [aud.join()], identity }, bearer: bearer() });
    },
    "token",
  ],
  [
    "at the OAuth endpoint",
    async (aud) => {
      const type = "urn:ietf:params:oauth:token-type:jwt";
      const grant = { grant_type: "urn:ietf:params:oauth:grant-type:token-exchange", subject_token_type: type };
      const body = new URLSearchParams(queryOf({ ...grant, subject_token: bearer(), identity, audience: aud }));
      const response = await fetch(`${world.url}/oauth/token`, { method: "POST", body });
      const text = await response.text();
      return { status: response.status, text, json: JSON.parse(text) };
    },
    "access_token",
  ],
];

describe("audiences", () => {
  const lists: readonly [name: string, aud: () => readonly string[], claim: () => unknown][] = [
    ["the registry's host alone", () => [REGISTRY], () => REGISTRY],
    ["two names", () => [world.url, REGISTRY], () => [world.url, REGISTRY]],
    ["three names", () => [OTHER, REGISTRY, world.url], () => [OTHER, REGISTRY, world.url]],
    ["one name twice", () => [world.url, `${world.url}/`], () => `${world.url}/`],
  ];
  for (const [way, request, member] of ways) {
    for (const [name, aud, claim] of lists) {
      it(`${name}, ${way}: the API and the registry accept the token`, async () => {
        const { status, json, text } = await request(aud());
        assert.equal(status, 200, text);
        const token = String(json[member]);
        assert.deepEqual(claimsOf(token).aud, claim());
        assert.equal((await ask(world.url, "/iam/v2beta1/groups", { bearer: token })).status, 200);
        assert.equal((await askToken(world.url, { user: "_token", password: token })).status, 200);
      });
    }

    it(`a name that is not the service's among them, ${way}: rejected`, async () => {
      for (const aud of [
        [world.url, "https://elsewhere.example"],
        [REGISTRY, `${REGISTRY}.example`],
        ["other.example"],
      ]) {
        const { status, text } = await request(aud);
        assert.equal(status, 400, text);
        assert.match(text, /aud must name audiences of this service/);
      }
    });
  }

  for (const aud of [REGISTRY, `${OTHER}/`, "other.example"]) {
    it(`a token of another issuer for ${aud} is exchanged, and is a password at the registry`, async () => {
      assert.equal((await world.exchange({ identity }, bearer(aud))).status, 200);
      assert.equal((await world.exchange({ identity }, bearer(["x", aud]))).status, 200);
      assert.equal((await askToken(world.url, { user: identity, password: bearer(aud) })).status, 200);
      assert.equal((await askToken(world.url, { user: identity, password: bearer(`x${aud}`) })).status, 401);
    });
  }

  it("the issuer of the same name is not the service", async () => {
    const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const issuerKeys = JSON.stringify({ keys: [publicKey.export({ format: "jwk" })] });
    const staticKeys = { issuer: OTHER, subject: "s", issuerKeys, expirationTime: "2099-01-01T00:00:00Z" };
    const uid = await world.assumable({ staticKeys });
    const nowS = Math.floor(Date.now() / 1000);
    const token = signToken(
      { alg: "ES256" },
      { iss: OTHER, sub: "s", aud: world.url, iat: nowS, exp: nowS + 60 },
      privateKey,
    );
    const { status, text } = await world.exchange({ identity: uid }, token);
    assert.equal(status, 200, text);
  });
});
