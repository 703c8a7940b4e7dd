// Role bindings that end by themselves: what they grant and until when, who sets an end, and what rests on them.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { DescMethodUnary, MessageInitShape } from "@bufbuild/protobuf";
import { AccessService } from "#gen/arbor/access/v1/access_pb.js";
import { TemporaryBindingsService } from "#gen/arbor/bindings/v1/temporary_bindings_pb.js";
import { TrustService } from "#gen/arbor/trust/v1/trust_pb.js";
import { Capability } from "#gen/chainguard/capabilities/capabilities_pb.js";
import { RoleBindings } from "#gen/chainguard/platform/iam/role_binding_pb.js";
import { AccountAssociationsService } from "#gen/chainguard/platform/iam/v2beta1/account_associations_pb.js";
import { GroupInvitesService } from "#gen/chainguard/platform/iam/v2beta1/group_invites_pb.js";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { IdentitiesService } from "#gen/chainguard/platform/iam/v2beta1/identities_pb.js";
import { IdentityProvidersService } from "#gen/chainguard/platform/iam/v2beta1/identity_providers_pb.js";
import { RoleBindingsService } from "#gen/chainguard/platform/iam/v2beta1/role_bindings_pb.js";
import { RolesService } from "#gen/chainguard/platform/iam/v2beta1/roles_pb.js";
import { acceptInvite } from "../../src/iam/people/accept-invite.js";
import { insertBinding } from "../../src/iam/role-bindings/create-binding.js";
import { builtinRoleUid, randomIds } from "../../src/kernel/ids.js";
import { timestampOf } from "../../src/kernel/time.js";
import { identityKind } from "../../src/store/iam/identities.js";
import { hasNotEnded, roleBindingKind } from "../../src/store/iam/role-bindings.js";
import { OLDEST_VERSION, VERSION } from "../../src/store/version.js";
import { type RawClient, rawClients, requestOf } from "../contract/iam-clients.js";
import { restAs } from "../contract/rest.js";
import { bindingRow, identityRow } from "../support/rows.js";
import { waitUntil } from "../support/wait-until.js";
import { claimMatch, type IamWorld, type Somebody, startIamWorld } from "./iam-world.js";
import { type Wire, wireOf } from "./v1/wires.js";
import { type Attempt, oidc, person, waysToGrant } from "./ways-to-grant.js";

const HOUR_MS = 3_600_000;
const [viewer, owner, editor] = ["viewer", "owner", "editor"].map(builtinRoleUid) as [string, string, string];
const { createTemporaryBinding, setBindingEnd, listTemporaryBindings } = TemporaryBindingsService.method;
const { createRoleBinding, updateRoleBinding, deleteRoleBinding, getRoleBinding, listRoleBindings } =
  RoleBindingsService.method;

let world: IamWorld;
let wire: Wire;
let clients: readonly RawClient[];

before(async () => {
  world = await startIamWorld();
  wire = wireOf("gRPC", world.url, world.owner.token);
  clients = rawClients(world.url);
});
after(async () => {
  for (const client of clients) client.close();
  wire.close();
  await world.stop();
});

const nowMs = () => Date.now() + world.harness.skewMs;
const inHours = (hours: number) => timestampOf(nowMs() + hours * HOUR_MS);
const lacks = /^Permission denied: granting rights at /;
const noOwner = /a root group must keep an owner$/;

const call = <M extends DescMethodUnary>(method: M, request: MessageInitShape<M["input"]>, by = world.owner) =>
  wire.call(method, request, by.token) as Promise<Record<string, unknown>>;
const errorOf = (by: Somebody, [method, request]: Attempt) => wire.expectError(method, request as never, by.token);
/** The rows of the audit log about a resource, the newest first. */
const readLog = (subjectUid: string) =>
  world.write(async (tx) => {
    const rows = await tx.audit.listNewest(20, undefined, { subjectUid });
    const bodies = await tx.audit.readBodies(rows);
    return rows.map((row) => ({ ...row, body: bodies.get(row.id) ?? "" }));
  });
