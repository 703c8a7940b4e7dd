import { asc, lt } from "drizzle-orm";
import { declareKind, defineKind, type KindRow, type KindTable, usualSorts } from "../kind.js";
import { ListedTable } from "../lists/listed-table.js";
import { rowLimit, statement, value } from "../statement.js";

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

const declared = declareKind({
  number: 5,
  key: "identityProviders",
  name: "identity_providers",
  columns: (c, t) => ({
    uid: c.str("uid").primaryKey(),
    groupUid: c
      .str("group_uid")
      .notNull()
      .references(() => t.groups.uid),
    rootUid: c.str("root_uid").notNull(),
    name: c.str("name").notNull(),
    description: c.str("description").notNull(),
    /** The role that it has, or that it last had: servers of version 1.11 need one. */
    defaultRole: c
      .str("default_role")
      .notNull()
      .references(() => t.roles.uid),
    /** Whether it has no default role. */
    lacksDefaultRole: c.bool("lacks_default_role").notNull().default(false),
    /** The JSON of its OIDC message, without the secret. */
    oidc: c.json<object>("oidc").notNull(),
    /** The client secret, sealed; empty where there is none. */
    sealedSecret: c.str("sealed_secret").notNull(),
    scim: c.json<ScimState>("scim").notNull(),
    createTimeMs: c.long("create_time_ms").notNull(),
    updateTimeMs: c.long("update_time_ms").notNull(),
  }),
  indexes: (c, t) => [c.index("identity_providers_role").on(t.defaultRole)],
  parent: "groupUid",
  quota: "providers",
  hasRowsBelow: true,
  sorts: usualSorts,
});

declare module "../tables/kind-tables.js" {
  interface KindTables {
    readonly identityProviders: KindTable<typeof declared>;
  }
}

export type IdentityProviderRow = KindRow<typeof declared>;

const unchangedSince = statement<{ timeMs: number; limit: number }, { uid: string }>((q, t) =>
  q
    .select({ uid: t.identityProviders.uid })
    .from(t.identityProviders)
    .where(lt(t.identityProviders.updateTimeMs, value("timeMs")))
    .orderBy(asc(t.identityProviders.uid))
    .limit(rowLimit("limit")),
);

export class IdentityProviders extends ListedTable<IdentityProviderRow> {
  /** The uids of up to `limit` providers last changed before `timeMs`; scans the whole table. */
  findUnchangedSince(timeMs: number, limit: number): Promise<string[]> {
    return this.all(unchangedSince, { timeMs, limit }, (rows) => rows.map(({ uid }) => uid));
  }
}

export const identityProviderKind = defineKind(declared, IdentityProviders);
