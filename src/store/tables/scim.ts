// What is left of people whom a directory has deleted. Those that it has are a kind of resource (store/iam/scim-users.ts).
import type { Columns, RowOf } from "./columns-sqlite.js";
import type { KindTables } from "./kind-tables.js";

export function defineScimTables(c: Columns, { identityProviders }: KindTables) {
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

  return { formerScimUsers };
}

/** What is left of a person whom a directory has deleted: such a person may not sign in. */
export type FormerScimUserRow = RowOf<ReturnType<typeof defineScimTables>["formerScimUsers"]>;