const find = (uid: string) => world.write((tx) => tx.table(roleBindingKind).find(uid));

/** An identity with a role until some hours from now. */
async function createTemporary(
  roleUid: string,
  hours = 8,
  parent = world.root,
): Promise<Somebody & { binding: string }> {
  const who = await world.harness.identity({}, world.root);
  const made = await call(createTemporaryBinding, { parent, identityUid: who.uid, roleUid, endTime: inHours(hours) });
  return { ...who, rest: restAs(world.url, who.token), binding: String(made.uid) };
}

/** Lets time pass, and back again at the end of the test. */
function elapse(t: { after(work: () => void): void }, hours: number): void {
  t.after(() => {
    world.harness.skewMs = 0;
  });
  world.harness.skewMs += hours * HOUR_MS;
}

describe("a role binding that ends", () => {
  it("grants its role until its end on every protocol, and nothing from then on", async (t) => {
    const who = await createTemporary(viewer, 0.5);
    const get = requestOf(GroupsService.method.getGroup, { uid: world.child });
    const list = requestOf(GroupsService.method.listGroups, {});
    const read = async () => {
      const token = await world.harness.token(who.uid);
      const seen: string[] = [];
      for (const client of clients) {
        const { code } = await client.call(GroupsService.method.getGroup, get, token);
        const { bytes } = await client.call(GroupsService.method.listGroups, list, token);
        seen.push(`${code} ${bytes.includes(world.child)}`);
      }
      return [...new Set(seen)];
    };
    assert.deepEqual(await read(), ["OK true"]);
    elapse(t, 0.51);
    assert.deepEqual(await read(), ["PERMISSION_DENIED false"]);
    world.harness.skewMs = 0;
  });

  it("is neither shown nor listed from its end on, in any version", async (t) => {
    const group = await world.group();
    const { binding, uid } = await createTemporary(viewer, 0.5, group);
    const listed = async () => {
      const { items } = await wire.call(RoleBindings.method.list, { uidp: { descendantsOf: group } });
      const { roleBindings } = await wire.call(listRoleBindings, { uidp: { descendantsOf: group } });
      const { bindings, totalCount } = await wire.call(listTemporaryBindings, { group });
      const { grants } = await wire.call(AccessService.method.listAccess, { identity: uid, group });
      return [items.length, roleBindings.length, bindings.length, Number(totalCount), grants.length];
    };
    assert.deepEqual(await listed(), [1, 1, 1, 1, 1]);
    elapse(t, 0.51);
    assert.deepEqual(await listed(), [0, 0, 0, 0, 0]);
    assert.match(await errorOf(world.owner, [getRoleBinding, { uid: binding }]), /^Not found/);
    assert.match(await errorOf(world.owner, [setBindingEnd, { uid: binding }]), /^Not found/);
    assert.match(
      await errorOf(world.owner, [updateRoleBinding, { roleBinding: { uid: binding, roleUid: editor } }]),
      /^Not found/,
    );
    await call(deleteRoleBinding, { uid: binding });
  });

  it("is deleted by the sweep with its event, so that the clock may step back", async (t) => {
    const { binding, uid } = await createTemporary(viewer);
    await call(setBindingEnd, { uid: binding, endTime: timestampOf(nowMs() + 1_000) });
    await waitUntil(async () => {
      const row = await world.write((tx) => tx.table(roleBindingKind).findStoredSame(world.root, uid, viewer));
      return row === undefined;
    });
    elapse(t, -1);
    assert.equal(await find(binding), undefined);
    const token = await world.harness.token(uid);
    const denied = await errorOf({ uid, token } as Somebody, [GroupsService.method.getGroup, { uid: world.child }]);
    assert.match(denied, /^Permission denied: groups.list/);
    const [row] = await readLog(binding);
    assert.equal(row?.type, "dev.chainguard.api.iam.rolebindings.deleted.v1");
    assert.deepEqual([row?.actorUid, row?.method], ["", "end of the binding"]);
    assert.match(row?.body ?? "", new RegExp(`"uid":"${binding}"`));
  });

  it("control: without the sweep a step back would revive it", async (t) => {
    const row = bindingRow(randomIds.newUid(world.root), person(), viewer, { endTimeMs: nowMs() + HOUR_MS });
    assert.equal(hasNotEnded(row, nowMs()), true);
    elapse(t, 1.1);
    assert.equal(hasNotEnded(row, nowMs()), false);
  });

  it("gives way to a new one, also where several are created at once", async () => {
    const identityUid = person();
    const ended = bindingRow(randomIds.newUid(world.root), identityUid, viewer, { endTimeMs: Date.now() - 1 });
    await world.write((tx) => tx.table(roleBindingKind).insert(ended));
    const made = await Promise.all(
      Array.from({ length: 5 }, () =>
        call(createRoleBinding, { parent: world.root, roleBinding: { identityUid, roleUid: viewer } }),
      ),
    );
    const uids = new Set(made.map(({ uid }) => uid));
    assert.equal(uids.size, 1);
    assert.ok(!uids.has(ended.uid), "it is a new binding");
    const types = (await readLog(ended.uid)).map(({ type }) => type);
    assert.deepEqual(types, ["dev.chainguard.api.iam.rolebindings.deleted.v1"]);
  });

  it("gives way to one that an invite creates, and to one that takes its values", async () => {
    const invitee = await world.harness.identity();
    const [first, second] = [editor, owner].map((roleUid) =>
      bindingRow(randomIds.newUid(world.root), invitee.uid, roleUid, { endTimeMs: Date.now() - 1 }),
    ) as [ReturnType<typeof bindingRow>, ReturnType<typeof bindingRow>];
    const context = { ids: randomIds, nowMs: Date.now() };
    const invite = {
      ...{ uid: randomIds.newUid(world.root), groupUid: world.root, roleUid: editor, email: "", singleUse: false },
      ...{ keyId: "k", codeHash: "", createdBy: world.owner.uid, expireTimeMs: Date.now() + 60_000 },
      ...{ createTimeMs: Date.now(), updateTimeMs: Date.now() },
    };
    await world.write(async (tx) => {
      await tx.table(roleBindingKind).insert(first);
      await tx.table(roleBindingKind).insert(second);
      await acceptInvite(tx, invite, { ...invitee, email: "", providerUid: null }, context);
      const row = await tx.table(roleBindingKind).findSame(world.root, invitee.uid, editor);
      assert.deepEqual([row?.uid !== first.uid, row?.endTimeMs, row?.accepted], [true, null, true]);
    });
    const made = await world.write((tx) =>
      insertBinding(tx, world.root, { identityUid: invitee.uid, roleUid: viewer }, context),
    );
    await call(updateRoleBinding, {
      roleBinding: { uid: made.uid, roleUid: owner },
      updateMask: { paths: ["role_uid"] },
    });
    assert.equal((await find(made.uid))?.roleUid, owner);
  });

  it("goes with its group, and its role can be deleted after the sweep", async () => {
    const group = await world.group();
    for (let i = 0; i < 3; i++) {
      const row = bindingRow(randomIds.newUid(group), person(), viewer, { endTimeMs: Date.now() - 1 });
      await world.write((tx) => tx.table(roleBindingKind).insert(row));
    }
    await call(GroupsService.method.deleteGroup, { uid: group });
  });
});

