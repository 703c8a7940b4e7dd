// The tables of the schema, defined once and built per dialect (schema-sqlite.ts, schema-pg.ts) from column types of the same
// names (columns-sqlite.ts). Those of kinds are in the files of the kinds (store/kinds.ts), with their statements. The files
// beside this one have the others by subject, and the types of their rows. The migrations in src/store/migrations are generated
// from all of them. Every column that a query filters by has an index, but for filters of lists
// (docs/adr/0018-plain-indexes.md): on PostgreSQL a sequential scan would make concurrent serializable writers conflict for no
// reason.
import { defineAdvisoryTables } from "./advisories.js";
import { defineAuditTables } from "./audit.js";
import type { Columns, RowOf } from "./columns-sqlite.js";
import { defineEventTables } from "./events.js";
import { defineGroupTables } from "./groups.js";
import type { KindTables } from "./kind-tables.js";
import { defineRegistryTables } from "./registry.js";
import { defineScimTables } from "./scim.js";
import { defineTokenTables } from "./tokens.js";

/** Builds the tables besides those of kinds from a dialect's column types. */
export function defineOtherTables(c: Columns, kinds: KindTables) {
  return {
    ...defineGroupTables(c, kinds),
    ...defineTokenTables(c),
    ...defineAuditTables(c),
    ...defineEventTables(c, kinds),
    ...defineInstallationTables(c),
    ...defineRegistryTables(c, kinds),
    ...defineAdvisoryTables(c, kinds),
    ...defineCounterTables(c),
    ...defineNameTables(c),
    ...defineScimTables(c, kinds),
    // Expressions, not tables, but equally different between the databases.
    anyOf: c.anyOf,
    readBy: c.readBy,
    inIndexRange: c.inIndexRange,
    anyNumberOf: c.anyNumberOf,
    elementsOf: c.elementsOf,
    isOneOf: c.isOneOf,
    contains: c.contains,
    searchedTexts: c.searchedTexts,
    foundTexts: c.foundTexts,
  };
}

/** The tables of the schema, as either dialect builds them. */
export type Tables = KindTables & ReturnType<typeof defineOtherTables>;

// The totals of lists. They are derived from the rows and can be counted again.
function defineCounterTables(c: Columns) {
  const counters = c.table(
    "counters",
    {
      /** The uid of what the counted rows lie below. */
      scope: c.str("scope").notNull(),
      /** The number of the counter; store/kind.ts and lists/resource.ts say what each one counts. */
      counter: c.int("counter").notNull(),
      /** The value of a counter is the sum of its slots; on PostgreSQL concurrent writers use different slots. */
      slot: c.int("slot").notNull(),
      n: c.long("n").notNull(),
    },
    (t) => [c.primaryKey({ columns: [t.scope, t.counter, t.slot] })],
  );
  return { counters };
}

// The words of names, by which resources are found. They are derived from the rows.
function defineNameTables(c: Columns) {
  const nameWords = c.table(
    "name_words",
    {
      rootUid: c.str("root_uid").notNull(),
      /** The number of the kind. */
      kind: c.int("kind").notNull(),
      word: c.str("word").notNull(),
      /** The uid of the resource. */
      uid: c.str("uid").notNull(),
    },
    (t) => [c.primaryKey({ columns: [t.rootUid, t.kind, t.word, t.uid] })],
  );
  return { nameWords };
}

/**
 * Builds the tables of what an installation has once: its settings, the background jobs that one node at a time runs for
 * all nodes (src/jobs), and how far the migrations of stored rows are (docs/adr/0015-expand-and-contract.md).
 */
export function defineInstallationTables(c: Columns) {
  const settings = c.table("settings", {
    name: c.str("name").primaryKey(),
    value: c.str("value").notNull(),
  });
  const jobs = c.table("jobs", {
    name: c.str("name").primaryKey(),
    /** The node that has, or had last, the lease. */
    holder: c.str("holder").notNull(),
    /** The fencing number: grows whenever another node takes the lease. */
    fence: c.long("fence").notNull(),
    /** When the lease ends, in the time of the database. */
    expireTimeMs: c.long("expire_time_ms").notNull(),
    /** Of the last recorded run; null before the first. */
    startTimeMs: c.long("start_time_ms"),
    durationMs: c.long("duration_ms"),
    /** How many rows or other things the last recorded run changed; null when it failed. */
    changes: c.long("changes"),
    /** The job is due at this time; null before the first run. */
    nextTimeMs: c.long("next_time_ms"),
    /** How many runs failed since the last success. */
    failures: c.long("failures").notNull(),
    /** The last error, which stays after later successes. */
    error: c.str("error"),
    errorTimeMs: c.long("error_time_ms"),
  });
  const dataMigrations = c.table("data_migrations", {
    name: c.str("name").primaryKey(),
    phase: c.str("phase").$type<MigrationPhase>().notNull(),
    /** After which row to continue; in the phase `contracting`, how many statements have run. */
    position: c.str("position").notNull(),
    /** How many rows are copied. */
    done: c.long("done").notNull(),
  });
  return { settings, jobs, dataMigrations };
}

/** A background job: its lease and its last recorded run. */
export type JobRow = RowOf<ReturnType<typeof defineInstallationTables>["jobs"]>;

/** What a migration does next: copy rows, wait for the contract phase, remove the old form, or nothing any more. */
export type MigrationPhase = "expanding" | "expanded" | "contracting" | "contracted";
