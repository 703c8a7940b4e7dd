// The column types of the schema in SQLite; schema-pg.ts has the same names.
import { type SQL, type SQLWrapper, sql } from "drizzle-orm";
import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";

export const table = sqliteTable;
/** Text that compares by bytes. */
export const str = (name: string) => text(name);
export const bool = (name: string) => integer(name, { mode: "boolean" });
export const int = (name: string) => integer(name);
/** A point in time as epoch milliseconds, or any integer beyond 32 bits. */
export const long = (name: string) => integer(name);
export const json = <T>(name: string) => text(name, { mode: "json" }).$type<T>();
/** A row number that the database assigns in ascending order. */
export const serial = (name: string) => integer(name).primaryKey({ autoIncrement: true });
/** Whether a column has one of the values in the JSON array that the placeholder `name` stands for. */
export const anyOf = (column: SQLWrapper, name: string): SQL =>
  sql`${column} in (select value from json_each(${sql.placeholder(name)}))`;
/** The table `scopes` with one column `scope`: the values in the JSON array that the placeholder `name` stands for. */
export const scopesIn = (name: string): SQL =>
  sql`(select value as scope from json_each(${sql.placeholder(name)})) scopes`;
export { index, primaryKey, uniqueIndex };

/** The column types that tables are defined with. The other dialect exports the same names. */
export type Columns = typeof import("./columns-sqlite.js");

/** A row as its table stores it: plain values, the same in both databases. */
export type RowOf<T extends { readonly $inferSelect: unknown }> = Readonly<T["$inferSelect"]>;
