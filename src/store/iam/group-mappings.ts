// Mappings of directories' groups to roles.
import { asc } from "drizzle-orm";
import { byCreation, declareKind, defineKind, type KindRow, type KindTable } from "../kind.js";
import { ListedTable } from "../lists/listed-table.js";
import { ownColumns, selectAny } from "../rows.js";
import { buildEquals, rowLimit, statement } from "../statement.js";

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

// Those of an external group, in the order of roles and scopes.
const ofGroup = statement<{ providerUid: string; externalGroupId: string; limit: number }, GroupMappingRow>((q, t) =>
  q
    .select(ownColumns(t.groupMappings))
    .from(t.groupMappings)
    .where(buildEquals(t.groupMappings, "providerUid", "externalGroupId"))
    .orderBy(asc(t.groupMappings.roleUid), asc(t.groupMappings.scope))
    .limit(rowLimit("limit")),
);

const same = selectAny("groupMappings", "providerUid", "externalGroupId", "roleUid", "scope");

export class GroupMappings extends ListedTable<GroupMappingRow> {
  /** Whether there is a mapping of the same external group to the same role at the same scope. */
  hasSame({ providerUid, externalGroupId, roleUid, scope }: GroupMappingRow): Promise<boolean> {
    return this.has(same, { providerUid, externalGroupId, roleUid, scope });
  }

  /** The mappings of an external group, at most `limit`. */
  findOfGroup(providerUid: string, externalGroupId: string, limit: number): Promise<GroupMappingRow[]> {
    return this.all(ofGroup, { providerUid, externalGroupId, limit });
  }
}

export const groupMappingKind = defineKind(declared, GroupMappings);
