// Every verb of every resource, against what REST responses.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { iamResources } from "../../../../src/cli/remote/iam/commands.js";
import { builtinRoleUid } from "../../../../src/kernel/ids.js";
import { type CliWorld, startCliWorld } from "./cli-world.js";

const [viewer, editor] = ["viewer", "editor"].map(builtinRoleUid) as [string, string];

interface Case {
  readonly resource: string;
  /** The collection in the paths of REST, where it is not the resource. */
  readonly path: string;
  /** What it takes to create one. */
  readonly create: () => Promise<readonly string[]> | readonly string[];
  /** What the one created holds; checked as part of it. */
  readonly expectCreated: () => object;
  /** What changes it, and into what. */
  readonly update?: readonly string[];
  readonly updated?: object;
  /** How the list is narrowed to it. */
  readonly filter: (uid: string) => readonly string[];
  /** The row of the table before it is changed, from its second column on. */
  readonly row: RegExp;
}

let world: CliWorld;
let group: string;
let provider: string;
before(async () => {
  world = await startCliWorld();
  group = String((await world.json("groups", "create", "--parent", world.root, "--name", "home")).uid);
  const secret = world.file("s3cr3t\n");
  const idp = ["--default-role", viewer, "--oidc-issuer", "https://login.example", "--oidc-client-id", "id"];
  const made = await world.json(
    ...["identity-providers", "create", "--parent", world.root, "--name", "login", ...idp],
    ...["--oidc-client-secret-file", secret],
  );
  provider = String(made.uid);
});
after(() => world?.stop());

const cases: readonly Case[] = [
  {
    resource: "groups",
    path: "groups",
    create: () => ["--parent", world.root, "--name", "team", "--description", "who builds"],
    expectCreated: () => ({ name: "team", description: "who builds", verified: false }),
    update: ["--description", ""],
    updated: { name: "team", description: "" },
    filter: (uid) => ["--children-of", world.root, "--name", "team", "--id", uid],
    row: /^team {2}who builds {3}TIME$/,
  },
  {
    resource: "identities",
    path: "identities",
    create: () => [
      ...["--parent", group, "--name", "ci", "--issuer", "https://idp.example", "--subject-pattern", "repo:acme/.*"],
      ...["--audience", "arbor", "--claim", "ref=a,b=c", "--claim", "event=push", "--claim-pattern", "actor=a|b"],
    ],
    expectCreated: () => ({
      claimMatch: {
        issuer: "https://idp.example",
        subjectPattern: "repo:acme/.*",
        audience: "arbor",
        claims: { ref: "a,b=c", event: "push" },
        claimPatterns: { actor: "a|b" },
      },
    }),
    update: ["--subject", "repo:acme/main"],
    updated: {
      claimMatch: {
        issuer: "https://idp.example",
        subject: "repo:acme/main",
        audience: "arbor",
        claims: { ref: "a,b=c", event: "push" },
        claimPatterns: { actor: "a|b" },
      },
    },
    filter: () => ["--name", "ci", "--relationship-type", "claim-match"],
    row: /^ci {4}claim-match {2}- {12}-$/,
  },
  {
    resource: "roles",
    path: "roles",
    create: () => [
      ...["--parent", group, "--name", "reader"],
      ...["--capability", "groups.list,ROLES.LIST", "--capability", "CAP_IAM_ROLE_BINDINGS_LIST"],
    ],
    expectCreated: () => ({
      capabilities: ["CAP_IAM_GROUPS_LIST", "CAP_IAM_ROLES_LIST", "CAP_IAM_ROLE_BINDINGS_LIST"],
    }),
    update: ["--capability", "identity.list"],
    updated: { name: "reader", capabilities: ["CAP_IAM_IDENTITY_LIST"] },
    filter: () => ["--descendants-of", group, "--name", "reader"],
    row: /^reader {2}- {12}3$/,
  },
  {
    resource: "role-bindings",
    path: "roleBindings",
    create: async () => {
      const { uid } = await world.service.identity({}, world.root);
      return ["--parent", group, "--identity-uid", uid, "--role-uid", viewer];
    },
    expectCreated: () => ({ role: { uid: viewer, name: "viewer", description: "Viewer Role (built-in)" } }),
    update: ["--role-uid", editor],
    updated: { role: { uid: editor, name: "editor", description: "Editor Role (built-in)" } },
    filter: (uid) => ["--group", group, "--id", uid],
    row: /^\S+ +- +viewer {2}home {3}- +UID$/,
  },
  {
    resource: "identity-providers",
    path: "identityProviders",
    create: () => [
      ...["--parent", world.root, "--name", "second", "--default-role", viewer, "--oidc-issuer", "https://idp.example"],
      ...["--oidc-client-id", "id", "--oidc-client-secret-file", world.file("s3cr3t")],
      ...["--oidc-additional-scope", "groups", "--oidc-additional-scope", "roles"],
      ...["--oidc-correlation-rule", "sub-equals-external-id"],
    ],
    expectCreated: () => ({
      name: "second",
      oidc: {
        issuer: "https://idp.example",
        clientId: "id",
        additionalScopes: ["groups", "roles"],
        groupsClaim: "",
        correlationRule: "CORRELATION_RULE_SUB_EQUALS_EXTERNAL_ID",
        pkceEnabled: false,
      },
    }),
    update: ["--oidc-groups-claim", "groups"],
    updated: {
      oidc: {
        issuer: "https://idp.example",
        clientId: "id",
        additionalScopes: ["groups", "roles"],
        groupsClaim: "groups",
        correlationRule: "CORRELATION_RULE_SUB_EQUALS_EXTERNAL_ID",
        pkceEnabled: false,
      },
    },
    filter: () => ["--name", "second"],
    row: /^second {2}https:\/\/idp\.example {2}- +UID {2}http:\/\/127\.0\.0\.1:\d+\/oauth\/callback\/UID$/,
  },
  {
    resource: "account-associations",
    path: "accountAssociations",
    create: () => [
      ...["--parent", group, "--name", "accounts", "--amazon-account", "123456789012"],
      ...["--azure-tenant-id", "t", "--azure-client-id", "syncer=1-2", "--azure-client-id", "scanner=3=4"],
      ...["--github-app-installation", '12={"installations":[{"installationId":"7","name":"acme"}]}'],
    ],
    expectCreated: () => ({
      uid: group,
      amazon: { account: "123456789012" },
      azure: { tenantId: "t", clientIds: { syncer: "1-2", scanner: "3=4" } },
      github: { appInstallations: { 12: { installations: [{ installationId: "7", name: "acme" }] } } },
    }),
    update: ["--google-project-id", "p", "--google-project-number", "42"],
    updated: { amazon: { account: "123456789012" }, google: { projectId: "p", projectNumber: "42" } },
    filter: () => ["--name", "accounts", "--order-by", "group desc"],
    row: /^accounts {2}amazon, azure, github {2}-$/,
  },
  {
    resource: "group-invites",
    path: "groupInvites",
    create: () => ["--parent", group, "--role-uid", viewer, "--ttl", "7d", "--single-use"],
    expectCreated: () => ({ singleUse: true, email: "" }),
    update: ["--no-single-use", "--email", "ada@acme.example"],
    updated: { singleUse: false, email: "ada@acme.example" },
    filter: (uid) => ["--id", uid],
    row: /^- {7}viewer {2}TIME +true {8}\S+$/,
  },
  {
    resource: "group-mappings",
    path: "externalGroupRoleMappings",
    create: () => ["--parent", provider, "--external-group-id", "g 1", "--role-uid", viewer, "--scope", world.root],
    expectCreated: () => ({
      identityProviderUid: provider,
      externalGroupId: "g 1",
      roleUid: viewer,
      scope: world.root,
    }),
    filter: () => ["--identity-provider-uid", provider],
    row: /^g 1 {13}UID {2}UID$/,
  },
];

