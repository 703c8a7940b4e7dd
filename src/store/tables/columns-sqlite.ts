// The column types of the schema in SQLite; schema-pg.ts has the same names.
import { type SQL, type SQLWrapper, sql } from "drizzle-orm";
import {
  blob,
  index,
  integer,
  primaryKey,
  type SQLiteTable,
  sqliteTable,
  text,
  uniqueIndex,
} from "drizzle-orm/sqlite-core";

export const table = sqliteTable;
/** Text that compares by bytes. */
export const str = (name: string) => text(name);
export const bool = (name: string) => integer(name, { mode: "boolean" });
export const int = (name: string) => integer(name);
/** A point in time as epoch milliseconds, or any integer beyond 32 bits. */
export const long = (name: string) => integer(name);
export const bytes = (name: string) => blob(name, { mode: "buffer" });
export const json = <T>(name: string) => text(name, { mode: "json" }).$type<T>();
/** A row number that the database assigns in ascending order. */
export const serial = (name: string) => integer(name).primaryKey({ autoIncrement: true });
/** As {@link serial}; a number may be assigned again after its row was deleted. */
export const rowNumber = (name: string) => integer(name).primaryKey();
/** Whether a column has one of the values in the JSON array that the placeholder `name` stands for. */
export const anyOf = (column: SQLWrapper, name: string): SQL =>
  sql`${column} in (select value from json_each(${sql.placeholder(name)}))`;
/** The table, to be read by the index with this name: SQLite would choose another when it lacks statistics. */
export const readBy = (read: SQLiteTable, name: string): SQL => sql`${read} indexed by ${sql.identifier(name)}`;
/**
 * Whether the first columns of an index have these values, and the last one is at least `low` and less than `end`. Where
 * the index is chosen by name, as here, equality is the cheapest condition.
 */
export const inIndexRange = (
  columns: readonly SQLWrapper[],
  values: readonly SQLWrapper[],
  last: SQLWrapper,
  { low, end }: { readonly low: SQLWrapper; readonly end: SQLWrapper },
): SQL =>
  sql.join(
    [...columns.map((column, i) => sql`${column} = ${values[i]}`), sql`${last} >= ${low}`, sql`${last} < ${end}`],
    sql` and `,
  );
/** Whether a column has one of the whole numbers in the JSON array that the placeholder `name` stands for. */
export const anyNumberOf = (column: SQLWrapper, name: string): SQL =>
  sql`${column} in (select value from json_each(${sql.placeholder(name)}))`;
/** Whether a column contains the text that the placeholder `name` stands for. */
export const contains = (column: SQLWrapper, name: string): SQL => sql`instr(${column}, ${sql.placeholder(name)}) > 0`;
/** The table `element`, whose column `value` has the texts in a JSON array. */
export const elementsOf = (column: SQLWrapper): SQL => sql`json_each(${column}) element`;
/**
 * Whether a column of numbers and a column of texts have the values in the JSON that the placeholder `name` stands for: an
 * array of a number and of an array of texts, of which one must match.
 */
export const isOneOf = (number: SQLWrapper, text: SQLWrapper, name: string): SQL =>
  sql`(${number} = json_extract(${sql.placeholder(name)}, '$[0]') and ${text} in (select value from json_each(${sql.placeholder(name)}, '$[1]')))`;
/** How many texts {@link foundTexts} searches at a time; 0 where it has no index. */
export const searchedTexts: SQL = sql`10000`;
/**
 * The table `found` with the numbers of advisories whose searched text contains a text of at least three characters, from
 * one number up to another, at most `limit`. Placeholders: `phrase`, the text as a phrase of FTS5; `pattern`, as a
 * pattern of `like`; `$from`, `$to`, the first number that is not searched, and `$limit`.
 */
export const foundTexts: SQL = sql`(select rowid as number from advisory_texts where advisory_texts match ${sql.placeholder("phrase")}
  and rowid >= ${sql.placeholder("$from")} and rowid < ${sql.placeholder("$to")} limit ${sql.placeholder("$limit")} + 0) found`;
export { index, primaryKey, uniqueIndex };

/** The column types that tables are defined with. The other dialect exports the same names. */
export type Columns = typeof import("./columns-sqlite.js");

/** A row as its table stores it: plain values, the same in both databases. */
export type RowOf<T extends { readonly $inferSelect: unknown }> = Readonly<T["$inferSelect"]>;

/** A row of a listed table. The store derives the uid of its root from its own, and the database assigns its number. */
export type ListedRowOf<T extends { readonly $inferSelect: unknown }> = Omit<RowOf<T>, "rootUid" | "number">;
