// The one schema body, built once per dialect (schema-sqlite.ts, schema-pg.ts).
// Every column a query filters by has an index: on PostgreSQL a sequential scan
// would make concurrent serializable writers conflict for nothing.
import type { AnySQLiteColumn } from "drizzle-orm/sqlite-core";
import type { Columns } from "./columns-sqlite.js";
import type { ScimState } from "./port.js";
import { defineRegistryTables } from "./tables-registry.js";

/** Builds the tables of the schema from a dialect's column types. */
export function defineTables(c: Columns) {
  const groups = c.table(
    "groups",
    {
      uid: c.str("uid").primaryKey(),
      parentUid: c.str("parent_uid").references((): AnySQLiteColumn => groups.uid),
      name: c.str("name").notNull(),
      description: c.str("description").notNull(),
      verified: c.bool("verified").notNull(),
      kind: c.int("kind").notNull(),
      resourceLimits: c.json<Record<string, number>>("resource_limits").notNull(),
      createdBy: c.str("created_by").notNull().default(""),
      createTimeMs: c.long("create_time_ms").notNull(),
      updateTimeMs: c.long("update_time_ms").notNull(),
    },
    (t) => [
      c.index("groups_children_uid").on(t.parentUid, t.uid),
      c.index("groups_children_name").on(t.parentUid, t.name, t.uid),
      c.index("groups_children_created").on(t.parentUid, t.createTimeMs, t.uid),
      c.index("groups_children_updated").on(t.parentUid, t.updateTimeMs, t.uid),
      c.index("groups_name").on(t.name, t.parentUid, t.verified),
      c.index("groups_created_by").on(t.createdBy, t.uid),
    ],
  );

  const identities = c.table(
    "identities",
    {
      uid: c.str("uid").primaryKey(),
      groupUid: c.str("group_uid").references(() => groups.uid),
      name: c.str("name").notNull(),
      description: c.str("description").notNull(),
      issuer: c.str("issuer").notNull(),
      subject: c.str("subject").notNull(),
      email: c.str("email").notNull(),
      emailUnverified: c.str("email_unverified").notNull(),
      company: c.str("company").notNull(),
      // Of people who came through an organisation's own provider: which one.
      providerUid: c.str("provider_uid"),
      relation: c.int("relation").notNull(),
      relationship: c.json<object>("relationship").notNull(),
      metadata: c.json<object>("metadata").notNull(),
      notBefore: c.long("not_before").notNull(),
      createTimeMs: c.long("create_time_ms").notNull(),
      updateTimeMs: c.long("update_time_ms").notNull(),
      lastSeenTimeMs: c.long("last_seen_time_ms").notNull(),
    },
    (t) => [c.index("identities_group").on(t.groupUid, t.uid), c.index("identities_provider").on(t.providerUid)],
  );

  const roles = c.table(
    "roles",
    {
      uid: c.str("uid").primaryKey(),
      groupUid: c.str("group_uid").references(() => groups.uid),
      name: c.str("name").notNull(),
      description: c.str("description").notNull(),
      capabilities: c.str("capabilities").notNull(),
      createTimeMs: c.long("create_time_ms").notNull(),
      updateTimeMs: c.long("update_time_ms").notNull(),
    },
    (t) => [c.index("roles_group").on(t.groupUid, t.uid), c.index("roles_name").on(t.name, t.uid)],
  );

  const roleBindings = c.table(
    "role_bindings",
    {
      uid: c.str("uid").primaryKey(),
      groupUid: c
        .str("group_uid")
        .notNull()
        .references(() => groups.uid),
      identityUid: c.str("identity_uid").notNull(),
      roleUid: c
        .str("role_uid")
        .notNull()
        .references(() => roles.uid),
      automatic: c.bool("automatic").notNull(),
      accepted: c.bool("accepted").notNull().default(false),
      pending: c.bool("pending").notNull().default(false),
      createTimeMs: c.long("create_time_ms").notNull(),
      updateTimeMs: c.long("update_time_ms").notNull(),
    },
    (t) => [
      c.index("role_bindings_identity").on(t.identityUid, t.groupUid, t.roleUid),
      c.index("role_bindings_group").on(t.groupUid, t.automatic),
      c.index("role_bindings_pending").on(t.identityUid, t.pending, t.uid),
      c.index("role_bindings_role").on(t.roleUid, t.uid),
      c.uniqueIndex("role_bindings_same").on(t.groupUid, t.identityUid, t.roleUid),
    ],
  );

  const inGroup = () =>
    c
      .str("group_uid")
      .notNull()
      .references(() => groups.uid);
  const roleOf = (name: string) =>
    c
      .str(name)
      .notNull()
      .references(() => roles.uid);

  const identityProviders = c.table(
    "identity_providers",
    {
      uid: c.str("uid").primaryKey(),
      groupUid: inGroup(),
      name: c.str("name").notNull(),
      description: c.str("description").notNull(),
      defaultRole: roleOf("default_role"),
      oidc: c.json<object>("oidc").notNull(),
      sealedSecret: c.str("sealed_secret").notNull(),
      scim: c.json<ScimState>("scim").notNull(),
      createTimeMs: c.long("create_time_ms").notNull(),
      updateTimeMs: c.long("update_time_ms").notNull(),
    },
    (t) => [
      c.index("identity_providers_group").on(t.groupUid, t.uid),
      c.index("identity_providers_role").on(t.defaultRole),
    ],
  );

  const accountAssociations = c.table(
    "account_associations",
    {
      // That of its group: a group has one at most.
      uid: c
        .str("uid")
        .primaryKey()
        .references(() => groups.uid),
      parentUid: c.str("parent_uid"),
      name: c.str("name").notNull(),
      description: c.str("description").notNull(),
      accounts: c.json<object>("accounts").notNull(),
      createTimeMs: c.long("create_time_ms").notNull(),
      updateTimeMs: c.long("update_time_ms").notNull(),
    },
    (t) => [c.index("account_associations_parent").on(t.parentUid, t.uid)],
  );

  const groupInvites = c.table(
    "group_invites",
    {
      uid: c.str("uid").primaryKey(),
      groupUid: inGroup(),
      roleUid: roleOf("role_uid"),
      email: c.str("email").notNull(),
      singleUse: c.bool("single_use").notNull(),
      keyId: c.str("key_id").notNull(),
      codeHash: c.str("code_hash").notNull(),
      createdBy: c.str("created_by").notNull().default(""),
      expireTimeMs: c.long("expire_time_ms").notNull(),
      createTimeMs: c.long("create_time_ms").notNull(),
      // 0 where it was not kept yet.
      updateTimeMs: c.long("update_time_ms").notNull().default(0),
    },
    (t) => [
      c.index("group_invites_group").on(t.groupUid, t.uid),
      c.index("group_invites_expiry").on(t.groupUid, t.expireTimeMs),
      c.index("group_invites_role").on(t.roleUid),
      c.uniqueIndex("group_invites_key").on(t.keyId),
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
      externalGroupId: c.str("external_group_id").notNull(),
      roleUid: roleOf("role_uid"),
      scope: c.str("scope").notNull(),
      createTimeMs: c.long("create_time_ms").notNull(),
    },
    (t) => [
      c.uniqueIndex("external_group_role_mappings_same").on(t.providerUid, t.externalGroupId, t.roleUid, t.scope),
      c.index("external_group_role_mappings_role").on(t.roleUid),
    ],
  );

  const termsAcceptances = c.table(
    "terms_acceptances",
    {
      groupUid: inGroup(),
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
      groupUid: inGroup(),
      sink: c.str("sink").notNull(),
      createTimeMs: c.long("create_time_ms").notNull(),
      updateTimeMs: c.long("update_time_ms").notNull(),
    },
    (t) => [c.index("subscriptions_group").on(t.groupUid, t.uid)],
  );

  const accessRequests = c.table(
    "access_requests",
    {
      groupUid: c
        .str("group_uid")
        .notNull()
        .references(() => groups.uid),
      identityUid: c.str("identity_uid").notNull(),
      timeMs: c.long("time_ms").notNull(),
    },
    (t) => [c.primaryKey({ columns: [t.groupUid, t.identityUid] })],
  );

  const keys = c.table("keys", {
    kid: c.str("kid").primaryKey(),
    purpose: c.str("purpose").notNull(),
    state: c.str("state").notNull(),
    publicJwk: c.str("public_jwk").notNull(),
    sealed: c.str("sealed").notNull(),
    createTimeMs: c.long("create_time_ms").notNull(),
    // When it moves on by itself; null where nothing is planned.
    nextTimeMs: c.long("next_time_ms"),
  });

  // Secrets that are good once and for a while: of each only the hash is kept.
  const tickets = c.table(
    "tickets",
    {
      hash: c.str("hash").primaryKey(),
      kind: c.str("kind").notNull(),
      data: c.json<object>("data").notNull(),
      expireTimeMs: c.long("expire_time_ms").notNull(),
    },
    (t) => [c.index("tickets_expiry").on(t.expireTimeMs)],
  );

  const refreshTokens = c.table(
    "refresh_tokens",
    {
      hash: c.str("hash").primaryKey(),
      family: c.str("family").notNull(),
      identityUid: c.str("identity_uid").notNull(),
      grant: c.json<object>("grant").notNull(),
      used: c.bool("used").notNull(),
      createTimeMs: c.long("create_time_ms").notNull(),
      expireTimeMs: c.long("expire_time_ms").notNull(),
    },
    (t) => [
      c.index("refresh_tokens_family").on(t.family),
      c.index("refresh_tokens_identity").on(t.identityUid),
      c.index("refresh_tokens_expiry").on(t.expireTimeMs),
    ],
  );

  const audit = c.table(
    "audit",
    {
      id: c.serial("id"),
      rootUid: c.str("root_uid").notNull(),
      timeMs: c.long("time_ms").notNull(),
      type: c.str("type").notNull(),
      method: c.str("method").notNull(),
      subjectUid: c.str("subject_uid").notNull(),
      actorUid: c.str("actor_uid").notNull(),
      tokenId: c.str("token_id").notNull(),
      requestId: c.str("request_id").notNull(),
      remoteAddress: c.str("remote_address").notNull(),
    },
    (t) => [c.index("audit_root").on(t.rootUid, t.id)],
  );

  // What seals the log stands beside it, so that rows of the log are written once and never again
  // (docs/adr/0006-audit-chain.md). The index by row finds out which rows are not sealed yet.
  const auditChain = c.table(
    "audit_chain",
    {
      rootUid: c.str("root_uid").notNull(),
      seq: c.long("seq").notNull(),
      auditId: c.long("audit_id").notNull(),
      hash: c.str("hash").notNull(),
    },
    (t) => [c.primaryKey({ columns: [t.rootUid, t.seq] }), c.uniqueIndex("audit_chain_audit").on(t.auditId)],
  );

  const auditHeads = c.table("audit_heads", {
    rootUid: c.str("root_uid").primaryKey(),
    seq: c.long("seq").notNull(),
    hash: c.str("hash").notNull(),
    timeMs: c.long("time_ms").notNull(),
    signature: c.str("signature").notNull(),
  });

  const auditSealer = c.table("audit_sealer", {
    name: c.str("name").primaryKey(),
    holder: c.str("holder").notNull(),
    expireTimeMs: c.long("expire_time_ms").notNull(),
    settledId: c.long("settled_id").notNull(),
    passes: c.long("passes").notNull(),
  });

  const settings = c.table("settings", {
    name: c.str("name").primaryKey(),
    value: c.str("value").notNull(),
  });

  return {
    groups,
    identities,
    roles,
    roleBindings,
    identityProviders,
    accountAssociations,
    groupInvites,
    groupMappings,
    termsAcceptances,
    subscriptions,
    accessRequests,
    keys,
    tickets,
    refreshTokens,
    audit,
    auditChain,
    auditHeads,
    auditSealer,
    settings,
    ...defineRegistryTables(c, () => groups.uid),
    ...defineListTables(c),
    // Not a table, but as different between databases as those are.
    anyOf: c.anyOf,
    scopesIn: c.scopesIn,
  };
}

