import { IndexedTable } from "./indexed-table.js";
import type { RoleRow, RoleStore } from "./port.js";
import { defineResourceIndex, usualSorts } from "./resource-index.js";
import type { Executor } from "./statement.js";

/** How custom roles are kept in lists; the built-in ones lie in no group. */
export const roleLists = defineResourceIndex(3, { table: (t) => t.roles, place: "groupUid", sorts: usualSorts });

/** Roles; see {@link RoleStore}. */
export class Roles extends IndexedTable<RoleRow> implements RoleStore {
  constructor(tx: Executor) {
    super(tx, roleLists);
  }

  async anyIn(groupUid: string): Promise<boolean> {
    return (await this.uidsWhere("groupUid", groupUid, 1)).length > 0;
  }
}
