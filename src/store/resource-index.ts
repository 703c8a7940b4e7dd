// How the rows of a kind of resource are indexed: the orders and counters from which lists are answered.
import type { SQL } from "drizzle-orm";
import type { AnySQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core";
import type { Tables } from "./tables.js";

/** A table whose rows are kept in ordered lists; each has a uid. */
export type IndexedTables = Tables[
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

/** A row of an indexed table. {@link columnValue} reads its other columns by name. */
export interface IndexedRow {
  readonly uid: string;
}

/** A field that a list can be ordered by. */
export interface SortField {
  /** The number of this order in the order tables, unique among all kinds. */
  readonly list: number;
  readonly type: "text" | "time";
  /** The property of the table that stores it. */
  readonly column: string;
}

/** The index of a kind. Order by `uid` needs no declaration. */
export interface ResourceIndex {
  readonly table: (tables: Tables) => IndexedTables;
  /** The property of the table that stores the uid of the parent. */
  readonly parent: string;
  /**
   * Whether a row is part of its own subtree: that of every group has the group itself in it, and that of a group may
   * have the account association of the group in it.
   */
  readonly includesSelf: false | "always" | "sometimes";
  /** The number of the counters of subtrees; those of children have the next number. */
  readonly counter: number;
  readonly sorts: Readonly<Record<string, SortField>>;
  readonly join?: Join;
  /** Filters other than equality of a column, by their names in `ListFilter.equals`. */
  readonly filters?: Readonly<Record<string, Filter>>;
  /** The rows that the index contains; by default all of the table. */
  readonly where?: RowPredicate;
}

/** A predicate of a partial index, for a row in memory and for the database. Its value for a row never changes. */
export interface RowPredicate {
  readonly includes: (row: IndexedRow) => boolean;
  readonly condition: (tables: Tables) => SQL;
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

/** The declaration of an index. */
export interface ResourceIndexDeclaration {
  readonly table: ResourceIndex["table"];
  readonly parent: string;
  readonly join?: Join;
  readonly filters?: Readonly<Record<string, Filter>>;
  readonly where?: RowPredicate;
  readonly includesSelf?: ResourceIndex["includesSelf"];
  readonly sorts: readonly { readonly field: string; readonly type: SortField["type"]; readonly column: string }[];
}

/** The sort fields of most kinds: the name and both times. */
export const usualSorts: ResourceIndexDeclaration["sorts"] = [
  { field: "name", type: "text", column: "name" },
  { field: "created_at", type: "time", column: "createTimeMs" },
  { field: "updated_at", type: "time", column: "updateTimeMs" },
];

/** Defines the index of a kind. `id` is part of stored keys: it is unique and never changes. */
export function defineResourceIndex(
  id: number,
  { includesSelf = false, ...kind }: ResourceIndexDeclaration,
): ResourceIndex {
  const sorts = kind.sorts.map(({ field, ...sort }, i) => [field, { ...sort, list: id * 8 + i }] as const);
  return { ...kind, includesSelf, counter: id * 2, sorts: Object.fromEntries(sorts) };
}

/** The column of a property of a table; throws TypeError when there is none. */
export function columnOf(table: IndexedTables, property: string): AnySQLiteColumn {
  const column = (table as unknown as Record<string, AnySQLiteColumn | undefined>)[property];
  if (column === undefined) throw new TypeError(`there is no column ${property}`);
  return column;
}

/** The value of a row that a list is ordered or filtered by. */
export function columnValue(row: IndexedRow, property: string): string | number {
  return (row as unknown as Record<string, string | number>)[property] ?? "";
}

// The indexes of kinds that have no store class of their own, or only a small one.

const byCreation = [{ field: "created_at", type: "time", column: "createTimeMs" }] as const;

/** Identity providers. */
export const identityProviderIndex = defineResourceIndex(5, {
  table: (t) => t.identityProviders,
  parent: "groupUid",
  sorts: usualSorts,
});

/** Account associations; each has the uid of its group. */
export const accountAssociationIndex = defineResourceIndex(6, {
  table: (t) => t.accountAssociations,
  parent: "parentUid",
  includesSelf: "sometimes",
  sorts: usualSorts,
});

/** Group invites. */
export const groupInviteIndex = defineResourceIndex(7, {
  table: (t) => t.groupInvites,
  parent: "groupUid",
  sorts: byCreation,
});

/** Subscriptions to events. */
export const subscriptionIndex = defineResourceIndex(13, {
  table: (t) => t.subscriptions,
  parent: "groupUid",
  sorts: byCreation,
});

/** Mappings of directories' groups; their parent is the provider. */
export const groupMappingIndex = defineResourceIndex(8, {
  table: (t) => t.groupMappings,
  parent: "providerUid",
  sorts: byCreation,
});
