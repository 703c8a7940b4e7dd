// The handlers of RolesService in version 2beta1.
import { type Role, RoleSchema, RolesService } from "#gen/chainguard/platform/iam/v2beta1/roles_pb.js";
import type { CapabilitySet } from "../../kernel/capability-set.js";
import { failedPrecondition, invalidArgument, notFound, permissionDenied } from "../../kernel/errors.js";
import { builtinRoleUid } from "../../kernel/ids.js";
import { isUidp, parentOf } from "../../kernel/uidp.js";
import { notFoundOrDenied } from "../../pipeline/auth/authorize.js";
import { type BodyView, defineBodies } from "../../pipeline/body.js";
import type { UnaryCall } from "../../pipeline/call.js";
import type { Handlers } from "../../pipeline/handlers.js";
import { serve } from "../../pipeline/method-table.js";
import { buildPatch, buildValues } from "../../pipeline/resource/patch.js";
import { findsResource, getRow, type ResourceDeps } from "../../pipeline/resource/read.js";
import { groupInviteKind } from "../../store/iam/group-invites.js";
import { groupMappingKind } from "../../store/iam/group-mappings.js";
import { identityProviderKind } from "../../store/iam/identity-providers.js";
import { roleBindingKind } from "../../store/iam/role-bindings.js";
import { type RoleRow, roleKind } from "../../store/iam/roles.js";
import { groups } from "../groups/group.js";
import { requireRights } from "../rights.js";
import { requireNotPublic } from "../role-bindings/create-binding.js";
import { isOperatorRole } from "./builtin-roles.js";
import { findCapabilitySet } from "./capability-names.js";
import { roles, roleToProto } from "./role.js";

/**
 * The role that takes the place of a deleted one in providers that last had it and have no default role now. Servers of
 * version 1.11 take it for the default role of theirs, so it is the built-in role with the fewest rights.
 */
const FORMER_ROLE = builtinRoleUid("advisories.viewer");

/** How bodies of the audit log show roles. */
export const roleView = { message: RoleSchema, readers: [RolesService.method.listRoles] } as const satisfies BodyView;

const bodies = defineBodies(roleView, findsResource(roles, roleToProto));

/** Creates RolesService. */
export function rolesV2beta1({ listResources, ids }: Pick<ResourceDeps, "listResources" | "ids">) {
  const handlers: Handlers<typeof RolesService> = {
    async getRole({ uid }, call) {
      return roleToProto(await getVisibleRole(uid, call));
    },

    async listRoles(request, call) {
      const { resources, ...page } = await listResources(call, roles, request, roleToProto);
      return { roles: resources, ...page };
    },

    async createRole({ parent, role }, call) {
      const { tx, caller, startMs } = call;
      await getRow(tx, groups, parent);
      const { capabilities, ...values } = buildValues(roles, role);
      const row: RoleRow = {
        uid: ids.newUid(parent),
        groupUid: parent,
        ...values,
        capabilities: requireCapabilitySet(capabilities),
        createTimeMs: startMs,
        updateTimeMs: startMs,
      };
      requireRights(caller, row.capabilities, parent);
      await tx.table(roleKind).insert(row);
      return roleToProto(row);
    },

    async updateRole({ role, updateMask }, call) {
      const { tx, startMs } = call;
      const before = await getCustomRole(role?.uid ?? "", call);
      const { capabilities, ...patch } = buildPatch(roles, role, updateMask, roleToProto(before));
      const change = { ...patch, ...(capabilities && { capabilities: requireCapabilitySet(capabilities) }) };
      if (change.capabilities !== undefined && change.capabilities !== before.capabilities) {
        await requireRightsWhereBound(before, change.capabilities, call);
        await requireNotPublic(tx, { uid: before.uid, capabilities: change.capabilities });
      }
      if (Object.keys(change).length === 0) return roleToProto(before);
      return roleToProto((await tx.table(roleKind).update(before.uid, change, startMs)) ?? before);
    },

    async deleteRole({ uid }, call) {
      const row = await getCustomRole(uid, call);
      if (await isInUse(row.uid, call))
        throw failedPrecondition("RESOURCE_IN_USE", "cannot delete role that is in use");
      await call.tx.table(identityProviderKind).releaseFormerRole(row.uid, FORMER_ROLE);
      await call.tx.table(roleKind).delete(row.uid);
      return {};
    },
  };
  return serve(RolesService, handlers, {
    createRole: { body: bodies.created },
    updateRole: { body: bodies.updated },
    deleteRole: { body: bodies.deleted },
  });
}

// The method is unscoped because built-in roles belong to no group. A custom role needs the right to list roles of
// its group. An operator role is shown on its bindings alone.
async function getVisibleRole(uid: string, call: UnaryCall): Promise<RoleRow> {
  const { tx } = call;
  if (!isUidp(uid)) throw invalidArgument({ field: "uid", rule: "must be a uid, such as the service assigns" });
  const row = isOperatorRole(uid) ? undefined : await tx.table(roleKind).find(uid);
  const group = parentOf(uid);
  if (row?.groupUid === null) return row;
  const absent = notFound(roles, uid);
  if (group === undefined) throw absent;
  const caller = await call.callerAt(group);
  if (!caller.holdsNeeded(group)) throw permissionDenied(`roles.list at ${uid}`);
  if (row === undefined) throw notFoundOrDenied(caller, uid, absent, "roles.list");
  return row;
}

async function getCustomRole(uid: string, { tx }: UnaryCall): Promise<RoleRow> {
  const row = await getRow(tx, roles, uid);
  if (row.groupUid === null) throw failedPrecondition("ROLE_BUILT_IN", "a built-in role cannot be changed");
  return row;
}

// A role is referred to by bindings, invites, the default roles of providers, and mappings.
async function isInUse(uid: string, { tx }: UnaryCall): Promise<boolean> {
  if (await tx.table(roleBindingKind).isBound(uid)) return true;
  if ((await tx.table(groupInviteKind).findUidsWhere("roleUid", uid, 1)).length > 0) return true;
  if (await tx.table(identityProviderKind).hasDefaultRole(uid)) return true;
  return (await tx.table(groupMappingKind).findUidsWhere("roleUid", uid, 1)).length > 0;
}

// New capabilities of a role reach all its holders, so the caller needs them wherever the role is bound. It is bound at
// its group and below, where the caller holds what it holds at that group. Only the operator can bind it elsewhere, and
// then no caller of the API may change what it grants.
async function requireRightsWhereBound(role: RoleRow, rights: CapabilitySet, call: UnaryCall): Promise<void> {
  const group = role.groupUid ?? "";
  requireRights(await call.callerAt(group), rights, group);
  if (await call.tx.table(roleBindingKind).isRoleBoundOutside(role.uid, group))
    throw permissionDenied(`changing role ${role.uid}`);
}

function requireCapabilitySet(capabilities: Role["capabilities"]): string {
  const set = findCapabilitySet(capabilities);
  if (set === undefined) throw new TypeError("capabilities were not checked");
  return set;
}
