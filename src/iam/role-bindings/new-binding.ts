import { ANONYMOUS_UID, type Ids } from "../../kernel/ids.js";
import type { RoleBindingRow, Tx } from "../../store/port.js";
import { requirePullRole } from "./anonymous-rights.js";

/** What a binding joins. */
export interface MembershipGrant {
  readonly identityUid: string;
  readonly roleUid: string;
}

/** How a binding comes about: by somebody's hand unless one of these is set. */
export type Origin = Partial<Pick<RoleBindingRow, "automatic" | "accepted" | "pending">>;

/**
 * Stores a new binding at `group`, whose rules were checked before, and returns it.
 *
 * @throws ApiError INVALID_ARGUMENT where `anonymous` would get more than it may have.
 */
export async function insertBinding(
  tx: Tx,
  group: string,
  { identityUid, roleUid }: MembershipGrant,
  { ids, nowMs }: { readonly ids: Ids; readonly nowMs: number },
  origin: Origin = {},
): Promise<RoleBindingRow> {
  if (identityUid === ANONYMOUS_UID) requirePullRole(await tx.roles.get(roleUid));
  const row: RoleBindingRow = {
    uid: ids.newUid(group),
    groupUid: group,
    identityUid,
    roleUid,
    automatic: false,
    accepted: false,
    pending: false,
    ...origin,
    createTimeMs: nowMs,
    updateTimeMs: nowMs,
  };
  await tx.roleBindings.insert(row);
  return row;
}
