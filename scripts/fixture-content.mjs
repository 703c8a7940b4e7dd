// The content of a database fixture: an organisation with resources of every kind, created through commands and the
// REST API. It uses only what every released version has.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { exportJWK, generateKeyPair, SignJWT } from "jose";

const DAY_MS = 86_400_000;
// Built-in roles have the same uids in all installations.
const ROLE_NAMES = ["viewer", "editor", "registry.pull", "advisories.admin"];

const digest = (pair) => `sha256:${pair.repeat(32)}`;

/**
 * Creates the organisation's contents.
 *
 * @param service `call(token, method, path, body)` sends a request and returns the JSON of its response; `run(...args)`
 *   runs a command on the host; `baseUrl` is the base URL of the service; `directory` is for files of the commands
 * @param owner the output of `arbor bootstrap --json` for the organisation
 * @param guest the same of another organisation, whose owner is a person
 */
export async function createContent(service, owner, guest) {
  const root = owner.group;
  const call = (...request) => service.call(owner.token, ...request);
  const { roles: builtin } = await call("GET", "/iam/v2beta1/roles?page_size=200");
  const roles = Object.fromEntries(
    ROLE_NAMES.map((name) => [name, builtin.find((role) => role.name === name && !role.uid.includes("/")).uid]),
  );

  const groups = await createGroups(call, root);
  const identities = await createIdentities(call, groups);
  await assumeByKey(service, identities.robot);
  const deployer = await createRoles(call, groups);
  await createBindings(call, { root, groups, identities, deployer, roles, guest });
  await createProvider(call, { root, roles });
  await createRest(call, { root, groups, identities, roles });
  await createRegistry(call, groups);
  await createAdvisories(service, call, { owner, groups, role: roles["advisories.admin"] });

  // A person of another organisation, who also owns a root group.
  await service.call(guest.token, "POST", `/iam/v2beta1/groups/${guest.group}`, { name: "home", description: "" });
  await service.call(guest.token, "POST", "/chainguard.platform.iam.v2beta1.GroupsService/CreateGroup", {
    group: { name: "second.example", description: "created through the API" },
  });
}

async function createGroups(call, root) {
  const create = async (parent, name, description) =>
    (await call("POST", `/iam/v2beta1/groups/${parent}`, { name, description })).uid;
  await call("PATCH", `/iam/v2beta1/groups/${root}`, { description: "Größe – 50 %, 日本語, 🌳" });
  const engineering = await create(root, "engineering", "builds what is sold");
  const backend = await create(engineering, "backend", "");
  const storage = await create(backend, "storage", "three levels below the root");
  const operations = await create(root, "operations", "first");
  await call("PATCH", `/iam/v2beta1/groups/${operations}`, { description: "changed by version 2" });
  await call("PUT", `/iam/v1/groups/${backend}`, { name: "backend", description: "changed by version 1" });
  const scratch = await create(root, "scratch", "deleted again");
  await call("DELETE", `/iam/v2beta1/groups/${scratch}`);
  return { engineering, backend, storage, operations };
}

