// `--if-absent`: every `create` can be repeated, and returns what exists.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { create, type DescMethodUnary, type JsonObject } from "@bufbuild/protobuf";
import type { Command } from "commander";
import {
  AccountAssociationsService,
  CreateAccountAssociationRequestSchema,
} from "#gen/chainguard/platform/iam/v2beta1/account_associations_pb.js";
import { Code, CommandError } from "../../../../src/cli/errors.js";
import { createProgram } from "../../../../src/cli/program.js";
import { createIfAbsent, isSameJson } from "../../../../src/cli/remote/iam/if-absent.js";
import { loadCommands } from "../../../../src/cli/remote/iam/resource-commands.js";
import type { Session } from "../../../../src/cli/remote/session.js";
import { builtinRoleUid } from "../../../../src/kernel/ids.js";
import { type CliWorld, startCliWorld } from "./cli-world.js";

const [viewer, editor] = ["viewer", "editor"].map(builtinRoleUid) as [string, string];
const digest = `sha256:${"a".repeat(64)}`;

let world: CliWorld;
let group: string;
before(async () => {
  world = await startCliWorld();
  group = String((await world.json("groups", "create", "--parent", world.root, "--name", "home")).uid);
});
after(() => world?.stop());

async function run(...args: readonly string[]) {
  const ended = await world.arbor({}, ...args, "--if-absent", "-o", "json");
  return { ...ended, json: (ended.code === 0 ? JSON.parse(ended.stdout) : {}) as JsonObject };
}

/** How to create one of each kind, and flags that differ from that. The parents are created by the cases before. */
const cases: Readonly<Record<string, { readonly args: readonly string[]; readonly other?: readonly string[] }>> = {
  "iam groups": { args: ["--parent", "acme.example/home", "--name", "team"], other: ["--description", "another"] },
  "iam identities": {
    args: ["--parent", "acme.example/home", "--name", "ci", "--issuer", "https://idp.example", "--subject", "a"],
    other: ["--subject", "b"],
  },
  "iam roles": {
    args: ["--parent", "acme.example/home", "--name", "reader", "--capability", "roles.list,groups.list"],
    other: ["--capability", "groups.list"],
  },
  "iam role-bindings": {
    args: ["--parent", "acme.example/home", "--identity", "acme.example/home/ci", "--role", "viewer"],
    other: ["--expires", "8h"],
  },
  "iam identity-providers": {
    args: [
      ...["--parent", "acme.example", "--name", "login", "--default-role", viewer],
      ...["--oidc-issuer", "https://login.example", "--oidc-client-id", "id", "--oidc-pkce-enabled"],
    ],
    other: ["--oidc-client-id", "another"],
  },
  "iam account-associations": {
    args: ["--parent", "acme.example/home", "--name", "accounts", "--amazon-account", "123456789012"],
    other: ["--amazon-account", "210987654321"],
  },
  "iam group-invites": {
    args: ["--parent", "acme.example/home", "--role", "viewer", "--email", "ada@acme.example", "--ttl", "7d"],
    other: ["--single-use"],
  },
  "iam group-mappings": {
    args: [
      "--parent",
      "acme.example/login",
      "--external-group-id",
      "g 1",
      "--role-uid",
      viewer,
      "--scope",
      "acme.example",
    ],
  },
  "registry repos": { args: ["--parent", "acme.example/home", "--name", "app"], other: ["--description", "another"] },
  "registry tags": {
    args: ["--parent", "acme.example/home/app", "--name", "2026-01-31", "--digest", digest],
    other: ["--digest", digest.replaceAll("a", "b")],
  },
  "registry overlays": {
    args: ["--parent", "acme.example/home", "--name", "tools", "--config-contents-package", "curl"],
    other: ["--config-contents-package", "jq"],
  },
  "registry overlay-bindings": {
    args: ["--parent", "acme.example/home/app", "--overlay", "tools", "--tag-selector-kind", "all"],
  },
  "events subscriptions": { args: ["--parent", "acme.example/home", "--sink", "https://hooks.example/arbor"] },
};

/** Those that create something else with each call, or nothing that a parent has one of. */
const excepted = [
  // On the host, where it has an error of its own.
  "admin roles create",
  // The secret is printed once, so that another one is needed.
  "auth pull-tokens create",
  // Its id is the service's, and nothing else is unique.
  "advisories create",
  "advisories events create",
  // `update` replaces it.
  "registry deployments create",
];

