// The role binding resource: its definition, and how version 2 shows it together with identity, role and group.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { TemporaryBindingsService } from "#gen/arbor/bindings/v1/temporary_bindings_pb.js";
import { RoleBindings } from "#gen/chainguard/platform/iam/role_binding_pb.js";
import { RoleBindingsService as StableRoleBindingsService } from "#gen/chainguard/platform/iam/v2/role_bindings_pb.js";
import {
  ManagedBy,
  type RoleBinding,
  RoleBindingSchema,
  RoleBindingsService,
} from "#gen/chainguard/platform/iam/v2beta1/role_bindings_pb.js";
import { failedPrecondition } from "../../kernel/errors.js";
import { builtinRoleUid } from "../../kernel/ids.js";
import { timestampOf } from "../../kernel/time.js";
import { parentOf, rootOf } from "../../kernel/uidp.js";
import type { BodyView } from "../../pipeline/body.js";
import { defineResource } from "../../pipeline/resource/define.js";
import { MAX_COUNTED } from "../../pipeline/resource/delete.js";
import { creates, type RequestedAddition } from "../../pipeline/resource/quota.js";
import { isRequiredUid } from "../../pipeline/resource/rules.js";
import { type HydratedBinding, type RoleBindingRow, roleBindingKind } from "../../store/iam/role-bindings.js";
import type { Tx } from "../../store/transaction.js";
import { findAssumedClaims } from "../identities/relationship.js";

/** The largest number of bindings that a batch creates. */
export const MAX_BATCH = 25;

const owner = builtinRoleUid("owner");

export const roleBindings = defineResource({
  displayName: "role binding",
  type: "iam.chainguard.dev/RoleBinding",
  plural: "role bindings",
  message: RoleBindingSchema,
  kind: roleBindingKind,
  table: (tx) => ({
    find: async (uid) => (await tx.table(roleBindingKind).findHydrated([uid]))[0],
    list: (query) => tx.table(roleBindingKind).list(query),
  }),
  parent: {
    type: "iam.chainguard.dev/Group",
    onDelete: {
      restrict: async (tx, uid) =>
        (await findLastOwner(tx, uid)) ? 0 : tx.table(roleBindingKind).countGranted(uid, MAX_COUNTED + 1),
      async cascade(tx, uid) {
        await tx.table(roleBindingKind).deleteAutomatic(uid);
        await tx.table(roleBindingKind).deleteEndedIn(uid);
        const last = await findLastOwner(tx, uid);
        if (last) await tx.table(roleBindingKind).delete(last.uid);
      },
    },
  },
  createdBy: [
    creates(RoleBindingsService.method.createRoleBinding, ({ parent, roleBinding }) =>
      countNew(parent, [{ identityUid: roleBinding?.identityUid ?? "", roleUid: roleBinding?.roleUid ?? "" }]),
    ),
    creates(RoleBindings.method.create, ({ parent, roleBinding }) =>
      countNew(parent, [{ identityUid: roleBinding?.identity ?? "", roleUid: roleBinding?.role ?? "" }]),
    ),
    creates(RoleBindingsService.method.batchCreateRoleBindings, ({ parent, requests, roleUid }) =>
      countNew(
        parent,
        requests.map(({ roleBinding }) => ({
          identityUid: roleBinding?.identityUid ?? "",
          roleUid: roleBinding?.roleUid || roleUid,
        })),
      ),
    ),
    creates(RoleBindings.method.createBatch, ({ parent, roleBindings }) =>
      countNew(
        parent,
        roleBindings.map(({ identity, role }) => ({ identityUid: identity, roleUid: role })),
      ),
    ),
    creates(TemporaryBindingsService.method.createTemporaryBinding, ({ parent, identityUid, roleUid }) =>
      countNew(parent, [{ identityUid, roleUid }]),
    ),
    // A binding whose identity changes is one more of the new identity.
    creates(RoleBindingsService.method.updateRoleBinding, ({ roleBinding, updateMask }, _, tx) =>
      countMoved(tx, roleBinding?.uid ?? "", namesIdentity(updateMask) ? roleBinding?.identityUid : ""),
    ),
    creates(RoleBindings.method.update, ({ id, identity }, _, tx) => countMoved(tx, id, identity)),
  ],
  stable: StableRoleBindingsService,
  filters: {
    identity: { column: "identityUid", rule: isRequiredUid },
    group: { column: "groupUid", rule: isRequiredUid },
    role: { column: "roleUid", rule: isRequiredUid },
  },
  mutable: { identityUid: isRequiredUid, roleUid: isRequiredUid },
});

