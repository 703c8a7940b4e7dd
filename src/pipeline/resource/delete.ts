// What the deletion of a resource means for the kinds below it, as their definitions declare it.
import { deadlineExceeded, failedPrecondition, type ResourceKind } from "../../kernel/errors.js";
import type { Store } from "../../store/store.js";
import type { Tx } from "../../store/transaction.js";
import type { CallContext } from "../call.js";
import type { ResourceDefinition } from "./define.js";

/**
 * Makes sure that neither a child nor what names a resource keeps it from being deleted.
 *
 * @param definitions all kinds; errors name the first of them that restricts
 * @param nowMs in epoch milliseconds
 * @throws ApiError FAILED_PRECONDITION of type RESOURCE_NOT_EMPTY or RESOURCE_IN_USE
 */
export async function guardDelete(
  definitions: readonly ResourceDefinition[],
  { displayName, type }: ResourceKind,
  uid: string,
  tx: Tx,
  nowMs: number,
): Promise<void> {
  for (const { parent, keeps, plural } of definitions) {
    if (parent?.type === type && (await parent.onDelete.restrict?.(tx, uid, nowMs)))
      throw failedPrecondition("RESOURCE_NOT_EMPTY", `cannot delete ${displayName} with child ${plural}`);
    if (keeps?.type === type && (await keeps.restrict(tx, uid, nowMs)))
      throw failedPrecondition("RESOURCE_IN_USE", `cannot delete ${displayName} that ${plural} name`);
  }
}

/** Deletes the children that go with a resource. {@link guardDelete} comes first. */
export async function cascadeDelete(
  definitions: readonly ResourceDefinition[],
  { type }: ResourceKind,
  uid: string,
  tx: Tx,
): Promise<void> {
  for (const { parent } of definitions) if (parent?.type === type) await parent.onDelete.cascade?.(tx, uid);
}

/**
 * Deletes what may be many rows below a resource, in short units of work before the one that deletes the resource: a
 * long unit would keep all other calls waiting. A call that ends early leaves the rest, which the next one deletes.
 *
 * @param part deletes some of the rows; resolves to how many, which is zero when none is left
 * @returns true, for handlers that need to know that this was done
 * @throws ApiError DEADLINE_EXCEEDED
 */
export async function deleteInParts(
  { write }: Pick<Store, "write">,
  call: Pick<CallContext, "signal" | "hasChanged">,
  part: (tx: Tx) => Promise<number>,
): Promise<true> {
  while ((await write(part)) > 0) {
    call.hasChanged = true;
    if (call.signal.aborted) throw deadlineExceeded();
  }
  return true;
}

/** A table that finds its rows by the value of a column. */
interface ChildTable<Column extends string> {
  findUidsWhere(column: Column, value: string, limit?: number): Promise<string[]>;
  delete(uid: string): Promise<void>;
}

/** Whether any row of the table has this value in a column. */
export async function hasRows<C extends string>(table: ChildTable<C>, column: C, value: string): Promise<boolean> {
  return (await table.findUidsWhere(column, value, 1)).length > 0;
}

/** Deletes all rows of the table that have this value in a column. */
export async function deleteRows<C extends string>(table: ChildTable<C>, column: C, value: string): Promise<void> {
  for (;;) {
    const uids = await table.findUidsWhere(column, value);
    for (const uid of uids) await table.delete(uid);
    if (uids.length === 0) return;
  }
}
