// How the rows of a kind of resource are indexed: the orders and totals from which lists are answered.
import type { SQL } from "drizzle-orm";
import type { AnySQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core";
import type { QuotaKind } from "../kernel/quotas.js";
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
  /** The number of the lists in this order, unique among all kinds. */
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
   * Whether a list over the subtree of a group contains the row with the group's own uid, if there is one. The index
   * has only what is below: this row is read by its uid.
   */
  readonly includesSelf: boolean;
  /** Whether uids of other rows begin with the uids of these rows. */
  readonly hasRowsBelow: boolean;
  /** Whether the children of each parent have lists of their own. Children of other kinds are read from their table. */
  readonly childLists: boolean;
  /** The quota that limits the rows of an organisation, counted by the totals of this index. */
  readonly quota?: IndexedQuota;
  /** The number of the totals of subtrees; those of children have the next number. */
  readonly counter: number;
  /** The number of the lists of children in the order of uids. */
  readonly childrenByUid: number;
  /** The number of the lists of subtrees in the order of uids. They have ranks only: the table is in that order. */
  readonly descendantsByUid: number;
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

/** A quota that is counted by the totals of an index. */
export type IndexedQuota = Exclude<QuotaKind, "roots" | "identityBindings">;

/** The declaration of an index. */
export interface ResourceIndexDeclaration {
  readonly table: ResourceIndex["table"];
  readonly parent: string;
  readonly join?: Join;
  readonly filters?: Readonly<Record<string, Filter>>;
  readonly where?: RowPredicate;
  readonly includesSelf?: boolean;
  readonly hasRowsBelow?: boolean;
  readonly childLists?: boolean;
  readonly quota?: IndexedQuota;
  readonly sorts: readonly { readonly field: string; readonly type: SortField["type"]; readonly column: string }[];
}

/** The sort fields of most kinds: the name and both times. */
export const usualSorts: ResourceIndexDeclaration["sorts"] = [
  { field: "name", type: "text", column: "name" },
  { field: "created_at", type: "time", column: "createTimeMs" },
  { field: "updated_at", type: "time", column: "updateTimeMs" },
];

// A kind has 8 lists: up to three orders of subtrees and theirs by uid, and the same of children.
const LISTS = 8;
const CHILD_LISTS = 4;
/** What is left of a group that is gone is looked for under the numbers of all kinds. */
export const MAX_ID = 31;

/** Defines the index of a kind. `id` is part of stored keys: it is unique and never changes. */
export function defineResourceIndex(
  id: number,
  { includesSelf = false, hasRowsBelow = false, childLists = false, ...kind }: ResourceIndexDeclaration,
): ResourceIndex {
  const sorts = kind.sorts.map(({ field, ...sort }, i) => [field, { ...sort, list: id * LISTS + i }] as const);
  if (id > MAX_ID) throw new TypeError(`the number of a kind is at most ${MAX_ID}`);
  if (sorts.length >= CHILD_LISTS) throw new TypeError(`a kind has at most ${CHILD_LISTS - 1} orders`);
  const childrenByUid = id * LISTS + LISTS - 1;
  return {
    ...kind,
    includesSelf,
    hasRowsBelow,
    childLists,
    counter: id * 2,
    childrenByUid,
    descendantsByUid: id * LISTS + CHILD_LISTS - 1,
    sorts: Object.fromEntries(sorts),
  };
}

/** The number of the list of children in the order of `sort`. */
export function childListOf(sort: SortField): number {
  return sort.list + CHILD_LISTS;
}

/** A list of the index: its number, and the type of its keys, which is that of its table. */
export interface IndexList {
  readonly list: number;
  readonly type: SortField["type"];
}

/**
 * The list with the rows of a subtree, or with the children of a group, in the order of a field. There is none where
 * the table of the kind itself is in that order, or where it is read instead.
 *
 * @param field `uid` or a field that the kind declares
 */
export function findList(kind: ResourceIndex, from: "subtree" | "children", field: string): IndexList | undefined {
  const sort = kind.sorts[field];
  if (from === "subtree") return sort;
  if (!kind.childLists) return undefined;
  return sort ? { type: sort.type, list: childListOf(sort) } : { type: "text", list: kind.childrenByUid };
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
  quota: "providers",
  hasRowsBelow: true,
  sorts: usualSorts,
});

/** Account associations; each has the uid of its group. */
export const accountAssociationIndex = defineResourceIndex(6, {
  table: (t) => t.accountAssociations,
  parent: "parentUid",
  includesSelf: true,
  sorts: usualSorts,
});

/** Group invites. */
export const groupInviteIndex = defineResourceIndex(7, {
  table: (t) => t.groupInvites,
  parent: "groupUid",
  quota: "invites",
  sorts: byCreation,
});

/** Subscriptions to events. */
export const subscriptionIndex = defineResourceIndex(13, {
  table: (t) => t.subscriptions,
  parent: "groupUid",
  quota: "subscriptions",
  sorts: byCreation,
});

/** Mappings of directories' groups; their parent is the provider. */
export const groupMappingIndex = defineResourceIndex(8, {
  table: (t) => t.groupMappings,
  parent: "providerUid",
  quota: "mappings",
  sorts: byCreation,
});