// What keeps lists flat (ordered-list.ts): for each sortable field of a kind an
// entry per ancestor in the order of the field, and counters per ancestor. A
// counter is the sum of its slots; PostgreSQL spreads writers over several.
function defineListTables(c: Columns) {
  const textOrder = c.table(
    "text_order",
    {
      list: c.int("list").notNull(),
      scope: c.str("scope").notNull(),
      key: c.str("key").notNull(),
      uid: c.str("uid").notNull(),
    },
    (t) => [c.primaryKey({ columns: [t.list, t.scope, t.key, t.uid] })],
  );
  const timeOrder = c.table(
    "time_order",
    {
      list: c.int("list").notNull(),
      scope: c.str("scope").notNull(),
      key: c.long("key").notNull(),
      uid: c.str("uid").notNull(),
    },
    (t) => [c.primaryKey({ columns: [t.list, t.scope, t.key, t.uid] })],
  );
  const counters = c.table(
    "counters",
    {
      counter: c.int("counter").notNull(),
      scope: c.str("scope").notNull(),
      slot: c.int("slot").notNull(),
      n: c.long("n").notNull(),
    },
    (t) => [c.primaryKey({ columns: [t.counter, t.scope, t.slot] })],
  );
  return { textOrder, timeOrder, counters };
}

/** The tables of the schema, as either dialect builds them. */
export type Tables = ReturnType<typeof defineTables>;
