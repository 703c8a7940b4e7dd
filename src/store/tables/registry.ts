// What belongs to the repos and tags of a container registry, and what is known of their images. The registry itself has the images; its
// events say what was pushed and deleted there (src/registry/oci). All times are in epoch milliseconds.
import type { Columns, RowOf } from "./columns-sqlite.js";
import type { KindTables } from "./kind-tables.js";

/**
 * What the uid of an organisation leads to in paths of the registry, once its name is recorded: repos that are still
 * pulled there; repos that can only be moved from there; nothing.
 */
export type UidPath = "pulls" | "closed" | "moved";

export function defineRegistryTables(c: Columns, { groups, repos, overlayBindings }: KindTables) {
  const tagHistory = c.table(
    "tag_history",
    {
      tagUid: c.str("tag_uid").notNull(),
      timeMs: c.long("time_ms").notNull(),
      digest: c.str("digest").notNull(),
    },
    (t) => [c.primaryKey({ columns: [t.tagUid, t.timeMs, t.digest] })],
  );

  // When a tag was last pushed or deleted, also for deleted tags: events of a registry may arrive in any order.
  const tagMarks = c.table(
    "tag_marks",
    {
      repoUid: c.str("repo_uid").notNull(),
      name: c.str("name").notNull(),
      timeMs: c.long("time_ms").notNull(),
    },
    (t) => [c.primaryKey({ columns: [t.repoUid, t.name] }), c.index("tag_marks_time").on(t.timeMs)],
  );

  // The ids of the events that were applied: a registry repeats an event until it is acknowledged.
  const registryEvents = c.table(
    "registry_events",
    { id: c.str("id").primaryKey(), timeMs: c.long("time_ms").notNull() },
    (t) => [c.index("registry_events_time").on(t.timeMs)],
  );

  // Per repo: that the same manifest is known in another repo gives no right to read it here.
  const manifests = c.table(
    "manifests",
    {
      repoUid: c.str("repo_uid").notNull(),
      digest: c.str("digest").notNull(),
      /** Sizes in bytes by architecture. */
      images: c.json<Readonly<Record<string, number>>>("images").notNull(),
    },
    (t) => [c.primaryKey({ columns: [t.repoUid, t.digest] })],
  );

  const deployments = c.table("deployments", {
    repoUid: c
      .str("repo_uid")
      .primaryKey()
      .references(() => repos.uid),
    /** The JSON of their messages, in the given order. */
    charts: c.json<object>("charts").notNull(),
    createTimeMs: c.long("create_time_ms").notNull(),
    updateTimeMs: c.long("update_time_ms").notNull(),
  });

  const registrySettings = c.table("registry_settings", {
    groupUid: c
      .str("group_uid")
      .primaryKey()
      .references(() => groups.uid),
    uniqueTags: c.bool("unique_tags").notNull(),
    eolGracePeriod: c.bool("eol_grace_period").notNull(),
  });

  // A row outlives its group: what another organisation pushed under a name must never be found under it again.
  const registryNames = c.table(
    "registry_names",
    {
      name: c.str("name").primaryKey(),
      /** The root group that was verified under this name. */
      groupUid: c.str("group_uid").notNull(),
      uidPath: c.str("uid_path").$type<UidPath>().notNull(),
    },
    (t) => [c.uniqueIndex("registry_names_group").on(t.groupUid)],
  );

  // What the overlay bindings of a repo select: two of them must not select the same.
  const overlaySelections = c.table(
    "overlay_selections",
    {
      repoUid: c
        .str("repo_uid")
        .notNull()
        .references(() => repos.uid),
      /** All tags, a variant, or the name of a tag (registry/overlay-bindings.ts). */
      selection: c.str("selection").notNull(),
      bindingUid: c
        .str("binding_uid")
        .notNull()
        .references(() => overlayBindings.uid, { onDelete: "cascade" }),
    },
    (t) => [
      c.primaryKey({ columns: [t.repoUid, t.selection] }),
      c.index("overlay_selections_binding").on(t.bindingUid),
    ],
  );

  return {
    ...{ tagHistory, tagMarks, registryEvents, manifests, deployments, registrySettings, registryNames },
    overlaySelections,
  };
}

type RegistryTables = ReturnType<typeof defineRegistryTables>;

/** The digest that a tag pointed to from a time on. */
export type TagMove = RowOf<RegistryTables["tagHistory"]>;
/** When a tag was last pushed or deleted. */
export type TagMark = RowOf<RegistryTables["tagMarks"]>;
/** What the manifest of an image contains, as far as it was requested. */
export type ManifestRow = RowOf<RegistryTables["manifests"]>;
/** The charts that deploy a repo. */
export type DeploymentRow = RowOf<RegistryTables["deployments"]>;
/** The settings for all repos of a group. */
export type RegistrySettingsRow = RowOf<RegistryTables["registrySettings"]>;
/** The name of an organisation in paths of the registry. */
export type RegistryNameRow = RowOf<RegistryTables["registryNames"]>;
