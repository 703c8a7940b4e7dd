import { asc, isNull } from "drizzle-orm";
import { ListedTable } from "../lists/listed-table.js";
import { defineListedKind, type PatchOf, usualSorts } from "../lists/resource.js";
import { ownColumns, selectAny } from "../rows.js";
import { type Executor, statement } from "../statement.js";
import type { RoleRow } from "../tables/roles.js";

/** Custom roles as they are listed; built-in roles belong to no group. */
export const roleKind = defineListedKind(3, {
  table: "roles",
  parent: "groupUid",
  quota: "roles",
  sorts: usualSorts,
});

const child = selectAny("roles", "groupUid");
// They are few: one for each built-in role, and what the operator made.
const outsideGroups = statement<Record<string, never>, RoleRow>((q, t) =>
  q.select(ownColumns(t.roles)).from(t.roles).where(isNull(t.roles.groupUid)).orderBy(asc(t.roles.uid)),
);

export class Roles extends ListedTable<RoleRow, PatchOf<typeof roleKind>> {
  constructor(tx: Executor) {
    super(tx, roleKind);
  }

  /** Whether any role is a child of the group. */
  hasChildren(groupUid: string): Promise<boolean> {
    return this.has(child, { groupUid });
  }

  /** The roles that belong to no group, in the order of uids: those built in, and those of the operator. */
  listOutsideGroups(): Promise<RoleRow[]> {
    return this.all(outsideGroups, {});
  }
}
