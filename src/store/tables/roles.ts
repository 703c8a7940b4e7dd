// Roles, and what grants them in a group: bindings and invites.
import type { CapabilitySet } from "../../kernel/capability-set.js";
import type { Columns, ListedRowOf } from "./columns-sqlite.js";
import type { GroupTables } from "./groups.js";
import { buildListIndexes, usualSorts } from "./list-indexes.js";

export function defineRoleTables(c: Columns, { groups }: GroupTables) {
  const roles = c.table(
    "roles",
    {
      uid: c.str("uid").primaryKey(),
      /** Null for built-in roles. */
      groupUid: c.str("group_uid").references(() => groups.uid),
      rootUid: c.str("root_uid").notNull(),
      name: c.str("name").notNull(),
      description: c.str("description").notNull(),
      capabilities: c.str("capabilities").$type<CapabilitySet>().notNull(),
      createTimeMs: c.long("create_time_ms").notNull(),
      updateTimeMs: c.long("update_time_ms").notNull(),
    },
    (t) => [
      ...buildListIndexes(c, "roles", { ...t, parent: t.groupUid, sorts: usualSorts(t) }),
      c.index("roles_name").on(t.name, t.uid),
    ],
  );

  const groupUid = () =>
    c
      .str("group_uid")
      .notNull()
      .references(() => groups.uid);
  const roleUid = () =>
    c
      .str("role_uid")
      .notNull()
      .references(() => roles.uid);

  const roleBindings = c.table(
    "role_bindings",
    {
      uid: c.str("uid").primaryKey(),
      groupUid: groupUid(),
      rootUid: c.str("root_uid").notNull(),
      identityUid: c.str("identity_uid").notNull(),
      roleUid: roleUid(),
      /** Whether it was created with its root group; it is then deleted with the group. */
      automatic: c.bool("automatic").notNull(),
      /** Whether the person it is for created it by accepting an invite. */
      accepted: c.bool("accepted").notNull().default(false),
      /**
       * Whether the person it is for has yet to accept it. It grants its role wherever a call names the group,
       * but adds nothing to lists over all groups.
       */
      pending: c.bool("pending").notNull().default(false),
      createTimeMs: c.long("create_time_ms").notNull(),
      updateTimeMs: c.long("update_time_ms").notNull(),
    },
    (t) => [
      ...buildListIndexes(c, "role_bindings", { ...t, parent: t.groupUid, sorts: { created_at: t.createTimeMs } }),
      c.index("role_bindings_identity").on(t.identityUid, t.groupUid, t.roleUid),
      c.index("role_bindings_group").on(t.groupUid, t.automatic),
      c.index("role_bindings_pending").on(t.identityUid, t.pending, t.uid),
      c.index("role_bindings_role").on(t.roleUid, t.uid),
      c.uniqueIndex("role_bindings_same").on(t.groupUid, t.identityUid, t.roleUid),
    ],
  );

  const groupInvites = c.table(
    "group_invites",
    {
      uid: c.str("uid").primaryKey(),
      groupUid: groupUid(),
      rootUid: c.str("root_uid").notNull(),
      roleUid: roleUid(),
      email: c.str("email").notNull(),
      singleUse: c.bool("single_use").notNull(),
      keyId: c.str("key_id").notNull(),
      codeHash: c.str("code_hash").notNull(),
      /** Who created it: what they may grant is checked again when it is accepted. Empty where that is not known. */
      createdBy: c.str("created_by").notNull().default(""),
      expireTimeMs: c.long("expire_time_ms").notNull(),
      createTimeMs: c.long("create_time_ms").notNull(),
      /** 0 for invites that are older than this column. */
      updateTimeMs: c.long("update_time_ms").notNull().default(0),
    },
    (t) => [
      ...buildListIndexes(c, "group_invites", { ...t, parent: t.groupUid, sorts: { created_at: t.createTimeMs } }),
      c.index("group_invites_expiry").on(t.groupUid, t.expireTimeMs),
      c.index("group_invites_role").on(t.roleUid),
      c.uniqueIndex("group_invites_key").on(t.keyId),
    ],
  );

  return { roles, roleBindings, groupInvites };
}

export type RoleTables = ReturnType<typeof defineRoleTables>;

export type RoleRow = ListedRowOf<RoleTables["roles"]>;
export type RoleBindingRow = ListedRowOf<RoleTables["roleBindings"]>;
/** A group invite as stored; of its code only a hash. */
export type GroupInviteRow = ListedRowOf<RoleTables["groupInvites"]>;
