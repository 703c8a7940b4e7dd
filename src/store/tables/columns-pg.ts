// The column types of the schema in PostgreSQL; columns-sqlite.ts exports the same names.
import { type SQL, type SQLWrapper, sql } from "drizzle-orm";
import {
  bigint,
  bigserial,
  boolean,
  customType,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  uniqueIndex,
} from "drizzle-orm/pg-core";

// A locale gives punctuation less weight than letters: lists by name would have another order than in
// SQLite, and ranges of uids would be wrong.
const bytewise = customType<{ data: string; driverData: string }>({ dataType: () => 'text COLLATE "C"' });

export const table = pgTable;
/** Text that compares by bytes. */
export const str = (name: string) => bytewise(name);
export const bool = (name: string) => boolean(name);
export const int = (name: string) => integer(name);
/** A point in time as epoch milliseconds, or any integer beyond 32 bits. */
export const long = (name: string) => bigint(name, { mode: "number" });
export const json = <T>(name: string) => jsonb(name).$type<T>();
/** A row number that the database assigns in ascending order. */
export const serial = (name: string) => bigserial(name, { mode: "number" }).primaryKey();
/** Whether a column has one of the values in the JSON array that the placeholder `name` stands for. */
export const anyOf = (column: SQLWrapper, name: string): SQL =>
  sql`${column}::text in (select jsonb_array_elements_text(${sql.placeholder(name)}::jsonb))`;
/** The table `scopes` with one column `scope`: the values in the JSON array that the placeholder `name` stands for. */
export const scopesIn = (name: string): SQL =>
  sql`(select jsonb_array_elements_text(${sql.placeholder(name)}::jsonb) as scope) scopes`;
export { index, primaryKey, uniqueIndex };
