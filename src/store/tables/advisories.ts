// Advisories on vulnerabilities, with their events and aliases.
import type { Columns, RowOf } from "./columns-sqlite.js";
import type { GroupTables } from "./groups.js";

/** Builds the tables of advisories. */
export function defineAdvisoryTables(c: Columns, { groups }: GroupTables) {
  const advisories = c.table(
    "advisories",
    {
      uid: c.str("uid").primaryKey(),
      groupUid: c
        .str("group_uid")
        .notNull()
        .references(() => groups.uid),
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
      c.index("advisories_group").on(t.groupUid, t.uid),
      c.uniqueIndex("advisories_id").on(t.advisoryId, t.groupUid),
      c.index("advisories_legacy").on(t.legacyAdvisoryId),
      c.index("advisories_artifact").on(t.artifactName),
      c.index("advisories_component").on(t.componentName),
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

  const advisoryAliases = c.table(
    "advisory_aliases",
    { alias: c.str("alias").notNull(), advisoryUid: c.str("advisory_uid").notNull() },
    (t) => [
      c.primaryKey({ columns: [t.alias, t.advisoryUid] }),
      c.index("advisory_aliases_advisory").on(t.advisoryUid),
    ],
  );

  return { advisories, advisoryEvents, advisoryAliases };
}

type AdvisoryTables = ReturnType<typeof defineAdvisoryTables>;

/** An advisory as stored. */
export type AdvisoryRow = RowOf<AdvisoryTables["advisories"]>;
/** An event of an advisory as stored. */
export type AdvisoryEventRow = RowOf<AdvisoryTables["advisoryEvents"]>;
/** An alias by which an advisory is found. */
export type AdvisoryAliasRow = RowOf<AdvisoryTables["advisoryAliases"]>;
