// The store of invites to groups, whose table is in tables/roles.ts. Creating, listing and deleting them is that of every
// listed table. A group can be deleted with expired invites, but not with others: `findByExpiry` tells them apart.
import { and, gt, lte } from "drizzle-orm";
import { ListedTable } from "../lists/listed-table.js";
import { byCreation, defineListedKind } from "../lists/resource.js";
import { buildEquals, type Executor, rowLimit, statementFamily, value } from "../statement.js";
import type { GroupInviteRow } from "../tables/roles.js";

export const groupInviteKind = defineListedKind(7, {
  table: "groupInvites",
  parent: "groupUid",
  quota: "invites",
  sorts: byCreation,
});

type Expiry = "live" | "expired";

const byExpiry = statementFamily<Expiry, { groupUid: string; nowMs: number; limit: number }, { uid: string }>(
  String,
  (expiry) => (q, t) =>
    q
      .select({ uid: t.groupInvites.uid })
      .from(t.groupInvites)
      .where(
        and(
          buildEquals(t.groupInvites, "groupUid"),
          (expiry === "live" ? gt : lte)(t.groupInvites.expireTimeMs, value("nowMs")),
        ),
      )
      .limit(rowLimit("limit")),
);

export class GroupInvites extends ListedTable<GroupInviteRow> {
  constructor(tx: Executor) {
    super(tx, groupInviteKind);
  }

  /** Finds the uids of a group's invites that have or have not expired at `nowMs`, at most `limit`, in no order. */
  async findByExpiry(groupUid: string, nowMs: number, expiry: Expiry, limit: number): Promise<string[]> {
    const rows = await this.all(byExpiry(expiry), { groupUid, nowMs, limit });
    return rows.map(({ uid }) => uid);
  }
}
