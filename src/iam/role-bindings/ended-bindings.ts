// The deletion of role bindings that have ended. They grant nothing from their end on; a background job deletes them, so that
// they stay ended if the clock is set back.
import { formatBody } from "../../kernel/audit-body.js";
import type { Ids } from "../../kernel/ids.js";
import { rootOf } from "../../kernel/uidp.js";
import { describeChange } from "../../pipeline/body.js";
import { type RoleBindingRow, roleBindingKind } from "../../store/iam/role-bindings.js";
import type { Store } from "../../store/store.js";
import type { Tx } from "../../store/transaction.js";
import { BINDING_DELETED } from "../people/pending-bindings.js";
import { roleBindingToProto, roleBindingView } from "./role-binding.js";

/** How many bindings a unit of work deletes: some milliseconds on SQLite. */
const MAX_DELETED = 50;

/** The time and the ids of rows of the audit log. */
interface EndContext {
  readonly ids: Ids;
  readonly nowMs: number;
}

/** Deletes bindings that have ended. The audit log names no identity as the actor. */
export async function deleteEnded(
  tx: Tx,
  bindings: readonly Pick<RoleBindingRow, "uid">[],
  { ids, nowMs }: EndContext,
): Promise<void> {
  const rows = await tx.table(roleBindingKind).findStoredHydrated(bindings.map(({ uid }) => uid));
  for (const row of rows) {
    await tx.table(roleBindingKind).delete(row.uid);
    await tx.audit.append({
      rootUid: rootOf(row.uid),
      timeMs: nowMs,
      type: BINDING_DELETED,
      method: "end of the binding",
      body: formatBody(describeChange(roleBindingView, { before: roleBindingToProto(row) }), BINDING_DELETED),
      subjectUid: row.uid,
      actorUid: "",
      tokenId: "",
      requestId: ids.newId(),
      remoteAddress: "",
    });
  }
}

/**
 * Deletes the bindings of a group that have ended or that their directory grants no more, in short units of work. The deletion of the group that follows then has
 * few rows to delete.
 */
export async function deleteEndedOf(
  groupUid: string,
  { write }: Pick<Store, "write">,
  context: EndContext,
): Promise<void> {
  while ((await write((tx) => deleteSomeEnded(tx, context, groupUid))) === MAX_DELETED);
}

/**
 * Deletes all bindings that have ended, in short units of work.
 *
 * @param readNowMs reads the time before each unit, in epoch milliseconds
 * @param isStopped checked before each unit; the rest is deleted next time
 * @returns how many were deleted
 */
export async function deleteAllEnded(
  { write }: Pick<Store, "write">,
  { ids, readNowMs, isStopped }: EndedSweep,
): Promise<number> {
  let total = 0;
  for (let deleted = MAX_DELETED; deleted === MAX_DELETED && !isStopped(); total += deleted) {
    const nowMs = await readNowMs();
    deleted = await write((tx) => deleteSomeEnded(tx, { ids, nowMs }));
  }
  return total;
}

interface EndedSweep {
  readonly ids: Ids;
  readonly readNowMs: () => Promise<number>;
  readonly isStopped: () => boolean;
}

// Deletes some of the bindings that have ended, of one group or of all; returns how many.
async function deleteSomeEnded(tx: Tx, context: EndContext, groupUid?: string): Promise<number> {
  const ended = await tx.table(roleBindingKind).findEnded(context.nowMs, MAX_DELETED, groupUid);
  if (ended.length > 0) await deleteEnded(tx, ended, context);
  return ended.length;
}
