// The tables that a copy consists of, as both databases have them, in an order in which each row comes after the rows that
// it refers to.
import { type AnySQLiteColumn, getTableConfig, type SQLiteTable } from "drizzle-orm/sqlite-core";
import { primaryKeyOf, tables } from "../check/database.js";

/** What a column holds; cells.ts says how each database and a copy represent it. */
export type CellType = "text" | "integer" | "boolean" | "bytes" | "json";

export interface CopiedColumn {
  readonly name: string;
  readonly type: CellType;
}

/** Columns whose rows concurrent writers of PostgreSQL spread over slots, and whose sum is the value. */
export interface SlotColumns {
  /** The indexes of the columns in the row. */
  readonly slot: number;
  readonly sum: number;
  /** The slot of the row that has the sum. */
  readonly base: string;
}

export interface CopiedTable {
  readonly name: string;
  readonly columns: readonly CopiedColumn[];
  /** The primary key, which orders the rows. */
  readonly key: readonly CopiedColumn[];
  /** The column that gets numbers from the database; undefined where there is none. */
  readonly numbered: string | undefined;
  readonly slots: SlotColumns | undefined;
}

/** The tables that say what the database is. They are written last, in the transaction that completes the copy. */
const closingNames: readonly string[] = ["data_migrations", "settings"];

const cellTypes: Readonly<Record<string, CellType>> = {
  string: "text",
  number: "integer",
  boolean: "boolean",
  buffer: "bytes",
  json: "json",
};

/** Describes tables, each after those that it refers to. */
export function describeTables(of: readonly SQLiteTable[]): CopiedTable[] {
  return sortByReferences(of).map(describeTable);
}

const all = describeTables(tables);

/** The tables that are copied in batches, in their order. */
export const copiedTables: readonly CopiedTable[] = all.filter(({ name }) => !closingNames.includes(name));

/** The tables that are copied in the transaction that completes the copy. */
export const closingTables: readonly CopiedTable[] = all.filter(({ name }) => closingNames.includes(name));

function describeTable(table: SQLiteTable): CopiedTable {
  const { name, columns: declared } = getTableConfig(table);
  const columns = declared.map(describeColumn);
  const key = primaryKeyOf(table).map(describeColumn);
  const [first] = key;
  const indexOf = (column: string) => columns.findIndex((one) => one.name === column);
  return {
    name,
    columns,
    key,
    numbered: key.length === 1 && first?.type === "integer" ? first.name : undefined,
    slots: key.some((column) => column.name === "slot")
      ? { slot: indexOf("slot"), sum: indexOf("n"), base: "0" }
      : undefined,
  };
}

function describeColumn({ name, dataType }: AnySQLiteColumn): CopiedColumn {
  const type = cellTypes[dataType];
  if (type === undefined) throw new TypeError(`column ${name} has the type ${dataType}, which no copy knows`);
  return { name, type };
}

function sortByReferences(unsorted: readonly SQLiteTable[]): SQLiteTable[] {
  const sorted = new Set<SQLiteTable>();
  const add = (table: SQLiteTable) => {
    if (sorted.has(table)) return;
    for (const { reference } of getTableConfig(table).foreignKeys) {
      const { foreignTable } = reference();
      if (foreignTable !== table) add(foreignTable as SQLiteTable);
    }
    sorted.add(table);
  };
  for (const table of unsorted) add(table);
  return [...sorted];
}
