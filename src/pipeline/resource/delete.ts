// What the deletion of a resource means for the kinds below it, as their definitions declare it.
import { deadlineExceeded, failedPreconditions, type ResourceKind } from "../../kernel/errors.js";
import type { Store } from "../../store/store.js";
import type { Tx } from "../../store/transaction.js";
import type { CallContext } from "../call.js";
import type { ResourceDefinition } from "./define.js";

/** How many rows of a kind that keep a resource are counted. */
export const MAX_COUNTED = 100;

/**
 * Makes sure that neither a child nor what names a resource keeps it from being deleted.
 *
 * @param definitions all kinds; errors have a violation for each that restricts, and the numbers of rows in their metadata
 * @param nowMs in epoch milliseconds
 * @throws ApiError FAILED_PRECONDITION of types RESOURCE_NOT_EMPTY and RESOURCE_IN_USE
 */
export async function guardDelete(
  definitions: readonly ResourceDefinition[],
  { displayName, type }: ResourceKind,
  uid: string,
  tx: Tx,
  nowMs: number,
): Promise<void> {
  const violations: { readonly type: string; readonly description: string }[] = [];
  const counts: Record<string, string> = {};
  const note = (reason: string, plural: string, count: number, description: string) => {
    if (count === 0) return;
    violations.push({ type: reason, description: `cannot delete ${displayName} ${description}` });
    counts[toMetadataKey(plural)] = count > MAX_COUNTED ? `more than ${MAX_COUNTED}` : String(count);
  };
  for (const { parent, keeps, plural } of definitions) {
    if (parent?.type === type) {
      const count = (await parent.onDelete.restrict?.(tx, uid, nowMs)) ?? 0;
      note("RESOURCE_NOT_EMPTY", plural, count, `with child ${plural}`);
    }
    if (keeps?.type === type) {
      note("RESOURCE_IN_USE", plural, await keeps.restrict(tx, uid, nowMs), `that ${plural} name`);
    }
  }
  if (violations.length > 0) throw failedPreconditions(violations, counts);
}

/** Spells the plural of a kind as a key of ErrorInfo.metadata, such as `roleBindings`. */
function toMetadataKey(plural: string): string {
  const [first = "", ...others] = plural.split(" ");
  return first.toLowerCase() + others.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
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

/** Counts the rows of the table that have this value in a column, as far as {@link MAX_COUNTED} + 1. */
export async function countRows<C extends string>(table: ChildTable<C>, column: C, value: string): Promise<number> {
  return (await table.findUidsWhere(column, value, MAX_COUNTED + 1)).length;
}

/** Deletes all rows of the table that have this value in a column. */
export async function deleteRows<C extends string>(table: ChildTable<C>, column: C, value: string): Promise<void> {
  for (;;) {
    const uids = await table.findUidsWhere(column, value);
    for (const uid of uids) await table.delete(uid);
    if (uids.length === 0) return;
  }
}
