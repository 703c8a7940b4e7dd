// Groups as directories have sent them by SCIM: their table, and its statements. Their members are in scim-members.ts.
import { and, asc, desc, eq, gt, sql } from "drizzle-orm";
import { declareKind, defineKind, type KindRow, type KindTable } from "../kind.js";
import { countBelow } from "../lists/counters.js";
import { ListedTable } from "../lists/listed-table.js";
import { unindexed } from "../lists/statements.js";
import { ownColumns } from "../rows.js";
import { buildEquals, rowLimit, statement, statementFamily, value } from "../statement.js";
import type { ScimAttributes } from "./scim-users.js";

const declared = declareKind({
  number: 17,
  key: "scimGroups",
  name: "scim_groups",
  columns: (c, t) => ({
    uid: c.str("uid").primaryKey(),
    providerUid: c
      .str("provider_uid")
      .notNull()
      .references(() => t.identityProviders.uid),
    rootUid: c.str("root_uid").notNull(),
    displayName: c.str("display_name").notNull(),
    /** The name in small letters. Groups may have the same name. */
    displayNameKey: c.str("display_name_key").notNull(),
    /** Unique among the groups of a provider; empty for none. */
    externalId: c.str("external_id").notNull(),
    /** What mappings name the group by: its external id, or without one the last segment of its uid. */
    mappedId: c.str("mapped_id").notNull(),
    /** The attributes that have no column. */
    attributes: c.json<ScimAttributes>("attributes").notNull(),
    /** The number of the set of members that counts. */
    memberSet: c.long("member_set").notNull(),
    /** Grows with each change; the version of the resource. */
    revision: c.long("revision").notNull(),
    createTimeMs: c.long("create_time_ms").notNull(),
    updateTimeMs: c.long("update_time_ms").notNull(),
  }),
  indexes: (c, t) => [
    c.index("scim_groups_display_name").on(t.providerUid, t.displayNameKey, t.uid),
    c.uniqueIndex("scim_groups_external_id").on(t.providerUid, t.externalId).where(sql`external_id <> ''`),
    // Without the provider, so that no other index is as good: few groups of all providers have the same id.
    c.index("scim_groups_mapped_id").on(t.mappedId, t.uid),
    c.index("scim_groups_updated").on(t.providerUid, t.updateTimeMs, t.uid),
  ],
  parent: "providerUid",
  quota: "scimGroups",
  sorts: {},
});

declare module "../tables/kind-tables.js" {
  interface KindTables {
    readonly scimGroups: KindTable<typeof declared>;
  }
}

/** A group as a directory has sent it, as stored. */
export type ScimGroupRow = KindRow<typeof declared>;

/** Builds what mappings name a group by. */
export function buildMappedId({ uid, externalId }: Pick<ScimGroupRow, "uid" | "externalId">): string {
  return externalId || uid.slice(uid.lastIndexOf("/") + 1);
}

/** Builds the form of a group's name that lookups compare. */
export function buildDisplayNameKey(displayName: string): string {
  return displayName.toLowerCase();
}

/** An order of the groups of a provider that has an index. */
export interface ScimGroupOrder {
  readonly by: "uid" | "displayNameKey" | "updateTimeMs";
  readonly descending: boolean;
}

// The uids are read from the index of the order alone, because rows are large.
const page = statementFamily<ScimGroupOrder, { providerUid: string; limit: number; offset: number }, ScimGroupRow>(
  ({ by, descending }) => `${by} ${descending}`,
  ({ by, descending }) =>
    (q, t) => {
      const { scimGroups } = t;
      const order = descending ? desc : asc;
      const columns = by === "uid" ? [scimGroups.uid] : [scimGroups[by], scimGroups.uid];
      const uids = q
        .select({ uid: scimGroups.uid })
        .from(scimGroups)
        .where(buildEquals(scimGroups, "providerUid"))
        .orderBy(...columns.map((column) => order(column)))
        .limit(rowLimit("limit"))
        .offset(rowLimit("offset"))
        .as("page");
      return q.select(ownColumns(scimGroups)).from(uids).innerJoin(scimGroups, eq(scimGroups.uid, uids.uid));
    },
);

// In the order of times, from the first one after `after`.
const changed = statement<{ providerUid: string; timeMs: number; after: string; limit: number }, ScimGroupRow>((q, t) =>
  q
    .select(ownColumns(t.scimGroups))
    .from(t.scimGroups)
    .where(
      and(
        buildEquals(t.scimGroups, "providerUid"),
        sql`(${t.scimGroups.updateTimeMs}, ${t.scimGroups.uid}) > (${value("timeMs")}, ${value("after")})`,
      ),
    )
    .orderBy(asc(t.scimGroups.updateTimeMs), asc(t.scimGroups.uid))
    .limit(rowLimit("limit")),
);

