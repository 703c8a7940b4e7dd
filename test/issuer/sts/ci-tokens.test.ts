// Tokens as CI systems and clouds issue them, made by jose and exchanged over HTTP: their subjects, lives and keys.
import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, afterEach, before, describe, it } from "node:test";
import { exportJWK, generateKeyPair, type JWK, type JWTHeaderParameters, type JWTPayload, SignJWT } from "jose";
import { createIdentityBudget, matchesPattern } from "../../../src/issuer/sts/claim-pattern.js";
import { type ExchangeWorld, startExchangeWorld } from "./exchange-world.js";

interface Signer {
  readonly jwk: JWK;
  sign(claims: JWTPayload, header?: Partial<JWTHeaderParameters>): Promise<string>;
}

const DAY_S = 24 * 3600;
const nowS = () => Math.floor(Date.now() / 1000);

let server: Server;
let issuer: string;
/** What the issuer publishes; undefined while it is down. */
let published: readonly JWK[] | undefined = [];
let requests = 0;
let worlds: ExchangeWorld[] = [];

async function signerOf(kid: string | undefined, alg = "RS256"): Promise<Signer> {
  const { publicKey, privateKey } = await generateKeyPair(alg);
  const jwk = { ...(await exportJWK(publicKey)), use: "sig", ...(kid !== undefined && { kid }) };
  return {
    jwk,
    sign: (claims, header) =>
      new SignJWT({ iss: issuer, iat: nowS(), exp: nowS() + 300, ...claims })
        .setProtectedHeader({ alg, typ: "JWT", ...(kid !== undefined && { kid }), ...header })
        .sign(privateKey),
  };
}

