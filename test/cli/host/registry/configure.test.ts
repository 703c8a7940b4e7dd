import assert from "node:assert/strict";
import { createPublicKey, type JsonWebKey, type KeyObject, X509Certificate } from "node:crypto";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { calculateJwkThumbprint, compactVerify, decodeProtectedHeader, type JWK } from "jose";
import { parse } from "yaml";
import { openInstallation } from "../../../../src/app/installation.js";
import { resolveSettings } from "../../../../src/config/config.js";
import { computeLibtrustFingerprint } from "../../../../src/issuer/keys/key-generation.js";
import { signRegistryToken } from "../../../../src/registry/oci/registry-token.js";
import { arbor } from "../../../registry-e2e/registry.js";
import { tempDir } from "../../../support/temp-dir.js";

const SECRET = "s".repeat(40);
const CERTIFICATES = /-----BEGIN[\s\S]+?END CERTIFICATE-----/g;

/** Creates an installation, and returns its directory. */
async function createInstallation(): Promise<string> {
  const data = tempDir();
  const settings = resolveSettings({ flags: { data }, env: {} });
  await (await openInstallation({ mode: "create", settings })).close();
  return data;
}

test("writes what a registry needs, and prints no secret", async () => {
  const [data, out] = [await createInstallation(), join(tempDir(), "made")];
  const secretFile = join(data, "secret");
  writeFileSync(secretFile, `${SECRET}\n`, { mode: 0o600 });
  const { status, stdout, stderr } = await arbor([
    ...["registry", "configure", "--data", data, "--out", out, "--base-url", "https://arbor.example.org"],
    ...["--issuer", "https://issuer.example.org", "--registry-service", "images"],
    ...["--registry-secret-file", secretFile, "--mounted-at", "/etc/arbor"],
  ]);
  assert.equal(status, 0, stderr);
  const [bundle, jwks, sections] = ["arbor-bundle.pem", "arbor-jwks.json", "arbor-registry.yml"].map((name) =>
    join(out, name),
  ) as [string, string, string];
  assert.equal(stdout, `${bundle}\n${jwks}\n${sections}\n`);
  assert.equal(stderr, "");
  assert.equal(statSync(sections).mode & 0o777, 0o600);
  // The registry, another user, reads the bundle there.
  assert.deepEqual(
    [out, bundle, jwks].map((path) => statSync(path).mode & 0o777),
    [0o755, 0o644, 0o644],
  );
  assert.deepEqual(parse(readFileSync(sections, "utf8")), {
    auth: {
      token: {
        realm: "https://arbor.example.org/token",
        service: "images",
        issuer: "https://issuer.example.org",
        rootcertbundle: "/etc/arbor/arbor-bundle.pem",
        jwks: "/etc/arbor/arbor-jwks.json",
      },
    },
    notifications: {
      endpoints: [
        {
          name: "arbor",
          url: "https://arbor.example.org/registry/notifications",
          headers: { Authorization: [`Bearer ${SECRET}`] },
          timeout: "5s",
          threshold: 5,
          backoff: "1s",
          ignore: { mediatypes: ["application/octet-stream"], actions: ["pull"] },
        },
      ],
    },
  });
  const settings = resolveSettings({ flags: { data }, env: {} });
  const host = await openInstallation({ mode: "read", settings });
  const rows = await host.store.read((tx) => tx.keys.list());
  await host.close();
  const kids = rows.filter(({ purpose }) => purpose === "registry").map(({ kid, state }) => `${kid} ${state}`);
  const certificates = readFileSync(bundle, "utf8").match(CERTIFICATES) ?? [];
  const read = certificates.map((pem) => new X509Certificate(pem));
  assert.equal(read.length, 2);
  assert.deepEqual(kids.map((kid) => kid.split(" ")[1]).sort(), ["active", "pending"]);
  assert.deepEqual(
    read.map(({ publicKey }) => computeLibtrustFingerprint(publicKey)).sort(),
    kids.map((kid) => kid.split(" ")[0]).sort(),
  );
  for (const certificate of read) {
    assert.ok(certificate.verify(certificate.publicKey), "signed by its own key");
    assert.equal(certificate.subject, certificate.issuer);
    assert.equal(certificate.validTo, "Dec 31 23:59:59 9999 GMT");
    assert.ok(Date.parse(certificate.validFrom) < Date.now());
  }
  const { keys } = JSON.parse(readFileSync(jwks, "utf8")) as { keys: readonly JsonWebKey[] };
  assert.deepEqual(
    keys.map(({ kty, crv, alg, use, kid, d }) => [kty, crv, alg, use, kid, d]),
    read.map(({ publicKey }) => ["EC", "P-256", "ES256", "sig", computeLibtrustFingerprint(publicKey), undefined]),
  );
  assert.ok(kids.includes(`${keys[0]?.kid} active`), "the active key comes first, for registries that read one key");
});

