import { and, eq, gt, lte, sql } from "drizzle-orm";
import { IndexedTable } from "./indexed-table.js";
import { groupInviteLists } from "./kinds.js";
import type { GroupInviteRow, GroupInviteStore } from "./port.js";
import { type Executor, statementFamily } from "./statement.js";

const byExpiry = statementFamily<boolean, { groupUid: string; nowMs: number; limit: number }, { uid: string }>(
  String,
  (live) => (q, t) =>
    q
      .select({ uid: t.groupInvites.uid })
      .from(t.groupInvites)
      .where(
        and(
          eq(t.groupInvites.groupUid, sql.placeholder("groupUid")),
          (live ? gt : lte)(t.groupInvites.expireTimeMs, sql.placeholder("nowMs")),
        ),
      )
      .limit(sql.placeholder("limit")),
);

/** Group invites; see {@link GroupInviteStore}. */
export class GroupInvites extends IndexedTable<GroupInviteRow> implements GroupInviteStore {
  readonly #tx: Executor;

  constructor(tx: Executor) {
    super(tx, groupInviteLists);
    this.#tx = tx;
  }

  async byExpiry(groupUid: string, nowMs: number, live: boolean, limit: number): Promise<string[]> {
    const rows = await this.#tx.rows(byExpiry(live), { groupUid, nowMs, limit });
    return rows.map(({ uid }) => uid);
  }
}
