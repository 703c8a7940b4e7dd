import { invalidArgument } from "../../kernel/errors.js";
import { isUidp, isWithin } from "../../kernel/uidp.js";
import type { RoleRow, Tx } from "../../store/port.js";

/** The role if it can be used at `group`: it is built in, or lies there or above. */
export async function availableRole(uid: string, group: string, tx: Tx): Promise<RoleRow | undefined> {
  const role = isUidp(uid) ? await tx.roles.get(uid) : undefined;
  return role && (role.groupUid === null || isWithin(group, role.groupUid)) ? role : undefined;
}

/**
 * The role named by `field`, which must be available at `group`.
 *
 * @throws ApiError INVALID_ARGUMENT, the same for roles of others and roles that do not exist.
 */
export async function requireAvailableRole(uid: string, group: string, tx: Tx, field: string): Promise<RoleRow> {
  const role = await availableRole(uid, group, tx);
  if (role) return role;
  const name = field.slice(field.lastIndexOf(".") + 1);
  const rule = uid === "" ? "is required" : "must be a built-in role or one of the group or above it";
  throw invalidArgument({ field, description: `${name} ${rule}` });
}
