// The schema in PostgreSQL: the column types, and the expressions that SQLite writes otherwise. columns-sqlite.ts has the same
// names, and says what each is for.
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
const bytewiseText = customType<{ data: string; driverData: string }>({ dataType: () => 'text COLLATE "C"' });
const bytea = customType<{ data: Buffer; driverData: Buffer }>({ dataType: () => "bytea" });
const ascendingNumber = (name: string) => bigserial(name, { mode: "number" }).primaryKey();

const columnTypes = {
  table: pgTable,
  index,
  primaryKey,
  uniqueIndex,
  str: (name: string) => bytewiseText(name),
  bool: (name: string) => boolean(name),
  int: (name: string) => integer(name),
  long: (name: string) => bigint(name, { mode: "number" }),
  bytes: (name: string) => bytea(name),
  json: <T>(name: string) => jsonb(name).$type<T>(),
  serial: ascendingNumber,
  // SQLite may assign the number of a deleted row again, PostgreSQL never does.
  rowNumber: ascendingNumber,
};

/** The placeholder of this name, as JSON. */
const json = (name: string) => sql`${sql.placeholder(name)}::jsonb`;

/** The elements of a JSON array, as texts. */
const elements = (array: SQL) => sql`select jsonb_array_elements_text(${array})`;

/** Values compared as one, such as `(a, b)`. */
const row = (values: readonly SQLWrapper[]) => sql`(${sql.join([...values], sql`, `)})`;

/** How many texts are searched at a time: all, because nothing waits while the server searches. */
const ALL_TEXTS = sql.raw(String(Number.MAX_SAFE_INTEGER));

const expressions = {
  anyOf: (column: SQLWrapper, name: string): SQL => sql`${column}::text = any(array(${elements(json(name))}))`,

  anyNumberOf: (column: SQLWrapper, name: string): SQL => sql`${column} = any(array(${elements(json(name))}::bigint))`,

  isOneOf: (number: SQLWrapper, text: SQLWrapper, name: string): SQL =>
    sql`(${number} = (${json(name)} ->> 0)::integer and ${text} = any(array(${elements(sql`${json(name)} -> 1`)})))`,

  contains: (column: SQLWrapper, name: string): SQL => sql`strpos(${column}, ${sql.placeholder(name)}) > 0`,

  elementsOf: (column: SQLWrapper): SQL => sql`jsonb_array_elements_text(${column}) element (value)`,

  // The server chooses the index.
  readBy: (read: SQLiteTable): SQL => sql`${read}`,

  // Compared as rows, the columns are the beginning of no other index, which the server could choose.
  inIndexRange: (
    columns: readonly SQLWrapper[],
    values: readonly SQLWrapper[],
    last: SQLWrapper,
    { low, end }: { readonly low: SQLWrapper; readonly end: SQLWrapper },
  ): SQL => {
    const key = row([...columns, last]);
    return sql`${key} >= ${row([...values, low])} and ${key} < ${row([...values, end])}`;
  },

  // The role that set up the database may not have had the right to create the index.
  searchedTexts: sql`case when to_regclass('advisories_trigrams') is null then 0 else ${ALL_TEXTS} end`,

  // Of all numbers. The index of texts can be read by a bitmap alone, which is avoided like a scan of the table. With the
  // limit outside it is the cheaper of the two.
  foundTexts: sql`(with found as materialized (select number from advisories where searched like ${sql.placeholder("pattern")})
    select number from found limit ${sql.placeholder("$limit")}) found`,
};

const columns = { ...columnTypes, ...expressions } satisfies Record<keyof Columns, unknown>;

/** The schema in PostgreSQL. What the query builder offers is the same in both dialects; only its types differ. */
export const schema = defineTables(columns as unknown as Columns);
