// The events of advisories on vulnerabilities, and the values by which filters find them.
import type { Columns, RowOf } from "./columns-sqlite.js";
import type { KindTables } from "./kind-tables.js";

export function defineAdvisoryTables(c: Columns, { advisories }: KindTables) {
  const advisoryEvents = c.table(
    "advisory_events",
    {
      uid: c.str("uid").primaryKey(),
      advisoryUid: c
        .str("advisory_uid")
        .notNull()
        .references(() => advisories.uid),
      /** The number of the EventTypeFilter. */
      type: c.int("type").notNull(),
      author: c.str("author").notNull(),
      reviewer: c.str("reviewer").notNull(),
      reviewState: c.int("review_state").notNull(),
      /** The JSON of its message. */
      data: c.json<object>("data").notNull(),
      createTimeMs: c.long("create_time_ms").notNull(),
      updateTimeMs: c.long("update_time_ms").notNull(),
    },
    (t) => [c.index("advisory_events_advisory").on(t.advisoryUid, t.createTimeMs, t.uid)],
  );

  // The values by which filters find advisories, derived from the advisories and their events (advisories/filters.ts).
  const advisoryValues = c.table(
    "advisory_values",
    {
      rootUid: c.str("root_uid").notNull(),
      /** The number of the filter. */
      filter: c.int("filter").notNull(),
      value: c.str("value").notNull(),
      /** The number of the advisory. */
      number: c.long("number").notNull(),
    },
    (t) => [c.primaryKey({ columns: [t.rootUid, t.filter, t.value, t.number] })],
  );

  return { advisoryEvents, advisoryValues };
}

type AdvisoryTables = ReturnType<typeof defineAdvisoryTables>;

export type AdvisoryEventRow = RowOf<AdvisoryTables["advisoryEvents"]>;
