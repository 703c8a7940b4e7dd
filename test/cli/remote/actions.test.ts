// The commands beside the verbs of resources, each against a real service, by somebody who may do what it does.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Command } from "commander";
import { createProgram } from "../../../src/cli/program.js";
import { getMethods } from "../../../src/cli/remote/methods.js";
import { bindIdentity } from "../../../src/iam/operator/operate.js";
import { createOperatorRole } from "../../../src/iam/operator/roles.js";
import { builtinRoleUid, randomIds } from "../../../src/kernel/ids.js";
import { buildRepo } from "../../../src/registry/repos/repo.js";
import { groupKind } from "../../../src/store/iam/groups.js";
import { repoKind } from "../../../src/store/registry/repos.js";
import { type Host, startHost } from "../../e2e/process.js";
import { type Harness, startHarness } from "../../support/harness.js";
import { groupRow } from "../../support/rows.js";
import { tempDir } from "../../support/temp-dir.js";

/** What the owner of an organisation may not do. */
const capabilities = [
  ...["advisories.create", "advisories.list", "advisories.update", "advisories.delete"],
  ...["registry.deployments.create", "registry.deployments.list", "registry.deployments.update"],
  ...["registry.settings.list", "registry.settings.update"],
  ...[
    "identity_providers.scim.manage",
    "identity_providers.list",
    "account_associations.list",
    "account_associations.create",
  ],
];

let service: Harness;
let host: Host;
let root: string;
const catalogue = randomIds.newUid();
let environment: Record<string, string>;
const ran = new Set<string>();

before(async () => {
  service = await startHarness({ catalogGroup: catalogue });
  const { group, identity, token } = await service.organisation("acme.example");
  root = group;
  await service.app.installation.store.write(async (tx) => {
    const context = { ids: randomIds, nowMs: Date.now() };
    const { uid: role } = await createOperatorRole(tx, { name: "operator", description: "", capabilities }, context);
    await bindIdentity(tx, { identity, role, group: root, internal: true }, context);
  });
  const home = tempDir();
  environment = { HOME: home, XDG_CONFIG_HOME: home, ARBOR_API: service.url, ARBOR_TOKEN: token };
  host = startHost();
});
after(async () => {
  host?.close();
  await service?.stop();
});

async function run(command: string, ...args: readonly string[]) {
  ran.add(`arbor ${command}`);
  return host.run([...command.split(" "), ...args], environment);
}

async function json(command: string, ...args: readonly string[]): Promise<Readonly<Record<string, unknown>>> {
  const { code, stdout, stderr } = await run(command, ...args, "-o", "json");
  assert.equal(code, 0, `${command}: ${stderr}`);
  return JSON.parse(stdout) as Readonly<Record<string, unknown>>;
}

async function error(
  command: string,
  ...args: readonly string[]
): Promise<readonly [code: number | null, text: string]> {
  const { code, stdout, stderr } = await run(command, ...args);
  assert.equal(stdout, "", command);
  return [code, stderr];
}

const digest = (letter: string) => `sha256:${letter.repeat(64)}`;