describe("the end of a role binding", () => {
  const bound = async (roleUid = viewer, parent = world.root) => {
    const roleBinding = { identityUid: person(), roleUid };
    return String((await call(createRoleBinding, { parent, roleBinding })).uid);
  };
  const endOf = async (uid: string) => (await find(uid))?.endTimeMs;

  it("is set, extended, shortened and removed, each with an event that shows it", async () => {
    const uid = await bound();
    const ends = [inHours(4), inHours(8), inHours(2), undefined];
    for (const endTime of ends) {
      const changed = await call(setBindingEnd, { uid, ...(endTime && { endTime }) });
      assert.deepEqual((changed.endTime as typeof endTime)?.seconds, endTime?.seconds);
    }
    assert.equal(await endOf(uid), null);
    const rows = await readLog(uid);
    const updated = rows.filter(({ type }) => type === "dev.chainguard.api.iam.rolebindings.updated.v1");
    assert.equal(updated.length, ends.length);
    for (const { actorUid, body } of updated) {
      assert.equal(actorUid, world.owner.uid);
      assert.match(body, /endTime/);
    }
  });

  it("is in the future, and within what a Timestamp is", async () => {
    const identityUid = person();
    const rule = /endTime must be in the future, and at most in the year 9999/;
    for (const endTime of [inHours(-1), timestampOf(0), { ...timestampOf(0), seconds: 2n ** 62n }]) {
      const request = { parent: world.root, identityUid, roleUid: viewer, endTime };
      assert.match(await errorOf(world.owner, [createTemporaryBinding, request]), rule);
    }
    const none = { parent: world.root, identityUid, roleUid: viewer };
    assert.match(await errorOf(world.owner, [createTemporaryBinding, none]), /endTime is required/);
  });

  it("is the same when a creation is repeated, and no creation shortens another binding", async () => {
    const request = { parent: world.root, identityUid: person(), roleUid: viewer, endTime: inHours(3) };
    const made = await call(createTemporaryBinding, request);
    assert.equal((await call(createTemporaryBinding, request)).uid, made.uid);
    const other = { ...request, endTime: inHours(1) };
    assert.match(await errorOf(world.owner, [createTemporaryBinding, other]), /^Already exists: role binding/);
    await call(setBindingEnd, { uid: String(made.uid) });
    assert.match(await errorOf(world.owner, [createTemporaryBinding, request]), /^Already exists: role binding/);
  });

  it("is removed by a creation, and kept by an update, in each version", async () => {
    for (const version of ["v2beta1", "v1"] as const) {
      const { uid, binding } = await createTemporary(viewer);
      const before = await endOf(binding);
      if (version === "v1") await call(RoleBindings.method.update, { id: binding, identity: uid, role: editor });
      else await call(updateRoleBinding, { roleBinding: { uid: binding, roleUid: editor } });
      assert.equal(await endOf(binding), before);
      const same = await (version === "v1"
        ? call(RoleBindings.method.create, { parent: world.root, roleBinding: { identity: uid, role: editor } })
        : call(createRoleBinding, { parent: world.root, roleBinding: { identityUid: uid, roleUid: editor } }));
      assert.equal(same.uid ?? same.id, binding);
      assert.equal(await endOf(binding), null);
      const [row] = await readLog(binding);
      assert.equal(row?.type, "dev.chainguard.api.iam.rolebindings.created.v1");
    }
  });

  it("needs the rights that methods of role bindings need", async () => {
    const uid = await bound();
    const reader = await world.caller(["role_bindings.list"]);
    const request = { parent: world.root, identityUid: person(), roleUid: viewer, endTime: inHours(1) };
    assert.match(await errorOf(reader, [createTemporaryBinding, request]), /^Permission denied: role_bindings.create/);
    assert.match(await errorOf(reader, [setBindingEnd, { uid }]), /^Permission denied: role_bindings.update/);
    // Who may change bindings may end one sooner, whatever its role grants, but not later.
    const clerk = await world.caller(["role_bindings.update"]);
    await call(setBindingEnd, { uid, endTime: inHours(2) }, clerk);
    assert.match(await errorOf(clerk, [setBindingEnd, { uid, endTime: inHours(3) }]), lacks);
    assert.match(await errorOf(clerk, [setBindingEnd, { uid }]), lacks);
    assert.match(
      await errorOf(world.foreignOwner, [setBindingEnd, { uid }]),
      /^Permission denied: role_bindings.update/,
    );
  });

  it("cannot be set while servers of older versions may use the database", async (t) => {
    const uid = await bound();
    const set = (version: string) => world.write((tx) => tx.settings.put(OLDEST_VERSION, version));
    t.after(() => set(VERSION));
    await set("1.7.0");
    const rule = /a role binding that ends: .*`arbor migrate --contract`/;
    const request = { parent: world.root, identityUid: person(), roleUid: viewer, endTime: inHours(1) };
    assert.match(await errorOf(world.owner, [createTemporaryBinding, request]), rule);
    assert.match(await errorOf(world.owner, [setBindingEnd, { uid, endTime: inHours(1) }]), rule);
    await call(setBindingEnd, { uid });
    await set(VERSION);
    await call(setBindingEnd, { uid, endTime: inHours(1) });
  });
});

