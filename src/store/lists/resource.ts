// How the rows of a kind are listed: the orders, which indexes of the database have, and the counters.
import type { SQL } from "drizzle-orm";
import type { AnySQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core";
import type { QuotaKind } from "../../kernel/quotas.js";
import type { Statement } from "../statement.js";
import type { KindTables } from "../tables/kind-tables.js";
import type { Tables } from "../tables/tables.js";

/** The name of a table whose rows are listed, in the schema; each row has a uid and the uid of its root. */
export type ListedName = keyof KindTables;

/** A table whose rows are listed. */
export type ListedTables = KindTables[ListedName];

/** A row of a listed table. {@link columnValue} reads its other columns by name. */
export interface ListedRow {
  readonly uid: string;
}

/** A kind of rows that is listed, as store/kind.ts declares it. Order by `uid` needs no declaration. */
export interface ListedKind<Row extends ListedRow = ListedRow, Patch extends object = object> {
  readonly table: (tables: Tables) => ListedTables;
  /** The property of the table that stores the uid of the parent. */
  readonly parent: string;
  /** The property of the table that each order sorts by. */
  readonly sorts: Readonly<Record<string, string>>;
  /**
   * A column that divides the rows into families: a list shows some of them, and each has its own part of the indexes
   * and its own counters.
   */
  readonly families?: { readonly column: string; readonly values: readonly number[] };
  readonly join?: Join;
  /** Filters other than equality of a column, by their names in `ListFilter.equals`. */
  readonly filters?: Readonly<Record<string, Filter>>;
  /** The quota that limits the rows of an organisation. */
  readonly quota?: CountedQuota;
  /** Whether a list over the subtree of a group contains the row with the group's own uid. */
  readonly includesSelf: boolean;
  /** Whether uids of other rows begin with the uids of these rows. */
  readonly hasRowsBelow: boolean;
  /** Whether the rows are found by the words of their names (name-words.ts). */
  readonly hasNameWords: boolean;
  /** Part of stored keys: unique, and never changes. */
  readonly number: number;
  /** The number of its first counter; {@link counterOf} gives the others. */
  readonly counter: number;
  /** The statements for one row. */
  readonly rows: {
    readonly find: Statement<{ readonly uid: string }, Row>;
    readonly insert: Statement<Row & { readonly rootUid: string }, never>;
    readonly replace: Statement<Row, never>;
    readonly remove: Statement<{ readonly uid: string }, ListedRow>;
  };
  /** Types only: never set. */
  readonly patch?: Patch;
}

/** A condition on the rows of a kind; the placeholder with the name of the filter holds its value. */
export type Filter = (tables: Tables) => SQL;

/** Columns of other tables that the rows of a list contain, so that a page needs one statement. */
export interface Join {
  /** The columns of other tables, by the properties of the row. */
  readonly columns: (tables: Tables) => Record<string, AnySQLiteColumn | SQL>;
  /** The other tables, each with its join condition. */
  readonly tables: (tables: Tables) => readonly (readonly [SQLiteTable, SQL])[];
}

/** A quota that counters count. */
export type CountedQuota = Exclude<QuotaKind, "roots" | "identityBindings">;

// Two for each of the families 0 to 3. A family of a higher number has counters beyond those of all kinds.
const COUNTERS = 8;

/** The number of the first counter of the kind with this number. */
export function firstCounterOf(number: number): number {
  return number * COUNTERS;
}

/** What a counter counts: all rows below a scope, or its children. */
export type Counted = "below" | "children";

/** The number of a counter of a kind, of one family where it has families. */
export function counterOf(kind: ListedKind, counted: Counted, family = 0): number {
  return kind.counter + 2 * family + (counted === "below" ? 0 : 1);
}

/** The families of a kind; one without a column of families has one. */
export function familiesOf({ families }: ListedKind): readonly number[] {
  return families?.values ?? [0];
}

/** The family of a row. */
export function familyOf(row: ListedRow, { families }: ListedKind): number {
  return families ? Number(columnValue(row, families.column)) : 0;
}

/** The value of a row that a list is ordered or filtered by. */
export function columnValue(row: ListedRow, property: string): string | number {
  return (row as unknown as Record<string, string | number>)[property] ?? "";
}
