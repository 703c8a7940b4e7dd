// The handlers of RolesService in version 2beta1.
import { type Role, RolesService } from "#gen/chainguard/platform/iam/v2beta1/roles_pb.js";
import type { CapabilitySet } from "../../kernel/capability-set.js";
import { failedPrecondition, invalidArgument, notFound, permissionDenied } from "../../kernel/errors.js";
import { isUidp, parentOf } from "../../kernel/uidp.js";
import { notFoundOrDenied } from "../../pipeline/auth/authorize.js";
import type { UnaryCall } from "../../pipeline/call.js";
import { serve } from "../../pipeline/method-table.js";
import { listQueryOf } from "../../pipeline/resource/list-query.js";
import { patchOf, valuesOf } from "../../pipeline/resource/patch.js";
import type { RoleRow } from "../../store/port.js";
import { requireParentGroup } from "../groups/parent-group.js";
import type { IamDeps } from "../iam-deps.js";
import { requireRights } from "../rights.js";
import { requireNotPublic } from "../role-bindings/anonymous-rights.js";
import { capabilitySetNumbered } from "./capability-names.js";
import { builtinRoleUids, roles, roleView } from "./role.js";

/** RolesService, ready to be served. */
export function rolesV2beta1({ tokens, ids }: IamDeps) {
  return serve(RolesService, {
    async getRole({ uid }, call) {
      return roleView(await visibleRole(uid, call));
    },

    async listRoles(request, call) {
      const { tx, startMs } = call;
      const context = {
        method: "ListRoles",
        tokens,
        nowMs: startMs,
        visible: await call.visibleGroups(request.uidp),
        also: builtinRoleUids,
      };
      const list = listQueryOf(roles, request, context);
      const page = await tx.roles.list(list.query);
      return { roles: page.rows.map(roleView), ...list.envelope(page) };
    },

    async createRole({ parent, role }, call) {
      const { tx, caller, startMs } = call;
      await requireParentGroup(parent, call);
      const { capabilities, ...values } = valuesOf(roles, role);
      const row: RoleRow = {
        uid: ids.newUid(parent),
        groupUid: parent,
        ...values,
        capabilities: setOf(capabilities),
        createTimeMs: startMs,
        updateTimeMs: startMs,
      };
      requireRights(caller, row.capabilities, parent);
      await tx.roles.insert(row);
      return roleView(row);
    },

    async updateRole({ role, updateMask }, call) {
      const { tx, startMs } = call;
      const before = await customRole(role?.uid ?? "", call);
      const { capabilities, ...patch } = patchOf(roles, role, updateMask, roleView(before));
      const change = { ...patch, ...(capabilities && { capabilities: setOf(capabilities) }) };
      if (change.capabilities !== undefined && change.capabilities !== before.capabilities) {
        await requireRightsWhereBound(before, change.capabilities, call);
        await requireNotPublic(tx, { uid: before.uid, capabilities: change.capabilities });
      }
      if (Object.keys(change).length === 0) return roleView(before);
      return roleView((await tx.roles.update(before.uid, change, startMs)) ?? before);
    },

    async deleteRole({ uid }, call) {
      const row = await customRole(uid, call);
      if (await isInUse(row.uid, call))
        throw failedPrecondition("RESOURCE_IN_USE", "cannot delete role that is in use");
      await call.tx.roles.delete(row.uid);
      return {};
    },
  });
}

// The method is unscoped because built-in roles lie in no group; custom ones
// are only for callers who may see their group.
async function visibleRole(uid: string, call: UnaryCall): Promise<RoleRow> {
  const { tx } = call;
  if (!isUidp(uid))
    throw invalidArgument({ field: "uid", description: "uid must be a uid, such as the service assigns" });
  const row = await tx.roles.get(uid);
  const group = parentOf(uid);
  if (row?.groupUid === null) return row;
  const seen = notFound(roles, uid);
  if (group === undefined) throw seen;
  const caller = await call.callerAt(group);
  if (!caller.holdsNeeded(group)) throw permissionDenied(`roles.list at ${uid}`);
  if (row === undefined) throw notFoundOrDenied(caller, uid, seen, "roles.list");
  return row;
}

async function customRole(uid: string, { tx }: UnaryCall): Promise<RoleRow> {
  const row = await tx.roles.get(uid);
  if (row === undefined) throw notFound(roles, uid);
  if (row.groupUid === null) throw failedPrecondition("ROLE_BUILT_IN", "a built-in role cannot be changed");
  return row;
}

// Bound, promised by an invite, or what a provider gives to those who log in.
async function isInUse(uid: string, { tx }: UnaryCall): Promise<boolean> {
  if ((await tx.roleBindings.groupsOfRole(uid)).length > 0) return true;
  if ((await tx.groupInvites.uidsWhere("roleUid", uid, 1)).length > 0) return true;
  if ((await tx.identityProviders.uidsWhere("defaultRole", uid, 1)).length > 0) return true;
  return (await tx.groupMappings.uidsWhere("roleUid", uid, 1)).length > 0;
}

// A role that is bound already gives what it gains to whoever holds it, at each place it is bound.
async function requireRightsWhereBound(role: RoleRow, rights: CapabilitySet, call: UnaryCall): Promise<void> {
  for (const group of [role.groupUid ?? "", ...(await call.tx.roleBindings.groupsOfRole(role.uid))]) {
    requireRights(await call.callerAt(group), rights, group);
  }
}

function setOf(capabilities: Role["capabilities"]): string {
  const set = capabilitySetNumbered(capabilities);
  if (set === undefined) throw new TypeError("capabilities were not checked");
  return set;
}