describe("commands beside the verbs", () => {
  it("write advisories and their events", async () => {
    const artifact = ["--artifact-type", "apk", "--artifact-name", "curl", "--artifact-architecture", "x86_64"];
    const made = await json("advisories create", root, ...artifact, "--alias", "CVE-2026-1");
    const id = String(made.id);
    assert.deepEqual([made.artifactName, made.aliases], ["curl", ["CVE-2026-1"]]);
    const changed = await json("advisories update", id, ...artifact, "--component-name", "libcurl");
    assert.deepEqual([changed.componentName, changed.aliases], ["libcurl", []]);
    const listed = await json("advisories list", "--filter", "artifact-name=curl");
    assert.equal((listed.advisories as unknown[]).length, 1);
    assert.equal((await json("advisories get", id)).componentName, "libcurl");
    const status = ["--status", "pending", "--fixed-version", "8.1-r0"];
    const event = await json("advisories events create", id, ...status);
    const { items } = await json("advisories events list", id);
    assert.deepEqual(
      (items as { id: string }[]).map((one) => one.id),
      [event.id],
    );
    await json("advisories events update", String(event.id), ...status, "--issue", "checked");
    assert.match(
      (await run("advisories events list", id)).stdout,
      /^TYPE +TIME +STATUS +AUTHOR +ID\nfixed +\S+Z +PENDING +\S+ +\S+\n$/,
    );
    assert.match((await error("advisories delete", id))[1], /--yes: is required without a terminal/);
    await json("advisories delete", id, "--yes");
    assert.match(String((await json("advisories get", id)).deleteTime), /Z$/);
  });

  it("show the catalogue", async () => {
    const creation = { ids: randomIds, nowMs: Date.now() };
    await service.app.installation.store.write(async (tx) => {
      await tx.table(groupKind).insert(groupRow(catalogue));
      for (const name of ["zlib", "nginx"]) await tx.table(repoKind).insert(buildRepo(catalogue, name, creation));
    });
    const rows = /^NAME .* UID\nnginx .*\nzlib .*\n$/;
    for (const flags of [[], ["--page-all", "--page-size", "1"]]) {
      const { code, stdout } = await run("registry catalog list", ...flags);
      assert.equal(code, 0);
      assert.match(stdout, rows);
    }
  });

  it("say what is in the registry", async () => {
    const repo = String((await json("registry repos create", "--parent", root, "--name", "app")).uid);
    const tag = String(
      (await json("registry tags create", "--parent", repo, "--name", "v1", "--digest", digest("a"))).uid,
    );
    await json("registry tags update", tag, "--name", "v1", "--digest", digest("b"));
    assert.equal(((await json("registry tags history", tag)).items as unknown[]).length, 2);
    assert.equal((await json("registry repos tags-summary", repo)).tagCount, "1");
    assert.equal((await json("registry repos update-status", repo)).recentlyUpdated, true);
    assert.equal((await json("registry repos count-copies", repo)).count, "0");
    assert.equal((await json("registry images count-digests", root)).count, "1");
    for (const command of ["architectures", "size", "config"]) {
      const [code, text] = await error(`registry images ${command}`, repo, digest("b"));
      assert.equal(code, 6);
      assert.match(text, /no registry is configured/);
    }
    assert.equal((await error("registry deployments get", repo))[0], 5);
    const chart = ["--chart", JSON.stringify({ repo: "oci://charts.example/app", source: "https://example.com/app" })];
    const created = await json("registry deployments create", repo, ...chart);
    assert.equal((created.charts as unknown[]).length, 1);
    assert.deepEqual(await json("registry deployments get", repo), created);
    await json("registry deployments update", repo, ...chart, ...chart);
    assert.equal((await json("registry settings update", root, "--unique-tags")).uniqueTags, true);
    assert.equal((await json("registry settings get", root)).uniqueTags, true);
  });

  it("look people, organisations and accounts up", async () => {
    const { uid } = await json("iam identities lookup", "https://idp.example", "subject");
    assert.match(String(uid), /^[0-9a-f]{40}$/);
    assert.equal((await json("iam identities update-metadata", "--company", "Acme")).company, "Acme");
    assert.deepEqual(await json("iam groups check-eligibility"), { eligible: false });
    for (const args of [["lookup"], ["request-access", root]] as const) {
      const [code, text] = await error(`iam groups ${args[0]}`, ...args.slice(1));
      assert.equal(code, 5);
      assert.match(text, /no verified organisation matches/);
    }
    const account = ["--name", "aws", "--amazon-account", "123456789012"];
    const { uid: association } = await json("iam account-associations create", "--parent", root, ...account);
    const checked = await json("iam account-associations check", String(association), "amazon");
    assert.equal(checked.reason, "NOT_VERIFIED");
  });

  it("test the claims of tokens", async () => {
    const match = ["--issuer", "https://ci.example", "--subject", "repo:acme"];
    const { uid } = await json("iam identities create", "--parent", root, "--name", "ci", ...match);
    const file = join(tempDir(), "claims.json");
    writeFileSync(file, JSON.stringify({ iss: "https://ci.example", sub: "repo:acme", aud: service.url }));
    const tested = await json("iam identities test-claims", String(uid), "--claims-file", file);
    assert.equal(tested.accepted, true);
  });

  it("set the conditions of an identity, and the issuers that an organisation allows", async () => {
    const match = ["--issuer", "https://ci.example", "--subject", "repo:acme"];
    const { uid } = await json("iam identities create", "--parent", root, "--name", "conditional", ...match);
    const file = join(tempDir(), "conditions.yaml");
    writeFileSync(file, "- { path: [repository_id], equals: '1' }\n");
    const set = await json("iam identities conditions set", String(uid), "--file", file);
    assert.equal((set.conditions as unknown[]).length, 1);
    await json("iam identities conditions clear", String(uid), "--yes");
    const origin = ["--origin", "https://ci.example"];
    assert.equal((await json("iam guard set", root, ...origin, "--yes")).group, root);
    await json("iam guard remove", root, "--yes");
    const converted = await run("iam identities convert-github", "--dry-run");
    assert.equal(converted.code, 0, converted.stderr);
  });

  it("set the end of a role binding", async () => {
    const { uid } = await service.identity({}, root);
    const grant = ["--identity", uid, "--role", builtinRoleUid("viewer")];
    const made = await json("iam role-bindings create", "--parent", root, ...grant, "--expires", "1h");
    const binding = String(made.uid);
    assert.equal((await json("iam role-bindings set-end", binding, "--never")).endTime, undefined);
  });

  it("revoke the tokens of an identity", async () => {
    const { uid } = await service.identity({}, root);
    const revoked = await json("iam identities revoke-tokens", uid, "--yes");
    assert.equal(revoked.uid, uid);
  });

  it("write in batches", async () => {
    const { uid } = await service.identity({}, root);
    const request = JSON.stringify({ roleBinding: { identityUid: uid, roleUid: builtinRoleUid("viewer") } });
    const made = await json("iam role-bindings batch-create", root, "--request", request);
    assert.equal((made.roleBindings as unknown[]).length, 1);
    const provider = await createProvider("mapped");
    const mapping = ["--external-group-id", "staff", "--role-uid", builtinRoleUid("viewer"), "--scope", root];
    const mapped = String((await json("iam group-mappings create", "--parent", provider, ...mapping)).uid);
    assert.match((await error("iam group-mappings batch-delete", provider, "--name", mapped))[1], /--yes: is required/);
    await json("iam group-mappings batch-delete", provider, "--name", mapped, "--yes");
    assert.equal((await error("iam group-mappings get", mapped))[0], 5);
  });

  it("reach the methods of provisioning", async () => {
    const provider = await createProvider("scim");
    assert.deepEqual(await error("iam identity-providers revoke-scim-token", provider, "--yes"), [
      5,
      "arbor: Not found: identity provider: there is no SCIM token\n",
    ]);
    assert.deepEqual(await error("iam identity-providers set-scim-enabled", provider, "etag", "--enabled"), [
      6,
      "arbor: Aborted: etag: the provider has changed since it was read\n",
    ]);
    const { token, etag } = await json("iam identity-providers generate-scim-token", provider);
    assert.match(String(token), /^cgscim_/);
    const next = await json("iam identity-providers regenerate-scim-token", provider, String(etag), "--yes");
    assert.notEqual(next.token, token);
  });

  it("are all run here", async () => {
    const verbs = /^(list|get|create|update|delete|accept)$/;
    const expected: string[] = [];
    const collect = (command: Command, path: string): void => {
      if (getMethods(command).length > 0 && !verbs.test(command.name())) expected.push(path);
      for (const child of command.commands) collect(child, `${path} ${child.name()}`);
    };
    for (const child of (await createProgram()).commands) {
      if (["iam", "registry", "advisories"].includes(child.name())) collect(child, `arbor ${child.name()}`);
    }
    assert.ok(expected.length > 15, expected.join());
    assert.deepEqual(
      expected.filter((path) => !ran.has(path)),
      [],
    );
  });
});

async function createProvider(name: string): Promise<string> {
  const oidc = [
    "--default-role",
    builtinRoleUid("viewer"),
    "--oidc-issuer",
    `https://${name}.example`,
    "--oidc-client-id",
    "id",
    "--oidc-pkce-enabled",
  ];
  return String((await json("iam identity-providers create", "--parent", root, "--name", name, ...oidc)).uid);
}
