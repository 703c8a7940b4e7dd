// Groups, and what belongs to one group: account associations, accepted terms, subscriptions and access requests.
import { sql } from "drizzle-orm";
import type { Columns, ListedRowOf, RowOf } from "./columns-sqlite.js";
import { buildListIndexes, usualSorts } from "./list-indexes.js";

export function defineGroupTables(c: Columns) {
  const groups = c.table(
    "groups",
    {
      uid: c.str("uid").primaryKey(),
      /** Null for a root group. */
      parentUid: c.str("parent_uid"),
      /** The first segment of the uid. All listed tables have it, because lists are read by it. */
      rootUid: c.str("root_uid").notNull(),
      name: c.str("name").notNull(),
      description: c.str("description").notNull(),
      verified: c.bool("verified").notNull(),
      /** The number of the OrgKind. */
      kind: c.int("kind").notNull(),
      /** Of a root group: the quotas that the operator set for the organisation, by name. Empty for other groups. */
      resourceLimits: c.json<Readonly<Record<string, number>>>("resource_limits").notNull(),
      /** Who created a root group by a call; empty for one created on the host, and for other groups. */
      createdBy: c.str("created_by").notNull().default(""),
      createTimeMs: c.long("create_time_ms").notNull(),
      updateTimeMs: c.long("update_time_ms").notNull(),
    },
    (t) => [
      ...buildListIndexes(c, "groups", { ...t, parent: t.parentUid, sorts: usualSorts(t) }),
      // Any number of groups may share a name, and most have no creator: these contain only what is searched for.
      c.index("groups_root_name").on(t.name, t.verified).where(sql`parent_uid IS NULL`),
      c.index("groups_creator").on(t.createdBy, t.uid).where(sql`created_by <> ''`),
    ],
  );

  const groupUid = () =>
    c
      .str("group_uid")
      .notNull()
      .references(() => groups.uid);

  const accountAssociations = c.table(
    "account_associations",
    {
      /** The uid of its group: a group has one at most. */
      uid: c
        .str("uid")
        .primaryKey()
        .references(() => groups.uid),
      parentUid: c.str("parent_uid"),
      rootUid: c.str("root_uid").notNull(),
      name: c.str("name").notNull(),
      description: c.str("description").notNull(),
      /** The JSON of its providers' messages. */
      accounts: c.json<object>("accounts").notNull(),
      createTimeMs: c.long("create_time_ms").notNull(),
      updateTimeMs: c.long("update_time_ms").notNull(),
    },
    (t) => buildListIndexes(c, "account_associations", { ...t, parent: t.parentUid, sorts: usualSorts(t) }),
  );

  const termsAcceptances = c.table(
    "terms_acceptances",
    {
      groupUid: groupUid(),
      docId: c.str("doc_id").notNull(),
      acceptedBy: c.str("accepted_by").notNull(),
      createTimeMs: c.long("create_time_ms").notNull(),
    },
    (t) => [c.primaryKey({ columns: [t.groupUid, t.docId] })],
  );

  const subscriptions = c.table(
    "subscriptions",
    {
      uid: c.str("uid").primaryKey(),
      groupUid: groupUid(),
      rootUid: c.str("root_uid").notNull(),
      sink: c.str("sink").notNull(),
      createTimeMs: c.long("create_time_ms").notNull(),
      updateTimeMs: c.long("update_time_ms").notNull(),
    },
    (t) => buildListIndexes(c, "subscriptions", { ...t, parent: t.groupUid, sorts: { created_at: t.createTimeMs } }),
  );

  const accessRequests = c.table(
    "access_requests",
    {
      groupUid: groupUid(),
      identityUid: c.str("identity_uid").notNull(),
      timeMs: c.long("time_ms").notNull(),
    },
    (t) => [c.primaryKey({ columns: [t.groupUid, t.identityUid] })],
  );

  return { groups, accountAssociations, termsAcceptances, subscriptions, accessRequests };
}

export type GroupTables = ReturnType<typeof defineGroupTables>;

export type GroupRow = ListedRowOf<GroupTables["groups"]>;
/** An account association as stored; its uid is the uid of its group. */
export type AccountAssociationRow = ListedRowOf<GroupTables["accountAssociations"]>;
/** The acceptance of a document by a group, as stored. */
export type TermsAcceptanceRow = RowOf<GroupTables["termsAcceptances"]>;
/** A subscription to events as stored. */
export type SubscriptionRow = ListedRowOf<GroupTables["subscriptions"]>;