// The binding of the only owner of a root group, where the group has no other binding. A root group keeps an
// owner, so that binding can be deleted with the group alone.
async function findLastOwner(tx: Tx, uid: string): Promise<RoleBindingRow | undefined> {
  if (parentOf(uid) !== undefined) return undefined;
  const order = { field: "uid", descending: false };
  const query = { visible: [uid], filter: { childrenOf: uid }, order, skip: 0, limit: 2 };
  const [only, another] = (await tx.table(roleBindingKind).list(query)).rows;
  return another === undefined && only?.roleUid === owner ? only : undefined;
}

type Grant = Readonly<Record<"identityUid" | "roleUid", string>>;

// A binding that exists is returned instead of created, and one that has ended is replaced. A batch that is too large is rejected anyway.
function countNew(group: string, grants: readonly Grant[]): readonly RequestedAddition[] {
  const counted = grants.slice(0, MAX_BATCH);
  const rootUid = rootOf(group);
  const count = (some: readonly Grant[]) => ({ most: some.length, exact: (tx: Tx) => countAbsent(tx, group, some) });
  const byIdentity = [...new Set(counted.map(({ identityUid }) => identityUid))].map((ownerUid) => ({
    kind: "identityBindings" as const,
    ...{ ownerUid, rootUid },
    ...count(counted.filter(({ identityUid }) => identityUid === ownerUid)),
  }));
  return [{ ownerUid: rootUid, ...count(counted) }, ...byIdentity];
}

async function countAbsent(tx: Tx, group: string, grants: readonly Grant[]): Promise<number> {
  const added = new Set<string>();
  for (const { identityUid, roleUid } of grants) {
    if (!(await tx.table(roleBindingKind).findStoredSame(group, identityUid, roleUid)))
      added.add(`${identityUid} ${roleUid}`);
  }
  return added.size;
}

function namesIdentity({ paths } = create(FieldMaskSchema)): boolean {
  return paths.length === 0 || paths.some((path) => ["*", "identity_uid", "identityUid"].includes(path));
}

async function countMoved(tx: Tx, uid: string, identityUid = ""): Promise<readonly RequestedAddition[]> {
  const before = identityUid === "" ? undefined : await tx.table(roleBindingKind).find(uid);
  if (before === undefined || before.identityUid === identityUid) return [];
  return [{ kind: "identityBindings", ownerUid: identityUid, rootUid: rootOf(uid) }];
}

/** How bodies of the audit log show role bindings. */
export const roleBindingView = {
  message: RoleBindingSchema,
  readers: [RoleBindingsService.method.listRoleBindings],
} as const satisfies BodyView;

/** Converts a stored binding to version 2. */
export function roleBindingToProto(row: HydratedBinding): RoleBinding {
  const view: MessageInitShape<typeof RoleBindingSchema> = {
    uid: row.uid,
    identity: { uid: row.identityUid, ...buildVisibleIdentity(row) },
    group: { uid: row.groupUid, name: row.groupName, description: row.groupDescription },
    role: { uid: row.roleUid, name: row.roleName, description: row.roleDescription },
    createTime: timestampOf(row.createTimeMs),
    identityUid: row.identityUid,
    roleUid: row.roleUid,
    managedBy: row.managedByUid === null ? ManagedBy.MANUAL : ManagedBy.SCIM,
    managedByUidp: row.managedByUid ?? "",
  };
  return create(RoleBindingSchema, view);
}

/**
 * Makes sure that callers manage a binding, and no directory.
 *
 * @throws ApiError FAILED_PRECONDITION of type BINDING_MANAGED
 */
export function requireManual({ uid, managedByUid }: Pick<RoleBindingRow, "uid" | "managedByUid">): void {
  if (managedByUid === null) return;
  const rule = `the directory of identity provider ${managedByUid} manages it: change it there`;
  throw failedPrecondition("BINDING_MANAGED", `cannot change role binding ${uid}: ${rule}`);
}

// The uid of a person is a hash of issuer and subject, so anybody can bind anybody. Name and address of a person
// are therefore shown only where the person joined the organisation: by creating it, by an invite, through its
// provider, or by accepting a binding. Otherwise a binding would tell strangers whether a person is registered.
function buildVisibleIdentity(row: HydratedBinding) {
  const isPerson = !row.identityUid.includes("/");
  if (row.identityName === null || (isPerson && !row.automatic && !row.accepted)) return {};
  const upstream = row.identityRelationship ? findAssumedClaims(row.identityRelationship) : undefined;
  return {
    name: row.identityName,
    description: row.identityDescription ?? "",
    issuer: upstream?.issuer ?? row.identityIssuer ?? "",
    subject: upstream?.subject ?? row.identitySubject ?? "",
    email: row.identityEmail ?? "",
  };
}
