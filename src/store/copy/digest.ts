// The digest of a table: how many rows it has, and the SHA-256 of the rows in the order of the primary key. It is the
// same for both databases.
import { createHash } from "node:crypto";
import type { Cell, CopiedRow } from "./cells.js";
import type { CopiedTable, SlotColumns } from "./tables.js";

/** A digest, which is equal for equal tables. */
export interface TableDigest {
  readonly rows: number;
  /** In hex, over one line per row: a JSON array of its cells. */
  readonly sha256: string;
}

/** Creates the state of a digest that rows are added to. */
export function createDigest() {
  const hash = createHash("sha256");
  let rows = 0;
  return {
    get rows() {
      return rows;
    },
    add(batch: readonly CopiedRow[]): void {
      if (batch.length === 0) return;
      rows += batch.length;
      hash.update(`${batch.map((row) => JSON.stringify(row)).join("\n")}\n`);
    },
    /** The digest of what was added so far. */
    current: (): TableDigest => ({ rows, sha256: hash.copy().digest("hex") }),
  };
}

/** Whether two tables have the same rows. */
export function isSameDigest(a: TableDigest, b: TableDigest): boolean {
  return a.rows === b.rows && a.sha256 === b.sha256;
}

/**
 * Merges rows that differ only in their slot. PostgreSQL spreads a sum over slots and SQLite has one row, so a copy
 * keeps the sum. A sum with an uncounted slot is uncounted.
 */
export async function* sumSlots(
  { slots }: CopiedTable,
  batches: AsyncIterable<readonly CopiedRow[]>,
): AsyncGenerator<readonly CopiedRow[]> {
  if (slots === undefined) {
    yield* batches;
    return;
  }
  let open: Cell[] | undefined;
  for await (const batch of batches) {
    const complete: CopiedRow[] = [];
    for (const row of batch) {
      if (open !== undefined && isSameRow(slots, open, row)) {
        open[slots.sum] = addCells(open[slots.sum] ?? null, row[slots.sum] ?? null);
        continue;
      }
      if (open !== undefined) complete.push(open);
      open = [...row];
      open[slots.slot] = slots.base;
    }
    yield complete;
  }
  if (open !== undefined) yield [open];
}

function isSameRow({ slot, sum }: SlotColumns, a: CopiedRow, b: CopiedRow): boolean {
  return a.every((cell, i) => i === slot || i === sum || cell === b[i]);
}

function addCells(a: Cell, b: Cell): Cell {
  return a === null || b === null ? null : String(BigInt(a) + BigInt(b));
}
