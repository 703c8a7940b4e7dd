import { and, eq, isNull } from "drizzle-orm";
import { ListedTable } from "../lists/listed-table.js";
import { defineListedKind, type PatchOf, usualSorts } from "../lists/resource.js";
import { ownColumns, selectAny } from "../rows.js";
import { buildEquals, type Executor, statement } from "../statement.js";
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
// Any number of roots may share a name: neither statement may scan all of them.
const verifiedRoot = statement<{ name: string }, GroupRow>((q, t) =>
  q
    .select(ownColumns(t.groups))
    .from(t.groups)
    .where(and(buildEquals(t.groups, "name"), isNull(t.groups.parentUid), eq(t.groups.verified, true)))
    .limit(1),
);
const rootNamed = statement<{ name: string }, object>((q, t) =>
  q
    .select({ uid: t.groups.uid })
    .from(t.groups)
    .where(and(buildEquals(t.groups, "name"), isNull(t.groups.parentUid)))
    .limit(1),
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

  /** Whether any root group has this name. */
  hasRootNamed(name: string): Promise<boolean> {
    return this.has(rootNamed, { name });
  }
}
