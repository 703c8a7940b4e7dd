// What a role is: its fields and their rules, and how it shows in version 2.
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Role, RoleSchema } from "#gen/chainguard/platform/iam/v2beta1/roles_pb.js";
import { builtinRoleUid } from "../../kernel/ids.js";
import { defineResource } from "../../pipeline/resource/define.js";
import { type FieldRule, isDescription, isName } from "../../pipeline/resource/rules.js";
import type { RoleRow } from "../../store/port.js";
import { builtinRoles } from "./builtin-roles.js";
import { capabilitiesIn, capabilitySetNumbered } from "./capability-names.js";

const areCapabilities: FieldRule = (value, field) => {
  const numbers = value as readonly number[];
  if (numbers.length === 0) return `${field} must name at least one capability`;
  return capabilitySetNumbered(numbers) ? undefined : `${field} must name capabilities that exist`;
};

/** The role resource. */
export const roles = defineResource({
  noun: "role",
  type: "iam.chainguard.dev/Role",
  message: RoleSchema,
  sort: ["uid", "name", "created_at", "updated_at"],
  mutable: { name: isName, description: isDescription, capabilities: areCapabilities },
});

/** The uids of the built-in roles, which everybody sees. */
export const builtinRoleUids: readonly string[] = Object.keys(builtinRoles).map(builtinRoleUid);

/** A stored role as version 2 shows it. */
export function roleView(row: RoleRow): Role {
  return {
    $typeName: "chainguard.platform.iam.v2beta1.Role",
    uid: row.uid,
    name: row.name,
    description: row.description,
    capabilities: capabilitiesIn(row.capabilities),
    createTime: timestampFromMs(row.createTimeMs),
    updateTime: timestampFromMs(row.updateTimeMs),
  };
}