describe("an owner whose binding ends", () => {
  it("is none that an organisation may be left with", async () => {
    const { group, identity, token, roleBinding: uid } = await world.harness.organisation("another");
    const founder = { uid: identity, token, rest: restAs(world.url, token) };
    const second = await world.harness.identity({}, group);
    const request = { parent: group, identityUid: second.uid, roleUid: owner, endTime: inHours(8) };
    const temporary = await call(createTemporaryBinding, request, founder);
    const attempts: Attempt[] = [
      [setBindingEnd, { uid, endTime: inHours(1) }],
      [deleteRoleBinding, { uid }],
      [updateRoleBinding, { roleBinding: { uid, roleUid: viewer }, updateMask: { paths: ["role_uid"] } }],
    ];
    for (const attempt of attempts) assert.match(await errorOf(founder, attempt), noOwner);
    assert.equal(await world.write((tx) => tx.table(roleBindingKind).findSoleRoot(identity, owner)), group);
    assert.equal(await world.write((tx) => tx.table(roleBindingKind).hasRoleAtRoot(second.uid, owner)), false);
    // With another one that does not end they may.
    await call(setBindingEnd, { uid: String(temporary.uid) }, founder);
    await call(setBindingEnd, { uid, endTime: inHours(1) }, founder);
  });
});

