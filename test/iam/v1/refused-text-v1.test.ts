// Text that PostgreSQL rejects is rejected on every database, and errors about maps keep the keys of the caller.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { GroupAccountAssociations } from "#gen/chainguard/platform/iam/account_associations_pb.js";
import { ExternalGroupRoleMappings } from "#gen/chainguard/platform/iam/external_group_role_mappings_pb.js";
import { GroupInvites } from "#gen/chainguard/platform/iam/group_invites_pb.js";
import { Identities } from "#gen/chainguard/platform/iam/identity_pb.js";
import { ExternalGroupRoleMappingsService } from "#gen/chainguard/platform/iam/v2beta1/external_group_role_mappings_pb.js";
import { GroupInvitesService } from "#gen/chainguard/platform/iam/v2beta1/group_invites_pb.js";
import { type IamWorld, startIamWorld } from "../iam-world.js";
import { type Wire, wireOf } from "./wires.js";

let world: IamWorld;
let grpc: Wire;
before(async () => {
  world = await startIamWorld();
  grpc = wireOf("gRPC", world.url, world.owner.token);
});
after(async () => {
  grpc.close();
  await world.stop();
});

const nul = "a\0b";

describe("U+0000 is rejected over gRPC as over REST", () => {
  const text = (field: string) => `Invalid argument: ${field}: ${field} must not hold U+0000`;
  it("in filters of both versions", async () => {
    const { list } = ExternalGroupRoleMappings.method;
    const { listExternalGroupRoleMappings } = ExternalGroupRoleMappingsService.method;
    const rows: readonly (readonly [failure: Promise<string>, field: string])[] = [
      [grpc.expectError(GroupInvites.method.list, { keyId: nul }), "keyId"],
      [grpc.expectError(GroupInvitesService.method.listGroupInvites, { keyId: nul }), "keyId"],
      [grpc.expectError(list, { identityProviderUidp: nul }), "identityProviderUidp"],
      [grpc.expectError(listExternalGroupRoleMappings, { identityProviderUid: nul }), "identityProviderUid"],
    ];
    for (const [failure, field] of rows) assert.equal(await failure, text(field));
  });

  it("in what a map holds", async () => {
    const group = await world.group();
    const github = (name: string) => ({ appInstallations: { "7": { installations: [{ installationId: 1n, name }] } } });
    const expectCreateError = (name: string) =>
      grpc.expectError(GroupAccountAssociations.method.create, { group, name: "a", github: github(name) });
    assert.equal(await expectCreateError(nul), text("github.appInstallations.7.installations[0].name"));
    assert.equal(
      await expectCreateError("x".repeat(257)),
      "Invalid argument: github: github.appInstallations must have names of at most 256 characters",
    );
  });

  it("in static keys, which may span lines", async () => {
    const create = (issuerKeys: string) => {
      const value = { issuer: "https://i.example", subject: "s", issuerKeys };
      return { parentId: world.child, identity: { name: "a", relationship: { case: "static" as const, value } } };
    };
    await grpc.call(Identities.method.create, create('{\n\t"keys": []\r\n}'));
    assert.equal(await grpc.expectError(Identities.method.create, create(nul)), text("identity.static.issuerKeys"));
  });
});

describe("keys of maps in errors are as they were sent", () => {
  it("in claims", async () => {
    for (const key of ["uid", "https://x.example//parent", "a..staticKeys"]) {
      const iss = { case: "issuer" as const, value: "https://i.example" };
      const value = { iss, sub: { case: "subject" as const, value: "s" }, claims: { [key]: "" } };
      const identity = { name: "a", relationship: { case: "claimMatch" as const, value } };
      assert.equal(
        await grpc.expectError(Identities.method.create, { parentId: world.child, identity }),
        `Invalid argument: claimMatch: claimMatch.claims.${key} must be 1 to 1024 characters`,
      );
    }
  });

  it("in bindings of services", async () => {
    const group = await world.group();
    const chainguard = { serviceBindings: { parent: await world.identity(group) } };
    assert.equal(
      await grpc.expectError(GroupAccountAssociations.method.create, { group, name: "a", chainguard }),
      "Invalid argument: chainguard.serviceBindings.parent: parent must be a service principal directly in the group",
    );
  });
});
