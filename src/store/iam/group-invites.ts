// The store of invites to groups. Creating, listing and deleting them is that of every
// listed table. A group can be deleted with expired invites, but not with others: `findByExpiry` tells them apart.
import { and, gt, lte } from "drizzle-orm";
import { byCreation, declareKind, defineKind, type KindRow, type KindTable } from "../kind.js";
import { ListedTable } from "../lists/listed-table.js";
import { buildEquals, rowLimit, statementFamily, value } from "../statement.js";

const declared = declareKind({
  number: 7,
  key: "groupInvites",
  name: "group_invites",
  columns: (c, t) => ({
    uid: c.str("uid").primaryKey(),
    groupUid: c
      .str("group_uid")
      .notNull()
      .references(() => t.groups.uid),
    rootUid: c.str("root_uid").notNull(),
    roleUid: c
      .str("role_uid")
      .notNull()
      .references(() => t.roles.uid),
    email: c.str("email").notNull(),
    singleUse: c.bool("single_use").notNull(),
    keyId: c.str("key_id").notNull(),
    codeHash: c.str("code_hash").notNull(),
    /** Who created it: what they may grant is checked again when it is accepted. Empty where that is not known. */
    createdBy: c.str("created_by").notNull().default(""),
    expireTimeMs: c.long("expire_time_ms").notNull(),
    createTimeMs: c.long("create_time_ms").notNull(),
    /** 0 for invites that are older than this column. */
    updateTimeMs: c.long("update_time_ms").notNull().default(0),
  }),
  indexes: (c, t) => [
    c.index("group_invites_expiry").on(t.groupUid, t.expireTimeMs),
    c.index("group_invites_role").on(t.roleUid),
    c.uniqueIndex("group_invites_key").on(t.keyId),
  ],
  parent: "groupUid",
  quota: "invites",
  sorts: byCreation,
});

declare module "../tables/kind-tables.js" {
  interface KindTables {
    readonly groupInvites: KindTable<typeof declared>;
  }
}

/** A group invite as stored; of its code only a hash. */
export type GroupInviteRow = KindRow<typeof declared>;

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
  /** Finds the uids of a group's invites that have or have not expired at `nowMs`, at most `limit`, in no order. */
  async findByExpiry(groupUid: string, nowMs: number, expiry: Expiry, limit: number): Promise<string[]> {
    const rows = await this.all(byExpiry(expiry), { groupUid, nowMs, limit });
    return rows.map(({ uid }) => uid);
  }
}

export const groupInviteKind = defineKind(declared, GroupInvites);