describe("--if-absent", () => {
  it("is a flag of every create, besides those that cannot be repeated", async () => {
    const list = (command: Command, path = ""): string[] =>
      command.commands
        .flatMap((one) => list(one, `${path} ${one.name()}`.trim()))
        .concat(
          command.name() === "create" && !command.options.some(({ long }) => long === "--if-absent") ? [path] : [],
        );
    assert.deepEqual(list(await createProgram()).sort(), [...excepted].sort());
    const named = (await createProgram()).commands.flatMap((top) =>
      top.commands.flatMap((resource) =>
        resource.commands
          .filter(({ name, options }) => options.some(({ long }) => long === "--if-absent") && name !== undefined)
          .map(() => `${top.name()} ${resource.name()}`),
      ),
    );
    assert.deepEqual(named.sort(), Object.keys(cases).sort());
  });

  for (const [resource, { args, other }] of Object.entries(cases)) {
    it(`${resource}: a second creation returns the first`, async () => {
      const words = [...resource.split(" "), "create", ...args];
      const made = await run(...words);
      assert.equal(made.code, 0, made.stderr);
      assert.equal(made.stderr, "");
      const again = await run(...words);
      assert.equal(again.code, 0, again.stderr);
      // Its code is shown once.
      const { code: _code, ...shown } = made.json;
      const { code: none, ...found } = again.json;
      assert.deepEqual([found, none ?? ""], [shown, ""]);
      assert.match(again.stderr, /^arbor: this [a-z ]+ exists already, and nothing was created: [0-9a-f/]+\n$/);
      if (other === undefined) return;
      const different = await run(...words, ...other);
      assert.equal(different.code, 0, different.stderr);
      assert.equal(different.json.uid, made.json.uid);
      assert.match(
        different.stderr,
        /nothing was created: [0-9a-f/]+\narbor: warning: it differs from what was given: /,
      );
    });
  }

  it("names the fields that differ", async () => {
    const args = ["iam", "roles", "create", "--parent", group, "--name", "reader", "--description", "x"];
    const { stderr } = await run(...args, "--capability", "groups.list");
    assert.match(stderr, /: capabilities, description\n$|: description, capabilities\n$/);
    const same = await run(...args.slice(0, -2), "--capability", "groups.list", "--capability", "roles.list");
    assert.doesNotMatch(same.stderr, /differs/);
  });

  it("creates what differs in its key", async () => {
    const { json, stderr } = await run(
      "iam",
      "role-bindings",
      "create",
      "--parent",
      group,
      "--identity",
      "ci",
      "--role",
      editor,
    );
    assert.equal((json.role as JsonObject).name, "editor");
    assert.equal(stderr, "");
  });

  it("knows organisations of its caller alone", async () => {
    const other = await world.service.identity();
    const mine = async () => {
      const env = { ARBOR_TOKEN: other.token };
      return world.arbor(env, "iam", "groups", "create", "--name", "acme.example", "--if-absent", "-o", "json");
    };
    const [made, again] = [await mine(), await mine()];
    assert.equal(made.code, 0, made.stderr);
    assert.notEqual((JSON.parse(made.stdout) as JsonObject).uid, world.root);
    assert.equal(again.stdout, made.stdout);
    assert.match(again.stderr, /exists already/);
  });

  it("lists the uids where there are several", async () => {
    const uids: string[] = [];
    for (let i = 0; i < 2; i++) {
      const made = await world.iam("groups", "create", "--parent", group, "--name", "twin", "-o", "json");
      uids.push(String((JSON.parse(made.stdout) as JsonObject).uid));
    }
    const { code, stderr } = await run("iam", "groups", "create", "--parent", group, "--name", "twin");
    assert.equal(code, 2);
    assert.match(stderr, /--if-absent: 2 groups are the same already: /);
    for (const uid of uids) assert.ok(stderr.includes(uid));
  });

  it("creates nothing where the caller may not list", async () => {
    const { uid, token } = await world.service.identity();
    await world.json(
      "roles",
      "create",
      "--parent",
      world.root,
      "--name",
      "maker",
      "--capability",
      "subscriptions.create,groups.list",
    );
    await world.json(
      "role-bindings",
      "create",
      "--parent",
      world.root,
      "--identity",
      uid,
      "--role",
      "acme.example/maker",
    );
    const args = ["events", "subscriptions", "create", "--parent", group, "--sink", "https://hooks.example/arbor"];
    const { code, stderr } = await world.arbor({ ARBOR_TOKEN: token }, ...args, "--if-absent");
    assert.equal(code, 4, stderr);
    assert.match(stderr, /--if-absent needs the right to list subscriptions there, and lacks subscriptions\.list/);
    // The control: without the flag it creates another one.
    assert.equal((await world.arbor({ ARBOR_TOKEN: token }, ...args)).code, 0);
  });

  it("presets: a second creation returns the first, and says where it differs", async () => {
    const args = (ref: string) => [
      ...["iam", "identities", "create", "--parent", group, "--kubernetes-issuer", "https://k8s.example"],
      ...["--namespace", "prod", "--service-account", "deployer", "--name", "deployer", "--service-account-id", ref],
    ];
    const [first, second, third] = [await run(...args("1")), await run(...args("1")), await run(...args("2"))];
    assert.equal(first.code, 0, first.stderr);
    assert.deepEqual(second.json, first.json);
    assert.match(second.stderr, /exists already[^\n]*\n$/);
    assert.match(third.stderr, /differs from what was given: conditions\n$/);
  });

  it("looks again where another command was faster", async () => {
    const resource = await loadCommands("account association");
    const method = AccountAssociationsService.method.createAccountAssociation as DescMethodUnary;
    const request = create(CreateAccountAssociationRequestSchema, { parent: group, accountAssociation: { name: "a" } });
    let isThere = false;
    const row = { uid: group, name: "a" };
    const call = async ({ name }: DescMethodUnary): Promise<JsonObject> => {
      if (name.startsWith("List")) return { accountAssociations: isThere ? [row] : [] };
      return name === "Check" ? { allowed: true } : row;
    };
    const printed: JsonObject[] = [];
    const attempt = (isStored: boolean) =>
      createIfAbsent(
        { call } as unknown as Session,
        { resource, method, request, field: undefined, paths: [] },
        {
          async create() {
            isThere = isStored;
            throw new CommandError(Code.AlreadyExists, "it exists");
          },
          async print(existing) {
            printed.push(existing);
          },
        },
      );
    await attempt(true);
    assert.deepEqual(printed, [row]);
    // The control: what cannot be found stays an error.
    isThere = false;
    await assert.rejects(attempt(false), /it exists/);
  });

  it("compares JSON without the order of lists, and empty values as none", () => {
    assert.ok(isSameJson({ a: [], b: "", c: ["x", "y"] }, { c: ["y", "x"], d: false }));
    assert.ok(!isSameJson({ c: ["x"] }, { c: ["x", "y"] }));
    assert.ok(isSameJson("2027-01-31T00:00:00Z", "2027-01-31T00:00:00.000Z"));
  });
});
