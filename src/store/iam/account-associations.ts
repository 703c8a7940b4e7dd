// Account associations of groups.
import { declareKind, defineKind, type KindRow, type KindTable, usualSorts } from "../kind.js";

/** Account associations as they are listed; each has the uid of its group. */
const declared = declareKind({
  number: 6,
  key: "accountAssociations",
  name: "account_associations",
  columns: (c, t) => ({
    /** The uid of its group: a group has one at most. */
    uid: c
      .str("uid")
      .primaryKey()
      .references(() => t.groups.uid),
    parentUid: c.str("parent_uid"),
    rootUid: c.str("root_uid").notNull(),
    name: c.str("name").notNull(),
    description: c.str("description").notNull(),
    /** The JSON of its providers' messages. */
    accounts: c.json<object>("accounts").notNull(),
    createTimeMs: c.long("create_time_ms").notNull(),
    updateTimeMs: c.long("update_time_ms").notNull(),
  }),
  parent: "parentUid",
  references: { parentUid: { to: "groups" } },
  includesSelf: true,
  sorts: usualSorts,
});

declare module "../tables/kind-tables.js" {
  interface KindTables {
    readonly accountAssociations: KindTable<typeof declared>;
  }
}

/** An account association as stored; its uid is the uid of its group. */
export type AccountAssociationRow = KindRow<typeof declared>;

export const accountAssociationKind = defineKind(declared);
