// How the rows of a kind are listed: the orders, which indexes of the database have, and the counters.
import { getTableColumns, getTableName, type SQL } from "drizzle-orm";
import type { AnySQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core";
import type { QuotaKind } from "../../kernel/quotas.js";
import type { Tables } from "../tables/schema.js";

/** A table whose rows are listed; each has a uid and the uid of its root. */
export type ListedTables = Tables[
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
  | "subscriptions"];

/** A row of a listed table. {@link columnValue} reads its other columns by name. */
export interface ListedRow {
  readonly uid: string;
}

/** A kind of rows that is listed. Order by `uid` needs no declaration. */
export interface ListedKind extends Omit<ListedKindDeclaration, "includesSelf" | "hasRowsBelow"> {
  /** Whether a list over the subtree of a group contains the row with the group's own uid. */
  readonly includesSelf: boolean;
  /** Whether uids of other rows begin with the uids of these rows. */
  readonly hasRowsBelow: boolean;
  /** The number of its first counter; {@link counterOf} gives the others. */
  readonly counter: number;
}

/** The declaration of a kind. */
export interface ListedKindDeclaration {
  readonly table: (tables: Tables) => ListedTables;
  /** The property of the table that stores the uid of the parent. */
  readonly parent: string;
  /** The property of the table that each order sorts by. Their indexes are declared with the table. */
  readonly sorts: Readonly<Record<string, string>>;
  /**
   * A column that divides the rows into families: a list shows some of them, and each has its own part of the indexes
   * and its own counters. Its value for a row never changes.
   */
  readonly families?: { readonly column: string; readonly values: readonly number[] };
  readonly join?: Join;
  /** Filters other than equality of a column, by their names in `ListFilter.equals`. */
  readonly filters?: Readonly<Record<string, Filter>>;
  /** The quota that limits the rows of an organisation. */
  readonly quota?: CountedQuota;
  readonly includesSelf?: boolean;
  readonly hasRowsBelow?: boolean;
}

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
export const usualSorts: ListedKindDeclaration["sorts"] = {
  name: "name",
  created_at: "createTimeMs",
  updated_at: "updateTimeMs",
};

// Two for each of up to four families.
const COUNTERS = 8;

/** Defines a kind. `id` is part of stored keys: it is unique and never changes. */
export function defineListedKind(
  id: number,
  { includesSelf = false, hasRowsBelow = false, ...kind }: ListedKindDeclaration,
): ListedKind {
  return { ...kind, includesSelf, hasRowsBelow, counter: id * COUNTERS };
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

/** The column of a property of a table; throws TypeError when there is none. */
export function columnOf(table: ListedTables, property: string): AnySQLiteColumn {
  const column = (table as unknown as Record<string, AnySQLiteColumn | undefined>)[property];
  if (column === undefined) throw new TypeError(`${getTableName(table)} has no column ${property}`);
  return column;
}

/** The value of a row that a list is ordered or filtered by. */
export function columnValue(row: ListedRow, property: string): string | number {
  return (row as unknown as Record<string, string | number>)[property] ?? "";
}

/** The columns of a table that its rows have in memory: all but the uid of the root, which is a part of their own. */
export function ownColumns(table: ListedTables): Record<string, AnySQLiteColumn> {
  const { rootUid: _, ...own } = getTableColumns(table) as Record<string, AnySQLiteColumn>;
  return own;
}

// The kinds that have no store class of their own, or only a small one.

const byCreation = { created_at: "createTimeMs" };

/** Identity providers. */
export const identityProviderKind = defineListedKind(5, {
  table: (t) => t.identityProviders,
  parent: "groupUid",
  quota: "providers",
  hasRowsBelow: true,
  sorts: usualSorts,
});

/** Account associations; each has the uid of its group. */
export const accountAssociationKind = defineListedKind(6, {
  table: (t) => t.accountAssociations,
  parent: "parentUid",
  includesSelf: true,
  sorts: usualSorts,
});

/** Group invites. */
export const groupInviteKind = defineListedKind(7, {
  table: (t) => t.groupInvites,
  parent: "groupUid",
  quota: "invites",
  sorts: byCreation,
});

/** Subscriptions to events. */
export const subscriptionKind = defineListedKind(13, {
  table: (t) => t.subscriptions,
  parent: "groupUid",
  quota: "subscriptions",
  sorts: byCreation,
});

/** Mappings of directories' groups; their parent is the provider. */
export const groupMappingKind = defineListedKind(8, {
  table: (t) => t.groupMappings,
  parent: "providerUid",
  quota: "mappings",
  sorts: byCreation,
});
