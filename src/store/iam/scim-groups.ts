// Groups as directories have sent them by SCIM: their table, and its statements. Their members are in scim-members.ts.
import { and, asc, eq, gt, sql } from "drizzle-orm";
import { declareKind, defineKind, type KindRow, type KindTable } from "../kind.js";
import { unindexed } from "../lists/statements.js";
import { ownColumns } from "../rows.js";
import { buildEquals, rowLimit, statement, value } from "../statement.js";
import type { ScimAttributes } from "./scim-users.js";
import { buildSentStatements, type SentOrder, SentRows } from "./sent-rows.js";

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
export type ScimGroupOrder = SentOrder<"uid" | "displayNameKey" | "updateTimeMs">;

const sent = buildSentStatements<ScimGroupRow>("scimGroups");

// In the order of uids, from the first one after `after`: those with a name.
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

/** The groups whom directories have sent. */
export class ScimGroups extends SentRows<ScimGroupRow, ScimGroupOrder["by"]> {
  protected override readonly sent = sent;

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
}

export const scimGroupKind = defineKind(declared, ScimGroups);
