// SQL that checks share. The tables of the SQLite schema stand for those of both databases: all names are the same.
import { is, type SQL, sql } from "drizzle-orm";
import { type AnySQLiteColumn, getTableConfig, SQLiteTable } from "drizzle-orm/sqlite-core";
import * as schema from "../schema-sqlite.js";
import type { CheckDatabase } from "./database.js";

/** All tables of the schema. */
export const tables: readonly SQLiteTable[] = Object.values<unknown>(schema).filter((one): one is SQLiteTable =>
  is(one, SQLiteTable),
);

/** The column of a table that a query calls `alias`. */
export function at(alias: string, column: AnySQLiteColumn): SQL {
  return sql`${sql.identifier(alias)}.${sql.identifier(column.name)}`;
}

/** The columns of the primary key, in its order. */
export function primaryKeyOf(table: SQLiteTable): readonly AnySQLiteColumn[] {
  const { columns, primaryKeys } = getTableConfig(table);
  return primaryKeys[0]?.columns ?? columns.filter(({ primary }) => primary);
}

/** A row's primary key as text: its value, or `column=value` for each column. */
export function formatKey(table: SQLiteTable, row: Readonly<Record<string, unknown>>): string {
  const columns = primaryKeyOf(table);
  const [only] = columns;
  if (only !== undefined && columns.length === 1) return String(row[only.name]);
  return columns.map(({ name }) => `${name}=${row[name]}`).join(", ");
}

/** The condition of SQL that selects the row with this key. */
export function formatRowCondition(table: SQLiteTable, row: Readonly<Record<string, unknown>>): string {
  const literal = (value: unknown) =>
    typeof value === "number" ? String(value) : `'${String(value).replaceAll("'", "''")}'`;
  return primaryKeyOf(table)
    .map(({ name }) => `${name} = ${literal(row[name])}`)
    .join(" AND ");
}

/** Whether the uid `column` begins with the uid `scope`, a slash and at least one character: "0" follows the slash. */
export function isBelowSql(column: SQL, scope: SQL): SQL {
  return sql`(${column} > ${scope} || '/' and ${column} < ${scope} || '0')`;
}

/** The segments of the uid `column` below the uid `scope` as bytes; null where they are no hex digits. */
export function bytesBelowSql(dialect: CheckDatabase["dialect"], column: SQL, scope: SQL): SQL {
  const digits = sql`replace(substr(${column}, length(${scope}) + 2), '/', '')`;
  // PostgreSQL rejects a statement that decodes anything else.
  return dialect === "sqlite"
    ? sql`unhex(${digits})`
    : sql`case when ${digits} ~ '^([0-9a-f]{2})*$' then decode(${digits}, 'hex') end`;
}
