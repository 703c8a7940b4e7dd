import { asc, isNull } from "drizzle-orm";
import type { CapabilitySet } from "../../kernel/capability-set.js";
import { declareKind, defineKind, type KindPatch, type KindRow, type KindTable, usualSorts } from "../kind.js";
import { ListedTable } from "../lists/listed-table.js";
import { ownColumns } from "../rows.js";
import { statement } from "../statement.js";

/** Custom roles as they are listed; built-in roles belong to no group. */
const declared = declareKind({
  number: 3,
  key: "roles",
  name: "roles",
  columns: (c, t) => ({
    uid: c.str("uid").primaryKey(),
    /** Null for built-in roles. */
    groupUid: c.str("group_uid").references(() => t.groups.uid),
    rootUid: c.str("root_uid").notNull(),
    name: c.str("name").notNull(),
    description: c.str("description").notNull(),
    capabilities: c.str("capabilities").$type<CapabilitySet>().notNull(),
    createTimeMs: c.long("create_time_ms").notNull(),
    updateTimeMs: c.long("update_time_ms").notNull(),
  }),
  indexes: (c, t) => [c.index("roles_name").on(t.name, t.uid)],
  parent: "groupUid",
  quota: "roles",
  hasNameWords: true,
  sorts: usualSorts,
});

declare module "../tables/kind-tables.js" {
  interface KindTables {
    readonly roles: KindTable<typeof declared>;
  }
}

export type RoleRow = KindRow<typeof declared>;

// They are few: one for each built-in role, and what the operator made.
const outsideGroups = statement<Record<string, never>, RoleRow>((q, t) =>
  q.select(ownColumns(t.roles)).from(t.roles).where(isNull(t.roles.groupUid)).orderBy(asc(t.roles.uid)),
);

export class Roles extends ListedTable<RoleRow, KindPatch<typeof declared>> {
  /** The roles that belong to no group, in the order of uids: those built in, and those of the operator. */
  listOutsideGroups(): Promise<RoleRow[]> {
    return this.all(outsideGroups, {});
  }
}

export const roleKind = defineKind(declared, Roles);
