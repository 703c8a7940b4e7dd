// What everybody may hold without credentials: enough to pull, and no more.
import { includesSet } from "../../kernel/capability-set.js";
import { failedPrecondition, invalidArgument } from "../../kernel/errors.js";
import { ANONYMOUS_UID } from "../../kernel/ids.js";
import type { RoleRow, Tx } from "../../store/port.js";
import { builtinRoles } from "../roles/builtin-roles.js";
import { capabilitySetNamed } from "../roles/capability-names.js";

const pullRights = capabilitySetNamed(builtinRoles["registry.pull"] ?? []);

/** The rule for roles that are bound to `anonymous`. */
export const PULL_ROLE_RULE = "must grant no more than registry.pull does where the identity is anonymous";

/** Whether a role grants no more than pulling from a registry takes. */
export function isPullRole(role: Pick<RoleRow, "capabilities">): boolean {
  return includesSet(pullRights, role.capabilities);
}

/**
 * Makes sure that `anonymous` may have the role.
 *
 * @param path what precedes the field name in errors
 * @throws ApiError INVALID_ARGUMENT
 */
export function requirePullRole(role: Pick<RoleRow, "capabilities"> | undefined, path = ""): void {
  if (role !== undefined && isPullRole(role)) return;
  throw invalidArgument({ field: `${path}roleUid`, description: `roleUid ${PULL_ROLE_RULE}` });
}

/**
 * Makes sure that a role that is bound to `anonymous` does not come to grant more than that.
 *
 * @throws ApiError FAILED_PRECONDITION
 */
export async function requireNotPublic(tx: Tx, role: Pick<RoleRow, "uid" | "capabilities">): Promise<void> {
  if (isPullRole(role) || !(await tx.roleBindings.anyOf(ANONYMOUS_UID, role.uid))) return;
  throw failedPrecondition("ROLE_IS_PUBLIC", "a role that is bound to anonymous can grant no more than registry.pull");
}
