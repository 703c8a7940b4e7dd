// How far the migrations of stored rows are (docs/adr/0015-expand-and-contract.md).
import type { Columns } from "./columns-sqlite.js";

/** Builds the table of migrations. */
export function defineMigrationTables(c: Columns) {
  const dataMigrations = c.table("data_migrations", {
    name: c.str("name").primaryKey(),
    phase: c.str("phase").$type<MigrationPhase>().notNull(),
    /** After which row to continue; in the phase `contracting`, how many statements have run. */
    position: c.str("position").notNull(),
    /** How many rows are copied. */
    done: c.long("done").notNull(),
  });
  return { dataMigrations };
}

/** What a migration does next: copy rows, wait for the contract phase, remove the old form, or nothing any more. */
export type MigrationPhase = "expanding" | "expanded" | "contracting" | "contracted";
