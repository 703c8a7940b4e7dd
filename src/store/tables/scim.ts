// What directories send besides people and groups, which are kinds of resources (store/iam/scim-users.ts, store/iam/scim-groups.ts): what
// is left of deleted people, who is a member of which group, and what is left to do after a large change.
import type { Columns, RowOf } from "./columns-sqlite.js";
import type { KindTables } from "./kind-tables.js";

export function defineScimTables(c: Columns, { identityProviders, scimUsers }: KindTables) {
  const formerScimUsers = c.table(
    "former_scim_users",
    {
      providerUid: c
        .str("provider_uid")
        .notNull()
        .references(() => identityProviders.uid),
      /** The id that the directory gave the person. A person without one leaves nothing. */
      externalId: c.str("external_id").notNull(),
      /** What the person has again when the directory sends the same external id. */
      uid: c.str("uid").notNull(),
      /** The identity that signed in as the person; null where nobody did. */
      identityUid: c.str("identity_uid"),
      createTimeMs: c.long("create_time_ms").notNull(),
      deleteTimeMs: c.long("delete_time_ms").notNull(),
    },
    (t) => [c.primaryKey({ columns: [t.providerUid, t.externalId] })],
  );

  const scimMembers = c.table(
    "scim_members",
    {
      /** The rows of a group outlive it, until they are deleted in parts. */
      groupUid: c.str("group_uid").notNull(),
      /** The set of members that the row is in; that of the group counts alone. */
      memberSet: c.long("member_set").notNull(),
      userUid: c
        .str("user_uid")
        .notNull()
        .references(() => scimUsers.uid),
    },
    (t) => [
      c.primaryKey({ columns: [t.groupUid, t.memberSet, t.userUid] }),
      c.index("scim_members_user").on(t.userUid, t.groupUid),
    ],
  );

  const scimWork = c.table(
    "scim_work",
    {
      providerUid: c
        .str("provider_uid")
        .notNull()
        .references(() => identityProviders.uid),
      /** What to do; src/iam/directories/work.ts says what each means. */
      kind: c.str("kind").$type<ScimWorkKind>().notNull(),
      /** The uid of the group or of the identity that it concerns. */
      uid: c.str("uid").notNull(),
      /** The uid of the last person who is done; empty before the first. */
      position: c.str("position").notNull(),
    },
    (t) => [c.primaryKey({ columns: [t.providerUid, t.kind, t.uid] })],
  );

  return { formerScimUsers, scimMembers, scimWork };
}

/**
 * What is left to do after a change: compare the bindings of the members of a group, or of one person, with what the directory
 * grants, or delete the rows of members of a group that count no more.
 */
export type ScimWorkKind = "group" | "members" | "person";

/** What is left of a person whom a directory has deleted: such a person may not sign in. */
export type FormerScimUserRow = RowOf<ReturnType<typeof defineScimTables>["formerScimUsers"]>;

/** Who is a member of a group of a directory. */
export type ScimMemberRow = RowOf<ReturnType<typeof defineScimTables>["scimMembers"]>;

/** What is left to do after a change of the groups of a directory. */
export type ScimWorkRow = RowOf<ReturnType<typeof defineScimTables>["scimWork"]>;
