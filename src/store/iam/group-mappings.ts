// Mappings of directories' groups to roles.
import { byCreation, declareKind, defineKind, type KindRow, type KindTable } from "../kind.js";

/** Mappings of directories' groups as they are listed; their parent is the provider. */
const declared = declareKind({
  number: 8,
  key: "groupMappings",
  name: "external_group_role_mappings",
  columns: (c, t) => ({
    uid: c.str("uid").primaryKey(),
    providerUid: c
      .str("provider_uid")
      .notNull()
      .references(() => t.identityProviders.uid),
    rootUid: c.str("root_uid").notNull(),
    externalGroupId: c.str("external_group_id").notNull(),
    roleUid: c
      .str("role_uid")
      .notNull()
      .references(() => t.roles.uid),
    scope: c.str("scope").notNull(),
    /** The uid of the identity that created it, whose rights bound what it grants; null for those of before. */
    createdBy: c.str("created_by"),
    createTimeMs: c.long("create_time_ms").notNull(),
  }),
  indexes: (c, t) => [
    c.uniqueIndex("external_group_role_mappings_same").on(t.providerUid, t.externalGroupId, t.roleUid, t.scope),
    c.index("external_group_role_mappings_role").on(t.roleUid),
    // What justifies a binding: see isLive of role-bindings.ts.
    c.index("external_group_role_mappings_granted").on(t.scope, t.roleUid, t.providerUid, t.externalGroupId),
  ],
  parent: "providerUid",
  references: { scope: { to: "groups", remedy: (uid) => `arbor iam group-mappings delete ${uid}` } },
  quota: "mappings",
  sorts: byCreation,
});

declare module "../tables/kind-tables.js" {
  interface KindTables {
    readonly groupMappings: KindTable<typeof declared>;
  }
}

/** A mapping of a directory's group to a role, as stored. */
export type GroupMappingRow = KindRow<typeof declared>;

export const groupMappingKind = defineKind(declared);
