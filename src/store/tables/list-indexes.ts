// The indexes of listed tables. A list is read from the one that has its order (store/lists).
import { getTableName } from "drizzle-orm";
import type { AnySQLiteColumn } from "drizzle-orm/sqlite-core";
import type { Columns } from "./columns-sqlite.js";

export function orderIndexName(table: string, field: string): string {
  return `${table}_by_${field}`;
}

/** The name of the index with the children of each parent in the order of uids. */
export function childIndexName(table: string): string {
  return `${table}_children`;
}

/** The name in SQLite of the index of uids, which is that of the primary key unless the table has another key. */
export function uidIndexName(uid: AnySQLiteColumn): string {
  return uid.isUnique ? (uid.uniqueName ?? "") : `sqlite_autoindex_${getTableName(uid.table)}_1`;
}

/** The columns of a listed table, by their properties. */
export interface TableColumns extends Readonly<Record<string, AnySQLiteColumn>> {
  readonly rootUid: AnySQLiteColumn;
  readonly uid: AnySQLiteColumn;
}

/** The properties of the columns that are parts of indexes. */
interface IndexedProperties {
  readonly parent: string;
  readonly family: string | undefined;
  /** By the names of sort fields. */
  readonly sorts: Readonly<Record<string, string>>;
}

/** Builds the indexes of a listed table: one for the rows of an organisation in each order, and one for children. */
export function buildListIndexes(
  c: Columns,
  table: string,
  columns: TableColumns,
  { parent, family, sorts }: IndexedProperties,
) {
  const { rootUid, uid } = columns;
  const get = (property: string) => {
    const column = columns[property];
    if (column === undefined) throw new TypeError(`${table} has no column ${property}`);
    return column;
  };
  const families = family === undefined ? [] : [get(family)];
  // The key of the table has the order of uids, but not family by family.
  const fields = Object.entries({ ...(family !== undefined && { uid: "uid" }), ...sorts });
  return [
    ...fields.map(([field, property]) => {
      const last = property === "uid" ? [uid] : [get(property), uid];
      return c.index(orderIndexName(table, field)).on(rootUid, ...families, ...last);
    }),
    c.index(childIndexName(table)).on(get(parent), ...families, uid),
  ];
}
