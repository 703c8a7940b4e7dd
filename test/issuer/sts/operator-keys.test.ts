// Keys that the operator gives for issuers: a cluster whose discovery nobody can reach, and keys at a URL of their own.
import assert from "node:assert/strict";
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { exportJWK, generateKeyPair, type JWK, SignJWT } from "jose";
import { readOperatorKeys } from "../../../src/issuer/upstream/operator-keys.js";
import { startHarness } from "../../support/harness.js";
import { tempDir } from "../../support/temp-dir.js";
import { waitUntil } from "../../support/wait-until.js";
import { type ExchangeWorld, startExchangeWorld } from "./exchange-world.js";

/** As a stock cluster calls itself, and as none of its tokens can be verified by discovery from outside. */
const CLUSTER = "https://kubernetes.default.svc.cluster.local";
const ACCOUNT = "system:serviceaccount:ci:builder";

interface Signer {
  readonly jwk: JWK;
  /** A token as the cluster mounts it into a pod. */
  token(audience: string, issuer?: string): Promise<string>;
}

async function newSigner(kid: string): Promise<Signer> {
  const { publicKey, privateKey } = await generateKeyPair("RS256");
  const jwk = { ...(await exportJWK(publicKey)), use: "sig", alg: "RS256", kid };
  return {
    jwk,
    token: (audience, issuer = CLUSTER) =>
      new SignJWT({ "kubernetes.io": { namespace: "ci", serviceaccount: { name: "builder" } } })
        .setProtectedHeader({ alg: "RS256", kid })
        .setIssuer(issuer)
        .setSubject(ACCOUNT)
        .setAudience([audience])
        .setIssuedAt()
        .setNotBefore("0s")
        .setExpirationTime("1h")
        .sign(privateKey),
  };
}

let first: Signer;
let second: Signer;
let directory: string;
let file: string;
let world: ExchangeWorld | undefined;

const setOf = (...signers: readonly Signer[]) => JSON.stringify({ keys: signers.map(({ jwk }) => jwk) });

before(async () => {
  [first, second] = [await newSigner("first"), await newSigner("second")];
});

beforeEach(() => {
  directory = tempDir();
  file = join(directory, "cluster.jwks");
  writeFileSync(file, setOf(first));
});

afterEach(async () => {
  await world?.stop();
  world = undefined;
});

/** A service with these keys, and the status of an exchange of a token there. */
async function start(issuerKeys: string, settings: Readonly<Record<string, string>> = {}, issuer = CLUSTER) {
  const started = await startExchangeWorld({ issuerKeys, ...settings });
  world = started;
  const identity = await started.assumable({ claimMatch: { issuer, subject: ACCOUNT } });
  const statusOf = async (signer: Signer) =>
    (await started.exchange({ identity }, await signer.token(started.url, issuer))).status;
  return { statusOf, reload: () => started.harness.app.reload() };
}