before(async () => {
  server = createServer((req, res) => {
    if (published === undefined) return void res.writeHead(503).end();
    res.setHeader("content-type", "application/json");
    const isKeys = req.url === "/.well-known/jwks";
    if (isKeys) requests++;
    res.end(JSON.stringify(isKeys ? { keys: published } : { issuer, jwks_uri: `${issuer}/.well-known/jwks` }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterEach(async () => {
  for (const world of worlds) await world.stop();
  worlds = [];
});

after(() => {
  server.closeAllConnections();
  server.close();
});

/** A service that trusts the issuer, and how tokens are exchanged there for an identity with this match. */
async function startService(claimMatch: object, settings: Readonly<Record<string, string>> = {}) {
  const world = await startExchangeWorld({ trustedIssuers: issuer, ...settings });
  worlds.push(world);
  const identity = await world.assumable({ claimMatch: { issuer, ...claimMatch } });
  return {
    world,
    async exchange(token: string) {
      const { status, json } = await world.exchange({ identity }, token);
      return { status, json };
    },
  };
}

describe("subjects of GitHub", () => {
  const immutable = "repo:octocat@583231/my-repo@456789:ref:refs/heads/main";
  const byName = "repo:octocat/my-repo:ref:refs/heads/main";

  it("that have the numbers of owner and repository are matched literally and by pattern", async () => {
    const key = await signerOf("github");
    published = [key.jwk];
    const literal = await startService({ subject: immutable });
    const pattern = await startService({ subjectPattern: "repo:[^/@]+@583231/[^/@:]+@456789:ref:refs/heads/.+" });
    for (const { world, exchange } of [literal, pattern]) {
      const tokenOf = (sub: string) => key.sign({ sub, aud: world.url });
      assert.equal((await exchange(await tokenOf(immutable))).status, 200);
      // The names again, of another owner or another repository, and a name that looks like a number.
      for (const sub of [
        byName,
        "repo:octocat@583232/my-repo@456789:ref:refs/heads/main",
        "repo:octocat@583231/my-repo@456780:ref:refs/heads/main",
        "repo:octocat@583231/my-repo@456789@1:ref:refs/heads/main",
        "repo:octocat/x@583231/my-repo@456789:ref:refs/heads/main",
      ])
        assert.equal((await exchange(await tokenOf(sub))).status, 403, sub);
    }
    const renamed = await key.sign({ sub: immutable.replace("my-repo", "new-name"), aud: pattern.world.url });
    assert.equal((await pattern.exchange(renamed)).status, 200);
  });

  it("are matched by the pattern for both forms that the documentation has", () => {
    const both = "repo:octocat(@583231)?/my-repo(@456789)?:ref:refs/heads/main";
    for (const subject of [byName, immutable])
      assert.equal(matchesPattern(both, subject, createIdentityBudget()), true);
    for (const subject of [immutable.replace("583231", "583232"), byName.replace("octocat", "octocat2")])
      assert.equal(matchesPattern(both, subject, createIdentityBudget()), false);
  });
});

describe("lives", () => {
  /** As managed identities of Azure get them: a day, dated back by five minutes. */
  const azure = () => ({ iat: nowS() - 300, nbf: nowS() - 300, exp: nowS() + DAY_S });
  const ofLife = (lifeS: number) => ({ iat: nowS() - 60, exp: nowS() - 60 + lifeS });

  for (const [setting, accepted, rejected] of [
    [undefined, [azure(), ofLife(25 * 3600)], [ofLife(25 * 3600 + 5), ofLife(2 * DAY_S)]],
    ["48h", [azure(), ofLife(2 * DAY_S)], [ofLife(2 * DAY_S + 5)]],
    ["1h", [ofLife(3600)], [azure(), ofLife(3605)]],
  ] as const) {
    it(`are limited to ${setting ?? "the default of 25h"}`, async () => {
      const key = await signerOf("azure");
      published = [key.jwk];
      const settings: Record<string, string> = setting === undefined ? {} : { exchangeTokenLife: setting };
      const { world, exchange } = await startService({ subject: "app" }, settings);
      const statusOf = async (claims: JWTPayload) =>
        (await exchange(await key.sign({ sub: "app", aud: world.url, ...claims }))).status;
      for (const claims of accepted) assert.equal(await statusOf(claims), 200, JSON.stringify(claims));
      for (const claims of rejected) assert.equal(await statusOf(claims), 401, JSON.stringify(claims));
    });
  }
});

describe("keys", () => {
  it("without a kid, and several with the same one, verify the tokens that they sign", async () => {
    for (const kid of [undefined, "default"]) {
      const keys = [
        await signerOf(kid),
        await signerOf(kid, "ES256"),
        await signerOf(kid),
        await signerOf(kid, "EdDSA"),
      ];
      published = keys.map(({ jwk }) => jwk);
      const { world, exchange } = await startService({ subject: "job" });
      for (const { sign } of keys)
        assert.equal((await exchange(await sign({ sub: "job", aud: world.url }))).status, 200);
      const stranger = await signerOf(kid);
      assert.equal((await exchange(await stranger.sign({ sub: "job", aud: world.url }))).status, 403);
    }
  });

  it("beyond the thirty-second of a set are found", async () => {
    const [last, { jwk }] = [await signerOf("last"), await signerOf("other")];
    published = [...Array.from({ length: 60 }, (_, i) => ({ ...jwk, kid: `key ${i}` })), last.jwk];
    const { world, exchange } = await startService({ subject: "job" });
    assert.equal((await exchange(await last.sign({ sub: "job", aud: world.url }))).status, 200);
  });

  it("that were rotated a moment ago verify at once; without the issuer callers are told to retry", async () => {
    const [before, next, unpublished] = [await signerOf("1"), await signerOf("2"), await signerOf("3")];
    published = [before.jwk];
    const { world, exchange } = await startService({ subject: "job" });
    const tokenBy = ({ sign }: Signer) => sign({ sub: "job", aud: world.url });
    assert.equal((await exchange(await tokenBy(before))).status, 200);
    published = [before.jwk, next.jwk];
    requests = 0;
    assert.equal((await exchange(await tokenBy(next))).status, 200);
    for (let i = 0; i < 3; i++) assert.equal((await exchange(await tokenBy(unpublished))).status, 403);
    assert.equal(requests, 2);
    published = undefined;
    const { status, json } = await exchange(await tokenBy(await signerOf("4")));
    assert.equal(status, 503);
    assert.match(JSON.stringify(json), /RetryInfo","retryDelay":"(2\d(\.\d+)?|30)s"/);
    assert.equal((await exchange(await tokenBy(next))).status, 200);
  });
});
