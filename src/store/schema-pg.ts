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
import type { Columns } from "./tables/columns-sqlite.js";
import { defineTables } from "./tables.js";

// A locale gives punctuation less weight than letters: lists by name would have another order than in
// SQLite, and ranges of uids would be wrong.
const bytewise = customType<{ data: string; driverData: string }>({ dataType: () => 'text COLLATE "C"' });

// The column types of the schema; tables/columns-sqlite.ts has the same names.
const columns = {
  table: pgTable,
  /** Text that compares by bytes. */
  str: (name: string) => bytewise(name),
  bool: (name: string) => boolean(name),
  int: (name: string) => integer(name),
  /** A point in time as epoch milliseconds, or any integer beyond 32 bits. */
  long: (name: string) => bigint(name, { mode: "number" }),
  json: <T>(name: string) => jsonb(name).$type<T>(),
  /** A row number that the database assigns in ascending order. */
  serial: (name: string) => bigserial(name, { mode: "number" }).primaryKey(),
  /** Whether a column has one of the values in the JSON array that the placeholder `name` stands for. */
  anyOf: (column: SQLWrapper, name: string): SQL =>
    sql`${column}::text in (select jsonb_array_elements_text(${sql.placeholder(name)}::jsonb))`,
  /** The table `scopes` with one column `scope`: the values in the JSON array that the placeholder `name` stands for. */
  scopesIn: (name: string): SQL =>
    sql`(select jsonb_array_elements_text(${sql.placeholder(name)}::jsonb) as scope) scopes`,
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
  textOrder,
  timeOrder,
  counters,
  anyOf,
  scopesIn,
  // The query-builder surface that stores use is the same in both dialects; only its types differ.
} = defineTables(columns as unknown as Columns);
