// What the help says, and what the table of one resource shows.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { create, createFileRegistry, type DescField, fromBinary, type JsonObject, toJson } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import { AccountAssociationSchema } from "#gen/chainguard/platform/iam/v2beta1/account_associations_pb.js";
import { RoleSchema } from "#gen/chainguard/platform/iam/v2beta1/roles_pb.js";
import { AdvisorySchema } from "#gen/chainguard/platform/vulnerabilities/v1/advisories_pb.js";
import { createProgram } from "../../../../src/cli/program.js";
import { FieldFlag, fileFields, setByService } from "../../../../src/cli/remote/iam/field-flags.js";
import { describeOption } from "../../../../src/cli/remote/iam/methods.js";
import { toDetailRows } from "../../../../src/cli/remote/iam/run.js";
import { isDocumentedUnused } from "../../../../src/codec/field-behavior.js";
import { parseComments } from "../../../../src/codec/proto-comments.js";

const arbor = await createProgram();

function leaf(path: string): Command {
  return path.split(" ").reduce((at, name) => {
    const next = at.commands.find((sub) => sub.name() === name);
    assert.ok(next, path);
    return next;
  }, arbor);
}

function helpOf(path: string, flag: string): string {
  const option = leaf(path).options.find(({ long }) => long === flag);
  assert.ok(option, flag);
  return describeOption(option);
}

describe("the help", () => {
  it("says something of every flag", () => {
    const flags: FieldFlag[] = [];
    const collect = (command: Command) => {
      flags.push(...command.options.filter((option) => option instanceof FieldFlag));
      command.commands.forEach(collect);
    };
    collect(leaf("iam"));
    assert.ok(flags.length > 200);
    for (const flag of flags) assert.match(describeOption(flag), /^(\S.{10,}\.|the opposite of --\S+)$/, flag.flags);
  });

  for (const [path, flag, description] of [
    ["iam groups create", "--name", /^The name people use\. Matches /],
    ["iam groups update", "--no-verified", /^the opposite of --verified$/],
    ["iam groups create", "--kind", / One of: starter, customer, dev, infra, aws-marketplace\.$/],
    ["iam roles create", "--capability", /^What the role allows: .+ Can be given more than once\.$/],
    ["iam identity-providers create", "--oidc-client-secret-file", / The name of a file that holds it, or - for /],
    [
      "iam groups list",
      "--output",
      /choices: "table", "wide", "name", "csv", "json", "jsonl", "yaml", default: "table"/,
    ],
  ] as const) {
    it(`${path} ${flag}`, () => assert.match(helpOf(path, flag), description));
  }

  it("knows fields by names that there are", () => {
    const image = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync("gen/api.binpb")));
    const isField = (fullName: string) => {
      const at = fullName.lastIndexOf(".");
      return (
        image.getMessage(fullName.slice(0, at))?.fields.some(({ name }) => name === fullName.slice(at + 1)) ?? false
      );
    };
    assert.deepEqual(
      [...fileFields, ...setByService].filter((name) => !isField(name)),
      [],
    );
    assert.equal(isField("chainguard.platform.registry.Tag.nothing"), false);
  });

  it("has an argument or a flag only for fields that callers set, in both versions", () => {
    const comments = parseComments(readFileSync("gen/api.binpb"));
    const described = (fields: readonly DescField[]) =>
      fields.filter((field) => isDocumentedUnused(field, comments)).map(String);
    const flags: DescField[] = [];
    const collect = (command: Command) => {
      flags.push(...command.options.filter((option) => option instanceof FieldFlag).map(({ field }) => field));
      command.commands.forEach(collect);
    };
    collect(arbor);
    assert.ok(flags.length > 300);
    assert.deepEqual(described(flags), []);
    assert.equal(described([AdvisorySchema.field.createdAt]).length, 1);
  });

  it("describes arguments by the comments of their fields", () => {
    const check = leaf("iam account-associations check");
    assert.match(check.helpInformation(), /Arguments:\n {2}uid +The uid of the group/);
    assert.match(check.helpInformation(), /provider-type +.*One of: google,\s+amazon, azure/s);
  });

  it("offers no flag for what callers cannot set, and none that takes a secret", () => {
    const names = (path: string) => leaf(path).options.map(({ long }) => long);
    for (const name of ["--uid", "--create-time", "--status", "--resource-limit"]) {
      assert.ok(!names("iam groups create").includes(name), name);
    }
    assert.ok(names("iam identity-providers create").includes("--oidc-correlation-rule"));
    assert.ok(!names("iam identity-providers update").includes("--oidc-correlation-rule"));
    assert.ok(!names("iam identity-providers create").includes("--oidc-client-secret"));
    assert.ok(!names("iam groups list").some((name) => name?.startsWith("--no-")));
  });
});

describe("the table of one resource", () => {
  it("has a line for each value, with the names that flags take", () => {
    const role = create(RoleSchema, { uid: "u", capabilities: [103, 303], createTime: { seconds: 0n } });
    assert.deepEqual(toDetailRows(RoleSchema, toJson(RoleSchema, role) as JsonObject), [
      ["uid", "u"],
      ["capabilities", "groups.list"],
      ["capabilities", "roles.list"],
      ["createTime", "1970-01-01T00:00:00Z"],
    ]);
  });

  it("shows the contents of messages and maps, and nothing that is empty", () => {
    const message = create(AccountAssociationSchema, {
      azure: { tenantId: "t", clientIds: { syncer: "1", "a b": "" } },
      github: { appInstallations: { 12: { installations: [{ installationId: 7n, name: "acme" }] } } },
      chainguard: {},
    });
    const json = toJson(AccountAssociationSchema, message, { alwaysEmitImplicit: true }) as JsonObject;
    assert.deepEqual(toDetailRows(AccountAssociationSchema, json), [
      ["azure.tenantId", "t"],
      ["azure.clientIds.syncer", "1"],
      ["azure.clientIds.a b", ""],
      ["github.appInstallations.12", '{"installations":[{"installationId":"7","name":"acme"}]}'],
    ]);
  });
});
