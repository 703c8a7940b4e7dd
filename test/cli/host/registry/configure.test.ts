import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { openInstallation } from "../../../../src/app/installation.js";
import { resolveSettings } from "../../../../src/config/config.js";
import { computeLibtrustFingerprint } from "../../../../src/issuer/keys/key-generation.js";
import { arbor } from "../../../registry-e2e/registry.js";
import { tempDir } from "../../../support/temp-dir.js";

const SECRET = "s".repeat(40);

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
  const [bundle, sections] = [join(out, "arbor-bundle.pem"), join(out, "arbor-registry.yml")];
  assert.equal(stdout, `${bundle}\n${sections}\n`);
  assert.equal(stderr, "");
  assert.equal(statSync(sections).mode & 0o777, 0o600);
  // The registry, another user, reads the bundle there.
  assert.deepEqual([statSync(out).mode & 0o777, statSync(bundle).mode & 0o777], [0o755, 0o644]);
  assert.deepEqual(parse(readFileSync(sections, "utf8")), {
    auth: {
      token: {
        realm: "https://arbor.example.org/token",
        service: "images",
        issuer: "https://issuer.example.org",
        rootcertbundle: "/etc/arbor/arbor-bundle.pem",
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
  const certificates = readFileSync(bundle, "utf8").match(/-----BEGIN[\s\S]+?END CERTIFICATE-----/g) ?? [];
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
  assert.notEqual(status, 0);
  assert.match(stderr, /mode 0600/);
  assert.ok(!stderr.includes(SECRET));
});
