import { and, asc, eq, gt, isNull } from "drizzle-orm";
import { ListedTable } from "../lists/listed-table.js";
import { defineListedKind, type PatchOf, usualSorts } from "../lists/resource.js";
import { ownColumns, selectAny } from "../rows.js";
import { buildEquals, type Executor, rowLimit, statement, value } from "../statement.js";
import type { GroupRow } from "../tables/groups.js";

export const groupKind = defineListedKind(1, {
  table: "groups",
  parent: "parentUid",
  fixed: ["createdBy"],
  quota: "groups",
  includesSelf: true,
  hasRowsBelow: true,
  sorts: usualSorts,
});

/** The columns of a group that change after its creation. */
export type GroupPatch = PatchOf<typeof groupKind>;

const child = selectAny("groups", "parentUid");
// Any number of roots may share a name: no statement may read all of them.
const verifiedRoot = statement<{ name: string }, GroupRow>((q, t) =>
  q
    .select(ownColumns(t.groups))
    .from(t.groups)
    .where(and(buildEquals(t.groups, "name"), isNull(t.groups.parentUid), eq(t.groups.verified, true)))
    .limit(rowLimit(1)),
);
const rootsNamed = statement<{ name: string; limit: number }, GroupRow>((q, t) =>
  q
    .select(ownColumns(t.groups))
    .from(t.groups)
    .where(and(buildEquals(t.groups, "name"), isNull(t.groups.parentUid)))
    .limit(rowLimit("limit")),
);
const rootsAfter = statement<{ after: string; limit: number }, GroupRow>((q, t) =>
  q
    .select(ownColumns(t.groups))
    .from(t.groups)
    .where(and(isNull(t.groups.parentUid), gt(t.groups.uid, value("after"))))
    .orderBy(asc(t.groups.uid))
    .limit(rowLimit("limit")),
);

export class Groups extends ListedTable<GroupRow, GroupPatch> {
  constructor(tx: Executor) {
    super(tx, groupKind);
  }

  hasChildren(parentUid: string): Promise<boolean> {
    return this.has(child, { parentUid });
  }

  /** The verified root group with this name: there is at most one. */
  findVerifiedRoot(name: string): Promise<GroupRow | undefined> {
    return this.first(verifiedRoot, { name });
  }

  /** Root groups with this name, at most `limit`, in no order. */
  findRootsNamed(name: string, limit: number): Promise<GroupRow[]> {
    return this.all(rootsNamed, { name, limit });
  }

  /** Root groups in the order of their uids, from the first one after `after`, at most `limit`. */
  listRoots(after: string, limit: number): Promise<GroupRow[]> {
    return this.all(rootsAfter, { after, limit });
  }
}
