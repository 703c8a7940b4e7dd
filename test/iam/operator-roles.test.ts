// Operator roles: only the operator creates, binds and deletes them, and who holds one cannot pass it on.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { DescMethodUnary, MessageInitShape } from "@bufbuild/protobuf";
import { BindingsService } from "#gen/arbor/bindings/v1/bindings_pb.js";
import { Capability } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { RoleBindings } from "#gen/chainguard/platform/iam/role_binding_pb.js";
import { Roles } from "#gen/chainguard/platform/iam/role_pb.js";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { IdentitiesService } from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { IdentityProvidersService } from "#gen/chainguard/platform/iam/v2beta1/identity_providers_pb.js";
import { RoleBindingsService } from "#gen/chainguard/platform/iam/v2beta1/role_bindings_pb.js";
import { RolesService } from "#gen/chainguard/platform/iam/v2beta1/roles_pb.js";
import { ReposService } from "#gen/chainguard/platform/registry/v2beta1/repos_pb.js";
import { bindIdentity, unbindIdentity } from "../../src/iam/operator/operate.js";
import { createOperatorRole, deleteOperatorRole, listOperatorRoles } from "../../src/iam/operator/roles.js";
import { acceptInvite } from "../../src/iam/people/accept-invite.js";
import { builtinRoleUid, randomIds } from "../../src/kernel/ids.js";
import { roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { roleKind } from "../../src/store/iam/roles.js";
import type { Tx } from "../../src/store/transaction.js";
import { createRepo } from "../contract/registry-things.js";
import { bindingRow } from "../support/rows.js";
import { claimMatch, type IamWorld, type Somebody, startIamWorld } from "./iam-world.js";
import { type Wire, wireOf } from "./v1/wires.js";
import { type Attempt, oidc, person, waysToGrant } from "./ways-to-grant.js";

const viewer = builtinRoleUid("viewer");
const context = () => ({ ids: randomIds, nowMs: Date.now() });
const capabilities = ["internal", "repo.internal.admin", "repo.update", "registry.deployments.create"];

let world: IamWorld;
let wire: Wire;
let role: string;
let holder: Somebody;
let boundAtRoot: string;
let provider: string;

const bindOperators = (identity: string, group = world.root) =>
  world.write((tx) => bindIdentity(tx, { identity, role, group, internal: true }, context()));
const call = <M extends DescMethodUnary>(method: M, request: MessageInitShape<M["input"]>, by = world.owner) =>
  wire.call(method, request, by.token) as Promise<Record<string, unknown>>;

before(async () => {
  world = await startIamWorld();
  wire = wireOf("gRPC", world.url, world.owner.token);
  ({ uid: role } = await world.write((tx) =>
    createOperatorRole(tx, { name: "publisher", description: "writes readmes", capabilities }, context()),
  ));
  // Who holds the role owns the organisation as well.
  holder = await world.createBound("owner");
  boundAtRoot = await bindOperators(holder.uid);
  const identityProvider = {
    name: "login",
    defaultRole: viewer,
    configuration: { case: "oidc" as const, value: oidc },
  };
  provider = String(
    (
      await call(IdentityProvidersService.method.createIdentityProvider, {
        parent: world.root,
        identityProvider,
      })
    ).uid,
  );
});
after(async () => {
  wire.close();
  await world.stop();
});

async function errorOf({ token }: Somebody, [method, request]: Attempt): Promise<string> {
  return wire.expectError(method, request as never, token);
}

const target = () => ({
  ...{ group: world.root, role, provider },
  binding: async () => {
    const roleBinding = { identityUid: person(), roleUid: viewer };
    return String((await call(RoleBindingsService.method.createRoleBinding, { parent: world.root, roleBinding })).uid);
  },
});

/** What is stored of bindings and roles, to compare. */
function readStored(): Promise<string> {
  return world.write(async (tx) =>
    JSON.stringify([await tx.table(roleBindingKind).findByRole(role), await tx.table(roleKind).listOutsideGroups()]),
  );
}

describe("an operator role", () => {
  it("gives its capabilities at the group where it is bound, at once", async () => {
    const repo = await world.write((tx) => createRepo(tx, world.root, "text"));
    const change = { repoReadme: { uid: repo, content: "# Ours" }, updateMask: { paths: ["content"] } };
    const { updateRepoReadme } = ReposService.method;
    assert.match(
      await errorOf(world.owner, [updateRepoReadme, change]),
      /^Permission denied: repo.update and repo.int/,
    );
    assert.equal((await call(updateRepoReadme, change, holder)).content, "# Ours");
    const foreign = await world.write((tx) => createRepo(tx, world.foreign, "text"));
    const elsewhere = { ...change, repoReadme: { uid: foreign, content: "x" } };
    assert.match(await errorOf(holder, [updateRepoReadme, elsewhere]), /^Permission denied/);
  });

  for (const [name, attempt] of waysToGrant) {
    it(`is not given by ${name}, not by its holder either`, async () => {
      const before = await readStored();
      const rule = /^Invalid argument: \S+: \w+ must be a built-in role or one of the group or above it$/;
      for (const who of [world.owner, holder]) assert.match(await errorOf(who, await attempt(target())), rule);
      assert.equal(await readStored(), before);
    });
  }

  const own: readonly (readonly [name: string, attempt: () => Attempt])[] = [
    ["DeleteRoleBinding", () => [RoleBindingsService.method.deleteRoleBinding, { uid: boundAtRoot }]],
    ["Delete of version 1", () => [RoleBindings.method.delete, { id: boundAtRoot }]],
    [
      "a change of the identity",
      () => [
        RoleBindingsService.method.updateRoleBinding,
        { roleBinding: { uid: boundAtRoot, identityUid: person() }, updateMask: { paths: ["identity_uid"] } },
      ],
    ],
    [
      "a change of the role",
      () => [
        RoleBindingsService.method.updateRoleBinding,
        { roleBinding: { uid: boundAtRoot, roleUid: viewer }, updateMask: { paths: ["role_uid"] } },
      ],
    ],
    ["Update of version 1", () => [RoleBindings.method.update, { id: boundAtRoot, identity: person(), role: viewer }]],
  ];
  for (const [name, attempt] of own) {
    it(`keeps its binding on ${name}`, async () => {
      const before = await readStored();
      const rule = /^Permission denied: (changing|deleting) binding \S+, whose role is the operator's/;
      for (const who of [world.owner, holder]) assert.match(await errorOf(who, attempt()), rule);
      assert.equal(await readStored(), before);
    });
  }

  it("keeps its binding when the holder drops it", async () => {
    const error = await errorOf(holder, [BindingsService.method.dropBinding, { uid: boundAtRoot }]);
    assert.match(error, /^Permission denied: dropping binding/);
  });

  it("is neither changed nor deleted by callers, in any version", async () => {
    const before = await readStored();
    const mask = { paths: ["name", "capabilities"] };
    const values = { name: "mine", capabilities: [Capability.CAP_IAM_GROUPS_LIST] };
    for (const who of [world.owner, holder]) {
      for (const attempt of [
        [RolesService.method.updateRole, { role: { uid: role, ...values }, updateMask: mask }],
        [RolesService.method.deleteRole, { uid: role }],
        [Roles.method.update, { id: role, name: "mine", capabilities: ["groups.list"] }],
        [Roles.method.delete, { id: role }],
      ] as const) {
        assert.match(await errorOf(who, attempt), /^Permission denied: roles\.(update|delete) at /);
      }
    }
    assert.equal(await readStored(), before);
  });

  it("does not let its capabilities into custom roles, whatever else its holder has", async () => {
    const lacks = /^Permission denied: granting rights at \S+ that the caller lacks there/;
    const { createRole, updateRole } = RolesService.method;
    for (const name of capabilities.filter((one) => one !== "repo.update")) {
      const request = { parentId: world.root, role: { name: "mine", capabilities: [name] } };
      assert.match(await errorOf(holder, [Roles.method.create, request]), lacks, name);
    }
    const own = { name: "mine", capabilities: [Capability.CAP_REGISTRY_DEPLOYMENTS_CREATE] };
    assert.match(await errorOf(holder, [createRole, { parent: world.root, role: own }]), lacks);
    const uid = await world.role(["groups.list"]);
    const update = { role: { ...own, uid }, updateMask: { paths: ["capabilities"] } };
    assert.match(await errorOf(holder, [updateRole, update]), lacks);
    // What the holder has by its other role, it may give.
    const usual = { name: "mine", capabilities: [Capability.CAP_REPO_UPDATE] };
    assert.equal((await call(createRole, { parent: world.root, role: usual }, holder)).name, "mine");
  });

  it("is nothing that an invite can give, were it stored", async () => {
    const invite = {
      ...{ uid: randomIds.newUid(world.root), groupUid: world.root, roleUid: role, email: "", singleUse: false },
      ...{ keyId: "k", codeHash: "", createdBy: holder.uid, expireTimeMs: Date.now() + 60_000 },
      ...{ createTimeMs: Date.now(), updateTimeMs: Date.now() },
    };
    const invitee = { uid: person(), email: "", providerUid: null };
    await assert.rejects(
      world.write((tx) => acceptInvite(tx, invite, invitee, context())),
      /granting rights/,
    );
  });

  it("keeps everybody from changing how its holder is assumed", async () => {
    const identity = await world.identity();
    const change = {
      identity: { uid: identity, relationship: { case: "claimMatch" as const, value: toClaims() } },
      updateMask: { paths: ["claim_match"] },
    };
    await call(IdentitiesService.method.updateIdentity, change);
    const uid = await bindOperators(identity, world.child);
    for (const who of [world.owner, holder]) {
      const again = {
        ...change,
        identity: { ...change.identity, relationship: { case: "claimMatch", value: toClaims() } },
      };
      assert.match(await errorOf(who, [IdentitiesService.method.updateIdentity, again]), /granting rights at/);
    }
    // The deletion of the identity takes its bindings along: that gives nobody anything.
    await call(IdentitiesService.method.deleteIdentity, { uid: identity });
    assert.equal(await world.write((tx) => tx.table(roleBindingKind).find(uid)), undefined);
  });

  it("is shown on its bindings, and nowhere else", async () => {
    const { name, description } = { name: "publisher", description: "writes readmes" };
    const shown = (await call(RoleBindingsService.method.getRoleBinding, { uid: boundAtRoot })).role as object;
    assert.deepEqual({ ...shown, $typeName: undefined }, { $typeName: undefined, uid: role, name, description });
    const listed = await call(RoleBindingsService.method.listRoleBindings, { role });
    assert.equal((listed.roleBindings as unknown[]).length, 1);
    for (const who of [world.owner, holder, world.foreignOwner]) {
      assert.match(
        await errorOf(who, [RolesService.method.getRole, { uid: role }]),
        /^Not found: role: there is no role/,
      );
      const filters = [
        {},
        { name },
        { uidp: { ids: [role] } },
        { uidp: { childrenOf: "/" } },
        { uidp: { inRoot: true } },
      ];
      for (const filter of filters) {
        const v2 = (await call(RolesService.method.listRoles, { ...filter, pageSize: 200 }, who)).roles;
        const v1 = (await call(Roles.method.list, filter, who)).items;
        const uids = [
          ...(v2 as { uid: string }[]).map(({ uid }) => uid),
          ...(v1 as { id: string }[]).map(({ id }) => id),
        ];
        assert.ok(!uids.includes(role), JSON.stringify(filter));
        if (!("name" in filter) && filter.uidp?.ids === undefined) assert.ok(uids.includes(viewer));
      }
    }
  });

  it("holds its group like any other binding, until the operator deletes it", async () => {
    const group = await world.group();
    const uid = await bindOperators(holder.uid, group);
    const deletion: Attempt = [GroupsService.method.deleteGroup, { uid: group }];
    assert.match(await errorOf(world.owner, deletion), /cannot delete group with child role bindings/);
    await world.write((tx) => unbindIdentity(tx, uid, context()));
    await call(GroupsService.method.deleteGroup, { uid: group });
  });
});

describe("the operator", () => {
  const fails = (work: Parameters<IamWorld["write"]>[0], text: RegExp) => assert.rejects(world.write(work), text);

  it("binds operator roles and no others with `internal`, and only to identities of its own trust", async () => {
    const bind =
      (binding: { identity: string; role: string; internal?: boolean }): Parameters<IamWorld["write"]>[0] =>
      (tx) =>
        bindIdentity(tx, { ...binding, group: world.root }, context());
    const { uid: identity } = await world.caller(["groups.list"]);
    const before = await readStored();
    await fails(bind({ identity, role }), /an operator role: bind it with --internal/);
    await fails(bind({ identity, role: viewer, internal: true }), /not an operator role: bind it without --internal/);
    const custom = await world.role(["groups.list"]);
    await fails(bind({ identity, role: custom, internal: true }), /not an operator role/);
    const guest = await world.harness.identity({ providerUid: provider });
    await fails(bind({ identity: guest.uid, role, internal: true }), /logs in through an organisation's own provider/);
    assert.equal(await readStored(), before);
  });

  it("creates roles that exist and can be told from built-in ones, and deletes those that are not bound", async () => {
    const create =
      (values: object) =>
      async (tx: Tx): Promise<string> =>
        (
          await createOperatorRole(
            tx,
            { name: "n", description: "", capabilities: ["groups.list"], ...values },
            context(),
          )
        ).uid;
    await fails(create({ capabilities: ["groups.list", "x.y"] }), /there is no capability x.y/);
    await fails(create({ capabilities: [] }), /capabilities must name at least one capability/);
    await fails(create({ name: "owner" }), /name must not be that of a built-in role/);
    await fails(create({ name: "Not Allowed" }), /name must match/);
    const uid = await world.write(create({}));
    assert.match(uid, /^[0-9a-f]{40}$/);
    await fails((tx) => deleteOperatorRole(tx, role, context()), /cannot delete role that is in use/);
    await fails((tx) => deleteOperatorRole(tx, viewer, context()), /there is no operator role/);
    const custom = await world.role(["groups.list"]);
    await fails((tx) => deleteOperatorRole(tx, custom, context()), /there is no operator role/);
    await world.write((tx) => deleteOperatorRole(tx, String(uid), context()));
    const left = await world.write((tx) => listOperatorRoles(tx));
    assert.deepEqual(
      left.map(({ row }) => row.uid),
      [role],
    );
    const types = await world.write((tx) => tx.audit.listNewest(3, String(uid)));
    assert.deepEqual(
      types.map(({ type, method }) => [type, method]),
      [
        ["dev.chainguard.api.iam.roles.deleted.v1", "arbor"],
        ["dev.chainguard.api.iam.roles.created.v1", "arbor"],
      ],
    );
  });

  it("deletes bindings, but not that of the last owner", async () => {
    const uid = randomIds.newUid(world.child);
    await world.write((tx) => tx.table(roleBindingKind).insert(bindingRow(uid, holder.uid, role)));
    await world.write((tx) => unbindIdentity(tx, uid, context()));
    await fails((tx) => unbindIdentity(tx, uid, context()), /there is no role binding/);
    const [owners] = await world.write((tx) => tx.table(roleBindingKind).findByIdentity(world.foreignOwner.uid));
    await fails((tx) => unbindIdentity(tx, owners?.uid ?? "", context()), /a root group must keep an owner/);
    const [audited] = await world.write((tx) => tx.audit.listNewest(1, world.root));
    assert.deepEqual([audited?.type, audited?.subjectUid], ["dev.chainguard.api.iam.rolebindings.deleted.v1", uid]);
  });
});

function toClaims() {
  const { issuer, subject } = claimMatch();
  return { iss: { case: "issuer" as const, value: issuer }, sub: { case: "subject" as const, value: subject } };
}
