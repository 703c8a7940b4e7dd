// Advisories on vulnerabilities, with their events and the values by which filters find them.
import type { Columns, ListedRowOf, RowOf } from "./columns-sqlite.js";
import type { GroupTables } from "./groups.js";
import { buildListIndexes } from "./list-indexes.js";

export function defineAdvisoryTables(c: Columns, { groups }: GroupTables) {
  const advisories = c.table(
    "advisories",
    {
      /** The values of an advisory name it by this number. */
      number: c.rowNumber("number"),
      uid: c.str("uid").notNull().unique(),
      groupUid: c
        .str("group_uid")
        .notNull()
        .references(() => groups.uid),
      rootUid: c.str("root_uid").notNull(),
      advisoryId: c.str("advisory_id").notNull(),
      legacyAdvisoryId: c.str("legacy_advisory_id").notNull(),
      author: c.str("author").notNull(),
      artifactName: c.str("artifact_name").notNull(),
      artifactType: c.str("artifact_type").notNull(),
      artifactArchitecture: c.str("artifact_architecture").notNull(),
      componentName: c.str("component_name").notNull(),
      componentLocation: c.str("component_location").notNull(),
      componentType: c.str("component_type").notNull(),
      aliases: c.json<string[]>("aliases").notNull(),
      /** The JSON of its severities. */
      severities: c.json<object>("severities").notNull(),
      /** The text that a query searches: names and aliases in lower case, one a line. */
      searched: c.str("searched").notNull(),
      /** The type of the latest approved event; 0 where there is none. */
      latestEventType: c.int("latest_event_type").notNull(),
      /** The record it was imported from, so that a record is stored once; empty for others. */
      sourceKey: c.str("source_key").notNull(),
      /** The hash of the imported record. */
      sourceHash: c.str("source_hash").notNull(),
      deleteTimeMs: c.long("delete_time_ms"),
      createTimeMs: c.long("create_time_ms").notNull(),
      updateTimeMs: c.long("update_time_ms").notNull(),
    },
    (t) => [
      ...buildListIndexes(c, "advisories", {
        ...t,
        parent: t.groupUid,
        sorts: { created_at: t.createTimeMs, updated_at: t.updateTimeMs },
      }),
      c.index("advisories_by_number").on(t.rootUid, t.number),
      c.uniqueIndex("advisories_id").on(t.advisoryId, t.groupUid),
      c.index("advisories_legacy").on(t.legacyAdvisoryId),
      c.index("advisories_source").on(t.groupUid, t.sourceKey),
    ],
  );

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

  return { advisories, advisoryEvents, advisoryValues };
}

type AdvisoryTables = ReturnType<typeof defineAdvisoryTables>;

/** An advisory as stored. Its number is known to the store alone. */
export type AdvisoryRow = ListedRowOf<AdvisoryTables["advisories"]>;
export type AdvisoryEventRow = RowOf<AdvisoryTables["advisoryEvents"]>;
