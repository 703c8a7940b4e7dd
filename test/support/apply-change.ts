// Writes changes of rows through the store.
import type { Tx } from "../../src/store/port.js";
import type { Change, ChangedRow } from "./row-changes.js";

const JSON_COLUMNS: ReadonlySet<string> = new Set(["resource_limits", "accounts", "config", "bundles"]);

/** Writes a change as this version does. */
export async function applyChange(tx: Tx, { table, before, after }: Change): Promise<void> {
  if (table === "groups") {
    if (before === undefined) return tx.groups.insert(toStored(after));
    if (after === undefined) return tx.groups.delete(toStored(before));
    const { name, updateTimeMs } = toStored(after) as { name: string; updateTimeMs: number };
    await tx.groups.update(after.uid, { name }, updateTimeMs);
    return;
  }
  const rows = { account_associations: tx.accountAssociations, repos: tx.repos, tags: tx.tags }[table];
  if (after === undefined) return rows.delete(before?.uid ?? "");
  if (before === undefined) return rows.insert(toStored(after));
  return rows.replace(toStored(after));
}

// The store names columns by their properties, and decodes JSON.
function toStored(row: ChangedRow | undefined): never {
  const values = Object.entries(row ?? {}).map(([column, value]) => [
    column.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
    JSON_COLUMNS.has(column) ? JSON.parse(String(value)) : value,
  ]);
  return Object.fromEntries(values) as never;
}