describe("keys in a file", () => {
  it("verify tokens of a cluster that the service cannot reach", async () => {
    const { statusOf } = await start(`${CLUSTER}=${file}`);
    assert.equal(await statusOf(first), 200);
    assert.equal(await statusOf(second), 403);
  });

  it("control: without them the cluster is asked, and cannot be reached", async () => {
    const { statusOf } = await start("");
    assert.equal(await statusOf(first), 503);
  });

  it("are read again when the file changes, also where directories are swapped as for a ConfigMap", async () => {
    const [before, later] = ["before", "later"].map((name) => join(directory, name));
    for (const [path, signer] of [
      [before, first],
      [later, second],
    ] as const) {
      mkdirSync(path as string);
      writeFileSync(join(path as string, "jwks"), setOf(signer));
    }
    symlinkSync(before as string, join(directory, "data"));
    symlinkSync(join("data", "jwks"), join(directory, "jwks"));
    const { statusOf } = await start(`${CLUSTER}=${join(directory, "jwks")}`);
    assert.equal(await statusOf(first), 200);
    symlinkSync(later as string, join(directory, "new"));
    renameSync(join(directory, "new"), join(directory, "data"));
    await waitUntil(async () => (await statusOf(second)) === 200);
    assert.equal(await statusOf(first), 403);
  });

  it("are read again at once when that is asked for", async () => {
    const { statusOf, reload } = await start(`${CLUSTER}=${file}`);
    writeFileSync(file, setOf(first, second));
    await reload();
    assert.equal(await statusOf(second), 200);
    assert.equal(await statusOf(first), 200);
  });

  it("stay in use while the file is missing, cut short or has no key that can be used", async () => {
    const { statusOf, reload } = await start(`${CLUSTER}=${file}`);
    for (const content of [
      undefined,
      "",
      setOf(second).slice(0, -1),
      '{"keys":[]}',
      '{"keys":[{"kty":"oct","k":"AA"}]}',
    ]) {
      if (content === undefined) rmSync(file);
      else writeFileSync(file, content);
      await reload();
      assert.equal(await statusOf(first), 200, content);
      assert.equal(await statusOf(second), 403, content);
    }
    writeFileSync(file, setOf(second));
    await reload();
    assert.equal(await statusOf(second), 200);
  });

  for (const [name, content, rule] of [
    ["is missing", undefined, "no such file"],
    ["is no JSON", "not JSON", "must hold a JWK Set"],
    ["has one key and no list", '{"kty":"RSA"}', "must hold a JWK Set"],
    ["has no key", '{"keys":[]}', "must hold a JWK Set"],
    ["has a weak key alone", '{"keys":[{"kty":"oct","k":"AA"}]}', "must hold a key that can be used"],
  ] as const) {
    it(`no service starts with a file that ${name}`, async () => {
      if (content === undefined) rmSync(file);
      else writeFileSync(file, content);
      assert.throws(() => readOperatorKeys([{ issuer: CLUSTER, source: file }]), {
        message: new RegExp(`^--issuer-keys: .*${rule}`),
      });
      await assert.rejects(startHarness({ issuerKeys: `${CLUSTER}=${file}` }), { message: new RegExp(rule) });
    });
  }
});

describe("keys at a URL", () => {
  let server: Server;
  let origin: string;
  let paths: string[] = [];
  let published: () => string;

  before(async () => {
    server = createServer((req, res) => {
      paths.push(req.url ?? "");
      if (req.url !== "/openid/v1/jwks?x=1") return void res.writeHead(404).end();
      res.setHeader("content-type", "application/jwk-set+json").end(published());
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });

  beforeEach(() => {
    paths = [];
    published = () => setOf(first);
  });

  after(() => {
    server.closeAllConnections();
    server.close();
  });

  it("are fetched without discovery, and again for a key that is not known", async () => {
    const issuerKeys = `https://elsewhere.example=${file},${CLUSTER}=${origin}/openid/v1/jwks?x=1`;
    const { statusOf } = await start(issuerKeys, { trustedIssuers: origin });
    assert.equal(await statusOf(first), 200);
    published = () => setOf(first, second);
    assert.equal(await statusOf(second), 200);
    assert.deepEqual(paths, ["/openid/v1/jwks?x=1", "/openid/v1/jwks?x=1"]);
  });

  it("are shared by all organisations, and are of no other issuer", async () => {
    const { statusOf } = await start(`${CLUSTER}=${origin}/openid/v1/jwks?x=1`, { trustedIssuers: origin });
    assert.equal(await statusOf(first), 200);
    const { exchange, assumable, foreign, url } = world as ExchangeWorld;
    const theirs = await assumable({ claimMatch: { issuer: CLUSTER, subject: ACCOUNT } }, { group: foreign });
    assert.equal((await exchange({ identity: theirs }, await first.token(url))).status, 200);
    assert.equal(paths.length, 1);
    const other = `${CLUSTER}/`;
    const slashed = await assumable({ claimMatch: { issuer: other, subject: ACCOUNT } });
    assert.equal((await exchange({ identity: slashed }, await first.token(url, other))).status, 503);
    assert.equal(paths.length, 1);
  });

  it("over http need their origin among those that are trusted", async () => {
    await assert.rejects(startHarness({ issuerKeys: `${CLUSTER}=${origin}/openid/v1/jwks?x=1` }), {
      message: `--issuer-keys ${origin}/openid/v1/jwks?x=1 needs --trusted-issuers ${origin}`,
    });
  });
});
