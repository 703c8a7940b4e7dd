import { listedKind, usualSorts } from "./listed-kind.js";
import { ListedRows } from "./listed-store.js";
import type { IdentityRow, IdentityStore } from "./port.js";
import type { Executor } from "./statement.js";

/** How identities are kept in lists. */
export const identityLists = listedKind(2, { table: (t) => t.identities, place: "groupUid", sorts: usualSorts });

/** Identities; see {@link IdentityStore}. */
export class Identities extends ListedRows<IdentityRow> implements IdentityStore {
  constructor(tx: Executor) {
    super(tx, identityLists);
  }

  async anyIn(groupUid: string): Promise<boolean> {
    return (await this.uidsWhere("groupUid", groupUid, 1)).length > 0;
  }
}
