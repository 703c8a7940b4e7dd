// Identities: their table, and its statements. People and workloads are rows of one table: what is for people alone is empty or
// null for workloads, and the other way round.
import { and, asc, isNotNull, lt, sql } from "drizzle-orm";
import { declareKind, defineKind, type KindPatch, type KindRow, type KindTable, usualSorts } from "../kind.js";
import { ListedTable } from "../lists/listed-table.js";
import type { ListQuery, Page } from "../lists/query.js";
import { updateRows } from "../rows.js";
import { buildEquals, buildUpdateValues, rowLimit, statement, value } from "../statement.js";
import type { Tables } from "../tables/tables.js";

const declared = declareKind({
  number: 2,
  key: "identities",
  name: "identities",
  columns: (c, t) => ({
    uid: c.str("uid").primaryKey(),
    /** Null for people and for the identities that Arbor itself defines. */
    groupUid: c.str("group_uid").references(() => t.groups.uid),
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
    /** What tokens that assume the identity must satisfy besides, in the JSON of their messages. */
    conditions: c.json<readonly object[]>("conditions").notNull().default([]),
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
    /** Since when its directory says that it must not be used; null for all others. It has no rights and no valid tokens. */
    deactivateTimeMs: c.long("deactivate_time_ms"),
  }),
  indexes: (c, t) => [
    c.index("identities_provider").on(t.providerUid),
    c.index("identities_email").on(t.email, t.uid).where(sql`email <> ''`),
    c.index("identities_deleted").on(t.deleteTimeMs).where(sql`delete_time_ms IS NOT NULL`),
  ],
  parent: "groupUid",
  fixed: ["issuer", "subject", "providerUid", "lastSeenTimeMs", "deleteTimeMs", "deactivateTimeMs"],
  references: { providerUid: { to: "identityProviders" } },
  quota: "identities",
  hasNameWords: true,
  sorts: usualSorts,
});

declare module "../tables/kind-tables.js" {
  interface KindTables {
    readonly identities: KindTable<typeof declared>;
  }
}

export type IdentityRow = KindRow<typeof declared>;

const updateLastSeen = statement<{ uid: string; lastSeenTimeMs: number }>((q, t) =>
  q
    .update(t.identities)
    .set(buildUpdateValues(t.identities, "lastSeenTimeMs"))
    .where(and(buildEquals(t.identities, "uid"), lt(t.identities.lastSeenTimeMs, value("lastSeenTimeMs")))),
);

// The provider may be deleted before the identity.
const marks = (t: Tables) => ({ ...buildUpdateValues(t.identities, "deleteTimeMs"), providerUid: null });
const mark = statement<{ uid: string; deleteTimeMs: number }>((q, t) =>
  q.update(t.identities).set(marks(t)).where(buildEquals(t.identities, "uid")),
);
const markByProvider = statement<{ providerUid: string; deleteTimeMs: number }>((q, t) =>
  q.update(t.identities).set(marks(t)).where(buildEquals(t.identities, "providerUid")),
);
const deactivation = updateRows("identities", ["uid"], ["deactivateTimeMs"]);
const marked = statement<{ limit: number }, { uid: string }>((q, t) =>
  q
    .select({ uid: t.identities.uid })
    .from(t.identities)
    .where(isNotNull(t.identities.deleteTimeMs))
    .orderBy(asc(t.identities.deleteTimeMs))
    .limit(rowLimit("limit")),
);

/** Identities. Those that are being deleted are neither found nor listed, but their rows are there. */
export class Identities extends ListedTable<IdentityRow, KindPatch<typeof declared>> {
  override find(uid: string): Promise<IdentityRow | undefined> {
    return mapRow(this.findStored(uid), (row) => (row?.deleteTimeMs === null ? row : undefined));
  }

  /** Finds an identity that may be used: not one that is being deleted, nor one that is deactivated. */
  findActive(uid: string): Promise<IdentityRow | undefined> {
    return mapRow(this.find(uid), (row) => (row?.deactivateTimeMs === null ? row : undefined));
  }

  override async list(query: ListQuery): Promise<Page<IdentityRow>> {
    const page = await super.list(query);
    return { ...page, rows: page.rows.filter(({ deleteTimeMs }) => deleteTimeMs === null) };
  }

  /**
   * Takes all rights and tokens of an identity away, before its bindings and its row are deleted in several units of
   * work.
   */
  markDeleted(uid: string, deleteTimeMs: number): Promise<void> {
    return this.run(mark, { uid, deleteTimeMs });
  }

  /** Does the same to all people of a provider. */
  markDeletedOf(providerUid: string, deleteTimeMs: number): Promise<void> {
    return this.run(markByProvider, { providerUid, deleteTimeMs });
  }

  /**
   * Sets since when its directory says that an identity must not be used, in epoch milliseconds; null: it may be used. What it
   * is bound to stays.
   */
  setDeactivated(uid: string, deactivateTimeMs: number | null): Promise<void> {
    return this.run(deactivation, { uid, deactivateTimeMs });
  }

  /** The uids of identities that are being deleted, at most `limit`. */
  async findMarked(limit: number): Promise<string[]> {
    return (await this.all(marked, { limit })).map(({ uid }) => uid);
  }

  /** Whether the identity is being deleted. */
  isMarked(uid: string): Promise<boolean> {
    return mapRow(this.findStored(uid), (row) => row !== undefined && row.deleteTimeMs !== null);
  }

  /** Sets the last seen time unless the stored one is later. */
  updateLastSeen(uid: string, lastSeenTimeMs: number): Promise<void> {
    return this.run(updateLastSeen, { uid, lastSeenTimeMs });
  }
}

async function mapRow<T>(row: Promise<IdentityRow | undefined>, map: (row: IdentityRow | undefined) => T): Promise<T> {
  return map(await row);
}

export const identityKind = defineKind(declared, Identities);