async function createIdentities(call, { engineering, storage, operations }) {
  const create = (parent, name, relationship) =>
    call("POST", `/iam/v2beta1/identities/${parent}`, { name, description: `the ${name}`, ...relationship });
  const issuer = "https://token.actions.example.com";
  const { publicKey, privateKey } = await generateKeyPair("ES256");
  const key = { ...(await exportJWK(publicKey)), kid: "first", alg: "ES256", use: "sig" };
  const robot = { issuer: "https://cluster.example.com", subject: "system:serviceaccount:default:robot" };

  const literal = await create(engineering, "literal", {
    claimMatch: { issuer, subject: "repo:fixture/app:ref:refs/heads/main", audience: "https://arbor.example" },
  });
  const pattern = await create(engineering, "pattern", {
    claimMatch: { issuerPattern: "https://token\\.actions\\.example\\.com/.*", subjectPattern: "repo:fixture/.+" },
  });
  await create(storage, "claims", {
    claimMatch: {
      issuer,
      subjectPattern: "repo:fixture/(app|site):.*",
      audiencePattern: "https://.*\\.example",
      claims: { repository_owner: "fixture", environment: "production" },
      claimPatterns: { ref: "refs/heads/(main|release-[0-9]+)" },
    },
  });
  const { uid } = await create(operations, "robot", {
    staticKeys: {
      ...robot,
      issuerKeys: JSON.stringify({ keys: [key] }),
      expirationTime: new Date(Date.now() + 364 * DAY_MS).toISOString(),
      audiences: ["arbor"],
    },
  });
  await create(operations, "aws literal", {
    awsIdentity: { awsAccount: "123456789012", arn: "arn:aws:iam::123456789012:role/ci", userId: "AROAEXAMPLE:ci" },
  });
  await create(operations, "aws pattern", {
    awsIdentity: {
      awsAccount: "123456789012",
      arnPattern: "arn:aws:sts::123456789012:assumed-role/ci/.*",
      userIdPattern: "AROAEXAMPLE:.*",
    },
  });
  const conditional = await create(storage, "conditional", { claimMatch: { issuer, subject: "repo:fixture/site" } });
  await call("PUT", `/trust/v1/identities/${conditional.uid}/conditions`, {
    conditions: [
      { path: ["repository_id"], equals: { stringValue: "123" } },
      { path: ["environment"], negated: true, exists: true },
      { path: ["job", "attempt"], oneOf: { values: [{ intValue: "1" }, { intValue: "2" }] } },
    ],
  });
  const ingester = await create(engineering, "ingester", { servicePrincipal: "SERVICE_PRINCIPAL_INGESTER" });
  await call("PATCH", `/iam/v2beta1/identities/${pattern.uid}`, { description: "changed" });
  const { uid: gone } = await create(operations, "gone", { claimMatch: { issuer, subject: "gone" } });
  await call("DELETE", `/iam/v2beta1/identities/${gone}`);
  return { literal, pattern, ingester, robot: { uid, ...robot, privateKey } };
}

// Stores when the identity was last used.
async function assumeByKey({ call, baseUrl }, { uid, issuer, subject, privateKey }) {
  const token = await new SignJWT()
    .setProtectedHeader({ alg: "ES256", kid: "first" })
    .setIssuer(issuer)
    .setSubject(subject)
    .setAudience("arbor")
    .setIssuedAt()
    .setExpirationTime("5m")
    .sign(privateKey);
  await call(token, "POST", `/sts/exchange?aud=${encodeURIComponent(baseUrl)}&identity=${encodeURIComponent(uid)}`);
}

async function createRoles(call, { engineering, operations }) {
  const create = (parent, name, capabilities) =>
    call("POST", `/iam/v2beta1/roles/${parent}`, { name, description: "custom", capabilities });
  const deployer = await create(engineering, "deployer", ["CAP_REPO_LIST", "CAP_TAG_LIST"]);
  await call("PATCH", `/iam/v2beta1/roles/${deployer.uid}`, {
    capabilities: ["CAP_REPO_LIST", "CAP_TAG_LIST", "CAP_IAM_GROUPS_LIST"],
  });
  const gone = await create(operations, "gone", ["CAP_REPO_LIST"]);
  await call("DELETE", `/iam/v2beta1/roles/${gone.uid}`);
  return deployer.uid;
}

async function createBindings(call, { root, groups, identities, deployer, roles, guest }) {
  const bind = (group, identityUid, roleUid) =>
    call("POST", `/iam/v2beta1/roleBindings/${group}`, { identityUid, roleUid });
  await bind(groups.backend, identities.literal.uid, deployer);
  await call("POST", `/bindings/v1/temporaryBindings/${groups.operations}`, {
    identityUid: identities.pattern.uid,
    roleUid: roles.viewer,
    endTime: "2999-01-01T00:00:00Z",
  });
  await bind(root, identities.robot.uid, roles.viewer);
  await bind(groups.operations, guest.identity, roles.viewer);
  const changed = await bind(groups.engineering, identities.pattern.uid, roles.viewer);
  await call("PATCH", `/iam/v2beta1/roleBindings/${changed.uid}`, { roleUid: roles.editor });
  const gone = await bind(groups.storage, identities.pattern.uid, roles.viewer);
  await call("DELETE", `/iam/v2beta1/roleBindings/${gone.uid}`);
  await call("POST", "/iam/v2beta1/roleBindings:batchCreate", {
    parent: groups.storage,
    roleUid: roles["registry.pull"],
    requests: [
      { roleBinding: { identityUid: identities.literal.uid } },
      { roleBinding: { identityUid: identities.ingester.uid } },
    ],
  });
}

