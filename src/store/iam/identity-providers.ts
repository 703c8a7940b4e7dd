import { and, asc, eq, lt, sql } from "drizzle-orm";
import { declareKind, defineKind, type KindRow, type KindTable, usualSorts } from "../kind.js";
import { ListedTable } from "../lists/listed-table.js";
import { selectAny } from "../rows.js";
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
    /** The role that it has, or that it last had: servers of version 1.11 need one. {@link findDefaultRole} reads it. */
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
  hasNameWords: true,
  sorts: usualSorts,
});

declare module "../tables/kind-tables.js" {
  interface KindTables {
    readonly identityProviders: KindTable<typeof declared>;
  }
}

export type IdentityProviderRow = KindRow<typeof declared>;

type DefaultRole = Pick<IdentityProviderRow, "defaultRole" | "lacksDefaultRole">;

/** The uid of the role that people get at their first login; undefined for none. */
export function findDefaultRole({ defaultRole, lacksDefaultRole }: DefaultRole): string | undefined {
  return lacksDefaultRole ? undefined : defaultRole;
}

/** The columns of a new default role; of none, for which the column of the role stays as it is, without a uid. */
export function buildDefaultRole(uid?: string): Partial<DefaultRole> {
  return uid ? { defaultRole: uid, lacksDefaultRole: false } : { lacksDefaultRole: true };
}

const withDefaultRole = selectAny("identityProviders", "defaultRole", "lacksDefaultRole");

// Replaces a role that providers had and have no more.
const replaceFormerRole = statement<{ roleUid: string; otherUid: string }>((q, t) => {
  const { defaultRole, lacksDefaultRole } = t.identityProviders;
  return q
    .update(t.identityProviders)
    .set({ defaultRole: sql`${value("otherUid")}` })
    .where(and(eq(defaultRole, value("roleUid")), eq(lacksDefaultRole, true)));
});

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

  /** Whether any provider has the role as its default role. */
  hasDefaultRole(roleUid: string): Promise<boolean> {
    return this.has(withDefaultRole, { defaultRole: roleUid, lacksDefaultRole: false });
  }

  /** Lets go of a role that providers last had, so that it can be deleted; `otherUid` takes its place in their column. */
  async releaseFormerRole(roleUid: string, otherUid: string): Promise<void> {
    await this.run(replaceFormerRole, { roleUid, otherUid });
  }
}

export const identityProviderKind = defineKind(declared, IdentityProviders);
