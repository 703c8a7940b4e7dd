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
import type { SQLiteTable } from "drizzle-orm/sqlite-core";
import type { Columns } from "./columns-sqlite.js";
import { defineTables } from "./schema.js";

// A locale gives punctuation less weight than letters: lists by name would have another order than in
// SQLite, and ranges of uids would be wrong.
const bytewise = customType<{ data: string; driverData: string }>({ dataType: () => 'text COLLATE "C"' });

const bytea = customType<{ data: Buffer; driverData: Buffer }>({ dataType: () => "bytea" });

// The column types of the schema; tables/columns-sqlite.ts has the same names.
const columns = {
  table: pgTable,
  /** Text that compares by bytes. */
  str: (name: string) => bytewise(name),
  bool: (name: string) => boolean(name),
  int: (name: string) => integer(name),
  /** A point in time as epoch milliseconds, or any integer beyond 32 bits. */
  long: (name: string) => bigint(name, { mode: "number" }),
  bytes: (name: string) => bytea(name),
  json: <T>(name: string) => jsonb(name).$type<T>(),
  /** A row number that the database assigns in ascending order. */
  serial: (name: string) => bigserial(name, { mode: "number" }).primaryKey(),
  /** As {@link serial}; a number may be assigned again after its row was deleted. */
  rowNumber: (name: string) => bigserial(name, { mode: "number" }).primaryKey(),
  /** Whether a column has one of the values in the JSON array that the placeholder `name` stands for. */
  anyOf: (column: SQLWrapper, name: string): SQL =>
    sql`${column}::text = any(array(select jsonb_array_elements_text(${sql.placeholder(name)}::jsonb)))`,
  /** As in SQLite; PostgreSQL has no such clause. */
  readBy: (read: SQLiteTable): SQL => sql`${read}`,
  /** As in SQLite. Compared as rows, the columns are the beginning of no other index. */
  inIndexRange: (
    columns: readonly SQLWrapper[],
    values: readonly SQLWrapper[],
    last: SQLWrapper,
    { low, end }: { readonly low: SQLWrapper; readonly end: SQLWrapper },
  ): SQL => {
    const row = (...items: readonly SQLWrapper[]) => sql`(${sql.join([...items], sql`, `)})`;
    const key = row(...columns, last);
    return sql`${key} >= ${row(...values, low)} and ${key} < ${row(...values, end)}`;
  },
  /** As in SQLite; see tables/columns-sqlite.ts. */
  anyNumberOf: (column: SQLWrapper, name: string): SQL =>
    sql`${column} = any(array(select jsonb_array_elements_text(${sql.placeholder(name)}::jsonb)::bigint))`,
  /** Whether a column contains the text that the placeholder `name` stands for. */
  contains: (column: SQLWrapper, name: string): SQL => sql`strpos(${column}, ${sql.placeholder(name)}) > 0`,
  /** As in SQLite. */
  elementsOf: (column: SQLWrapper): SQL => sql`jsonb_array_elements_text(${column}) element (value)`,
  /** As in SQLite. */
  isOneOf: (number: SQLWrapper, text: SQLWrapper, name: string): SQL =>
    sql`(${number} = (${sql.placeholder(name)}::jsonb ->> 0)::integer
      and ${text} = any(array(select jsonb_array_elements_text(${sql.placeholder(name)}::jsonb -> 1))))`,
  /** Nothing waits while the server searches. The role that set up the database may not have had the right to create the index. */
  searchedTexts: sql`case when to_regclass('advisories_trigrams') is null then 0 else 9007199254740991 end`,
  /**
   * As in SQLite, but of all numbers. The index of texts can be read by a bitmap alone, which is avoided like a scan of the
   * table. With the limit outside it is the cheaper of the two.
   */
  foundTexts: sql`(with found as materialized (select number from advisories where searched like ${sql.placeholder("pattern")}) select number from found limit ${sql.placeholder("$limit")}) found`,
  index,
  primaryKey,
  uniqueIndex,
} satisfies Record<keyof Columns, unknown>;

/** The schema in PostgreSQL. What the query builder offers is the same in both dialects; only its types differ. */
export const schema = defineTables(columns as unknown as Columns);