// In the order of uids, from the first one after `after`.
const slice = statement<{ providerUid: string; after: string; limit: number }, ScimGroupRow>((q, t) =>
  q
    .select(ownColumns(t.scimGroups))
    .from(t.scimGroups)
    .where(and(buildEquals(t.scimGroups, "providerUid"), gt(t.scimGroups.uid, value("after"))))
    .orderBy(asc(t.scimGroups.uid))
    .limit(rowLimit("limit")),
);

// As above, those with a name.
const named = statement<{ providerUid: string; displayNameKey: string; after: string; limit: number }, ScimGroupRow>(
  (q, { scimGroups }) =>
    q
      .select(ownColumns(scimGroups))
      .from(scimGroups)
      .where(
        and(buildEquals(scimGroups, "providerUid", "displayNameKey"), gt(unindexed(scimGroups.uid), value("after"))),
      )
      .orderBy(asc(scimGroups.displayNameKey), asc(scimGroups.uid))
      .limit(rowLimit("limit")),
);

// Those that mappings name so, who are few.
const byMappedId = statement<{ providerUid: string; mappedId: string }, ScimGroupRow>((q, { scimGroups }) =>
  q
    .select(ownColumns(scimGroups))
    .from(scimGroups)
    .where(and(buildEquals(scimGroups, "mappedId"), eq(unindexed(scimGroups.providerUid), value("providerUid"))))
    .orderBy(asc(scimGroups.uid)),
);

// The condition on what is not empty is that of the index.
const byExternalId = statement<{ providerUid: string; externalId: string }, ScimGroupRow>((q, t) =>
  q
    .select(ownColumns(t.scimGroups))
    .from(t.scimGroups)
    .where(and(buildEquals(t.scimGroups, "providerUid", "externalId"), sql`${t.scimGroups.externalId} <> ''`)),
);

/** The groups whom directories have sent. */
export class ScimGroups extends ListedTable<ScimGroupRow> {
  /** How many groups the directory of a provider has. */
  countOfProvider(providerUid: string): Promise<number> {
    return countBelow(this.tx, this.kind, providerUid);
  }

  /** A page of the groups of a provider. */
  async findPage(providerUid: string, order: ScimGroupOrder, offset: number, limit: number): Promise<ScimGroupRow[]> {
    const rows = await this.all(page(order), { providerUid, offset, limit });
    const sign = order.descending ? -1 : 1;
    const compare = <T>(a: T, b: T) => (a < b ? -sign : a > b ? sign : 0);
    return rows.sort((a, b) => compare(a[order.by], b[order.by]) || compare(a.uid, b.uid));
  }

  /** The groups of a provider in the order of uids, from the first one after `after`, at most `limit`. */
  async findAfter(providerUid: string, after: string, limit: number): Promise<ScimGroupRow[]> {
    await this.tx.pause?.();
    return this.all(slice, { providerUid, after, limit });
  }

  /**
   * The groups of a provider in the order of their last changes, at most `limit`.
   *
   * @param after the time and the uid of the last one before
   */
  async findChanged(
    providerUid: string,
    after: { readonly timeMs: number; readonly uid: string },
    limit: number,
  ): Promise<ScimGroupRow[]> {
    await this.tx.pause?.();
    return this.all(changed, { providerUid, timeMs: after.timeMs, after: after.uid, limit });
  }

  /**
   * The groups with a name, in the order of uids, from the first one after `after`, at most `limit`.
   *
   * @param displayNameKey the name in small letters
   */
  findByDisplayName(
    providerUid: string,
    displayNameKey: string,
    after: string,
    limit: number,
  ): Promise<ScimGroupRow[]> {
    return this.all(named, { providerUid, displayNameKey, after, limit });
  }

  /** The groups that mappings name so, in the order of uids: one, or another one whose uid ends with its external id. */
  findByMappedId(providerUid: string, mappedId: string): Promise<ScimGroupRow[]> {
    return this.all(byMappedId, { providerUid, mappedId });
  }

  findByExternalId(providerUid: string, externalId: string): Promise<ScimGroupRow | undefined> {
    return this.first(byExternalId, { providerUid, externalId });
  }
}

export const scimGroupKind = defineKind(declared, ScimGroups);
