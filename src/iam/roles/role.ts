// The role resource: its definition, where a role can be used, and how version 2 shows it.
import { Roles } from "#gen/chainguard/platform/iam/role_pb.js";
import { RolesService as StableRolesService } from "#gen/chainguard/platform/iam/v2/roles_pb.js";
import { type Role, RoleSchema, RolesService } from "#gen/chainguard/platform/iam/v2beta1/roles_pb.js";
import { breakRule, invalidArgument } from "../../kernel/errors.js";
import { timestampOf } from "../../kernel/time.js";
import { isUidp, isWithin } from "../../kernel/uidp.js";
import { defineResource } from "../../pipeline/resource/define.js";
import { countRows } from "../../pipeline/resource/delete.js";
import { createsInScope } from "../../pipeline/resource/quota.js";
import { type FieldRule, isDescription, isName } from "../../pipeline/resource/rules.js";
import { type RoleRow, roleKind } from "../../store/iam/roles.js";
import type { Tx } from "../../store/transaction.js";
import { builtinRoleUids, isOperatorRole } from "./builtin-roles.js";
import { findCapabilitySet, listCapabilities } from "./capability-names.js";

const areCapabilities: FieldRule = (value, field) => {
  const numbers = value as readonly number[];
  if (numbers.length === 0) return breakRule(field, "must name at least one capability");
  return findCapabilitySet(numbers) ? undefined : breakRule(field, "must name capabilities that exist");
};

export const roles = defineResource({
  displayName: "role",
  type: "iam.chainguard.dev/Role",
  plural: "roles",
  message: RoleSchema,
  kind: roleKind,
  parent: {
    type: "iam.chainguard.dev/Group",
    onDelete: { restrict: (tx, uid) => countRows(tx.table(roleKind), "groupUid", uid) },
  },
  createdBy: [createsInScope(RolesService.method.createRole), createsInScope(Roles.method.create)],
  stable: StableRolesService,
  builtIn: builtinRoleUids,
  mutable: { name: isName, description: isDescription, capabilities: areCapabilities },
});

/** Converts a stored role to version 2. */
export function roleToProto(row: RoleRow): Role {
  return {
    $typeName: "chainguard.platform.iam.v2beta1.Role",
    uid: row.uid,
    name: row.name,
    description: row.description,
    capabilities: listCapabilities(row.capabilities),
    createTime: timestampOf(row.createTimeMs),
    updateTime: timestampOf(row.updateTimeMs),
  };
}

/** Finds a role that can be used at `group`: a built-in one, or one of the group or of a group above it. */
export async function findAvailableRole(uid: string, group: string, tx: Tx): Promise<RoleRow | undefined> {
  const role = isUidp(uid) && !isOperatorRole(uid) ? await tx.table(roleKind).find(uid) : undefined;
  return role && (role.groupUid === null || isWithin(group, role.groupUid)) ? role : undefined;
}

/**
 * Reads the role that `field` names, which must be available at `group`.
 *
 * @throws ApiError INVALID_ARGUMENT, the same for roles of others and roles that do not exist.
 */
export async function requireAvailableRole(uid: string, group: string, tx: Tx, field: string): Promise<RoleRow> {
  const role = await findAvailableRole(uid, group, tx);
  if (role) return role;
  const name = field.slice(field.lastIndexOf(".") + 1);
  const rule = uid === "" ? "is required" : "must be a built-in role or one of the group or above it";
  throw invalidArgument({ field, subject: name, rule });
}
