import type { Ids } from "../../kernel/ids.js";
import type { RoleBindingRow, Tx } from "../../store/port.js";

/** What a binding joins. */
export interface Joined {
  readonly identityUid: string;
  readonly roleUid: string;
}

/** How a binding comes about: by somebody's hand unless one of these is set. */
export type Origin = Partial<Pick<RoleBindingRow, "automatic" | "accepted">>;

/** Stores a new binding at `group`, whose rules were checked before, and returns it. */
export async function insertBinding(
  tx: Tx,
  group: string,
  { identityUid, roleUid }: Joined,
  { ids, nowMs }: { readonly ids: Ids; readonly nowMs: number },
  origin: Origin = {},
): Promise<RoleBindingRow> {
  const row: RoleBindingRow = {
    uid: ids.newUid(group),
    groupUid: group,
    identityUid,
    roleUid,
    automatic: false,
    accepted: false,
    ...origin,
    createTimeMs: nowMs,
    updateTimeMs: nowMs,
  };
  await tx.roleBindings.insert(row);
  return row;
}
