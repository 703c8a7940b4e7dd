import assert from "node:assert/strict";
import { kinds } from "../../src/store/kinds.js";
import type { ListedTable } from "../../src/store/lists/listed-table.js";
import type { ListedName, ListedRow } from "../../src/store/lists/resource.js";
import type { Tx } from "../../src/store/transaction.js";

/** The rows of the kind with this name in the schema. */
export function tableOf(tx: Tx, name: ListedName): ListedTable<ListedRow, object> {
  const kind = kinds.find(({ key }) => key === name);
  assert.ok(kind);
  return tx.table(kind);
}
