// Groups: their table, and its statements.
import { and, asc, eq, gt, isNull, sql } from "drizzle-orm";
import { declareKind, defineKind, type KindPatch, type KindRow, type KindTable, usualSorts } from "../kind.js";
import { ListedTable } from "../lists/listed-table.js";
import { ownColumns } from "../rows.js";
import { buildEquals, rowLimit, statement, value } from "../statement.js";

const declared = declareKind({
  number: 1,
  key: "groups",
  name: "groups",
  columns: (c) => ({
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
    /** Of a root group: which issuers identities may trust, in the JSON of its message; empty without a guard. */
    issuerGuard: c.json<object>("issuer_guard").notNull().default({}),
    /** Who created a root group by a call; empty for one created on the host, and for other groups. */
    createdBy: c.str("created_by").notNull().default(""),
    createTimeMs: c.long("create_time_ms").notNull(),
    updateTimeMs: c.long("update_time_ms").notNull(),
  }),
  indexes: (c, t) => [
    // Any number of groups may share a name, and most have no creator: these contain only what is searched for.
    c.index("groups_root_name").on(t.name, t.verified).where(sql`parent_uid IS NULL`),
    c.index("groups_creator").on(t.createdBy, t.uid).where(sql`created_by <> ''`),
  ],
  parent: "parentUid",
  fixed: ["createdBy"],
  references: { parentUid: { to: "groups" } },
  quota: "groups",
  includesSelf: true,
  hasRowsBelow: true,
  hasNameWords: true,
  sorts: usualSorts,
});

declare module "../tables/kind-tables.js" {
  interface KindTables {
    readonly groups: KindTable<typeof declared>;
  }
}

export type GroupRow = KindRow<typeof declared>;

/** The columns of a group that change after its creation. */
export type GroupPatch = KindPatch<typeof declared>;

// Any number of roots may share a name: no statement may read all of them.
const verifiedRoot = statement<{ name: string }, GroupRow>((q, t) =>
  q
    .select(ownColumns(t.groups))
    .from(t.groups)
    .where(and(buildEquals(t.groups, "name"), isNull(t.groups.parentUid), eq(t.groups.verified, true)))
    .limit(rowLimit(1)),
);
const rootsNamed = statement<{ name: string; limit: number }, GroupRow>((q, t) =>
  q
    .select(ownColumns(t.groups))
    .from(t.groups)
    .where(and(buildEquals(t.groups, "name"), isNull(t.groups.parentUid)))
    .limit(rowLimit("limit")),
);
const rootsAfter = statement<{ after: string; limit: number }, GroupRow>((q, t) =>
  q
    .select(ownColumns(t.groups))
    .from(t.groups)
    .where(and(isNull(t.groups.parentUid), gt(t.groups.uid, value("after"))))
    .orderBy(asc(t.groups.uid))
    .limit(rowLimit("limit")),
);

export class Groups extends ListedTable<GroupRow, GroupPatch> {
  /** The verified root group with this name: there is at most one. */
  findVerifiedRoot(name: string): Promise<GroupRow | undefined> {
    return this.first(verifiedRoot, { name });
  }

  /** Root groups with this name, at most `limit`, in no order. */
  findRootsNamed(name: string, limit: number): Promise<GroupRow[]> {
    return this.all(rootsNamed, { name, limit });
  }

  /** Root groups in the order of their uids, from the first one after `after`, at most `limit`. */
  listRoots(after: string, limit: number): Promise<GroupRow[]> {
    return this.all(rootsAfter, { after, limit });
  }
}

export const groupKind = defineKind(declared, Groups);
