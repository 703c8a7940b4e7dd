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
    sql`${column}::text in (select jsonb_array_elements_text(${sql.placeholder(name)}::jsonb))`,
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
  /** The whole numbers in the JSON array that the placeholder `name` stands for, for a condition with `in`. */
  numbersIn: (name: string): SQL => sql`(select jsonb_array_elements_text(${sql.placeholder(name)}::jsonb)::bigint)`,
  /** The values of a column of whole numbers in one text, with commas between them. */
  joinNumbers: (column: SQLWrapper): SQL<string | null> => sql`string_agg(${column}::text, ',')`,
  /** Whether a column contains the text that the placeholder `name` stands for. */
  contains: (column: SQLWrapper, name: string): SQL => sql`strpos(${column}, ${sql.placeholder(name)}) > 0`,
  /** Whether `foundTexts` uses an index: the role that set up the database may not have had the right to create it. */
  hasTextIndex: sql`to_regclass('advisory_entries_trigrams') is not null`,
  /**
   * As in SQLite; see tables/columns-sqlite.ts. The index of texts can be read by a bitmap alone, which is avoided like a
   * scan of the table. With the limit outside it is the cheaper of the two.
   */
  foundTexts: sql`(with found as materialized (select number, root from advisory_entries where searched like ${sql.placeholder("pattern")}) select number, root from found limit ${sql.placeholder("limit")}) found`,
  index,
  primaryKey,
  uniqueIndex,
} satisfies Record<keyof Columns, unknown>;

/** The schema in PostgreSQL; also what the migration generator reads. */
export const {
  groups,
  identities,
  roles,
  roleBindings,
  identityProviders,
  accountAssociations,
  groupInvites,
  groupMappings,
  termsAcceptances,
  subscriptions,
  accessRequests,
  keys,
  tickets,
  refreshTokens,
  audit,
  auditChain,
  auditHeads,
  auditSealer,
  auditCheckpoints,
  jobs,
  settings,
  repos,
  tags,
  tagHistory,
  tagMarks,
  registryEvents,
  manifests,
  deployments,
  registrySettings,
  registryNames,
  advisories,
  advisoryEvents,
  advisoryAliases,
  advisoryChanges,
  advisoryRoots,
  advisoryEntries,
  advisoryFacets,
  advisoryPostings,
  counters,
  dataMigrations,
  anyOf,
  readBy,
  inIndexRange,
  numbersIn,
  joinNumbers,
  contains,
  hasTextIndex,
  foundTexts,
  // The query-builder surface that stores use is the same in both dialects; only its types differ.
} = defineTables(columns as unknown as Columns);
