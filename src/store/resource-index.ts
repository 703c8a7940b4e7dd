import type { SQL } from "drizzle-orm";
import type { AnySQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core";
import type { Tables } from "./tables.js";

/** A table whose rows are listed; every one has a uid. */
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

/** A row in its capacity as an element of lists; its other columns by their names. */
export interface IndexedRow {
  readonly uid: string;
}

/** A field a list can be ordered by, and where it is stored. */
export interface SortField {
  /** Which order it is among those of all kinds. */
  readonly list: number;
  readonly type: "text" | "time";
  /** The property of the table that holds it. */
  readonly column: string;
}

/** What a kind declares to be kept in ordered lists; `uid` order needs no declaration. */
export interface ResourceIndex {
  readonly table: (tables: Tables) => IndexedTables;
  /** The property of the table that names what a row directly lies in. */
  readonly place: string;
  /** Whether a row stands in its own subtree, as a group does. */
  readonly listsItself: boolean;
  /** Names the counters of the kind: of subtrees, and one up, of children. */
  readonly counter: number;
  readonly sorts: Readonly<Record<string, SortField>>;
  readonly joined?: Joined;
  /** Filters besides columns that equal a value, by the names that `ListFilter.equals` has for them. */
  readonly filters?: Readonly<Record<string, Filter>>;
  /** Which rows the kind is about; all of its table unless set. */
  readonly only?: Only;
}

/** Some of the rows of a table, told in both ways: by a row at hand and to the database. Which they are never changes. */
export interface Only {
  readonly includes: (row: IndexedRow) => boolean;
  readonly condition: (tables: Tables) => SQL;
}

/** A condition on the rows of a kind; its value is the placeholder of the filter's own name. */
export type Filter = (tables: Tables) => SQL;

/** What a kind shows of other tables, so that a page needs one statement. */
export interface Joined {
  /** The columns of other tables by the properties they become. */
  readonly columns: (tables: Tables) => Record<string, AnySQLiteColumn>;
  /** The other tables, each with the condition that finds its row. */
  readonly tables: (tables: Tables) => readonly (readonly [SQLiteTable, SQL])[];
}

/** A kind as declared. */
export interface ResourceIndexDeclaration {
  readonly table: ResourceIndex["table"];
  readonly place: string;
  readonly joined?: Joined;
  readonly filters?: Readonly<Record<string, Filter>>;
  readonly only?: Only;
  readonly listsItself?: boolean;
  readonly sorts: readonly { readonly field: string; readonly type: SortField["type"]; readonly column: string }[];
}

/** How most kinds are ordered: by name and by both times. */
export const usualSorts: ResourceIndexDeclaration["sorts"] = [
  { field: "name", type: "text", column: "name" },
  { field: "created_at", type: "time", column: "createTimeMs" },
  { field: "updated_at", type: "time", column: "updateTimeMs" },
];

/** Declares a kind. `id` is the kind's own for ever: it is part of stored keys. */
export function defineResourceIndex(
  id: number,
  { listsItself = false, ...kind }: ResourceIndexDeclaration,
): ResourceIndex {
  const sorts = kind.sorts.map(({ field, ...sort }, i) => [field, { ...sort, list: id * 8 + i }] as const);
  return { ...kind, listsItself, counter: id * 2, sorts: Object.fromEntries(sorts) };
}

/** The column that a property of a table stands for; throws TypeError for one that does not exist. */
export function columnOf(table: IndexedTables, property: string): AnySQLiteColumn {
  const column = (table as unknown as Record<string, AnySQLiteColumn | undefined>)[property];
  if (column === undefined) throw new TypeError(`there is no column ${property}`);
  return column;
}

/** The value of a row that a list is ordered or filtered by. */
export function columnValue(row: IndexedRow, property: string): string | number {
  return (row as unknown as Record<string, string | number>)[property] ?? "";
}
