import { listedKind, usualSorts } from "./listed-kind.js";
import { ListedRows } from "./listed-store.js";
import type { RoleRow, RoleStore } from "./port.js";
import type { Executor } from "./statement.js";

/** How custom roles are kept in lists; the built-in ones lie in no group. */
export const roleLists = listedKind(3, { table: (t) => t.roles, place: "groupUid", sorts: usualSorts });

/** Roles; see {@link RoleStore}. */
export class Roles extends ListedRows<RoleRow> implements RoleStore {
  constructor(tx: Executor) {
    super(tx, roleLists);
  }

  async anyIn(groupUid: string): Promise<boolean> {
    return (await this.uidsWhere("groupUid", groupUid, 1)).length > 0;
  }
}
