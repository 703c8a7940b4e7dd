// The tables of the registry and of advisories; part of tables.ts.
import type { AnySQLiteColumn } from "drizzle-orm/sqlite-core";
import type { Columns } from "./columns-sqlite.js";

/** Builds them. `groupUid` is the uid of a group. */
export function defineRegistryTables(c: Columns, groupUid: () => AnySQLiteColumn) {
  const repos = c.table(
    "repos",
    {
      uid: c.str("uid").primaryKey(),
      groupUid: c.str("group_uid").notNull().references(groupUid),
      name: c.str("name").notNull(),
      description: c.str("description").notNull(),
      config: c.json<object>("config").notNull(),
      readme: c.str("readme").notNull(),
      createTimeMs: c.long("create_time_ms").notNull(),
      updateTimeMs: c.long("update_time_ms").notNull(),
    },
    (t) => [c.index("repos_group").on(t.groupUid, t.uid), c.uniqueIndex("repos_name").on(t.groupUid, t.name)],
  );

  const tags = c.table(
    "tags",
    {
      uid: c.str("uid").primaryKey(),
      repoUid: c
        .str("repo_uid")
        .notNull()
        .references(() => repos.uid),
      name: c.str("name").notNull(),
      digest: c.str("digest").notNull(),
      family: c.int("family").notNull(),
      deprecated: c.bool("deprecated").notNull(),
      bundles: c.json<string[]>("bundles").notNull(),
      createTimeMs: c.long("create_time_ms").notNull(),
      updateTimeMs: c.long("update_time_ms").notNull(),
    },
    (t) => [
      c.index("tags_repo").on(t.repoUid, t.uid),
      c.uniqueIndex("tags_name").on(t.repoUid, t.name),
      c.index("tags_digest").on(t.digest, t.uid),
    ],
  );

  const tagHistory = c.table(
    "tag_history",
    {
      tagUid: c.str("tag_uid").notNull(),
      timeMs: c.long("time_ms").notNull(),
      digest: c.str("digest").notNull(),
    },
    (t) => [c.primaryKey({ columns: [t.tagUid, t.timeMs, t.digest] })],
  );

  // When a tag was last pushed or deleted, also of tags that are gone: news may arrive in any order.
  const tagMarks = c.table(
    "tag_marks",
    {
      repoUid: c.str("repo_uid").notNull(),
      name: c.str("name").notNull(),
      timeMs: c.long("time_ms").notNull(),
    },
    (t) => [c.primaryKey({ columns: [t.repoUid, t.name] }), c.index("tag_marks_time").on(t.timeMs)],
  );

  const registryEvents = c.table(
    "registry_events",
    { id: c.str("id").primaryKey(), timeMs: c.long("time_ms").notNull() },
    (t) => [c.index("registry_events_time").on(t.timeMs)],
  );

  // What a manifest says of its image, per repo: that it lies in another one is no right to read it here.
  const manifests = c.table(
    "manifests",
    {
      repoUid: c.str("repo_uid").notNull(),
      digest: c.str("digest").notNull(),
      images: c.json<object>("images").notNull(),
    },
    (t) => [c.primaryKey({ columns: [t.repoUid, t.digest] })],
  );

  const deployments = c.table("deployments", {
    repoUid: c
      .str("repo_uid")
      .primaryKey()
      .references(() => repos.uid),
    charts: c.json<object>("charts").notNull(),
    createTimeMs: c.long("create_time_ms").notNull(),
    updateTimeMs: c.long("update_time_ms").notNull(),
  });

  const registrySettings = c.table("registry_settings", {
    groupUid: c.str("group_uid").primaryKey().references(groupUid),
    uniqueTags: c.bool("unique_tags").notNull(),
    eolGracePeriod: c.bool("eol_grace_period").notNull(),
  });

  return {
    ...{ repos, tags, tagHistory, tagMarks, registryEvents, manifests, deployments, registrySettings },
    ...defineAdvisoryTables(c, groupUid),
  };
}

function defineAdvisoryTables(c: Columns, groupUid: () => AnySQLiteColumn) {
  const advisories = c.table(
    "advisories",
    {
      uid: c.str("uid").primaryKey(),
      groupUid: c.str("group_uid").notNull().references(groupUid),
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
      severities: c.json<object>("severities").notNull(),
      // What a query looks through: lower case, names and aliases with line breaks between.
      searched: c.str("searched").notNull(),
      // The type of the latest approved event; 0 where there is none.
      latestEventType: c.int("latest_event_type").notNull(),
      // Where it was imported from, so that the same record is stored once; empty for others.
      sourceKey: c.str("source_key").notNull(),
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
      type: c.int("type").notNull(),
      author: c.str("author").notNull(),
      reviewer: c.str("reviewer").notNull(),
      reviewState: c.int("review_state").notNull(),
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
