// Subscriptions to events.
import { byCreation, declareKind, defineKind, type KindRow, type KindTable } from "../kind.js";

/** Subscriptions to events as they are listed. */
const declared = declareKind({
  number: 13,
  key: "subscriptions",
  name: "subscriptions",
  columns: (c, t) => ({
    uid: c.str("uid").primaryKey(),
    groupUid: c
      .str("group_uid")
      .notNull()
      .references(() => t.groups.uid),
    rootUid: c.str("root_uid").notNull(),
    sink: c.str("sink").notNull(),
    createTimeMs: c.long("create_time_ms").notNull(),
    updateTimeMs: c.long("update_time_ms").notNull(),
  }),
  parent: "groupUid",
  quota: "subscriptions",
  sorts: byCreation,
});

declare module "../tables/kind-tables.js" {
  interface KindTables {
    readonly subscriptions: KindTable<typeof declared>;
  }
}

/** A subscription to events as stored. */
export type SubscriptionRow = KindRow<typeof declared>;

export const subscriptionKind = defineKind(declared);
