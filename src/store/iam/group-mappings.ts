// Mappings of directories' groups to roles.
import { and, gt, lt } from "drizzle-orm";
import { rootOf } from "../../kernel/uidp.js";
import { byCreation, declareKind, defineKind, type KindRow, type KindTable } from "../kind.js";
import { ListedTable } from "../lists/listed-table.js";
import { buildEquals, rowLimit, statement, value } from "../statement.js";

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

// A mapping lies in the organisation of its scope, whose mappings are few.
const ofScope = statement<{ scope: string; after: string; end: string }, { uid: string }>((q, { groupMappings: m }) =>
  q
    .select({ uid: m.uid })
    .from(m)
    .where(and(buildEquals(m, "scope"), gt(m.uid, value("after")), lt(m.uid, value("end"))))
    .limit(rowLimit(1)),
);

export class GroupMappings extends ListedTable<GroupMappingRow> {
  /** Whether a group is the scope of a mapping. */
  isScope(groupUid: string): Promise<boolean> {
    const root = rootOf(groupUid);
    return this.has(ofScope, { scope: groupUid, after: root, end: `${root}0` });
  }
}

export const groupMappingKind = defineKind(declared, GroupMappings);
