// Advisories on vulnerabilities, with their events and aliases.
import type { Columns, ListedRowOf, RowOf } from "./columns-sqlite.js";
import type { GroupTables } from "./groups.js";
import { buildListIndexes } from "./list-indexes.js";

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

  return { advisories, advisoryEvents, advisoryAliases, ...defineSearchTables(c) };
}

// The index of filters (docs/adr/0017-advisory-postings.md), derived from the advisories.
function defineSearchTables(c: Columns) {
  // Advisories that changed since they were indexed. Triggers of the database add them, whichever version of the
  // service writes.
  const advisoryChanges = c.table("advisory_changes", { id: c.rowNumber("id"), uid: c.str("uid").notNull() });

  // The organisations that have advisories, by short numbers.
  const advisoryRoots = c.table("advisory_roots", { id: c.rowNumber("id"), uid: c.str("uid").notNull() }, (t) => [
    c.uniqueIndex("advisory_roots_uid").on(t.uid),
  ]);

  // What orders and a query read of each advisory, under a short number.
  const advisoryEntries = c.table(
    "advisory_entries",
    {
      number: c.rowNumber("number"),
      root: c.long("root").notNull(),
      uid: c.str("uid").notNull(),
      createTimeMs: c.long("create_time_ms").notNull(),
      updateTimeMs: c.long("update_time_ms").notNull(),
      searched: c.str("searched").notNull(),
    },
    (t) => [
      c.uniqueIndex("advisory_entries_uid").on(t.uid),
      c.index("advisory_entries_created").on(t.root, t.createTimeMs, t.uid),
      c.index("advisory_entries_updated").on(t.root, t.updateTimeMs, t.uid),
    ],
  );

  // The values under which each advisory is found, by the numbers of their filters.
  const advisoryFacets = c.table("advisory_facets", {
    number: c.rowNumber("number"),
    facets: c.json<Facets>("facets").notNull(),
  });

  // For each value of a filter the numbers of the advisories that have it, as bits of words (advisories/row-set.ts).
  const advisoryPostings = c.table(
    "advisory_postings",
    {
      root: c.long("root").notNull(),
      filter: c.int("filter").notNull(),
      value: c.str("value").notNull(),
      word: c.long("word").notNull(),
      bits: c.long("bits").notNull(),
    },
    (t) => [c.primaryKey({ columns: [t.root, t.filter, t.value, t.word] })],
  );
  return { advisoryChanges, advisoryRoots, advisoryEntries, advisoryFacets, advisoryPostings };
}

/** The values of an advisory for each filter, at the index that is the number of the filter. */
export type Facets = readonly (readonly string[])[];

type AdvisoryTables = ReturnType<typeof defineAdvisoryTables>;

/** An advisory as stored. */
export type AdvisoryRow = ListedRowOf<AdvisoryTables["advisories"]>;
/** An event of an advisory as stored. */
export type AdvisoryEventRow = RowOf<AdvisoryTables["advisoryEvents"]>;
/** An alias by which an advisory is found. */
export type AdvisoryAliasRow = RowOf<AdvisoryTables["advisoryAliases"]>;
/** What the index of filters keeps of an advisory. */
export type AdvisoryEntryRow = RowOf<AdvisoryTables["advisoryEntries"]>;
