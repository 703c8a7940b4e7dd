// Builds the schema of a dialect.
import type { DeclaredKind } from "../kind.js";
import { kinds } from "../kinds.js";
import type { Columns } from "./columns-sqlite.js";
import type { KindTables } from "./kind-tables.js";
import { defineOtherTables, type Tables } from "./tables.js";

/**
 * Builds the tables of the schema from a dialect's column types.
 *
 * @param all the kinds; tests plant one
 */
export function defineTables(c: Columns, all: readonly Pick<DeclaredKind, "key" | "build">[] = kinds): Tables {
  const built: Record<string, unknown> = {};
  // Foreign keys are resolved when all tables are there.
  const tables = built as unknown as KindTables;
  for (const { key, build } of all) built[key] = build(c, tables);
  return { ...tables, ...defineOtherTables(c, tables) };
}