describe("a resource", () => {
  for (const { resource, path, create, expectCreated, update, updated, filter, row } of cases) {
    it(`${resource}: create, get, list, update, delete`, async () => {
      const made = await world.json(resource, "create", ...(await create()));
      assertHolds(made, expectCreated());
      const uid = String(made.uid);

      const { code, ...shown } = made;
      assert.deepEqual(await world.json(resource, "get", uid), { ...shown, ...(code !== undefined && { code: "" }) });
      assert.deepEqual(await world.json(resource, "get", uid), await world.rest(`/${path}/${uid}`));

      const list = await world.json(resource, "list", ...filter(uid));
      const rows = Object.values(list).find(Array.isArray) as readonly { uid: string }[];
      assert.deepEqual([rows.map((row) => row.uid), list.totalCount], [[uid], "1"]);

      const [, line = "", ...none] = (await world.iam(resource, "list", ...filter(uid))).stdout.trimEnd().split("\n");
      const [rest, cell] = [line.slice(0, -uid.length).trimEnd(), line.slice(-uid.length)];
      const masked = rest.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "TIME").replace(/[0-9a-f]{40}(\/[0-9a-f]{16})*/g, "UID");
      assert.deepEqual([cell, none], [uid, []]);
      assert.match(masked, row);

      if (update !== undefined && updated !== undefined) {
        assertHolds(await world.json(resource, "update", uid, ...update), updated);
        assertHolds(await world.rest(`/${path}/${uid}`), updated);
      }

      assert.deepEqual(await world.iam(resource, "delete", uid, "--yes"), {
        code: 0,
        stdout: `deleted ${uid}\n`,
        stderr: "",
      });
      const gone = await world.iam(resource, "get", uid);
      assert.equal(gone.code, 5);
      assert.match(gone.stderr, /^arbor: Not found: [a-z ]+: there is no [a-z ]+ [0-9a-f/]+\n$/);
    });
  }

  it("actions take required fields as arguments, and the request from a file", async () => {
    const { uid } = await world.service.identity({}, world.root);
    const file = world.file(JSON.stringify({ requests: [{ roleBinding: { identityUid: uid, roleUid: viewer } }] }));
    const made = await world.json("role-bindings", "batch-create", group, "-f", file);
    const [binding] = made.roleBindings as { identity: { uid: string } }[];
    assert.equal(binding?.identity.uid, uid);
    const wrong = await world.iam("account-associations", "check", group, "nobody");
    assert.equal(wrong.code, 2);
    assert.match(wrong.stderr, /amazon/);
    const unconfirmed = await world.iam("identity-providers", "revoke-scim-token", provider);
    assert.equal(unconfirmed.code, 2);
    assert.match(unconfirmed.stderr, /--yes: is required without a terminal/);
    assert.deepEqual(await world.json("groups", "check-eligibility"), { eligible: false });
  });

  it("a deletion answers in JSON as every call does", async () => {
    const { uid } = await world.json("groups", "create", "--parent", world.root, "--name", "short-lived");
    assert.deepEqual(await world.json("groups", "delete", String(uid), "--yes"), {});
  });

  it("terms: accept, list", async () => {
    const accepted = await world.json("terms", "accept", "--group", group, "--document-id", "eula");
    assert.deepEqual(accepted, { group, documentIds: ["eula"] });
    await world.json("terms", "create", "--group", group, "--document-id", "dpa", "--document-id", "tos, 2");
    assert.deepEqual(await world.json("terms", "list", "--group", group), await world.rest(`/terms/${group}`));
    const { stdout } = await world.iam("terms", "list", "--group", group, "-o", "jsonl");
    const documents = stdout.trim().split("\n");
    assert.deepEqual(documents.map((line) => JSON.parse(line).docId).sort(), ["dpa", "eula", "tos, 2"]);
  });

  it("is covered here", () => {
    assert.deepEqual([...cases.map(({ resource }) => resource), "terms"], [...iamResources.map(({ name }) => name)]);
  });
});

