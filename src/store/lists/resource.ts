// How the rows of a kind are listed: the orders, which indexes of the database have, and the counters.
import type { SQL } from "drizzle-orm";
import type { AnySQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core";
import type { QuotaKind } from "../../kernel/quotas.js";
import { defineListedRows, type RowIn } from "../rows.js";
import type { Statement } from "../statement.js";
import type { Tables } from "../tables/schema.js";

/** The name of a table whose rows are listed, in the schema; each row has a uid and the uid of its root. */
export type ListedName =
  | "groups"
  | "identities"
  | "roles"
  | "roleBindings"
  | "identityProviders"
  | "accountAssociations"
  | "groupInvites"
  | "groupMappings"
  | "repos"
  | "tags"
  | "advisories"
  | "subscriptions";

/** A table whose rows are listed. */
export type ListedTables = Tables[ListedName];

type Fields<N extends ListedName> = keyof RowIn<N> & keyof Tables[N]["$inferSelect"] & string;

/** A row of a listed table. {@link columnValue} reads its other columns by name. */
export interface ListedRow {
  readonly uid: string;
}

/** The declaration of a kind, whose rows are in one table. */
export interface ListedKindDeclaration<N extends ListedName, Parent extends string, Fixed extends string> {
  readonly table: N;
  /** The property of the table that stores the uid of the parent. */
  readonly parent: Parent;
  /** The property of the table that each order sorts by. Their indexes are declared with the table. */
  readonly sorts: Readonly<Record<string, Fields<N>>>;
  /** The properties that no patch changes, besides the uid, the parent and the time of the creation. */
  readonly fixed?: readonly Fixed[];
  /**
   * A column that divides the rows into families: a list shows some of them, and each has its own part of the indexes
   * and its own counters.
   */
  readonly families?: { readonly column: Fields<N>; readonly values: readonly number[] };
  readonly join?: Join;
  /** Filters other than equality of a column, by their names in `ListFilter.equals`. */
  readonly filters?: Readonly<Record<string, Filter>>;
  /** The quota that limits the rows of an organisation. */
  readonly quota?: CountedQuota;
  /** Whether a list over the subtree of a group contains the row with the group's own uid. */
  readonly includesSelf?: boolean;
  /** Whether uids of other rows begin with the uids of these rows. */
  readonly hasRowsBelow?: boolean;
}

/** A kind of rows that is listed. Order by `uid` needs no declaration. */
export interface ListedKind<Row extends ListedRow = ListedRow, Patch extends object = object>
  extends Pick<ListedKindDeclaration<ListedName, string, string>, "parent" | "join" | "filters" | "quota"> {
  readonly table: (tables: Tables) => ListedTables;
  readonly sorts: Readonly<Record<string, string>>;
  readonly families?: { readonly column: string; readonly values: readonly number[] };
  readonly includesSelf: boolean;
  readonly hasRowsBelow: boolean;
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

/** What an update changes in a row of a kind. */
export type PatchOf<K> = K extends ListedKind<infer _, infer Patch> ? Patch : never;

/** A condition on the rows of a kind; the placeholder with the name of the filter holds its value. */
export type Filter = (tables: Tables) => SQL;

/** Columns of other tables that the rows of a list contain, so that a page needs one statement. */
export interface Join {
  /** The columns of other tables, by the properties of the row. */
  readonly columns: (tables: Tables) => Record<string, AnySQLiteColumn>;
  /** The other tables, each with its join condition. */
  readonly tables: (tables: Tables) => readonly (readonly [SQLiteTable, SQL])[];
}

/** A quota that counters count. */
export type CountedQuota = Exclude<QuotaKind, "roots" | "identityBindings">;

/** The sort fields of most kinds: the name and both times. */
export const usualSorts = { name: "name", created_at: "createTimeMs", updated_at: "updateTimeMs" } as const;

/** The sort field of kinds that are sorted by their creation alone. */
export const byCreation = { created_at: "createTimeMs" } as const;

// Two for each of up to four families.
const COUNTERS = 8;

/** Defines a kind. `id` is part of stored keys: it is unique and never changes. */
export function defineListedKind<N extends ListedName, Parent extends Fields<N>, Fixed extends Fields<N> = never>(
  id: number,
  declaration: ListedKindDeclaration<N, Parent, Fixed>,
): ListedKind<RowIn<N>, Partial<Omit<RowIn<N>, "uid" | "createTimeMs" | "updateTimeMs" | Parent | Fixed>>> {
  const { table, includesSelf = false, hasRowsBelow = false, fixed = [], ...kind } = declaration;
  const rows = defineListedRows(table, kind.parent, fixed, kind.families?.column);
  return { ...kind, table: (t) => t[table], includesSelf, hasRowsBelow, counter: id * COUNTERS, rows };
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