async function createProvider(call, { root, roles }) {
  const provider = await call("POST", `/iam/v2beta1/identityProviders/${root}`, {
    name: "directory",
    description: "first",
    defaultRole: roles.viewer,
    oidc: {
      issuer: "https://login.example.com",
      clientId: "arbor",
      clientSecret: "sealed by the key of the fixture",
      additionalScopes: ["groups"],
      groupsClaim: "groups",
      correlationRule: "CORRELATION_RULE_SUB_EQUALS_EXTERNAL_ID",
      pkceEnabled: true,
    },
  });
  await call("PATCH", `/iam/v2beta1/identityProviders/${provider.uid}`, { description: "changed" });
  const map = (externalGroupId, roleUid) =>
    call("POST", `/iam/v2beta1/externalGroupRoleMappings/${provider.uid}`, {
      externalGroupId,
      roleUid,
      scope: root,
    });
  await map("backend-team", roles.editor);
  const gone = await map("gone", roles.viewer);
  await call("DELETE", `/iam/v2beta1/externalGroupRoleMappings/${gone.uid}`);
}

async function createRest(call, { root, groups: { engineering, operations }, identities, roles }) {
  await call("POST", `/iam/v2beta1/accountAssociations/${engineering}`, {
    name: "accounts",
    description: "of all providers",
    amazon: { account: "123456789012" },
    google: { projectId: "fixture-project", projectNumber: "123456789012" },
    github: { appInstallations: { 7: { installations: [{ installationId: "9007199254740993", name: "acme" }] } } },
    azure: {
      tenantId: "10f5d4f3-5e0a-4b2b-9c53-2a6f0d3a1b11",
      clientIds: { ci: "b2f7c3f1-7f43-4f41-8f0e-6d0c3a2e9d55" },
    },
    chainguard: { serviceBindings: { INGESTER: identities.ingester.uid } },
  });
  await call("PATCH", `/iam/v2beta1/accountAssociations/${engineering}`, { description: "changed" });
  await call("POST", `/iam/v2beta1/groupInvites/${operations}`, {
    roleUid: roles.viewer,
    email: "bob@example.com",
    ttl: "604800s",
    singleUse: true,
  });
  await call("POST", `/iam/v1/group_invites/${engineering}`, { role: roles.editor, ttl: "86400s" });
  await call("POST", `/iam/v2beta1/terms/${root}`, { documentIds: ["eula", "dpa"] });
  await call("POST", `/events/v2beta1/subscriptions/${root}`, { sink: "https://hooks.example.com/events" });
  const gone = await call("POST", `/events/v1/subscriptions/${engineering}`, {
    sink: "https://hooks.example.com/gone",
  });
  await call("DELETE", `/events/v2beta1/subscriptions/${gone.id}`);
}

