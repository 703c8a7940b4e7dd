// Background jobs that one node at a time runs for all nodes (src/jobs).
import type { Columns, RowOf } from "./columns-sqlite.js";

/** Builds the table of background jobs. */
export function defineJobTables(c: Columns) {
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
  return { jobs };
}

/** A background job: its lease and its last recorded run. */
export type JobRow = RowOf<ReturnType<typeof defineJobTables>["jobs"]>;
