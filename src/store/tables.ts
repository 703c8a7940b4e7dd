// The schema, defined once and built per dialect (schema-sqlite.ts, schema-pg.ts). Every column that a
// query filters by has an index: on PostgreSQL a sequential scan would make concurrent serializable
// writers conflict for no reason.
import { defineAdvisoryTables } from "./tables/advisories.js";
import { defineAuditTables } from "./tables/audit.js";
import type { Columns, RowOf } from "./tables/columns-sqlite.js";
import { defineGroupTables } from "./tables/groups.js";
import { defineIdentityTables } from "./tables/identities.js";
import { defineRegistryTables } from "./tables/registry.js";
import { defineRoleTables } from "./tables/roles.js";
import { defineTokenTables } from "./tables/tokens.js";

/** Builds the tables of the schema from a dialect's column types. */
export function defineTables(c: Columns) {
  const groupTables = defineGroupTables(c);
  const roleTables = defineRoleTables(c, groupTables);
  return {
    ...groupTables,
    ...roleTables,
    ...defineIdentityTables(c, { ...groupTables, ...roleTables }),
    ...defineTokenTables(c),
    ...defineAuditTables(c),
    ...defineInstallationTables(c),
    ...defineRegistryTables(c, groupTables),
    ...defineAdvisoryTables(c, groupTables),
    ...defineEntryTables(c),
    // Expressions, not tables, but equally different between the databases.
    anyOf: c.anyOf,
    topsIn: c.topsIn,
    uidBelow: c.uidBelow,
    numbersIn: c.numbersIn,
    joinNumbers: c.joinNumbers,
    contains: c.contains,
    hasTextIndex: c.hasTextIndex,
    foundTexts: c.foundTexts,
  };
}

/** The tables of the schema, as either dialect builds them. */
export type Tables = ReturnType<typeof defineTables>;

// The index of lists (docs/adr/0014-compact-order-index.md): where each row stands in the lists of its ancestors, and
// how many rows there are. It is derived from the rows and can be rebuilt from them.

/** Builds the tables of the index of lists. */
function defineEntryTables(c: Columns) {
  // The ancestors that have rows below them. Other rows need no number.
  const scopes = c.table(
    "scopes",
    {
      id: c.rowNumber("id"),
      uid: c.str("uid").notNull(),
      /** Whether any list of it has ranks; changes in others need not look for them. */
      ranked: c.bool("ranked").notNull().default(false),
    },
    (t) => [c.uniqueIndex("scopes_uid").on(t.uid)],
  );

  // The lists of a scope lie next to each other: most are short, and a write changes several of them.
  const list = () => c.int("list").notNull();
  const scope = () => c.long("scope").notNull();
  const textKey = () => c.str("key").notNull();
  const timeKey = () => c.long("key").notNull();
  /** The segments of the row's uid below the scope, 8 bytes each: in the order of uids, in half the space. */
  const below = () => c.bytes("below").notNull();

  const textEntries = c.table("text_entries", { list: list(), scope: scope(), key: textKey(), below: below() }, (t) => [
    c.primaryKey({ columns: [t.scope, t.list, t.key, t.below] }),
  ]);
  const timeEntries = c.table("time_entries", { list: list(), scope: scope(), key: timeKey(), below: below() }, (t) => [
    c.primaryKey({ columns: [t.scope, t.list, t.key, t.below] }),
  ]);

  // The value of a total is the sum of its slots; on PostgreSQL concurrent writers use different slots.
  const slot = () => c.int("slot").notNull();
  const totals = c.table(
    "totals",
    { counter: c.int("counter").notNull(), scope: scope(), slot: slot(), n: c.long("n").notNull() },
    (t) => [c.primaryKey({ columns: [t.scope, t.counter, t.slot] })],
  );

  // How many entries of a long list lie between two positions, so that a page far into it is found without reading
  // those before it. `n` counts from the position up to the next one; null: not counted yet.
  const n = () => c.long("n");
  const textRanks = c.table(
    "text_ranks",
    { list: list(), scope: scope(), key: textKey(), below: below(), slot: slot(), n: n() },
    (t) => [c.primaryKey({ columns: [t.scope, t.list, t.key, t.below, t.slot] })],
  );
  const timeRanks = c.table(
    "time_ranks",
    { list: list(), scope: scope(), key: timeKey(), below: below(), slot: slot(), n: n() },
    (t) => [c.primaryKey({ columns: [t.scope, t.list, t.key, t.below, t.slot] })],
  );
  return { scopes, textEntries, timeEntries, totals, textRanks, timeRanks };
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
