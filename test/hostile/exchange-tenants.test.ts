// What one tenant, or somebody without any token, can do to the exchanges of others.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { createServer as createHttpServer, type Server as HttpServer } from "node:http";
import { createServer, type Server } from "node:net";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type ExchangeWorld, startExchangeWorld } from "../issuer/sts/exchange-world.js";
import { type LocalIssuer, startLocalIssuer } from "../support/local-issuer.js";

let world: ExchangeWorld;
let honest: LocalIssuer;
let tarpit: Server;
let tarpitUrl: string;
/** An issuer at every path. */
let many: HttpServer;
let manyUrl: string;
let manyRequests = 0;

before(async () => {
  tarpit = createServer(() => {});
  tarpitUrl = await listening(tarpit);
  const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const keys = [{ ...publicKey.export({ format: "jwk" }), kid: "k" }];
  many = createHttpServer((req, res) => {
    manyRequests++;
    const [, name = ""] = (req.url ?? "").split("/");
    const metadata = { issuer: `${manyUrl}/${name}`, jwks_uri: `${manyUrl}/${name}/keys` };
    res
      .setHeader("content-type", "application/json")
      .end(JSON.stringify(req.url?.endsWith("keys") ? { keys } : metadata));
  });
  manyUrl = await listening(many);
  honest = await startLocalIssuer();
  const issuer = new URL(honest.issuer).origin;
  world = await startExchangeWorld({ trustedIssuers: `${tarpitUrl},${manyUrl},${issuer}` });
});
after(async () => {
  await world.stop();
  await honest.stop();
  tarpit.close();
  many.close();
});

async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  return `http://127.0.0.1:${address.port}`;
}

const b64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");

/** A token that nobody signed. */
function createUnsignedToken(iss: string, sub: string, kid: string): string {
  const nowS = Math.floor(Date.now() / 1000);
  const claims = { iss, sub, aud: world.url, iat: nowS, exp: nowS + 600 };
  return `${b64({ alg: "ES256", kid, typ: "JWT" })}.${b64(claims)}.${Buffer.alloc(64, 1).toString("base64url")}`;
}

test("issuers of one tenant that never answer delay nobody else", async () => {
  const identities: string[] = [];
  for (let i = 0; i < 40; i++) {
    const claimMatch = { issuer: `${tarpitUrl}/${i}`, subject: "s" };
    identities.push(await world.assumable({ claimMatch }, { group: world.foreign }));
  }
  const claimMatch = { issuer: honest.issuer, subject: "ci" };
  const [ours, theirs] = [
    await world.assumable({ claimMatch }),
    await world.assumable({ claimMatch }, { group: world.foreign }),
  ];
  const hanging = identities.map(async (identity, i) =>
    world.exchange({ identity }, createUnsignedToken(`${tarpitUrl}/${i}`, "s", "k")),
  );
  await sleep(300);
  const bearer = honest.token({ aud: world.url, sub: "ci" });
  const start = performance.now();
  assert.equal((await world.exchange({ identity: ours }, bearer)).status, 200);
  const ms = performance.now() - start;
  // Requests that hang are given up after 5 s.
  assert.ok(ms < 4_500, `${ms} ms`);
  // The control: an identity of the tenant itself finds its organisation's slots taken.
  assert.equal((await world.exchange({ identity: theirs }, bearer)).status, 503);
  for (const { status } of await Promise.all(hanging)) assert.equal(status, 503);
  assert.equal(
    (await world.exchange({ identity: theirs }, bearer)).status,
    200,
    "which was not the fault of the issuer",
  );
});

test("unsigned tokens that name 230 issuers cause no further request to an issuer", async () => {
  const claimMatch = { issuerPattern: `${manyUrl.replaceAll(".", "\\.")}/.*`, subject: "s" };
  const pattern = await world.assumable({ claimMatch }, { group: world.foreign });
  const ours = await world.assumable({ claimMatch: { issuer: honest.issuer, subject: "ci" } });
  const bearer = honest.token({ aud: world.url, sub: "ci" });
  assert.equal((await world.exchange({ identity: ours }, bearer)).status, 200);
  const requests = { ...honest.requests };
  for (let i = 0; i < 230; i += 10) {
    const batch = Array.from({ length: 10 }, (_, j) => createUnsignedToken(`${manyUrl}/${i + j}`, "s", "k"));
    await Promise.all(batch.map((token) => world.exchange({ identity: pattern }, token)));
  }
  // The control: they were fetched, and answered.
  assert.ok(manyRequests >= 400, `${manyRequests} requests`);
  assert.equal((await world.exchange({ identity: ours }, bearer)).status, 200);
  assert.deepEqual(honest.requests, requests);
});

test("refused tokens cost little, whatever keys and patterns stand on the identity", async () => {
  const expirationTime = "2099-01-01T00:00:00Z";
  const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-384" });
  const junk = { ...publicKey.export({ format: "jwk" }), kid: "k" };
  // Stored before what may be written was limited: 64 KiB of keys, each with the same name.
  const issuerKeys = JSON.stringify({ keys: Array.from({ length: 300 }, () => junk) });
  assert.ok(issuerKeys.length < 64 * 1024);
  const issuer = "https://a.example/";
  const plain = await world.assumable({ claimMatch: { issuer, subject: "s" } });
  const keyed = await world.assumable({ staticKeys: { issuer, subject: "s", issuerKeys, expirationTime } });
  const claimMatch = { issuerPattern: "https://a\\.example/(?:.{0,30}.{0,30}){1,8}[0-9]", subject: "s" };
  const patterned = await world.assumable({ claimMatch });
  let next = 0;
  const cpuMsOf = async (identity: string, rounds: number, path: () => string) => {
    const start = process.cpuUsage();
    for (let i = 0; i < rounds; i++) {
      const { status } = await world.exchange({ identity }, createUnsignedToken(issuer + path(), "s", "k"));
      assert.equal(status, 403);
    }
    const { user, system } = process.cpuUsage(start);
    return (user + system) / 1_000 / rounds;
  };
  const text = () =>
    `${Array.from({ length: 220 }, (_, j) => "abcde"[(next * j * j + (j >> 3)) % 5]).join("")}${next++ % 7}x`;
  await cpuMsOf(plain, 20, () => "other");
  const usual = await cpuMsOf(plain, 40, () => "other");
  const withKeys = await cpuMsOf(keyed, 40, () => "");
  const withPattern = await cpuMsOf(patterned, 40, text);
  // The whole call, client and server in one process. Before, keys added 50 ms and patterns 130.
  assert.ok(withKeys - usual < 8, `${withKeys} ms with keys, ${usual} ms without`);
  assert.ok(withPattern - usual < 8, `${withPattern} ms with a pattern, ${usual} ms without`);
  console.log(JSON.stringify({ usual, withKeys, withPattern }));
});