// The rule of distribution 3: a token without `x5c` and `jwk` is verified by the key that its `kid` names. Keys of the
// JWKS have the kid that they carry, and those of certificates their thumbprint by RFC 7638.
async function findTrustedKeys(out: string) {
  const keys = new Map<string, KeyObject>();
  for (const pem of readFileSync(join(out, "arbor-bundle.pem"), "utf8").match(CERTIFICATES) ?? []) {
    const { publicKey } = new X509Certificate(pem);
    keys.set(await calculateJwkThumbprint(publicKey.export({ format: "jwk" }) as JWK), publicKey);
  }
  const byThumbprint = new Map(keys);
  const { keys: jwks } = JSON.parse(readFileSync(join(out, "arbor-jwks.json"), "utf8")) as { keys: JsonWebKey[] };
  for (const jwk of jwks) keys.set(String(jwk.kid), createPublicKey({ key: jwk, format: "jwk" }));
  return { keys, byThumbprint };
}

test("a registry of version 3 finds the key of a token by its kid, before and after a rotation", async () => {
  const [data, out] = [await createInstallation(), tempDir()];
  const settings = resolveSettings({ flags: { data }, env: {} });
  const signToken = async () => {
    const host = await openInstallation({ mode: "read", settings });
    const claims = { issuer: "i", service: "s", subject: "u", access: [], tokenId: "t", issuedAt: 1_000 };
    const token = signRegistryToken(claims, host.keys.getRegistrySigningKey());
    await host.close();
    return token;
  };
  const verify = async (token: string, keys: ReadonlyMap<string, KeyObject>) => {
    const key = keys.get(String(decodeProtectedHeader(token).kid));
    if (key === undefined) return "unknown kid";
    await compactVerify(token, key, { algorithms: ["ES256"] });
    return "verified";
  };
  const configure = async () => {
    assert.equal((await arbor(["registry", "configure", "--data", data, "--out", out])).status, 0);
    return findTrustedKeys(out);
  };
  const rotate = ["admin", "keys", "rotate", "--purpose", "registry", "--data", data];
  const first = await configure();
  const tokens = [await signToken()];
  for (let i = 0; i < 2; i++) {
    assert.equal((await arbor(rotate)).status, 0);
    tokens.push(await signToken());
  }
  const outcomes = await Promise.all(tokens.map((token) => verify(token, first.keys)));
  assert.deepEqual(outcomes, ["verified", "verified", "unknown kid"], "the key and the next one are trusted");
  // Without the JWKS it trusts none.
  for (const token of tokens) assert.equal(await verify(token, first.byThumbprint), "unknown kid");
  const { keys } = await configure();
  assert.deepEqual(await Promise.all(tokens.map((token) => verify(token, keys))), [
    "unknown kid",
    "unknown kid",
    "verified",
  ]);
});

test("without a secret there are no notifications", async () => {
  const [data, out] = [await createInstallation(), tempDir()];
  const { status, stderr } = await arbor(["registry", "configure", "--data", data, "--out", out]);
  assert.equal(status, 0, stderr);
  assert.match(stderr, /--registry-secret-file/);
  const sections = parse(readFileSync(join(out, "arbor-registry.yml"), "utf8")) as object;
  assert.deepEqual(Object.keys(sections), ["auth"]);
});

test("refuses a secret that others can read, and says which file", async () => {
  const [data, out] = [await createInstallation(), tempDir()];
  const secretFile = join(data, "secret");
  writeFileSync(secretFile, SECRET, { mode: 0o644 });
  const flags = ["--data", data, "--out", out, "--registry-secret-file", secretFile];
  const { status, stderr } = await arbor(["registry", "configure", ...flags]);
  assert.equal(status, 2);
  assert.match(stderr, /mode 0600/);
  assert.ok(!stderr.includes(SECRET));
  const missing = await arbor(["registry", "configure", ...flags.slice(0, -1), "/nowhere"]);
  assert.deepEqual(
    [missing.status, missing.stderr],
    [2, "arbor: --registry-secret-file: cannot read /nowhere: no such file\n"],
  );
});