describe("what the registry holds", () => {
  const note =
    "arbor: Images that are still in the registry come back with the next `arbor registry sync`, and when they are pushed again.\n";
  const api = async (method: string, path: string, body?: object) => {
    const response = await fetch(`${world.service.url}/registry/v2beta1${path}`, {
      method,
      headers: { authorization: `Bearer ${world.token}`, "content-type": "application/json" },
      ...(body && { body: JSON.stringify(body) }),
    });
    return { status: response.status, json: (await response.json()) as Readonly<Record<string, unknown>> };
  };

  it("is listed, printed and deleted with a token: tags and repos", async () => {
    const repo = String((await api("POST", `/repos/${group}`, { name: "web", description: "the shop" })).json.uid);
    const digest = `sha256:${"a".repeat(64)}`;
    const tag = String((await api("POST", `/tags/${repo}`, { name: "latest", digest })).json.uid);
    for (const [kind, uid, parent, row] of [
      ["tags", tag, repo, /^latest {2}\S+Z {2}sha256:a{64}$/],
      ["repos", repo, group, /^web {3}the shop {5}- {12}\S+Z$/],
    ] as const) {
      const { stdout } = await world.registry(kind, "list", "--children-of", parent);
      const [, line = ""] = stdout.split("\n");
      assert.deepEqual(line.slice(-uid.length), uid);
      assert.match(line.slice(0, -uid.length).trimEnd(), row);
      const shown = await world.registry(kind, "get", uid, "-o", "json");
      assert.deepEqual(JSON.parse(shown.stdout), (await api("GET", `/${kind}/${uid}`)).json);
      const asked = await world.registry(kind, "delete", uid);
      assert.deepEqual([asked.code, asked.stdout], [2, ""]);
      assert.match(asked.stderr, /--yes: is required without a terminal/);
      assert.equal((await api("GET", `/${kind}/${uid}`)).status, 200);
      const deleted = await world.registry(kind, "delete", uid, "--yes");
      assert.deepEqual(deleted, { code: 0, stdout: `deleted ${uid}\n`, stderr: note });
      assert.equal((await api("GET", `/${kind}/${uid}`)).status, 404);
      const gone = await world.registry(kind, "delete", uid, "--yes", "-o", "json");
      assert.deepEqual([gone.code, gone.stdout], [5, ""], gone.stderr);
      assert.doesNotMatch(gone.stderr, /come back/);
    }
  });

  it("overlays and their bindings have every verb", async () => {
    const run = async (...args: string[]) => {
      const { code, stdout, stderr } = await world.registry(...args, "-o", "json");
      assert.equal(code, 0, `${args.join(" ")}: ${stderr}`);
      return JSON.parse(stdout) as Readonly<Record<string, unknown>>;
    };
    const packages = ["--config-contents-package", "curl", "--config-contents-package", "jq"];
    const overlay = String((await run("overlays", "create", "--parent", group, "--name", "tools", ...packages)).uid);
    const file = world.file(JSON.stringify({ config: { environment: { A: "b" }, preflight: [{ tcp: "db:5432" }] } }));
    await run("overlays", "update", overlay, "-f", file);
    const { config } = await run("overlays", "update", overlay, "--name", "more-tools");
    assertHolds(config as object, { environment: { A: "b" } });
    assert.equal((config as { contents?: object }).contents, undefined);
    // A flag for a part of the configuration replaces all of it.
    const replaced = (await run("overlays", "update", overlay, ...packages)).config as { environment: object };
    assert.deepEqual(replaced.environment, {});
    assert.match(
      (await world.registry("overlays", "list", "--children-of", group)).stdout,
      /\nmore-tools +curl,jq +\S+\n/,
    );
    assert.equal((await run("overlays", "get", "more-tools")).uid, overlay);

    const repo = String((await run("repos", "create", "--parent", group, "--name", "bound")).uid);
    const selector = ["--tag-selector-kind", "exact", "--tag-selector-tag", "v1", "--tag-selector-tag", "v2"];
    const named = ["--parent", repo, "--overlay", "more-tools", ...selector];
    const binding = String((await run("overlay-bindings", "create", ...named)).uid);
    assertHolds(await run("overlay-bindings", "get", binding), {
      repo,
      tagSelector: { kind: "KIND_EXACT", tags: ["v1", "v2"] },
    });
    for (const filter of [
      ["--overlay", "more-tools"],
      ["--children-of", repo],
    ]) {
      const { stdout } = await world.registry("overlay-bindings", "list", ...filter);
      assert.match(stdout, /\nmore-tools +KIND_EXACT +v1,v2 +\S+\n/);
    }
    assertHolds(await run("overlay-bindings", "update", binding, "--tag-selector-kind", "all"), {
      tagSelector: { kind: "KIND_ALL", tags: [] },
    });
    const bound = await world.registry("overlays", "delete", overlay, "--yes");
    assert.match(bound.stderr, /cannot delete overlay that is bound to a repo/);
    for (const [kind, uid] of [
      ["overlay-bindings", binding],
      ["overlays", overlay],
    ] as const) {
      const deleted = await world.registry(kind, "delete", uid, "--yes");
      assert.deepEqual(deleted, { code: 0, stdout: `deleted ${uid}\n`, stderr: "" });
    }
  });

  it("is created, changed and described with commands: repos, tags, readmes, settings", async () => {
    const run = async (...args: string[]) => {
      const { code, stdout, stderr } = await world.registry(...args, "-o", "json");
      assert.equal(code, 0, `${args.join(" ")}: ${stderr}`);
      return JSON.parse(stdout) as Readonly<Record<string, unknown>>;
    };
    const repo = String((await run("repos", "create", "--parent", group, "--name", "api")).uid);
    assert.equal((await run("repos", "update", repo, "--description", "the API")).description, "the API");
    // An organisation's owner may not write readmes, so the error shows that the command reaches the method.
    const readme = await world.registry("readmes", "update", repo, "--content-file", world.file("# API"));
    assert.equal(readme.code, 4);
    assert.match(readme.stderr, /repo\.update and repo\.internal\.admin at /);
    assert.equal((await run("readmes", "get", repo)).content, "");
    const digest = (letter: string) => `sha256:${letter.repeat(64)}`;
    const tag = String((await run("tags", "create", "--parent", repo, "--name", "v1", "--digest", digest("a"))).uid);
    await run("tags", "update", tag, "--name", "v1", "--digest", digest("b"));
    const history = await run("tags", "history", tag);
    assert.deepEqual(
      (history.items as { digest: string }[]).map((one) => one.digest),
      [digest("a"), digest("b")],
    );
    assert.match((await world.registry("tags", "history", tag)).stdout, /^UPDATED +DIGEST\n\S+Z +sha256:a{64}\n/);
    assert.equal((await run("repos", "tags-summary", repo)).tagCount, "1");
    const settings = await world.registry("settings", "update", world.root, "--unique-tags");
    assert.deepEqual([settings.code, settings.stdout], [4, ""]);
    assert.match(settings.stderr, /registry\.settings\.update at /);
    assert.equal((await run("settings", "get", world.root)).registryId, world.root);
  });
});

// Everything `part` has, `whole` has.
function assertHolds(whole: object, part: object): void {
  const common = Object.fromEntries(Object.entries(whole).filter(([name]) => name in part));
  assert.deepEqual(common, part);
}