describe("a temporary owner", () => {
  let temporary: Somebody;
  let provider: string;
  let custom: string;
  let workload: string;
  before(async () => {
    temporary = await createTemporary(owner);
    const identityProvider = {
      name: "login",
      defaultRole: viewer,
      configuration: { case: "oidc" as const, value: oidc },
    };
    const made = await call(IdentityProvidersService.method.createIdentityProvider, {
      parent: world.root,
      identityProvider,
    });
    provider = String(made.uid);
    custom = await world.role(["groups.list"]);
    workload = await world.identity();
    await call(createRoleBinding, { parent: world.root, roleBinding: { identityUid: workload, roleUid: viewer } });
  });

  const target = () => ({
    ...{ group: world.root, role: editor, provider },
    binding: async () => {
      const roleBinding = { identityUid: person(), roleUid: viewer };
      return String((await call(createRoleBinding, { parent: world.root, roleBinding })).uid);
    },
  });

  const service = async () => {
    const uid = randomIds.newUid(world.root);
    const relationship = { servicePrincipal: 1 };
    await world.write(async (tx) => {
      await tx.table(identityKind).insert(identityRow(uid, { relation: 4, relationship }));
      await tx.table(roleBindingKind).insert(bindingRow(randomIds.newUid(world.root), uid, viewer));
    });
    return uid;
  };
  const configuration = { case: "oidc" as const, value: { ...oidc, clientId: "other" } };
  const capabilities = [Capability.CAP_IAM_GROUPS_LIST, Capability.CAP_IAM_ROLES_LIST];

  // The other ways to gain rights: all that check them.
  const others: readonly (readonly [name: string, attempt: () => Promise<Attempt> | Attempt])[] = [
    ["a role", () => [RolesService.method.createRole, { parent: world.root, role: { name: "r", capabilities } }]],
    [
      "what a role grants",
      () => [
        RolesService.method.updateRole,
        { role: { uid: custom, capabilities }, updateMask: { paths: ["capabilities"] } },
      ],
    ],
    [
      "how an identity with rights is assumed",
      () => [
        IdentitiesService.method.updateIdentity,
        {
          identity: {
            uid: workload,
            relationship: {
              case: "claimMatch",
              value: { iss: { case: "issuer", value: "https://x.example" }, sub: { case: "subject", value: "s" } },
            },
          },
          updateMask: { paths: ["claim_match"] },
        },
      ],
    ],
    [
      "the conditions of an identity with rights",
      () => [
        TrustService.method.setConditions,
        { identity: workload, conditions: [{ path: ["a"], test: { case: "exists", value: true } }] },
      ],
    ],
    [
      "an issuer guard",
      () => [
        TrustService.method.setIssuerGuard,
        { group: world.root, guard: { issuers: [{ allowed: { case: "origin", value: "https://x.example" } }] } },
      ],
    ],
    ["the removal of an issuer guard", () => [TrustService.method.removeIssuerGuard, { group: world.root }]],
    [
      "the client of a provider",
      () => [
        IdentityProvidersService.method.updateIdentityProvider,
        { identityProvider: { uid: provider, configuration }, updateMask: { paths: ["oidc"] } },
      ],
    ],
    [
      "a service binding",
      async () => [
        AccountAssociationsService.method.createAccountAssociation,
        {
          parent: world.root,
          accountAssociation: { name: "a", chainguard: { serviceBindings: { INGESTER: await service() } } },
        },
      ],
    ],
    [
      "the update of an invite",
      async () => {
        const groupInvite = { roleUid: viewer, ttl: { seconds: 60n } };
        const made = await call(GroupInvitesService.method.createGroupInvite, { parent: world.root, groupInvite });
        return [
          GroupInvitesService.method.updateGroupInvite,
          { groupInvite: { uid: String(made.uid), ttl: { seconds: 90n } }, updateMask: { paths: ["ttl"] } },
        ];
      },
    ],
    ["the removal of an end", async () => [setBindingEnd, { uid: (await createTemporary(viewer, 1)).binding }]],
    [
      "an end after its own",
      () => [
        createTemporaryBinding,
        { parent: world.root, identityUid: person(), roleUid: viewer, endTime: inHours(9) },
      ],
    ],
  ];

  for (const [name, attempt] of [...waysToGrant, ...others]) {
    it(`grants nothing for longer than its own rights by ${name}`, async () => {
      const made = await attempt(target() as never);
      assert.match(await errorOf(temporary, made), lacks);
      // Control: it fails for the end of the rights alone. Another version may have made the same.
      await call(made[0], made[1] as never).catch((error) => assert.match(String(error), /Already exists/));
    });
  }

  it("has a row above for each file that checks against escalation", () => {
    const covered =
      /(create-binding|group-invite|group-mapping|identity-provider-v2beta1|role-v2beta1|identity-v2beta1|account-association|accept-invite|temporary-bindings-v1|trust-v1)\.ts$/;
    const checks = /\b(requireGrantable|requireRightsOf|requireOwnersRights|requireRights|requireBindable)\(/;
    const found = readdirSync("src", { recursive: true })
      .map(String)
      .filter((file) => file.endsWith(".ts") && !/^(iam\/rights|pipeline\/unavailable)\.ts$/.test(file))
      .filter((file) => checks.test(readFileSync(join("src", file), "utf8")));
    assert.ok(found.length > 8, found.join());
    assert.deepEqual(
      found.filter((file) => !covered.test(file) && !/role-binding-v2beta1\.ts$/.test(file)),
      [],
    );
  });

  it("grants what ends no later, and extends nothing beyond its own end", async () => {
    const request = { parent: world.root, identityUid: person(), roleUid: viewer, endTime: inHours(2) };
    const made = await call(createTemporaryBinding, request, temporary);
    await call(setBindingEnd, { uid: String(made.uid), endTime: inHours(4) }, temporary);
    assert.match(await errorOf(temporary, [setBindingEnd, { uid: String(made.uid), endTime: inHours(9) }]), lacks);
    // The binding keeps its end, so it may get another role.
    const roleBinding = { uid: String(made.uid), roleUid: editor };
    await call(updateRoleBinding, { roleBinding, updateMask: { paths: ["role_uid"] } }, temporary);
    assert.match(await errorOf(temporary, [setBindingEnd, { uid: String(made.uid) }]), lacks);
    await call(setBindingEnd, { uid: String(made.uid), endTime: inHours(1) }, temporary);
  });

  it("cannot assume an identity whose own rights end, because they may be extended", async () => {
    const identity = await world.identity();
    await call(createTemporaryBinding, {
      ...{ parent: world.root, identityUid: identity, roleUid: viewer },
      endTime: inHours(1),
    });
    const { issuer, subject } = claimMatch();
    const value = { iss: { case: "issuer", value: issuer }, sub: { case: "subject", value: subject } };
    const change = {
      identity: { uid: identity, relationship: { case: "claimMatch", value } },
      updateMask: { paths: ["claim_match"] },
    };
    assert.match(await errorOf(temporary, [IdentitiesService.method.updateIdentity, change]), lacks);
    await call(IdentitiesService.method.updateIdentity, change as never);
  });

  it("makes an invite void that it gave before its binding got an end", async () => {
    const inviter = await world.createBound("owner");
    const [row] = await world.write((tx) => tx.table(roleBindingKind).findByIdentity(inviter.uid));
    const groupInvite = { roleUid: viewer, ttl: { seconds: 60n } };
    const { uid } = await call(
      GroupInvitesService.method.createGroupInvite,
      { parent: world.root, groupInvite },
      inviter,
    );
    await call(setBindingEnd, { uid: row?.uid ?? "", endTime: inHours(1) });
    const { groupInviteKind } = await import("../../src/store/iam/group-invites.js");
    const invite = await world.write((tx) => tx.table(groupInviteKind).find(String(uid)));
    assert.ok(invite);
    const context = { ids: randomIds, nowMs: Date.now() };
    await assert.rejects(
      world.write((tx) => acceptInvite(tx, invite, { uid: person(), email: "", providerUid: null }, context)),
      /granting rights/,
    );
  });
});

describe("answers about rights", () => {
  it("say when a right ends", async () => {
    const { uid, binding, token } = await createTemporary(viewer, 2);
    const end = (await find(binding))?.endTimeMs ?? 0;
    const actions = ["groups.list"];
    const seconds = BigInt(Math.floor(end / 1000));
    const question = { identity: uid, actions, resource: world.child };
    const check = await wire.call(AccessService.method.check, question);
    assert.equal(check.endTime?.seconds, seconds);
    const own = await wire.call(AccessService.method.check, { actions, resource: world.child }, token);
    assert.equal(own.endTime?.seconds, seconds);
    const explained = await wire.call(AccessService.method.explain, question);
    assert.deepEqual([explained.endTime?.seconds, explained.grants[0]?.endTime?.seconds], [seconds, seconds]);
    const { grants } = await wire.call(AccessService.method.listAccess, {}, token);
    assert.ok(grants.some(({ roleBinding, endTime }) => roleBinding === binding && endTime?.seconds === seconds));
    const { subjects } = await wire.call(AccessService.method.listSubjects, {
      actions,
      resource: world.child,
      pageSize: 200,
    });
    const found = subjects.find(({ subject }) => subject.case === "identity" && subject.value.uid === uid);
    assert.equal(found?.subject.case === "identity" && found.subject.value.endTime?.seconds, seconds);
    // A right that also rests on a binding that does not end has no end.
    await call(createRoleBinding, { parent: world.root, roleBinding: { identityUid: uid, roleUid: editor } });
    assert.equal((await wire.call(AccessService.method.check, question)).endTime, undefined);
  });
});