async function createRegistry(call, { engineering, operations }) {
  const app = await call("POST", `/registry/v2beta1/repos/${engineering}`, {
    name: "app",
    description: "what is sold",
    catalogTier: "CATALOG_TIER_APPLICATION",
    bundles: ["application", "fips"],
    aliases: ["app:latest"],
    activeTags: ["latest", "1.0"],
    customOverlay: {
      contents: { packages: ["curl", "bash"], runtimeRepositories: ["https://packages.example.com"] },
      environment: { LANG: "C.UTF-8" },
      annotations: { "com.example.team": "backend" },
      accounts: {
        runAs: "app",
        users: [{ username: "app", uid: 1000, gid: 1000, groupName: "app", shell: "/bin/sh", homeDir: "/home/app" }],
        groups: [{ groupname: "app", gid: 1000, members: ["app"] }],
      },
    },
  });
  await call("PATCH", `/registry/v2beta1/repos/${app.uid}`, { description: "changed by version 2" });
  const old = await call("POST", `/registry/v1/repos/${operations}`, { name: "tools", description: "by version 1" });
  await call("PUT", `/registry/v1/repos/${old.id}`, { name: "tools", description: "changed by version 1" });
  await call("POST", `/registry/v2beta1/repos/${operations}`, { name: "copy", sync_config: { source: app.uid } });
  const gone = await call("POST", `/registry/v2beta1/repos/${operations}`, { name: "gone" });
  await call("DELETE", `/registry/v2beta1/repos/${gone.uid}`);

  const tag = (repo, body) => call("POST", `/registry/v2beta1/tags/${repo}`, body);
  await tag(app.uid, { name: "1.0", digest: digest("1f"), bundles: ["stable"] });
  await tag(app.uid, { name: "latest", digest: digest("1f") });
  // So its history has two images.
  await tag(app.uid, { name: "latest", digest: digest("2e") });
  await tag(app.uid, { name: "sha256-1f.sig", digest: digest("3d") });
  await tag(app.uid, { name: "1.0-20260131", digest: digest("1f") });
  await tag(app.uid, { name: "1.1_git20260131", digest: digest("1f") });
  await tag(app.uid, { name: "1.1_git20260131-r0", digest: digest("1f") });
  await call("POST", `/registry/v1/tags/${old.id}`, { name: "next", deprecated: true });
  await call("POST", `/registry/v2beta1/overlays/${engineering}`, {
    name: "debugging",
    config: { contents: { packages: ["strace"] }, guardedEntrypoint: true, preflight: [{ tcp: "db:5432" }] },
  });
  const tools = await call("POST", `/registry/v2beta1/repos/${engineering}`, { name: "bound" });
  const bind = (tagSelector) =>
    call("POST", `/registry/v2beta1/overlayBindings/${tools.uid}`, { overlay: "debugging", tagSelector });
  await bind({ kind: "KIND_EXACT", tags: ["1.0", "latest"] });
  await bind({ kind: "KIND_VARIANT", variantType: "VARIANT_TYPE_DEV" });
  const lost = await tag(app.uid, { name: "gone", digest: digest("4c") });
  await call("DELETE", `/registry/v2beta1/tags/${lost.uid}`);
}

async function createAdvisories({ run, directory }, call, { owner, groups: { engineering }, role }) {
  const file = join(directory, "record.json");
  writeFileSync(
    file,
    JSON.stringify({
      schema_version: "1.6.7",
      id: "TEST-2024-1",
      modified: "2024-02-01T00:00:00Z",
      published: "2024-01-01T00:00:00Z",
      aliases: ["CVE-2024-1", "GHSA-aaaa-bbbb-cccc"],
      severity: [{ type: "CVSS_V3", score: "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H" }],
      affected: [
        {
          package: { ecosystem: "PyPI", name: "django" },
          ranges: [{ type: "ECOSYSTEM", events: [{ introduced: "0" }, { fixed: "4.2.1" }] }],
        },
        { package: { ecosystem: "npm", name: "left-pad" } },
      ],
    }),
  );
  await run("advisories", "import", file, "--group", engineering);
  await run("admin", "bind", "--identity", owner.identity, "--role", role, "--group", owner.group);
  const advisory = await call("POST", "/vulnerabilities/v1/advisories", {
    parentId: engineering,
    advisory: {
      artifactType: "apk",
      artifactName: "curl",
      artifactArchitecture: "x86_64",
      componentName: "libcurl",
      componentLocation: "/usr/lib",
      componentType: "apk",
      aliases: ["CVE-2024-2"],
      events: [{ status: "PENDING", detection: { manual: {} } }],
    },
  });
  await call("POST", `/vulnerabilities/v1/advisories/${advisory.id}/events`, {
    advisoryEvent: { status: "APPROVED", fixed: { fixedVersion: "8.6.0-r0", note: "backported" } },
  });
}
