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

/** The columns of a listed table that are parts of its indexes. */
interface IndexColumns {
  readonly rootUid: AnySQLiteColumn;
  readonly uid: AnySQLiteColumn;
  readonly parent: AnySQLiteColumn;
  readonly family?: AnySQLiteColumn;
  /** By the names of sort fields. */
  readonly sorts: Readonly<Record<string, AnySQLiteColumn>>;
}

/** Builds the indexes of a listed table: one for the rows of an organisation in each order, and one for children. */
export function buildListIndexes(c: Columns, table: string, { rootUid, uid, parent, family, sorts }: IndexColumns) {
  const families = family ? [family] : [];
  // The key of the table has the order of uids, but not family by family.
  const fields = Object.entries({ ...(family && { uid }), ...sorts });
  return [
    ...fields.map(([field, column]) => {
      const last = column === uid ? [uid] : [column, uid];
      return c.index(orderIndexName(table, field)).on(rootUid, ...families, ...last);
    }),
    c.index(childIndexName(table)).on(parent, ...families, uid),
  ];
}

/** The columns that most kinds are sorted by. */
export function usualSorts(t: {
  readonly name: AnySQLiteColumn;
  readonly createTimeMs: AnySQLiteColumn;
  readonly updateTimeMs: AnySQLiteColumn;
}) {
  return { name: t.name, created_at: t.createTimeMs, updated_at: t.updateTimeMs };
}
