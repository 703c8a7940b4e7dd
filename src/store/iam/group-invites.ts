// Invites to groups.
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

const byExpiry = statementFamily<boolean, { groupUid: string; nowMs: number; limit: number }, { uid: string }>(
  String,
  (live) => (q, t) =>
    q
      .select({ uid: t.groupInvites.uid })
      .from(t.groupInvites)
      .where(
        and(buildEquals(t.groupInvites, "groupUid"), (live ? gt : lte)(t.groupInvites.expireTimeMs, value("nowMs"))),
      )
      .limit(rowLimit("limit")),
);

export class GroupInvites extends ListedTable<GroupInviteRow> {
  constructor(tx: Executor) {
    super(tx, groupInviteKind);
  }

  /** The uids of the group's invites that expire after `nowMs` (`live`) or do not, at most `limit`. */
  async findByExpiry(groupUid: string, nowMs: number, live: boolean, limit: number): Promise<string[]> {
    const rows = await this.all(byExpiry(live), { groupUid, nowMs, limit });
    return rows.map(({ uid }) => uid);
  }
}
