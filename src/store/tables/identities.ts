// Identities, and the providers that people and their groups come from. People and workloads are rows of one table: what
// is for people alone is empty or null for workloads, and the other way round.
import { sql } from "drizzle-orm";
import type { Columns, ListedRowOf } from "./columns-sqlite.js";
import type { GroupTables } from "./groups.js";
import { buildListIndexes, usualSorts } from "./list-indexes.js";
import type { RoleTables } from "./roles.js";

/** The credentials by which a provider's directory may push people and groups. */
export interface ScimState {
  readonly enabled: boolean;
  /** Hash of the current token. */
  readonly tokenHash: string;
  /** Hash of the token before it, which stays valid for a while. */
  readonly previousHash: string;
  /** Epoch milliseconds; absent: never. */
  readonly expireTimeMs?: number;
  readonly previousExpireTimeMs?: number;
  readonly revoked: boolean;
  readonly etag: string;
}

export function defineIdentityTables(c: Columns, { groups, roles }: GroupTables & RoleTables) {
  const identities = c.table(
    "identities",
    {
      uid: c.str("uid").primaryKey(),
      /** Null for people and for the identities that Arbor itself defines. */
      groupUid: c.str("group_uid").references(() => groups.uid),
      rootUid: c.str("root_uid").notNull(),
      name: c.str("name").notNull(),
      description: c.str("description").notNull(),
      /** Of people: the issuer and the subject at the login provider. */
      issuer: c.str("issuer").notNull(),
      subject: c.str("subject").notNull(),
      /** The e-mail address that a trusted login provider confirmed, else empty. */
      email: c.str("email").notNull(),
      /** The address that a provider stated without confirming it. No decision uses it. */
      emailUnverified: c.str("email_unverified").notNull(),
      /** A note of those who manage the identity, as its description is. */
      company: c.str("company").notNull(),
      /** Of people who log in through an organisation's own provider: which one; null for all others. */
      providerUid: c.str("provider_uid"),
      /** The number of the RelationshipType; 0 for people. */
      relation: c.int("relation").notNull(),
      /** How the identity is assumed, in the JSON of its message; empty for people. */
      relationship: c.json<object>("relationship").notNull(),
      /** What people stated about themselves. */
      metadata: c.json<object>("metadata").notNull(),
      /** Tokens issued before this epoch second are void. */
      notBefore: c.long("not_before").notNull(),
      /**
       * When all of its tokens were revoked last, in epoch milliseconds; 0: never. Tokens name the one that their issuer
       * read, and are void after the next.
       */
      revokeTimeMs: c.long("revoke_time_ms").notNull().default(0),
      createTimeMs: c.long("create_time_ms").notNull(),
      updateTimeMs: c.long("update_time_ms").notNull(),
      lastSeenTimeMs: c.long("last_seen_time_ms").notNull(),
      /** When its deletion began, which takes several units of work; null for all others. */
      deleteTimeMs: c.long("delete_time_ms"),
    },
    (t) => [
      ...buildListIndexes(c, "identities", { ...t, parent: t.groupUid, sorts: usualSorts(t) }),
      c.index("identities_provider").on(t.providerUid),
      c.index("identities_deleted").on(t.deleteTimeMs).where(sql`delete_time_ms IS NOT NULL`),
    ],
  );

  const identityProviders = c.table(
    "identity_providers",
    {
      uid: c.str("uid").primaryKey(),
      groupUid: c
        .str("group_uid")
        .notNull()
        .references(() => groups.uid),
      rootUid: c.str("root_uid").notNull(),
      name: c.str("name").notNull(),
      description: c.str("description").notNull(),
      defaultRole: c
        .str("default_role")
        .notNull()
        .references(() => roles.uid),
      /** The JSON of its OIDC message, without the secret. */
      oidc: c.json<object>("oidc").notNull(),
      /** The client secret, sealed; empty where there is none. */
      sealedSecret: c.str("sealed_secret").notNull(),
      scim: c.json<ScimState>("scim").notNull(),
      createTimeMs: c.long("create_time_ms").notNull(),
      updateTimeMs: c.long("update_time_ms").notNull(),
    },
    (t) => [
      ...buildListIndexes(c, "identity_providers", { ...t, parent: t.groupUid, sorts: usualSorts(t) }),
      c.index("identity_providers_role").on(t.defaultRole),
    ],
  );

  const groupMappings = c.table(
    "external_group_role_mappings",
    {
      uid: c.str("uid").primaryKey(),
      providerUid: c
        .str("provider_uid")
        .notNull()
        .references(() => identityProviders.uid),
      rootUid: c.str("root_uid").notNull(),
      externalGroupId: c.str("external_group_id").notNull(),
      roleUid: c
        .str("role_uid")
        .notNull()
        .references(() => roles.uid),
      scope: c.str("scope").notNull(),
      createTimeMs: c.long("create_time_ms").notNull(),
    },
    (t) => [
      ...buildListIndexes(c, "external_group_role_mappings", {
        ...t,
        parent: t.providerUid,
        sorts: { created_at: t.createTimeMs },
      }),
      c.uniqueIndex("external_group_role_mappings_same").on(t.providerUid, t.externalGroupId, t.roleUid, t.scope),
      c.index("external_group_role_mappings_role").on(t.roleUid),
    ],
  );

  return { identities, identityProviders, groupMappings };
}

type IdentityTables = ReturnType<typeof defineIdentityTables>;

export type IdentityRow = ListedRowOf<IdentityTables["identities"]>;
export type IdentityProviderRow = ListedRowOf<IdentityTables["identityProviders"]>;
/** A mapping of a directory's group to a role, as stored. */
export type GroupMappingRow = ListedRowOf<IdentityTables["groupMappings"]>;
