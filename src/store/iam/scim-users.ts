// People as directories have sent them by SCIM: their table, and its statements. A row is linked with the identity that signs
// in as the person, and that link never changes.
import { and, asc, count, eq, gt, sql } from "drizzle-orm";
import { declareKind, defineKind, type KindRow, type KindTable } from "../kind.js";
import type { ListQuery, Page } from "../lists/query.js";
import type { Filter } from "../lists/resource.js";
import { deleteRows, deleteSome, ownColumns, putRow, selectRows } from "../rows.js";
import { buildEquals, rowLimit, statement, value } from "../statement.js";
import type { FormerScimUserRow } from "../tables/scim.js";
import { hasSent } from "./directories.js";
import { buildSentStatements, type SentOrder, SentRows } from "./sent-rows.js";

/** What the row of a person has besides its columns: the attributes by the names of their schemas, as they were sent. */
export type ScimAttributes = Readonly<Record<string, unknown>>;

/** How many people one statement of a list reads. */
const LIST_STEP = 200;
/** How many registered people one statement reads: some milliseconds on SQLite. */
const REGISTERED_STEP = 1_000;

const filters: Readonly<Record<string, Filter>> = {
  // 1 or 0, because both databases compare numbers alike.
  active: (t) => sql`CASE WHEN ${t.scimUsers.active} THEN 1 ELSE 0 END = ${value("active")}`,
  linked: (t) => sql`CASE WHEN ${t.scimUsers.identityUid} IS NULL THEN 0 ELSE 1 END = ${value("linked")}`,
};

const declared = declareKind({
  number: 16,
  key: "scimUsers",
  name: "scim_users",
  columns: (c, t) => ({
    uid: c.str("uid").primaryKey(),
    providerUid: c
      .str("provider_uid")
      .notNull()
      .references(() => t.identityProviders.uid),
    rootUid: c.str("root_uid").notNull(),
    userName: c.str("user_name").notNull(),
    /** The user name in small letters; unique among the people of a provider. */
    userNameKey: c.str("user_name_key").notNull(),
    /** Unique among the people of a provider; empty for none. */
    externalId: c.str("external_id").notNull(),
    displayName: c.str("display_name").notNull(),
    active: c.bool("active").notNull(),
    /** The attributes that have no column. */
    attributes: c.json<ScimAttributes>("attributes").notNull(),
    /** The identity that signed in as the person; null before. */
    identityUid: c.str("identity_uid"),
    /** Grows with each change; the version of the resource. */
    revision: c.long("revision").notNull(),
    /** Since when a change that the directory wants is rejected, because the person is the last owner; null where none is. */
    rejectTimeMs: c.long("reject_time_ms"),
    createTimeMs: c.long("create_time_ms").notNull(),
    updateTimeMs: c.long("update_time_ms").notNull(),
  }),
  indexes: (c, t) => [
    c.uniqueIndex("scim_users_user_name").on(t.providerUid, t.userNameKey),
    c.uniqueIndex("scim_users_external_id").on(t.providerUid, t.externalId).where(sql`external_id <> ''`),
    c.index("scim_users_updated").on(t.providerUid, t.updateTimeMs, t.uid),
    c.uniqueIndex("scim_users_identity").on(t.identityUid).where(sql`identity_uid IS NOT NULL`),
    c.index("scim_users_rejected").on(t.providerUid, t.rejectTimeMs).where(sql`reject_time_ms IS NOT NULL`),
  ],
  parent: "providerUid",
  references: { identityUid: { to: "identities" } },
  quota: "scimUsers",
  sorts: {},
  filters,
});

declare module "../tables/kind-tables.js" {
  interface KindTables {
    readonly scimUsers: KindTable<typeof declared>;
  }
}

/** A person as a directory has sent it, as stored. */
export type ScimUserRow = KindRow<typeof declared>;

/** Builds the form of a user name that lookups compare. */
export function buildUserNameKey(userName: string): string {
  return userName.toLowerCase();
}

/** An order of the people of a provider that has an index. */
export type ScimUserOrder = SentOrder<"uid" | "userNameKey" | "updateTimeMs">;

// A user name has one person.
const sent = buildSentStatements<ScimUserRow>("scimUsers", ["userNameKey"]);

const byUserName = selectRows("scimUsers", ["providerUid", "userNameKey"]);
const byIdentity = statement<{ identityUid: string }, ScimUserRow>((q, t) =>
  q
    .select(ownColumns(t.scimUsers))
    .from(t.scimUsers)
    .where(eq(t.scimUsers.identityUid, value("identityUid"))),
);
const rejected = statement<{ providerUid: string; limit: number }, ScimUserRow>((q, t) =>
  q
    .select(ownColumns(t.scimUsers))
    .from(t.scimUsers)
    .where(and(buildEquals(t.scimUsers, "providerUid"), sql`${t.scimUsers.rejectTimeMs} IS NOT NULL`))
    .orderBy(asc(t.scimUsers.rejectTimeMs))
    .limit(rowLimit("limit")),
);

const countRejected = statement<{ providerUid: string }, { total: number }>((q, t) =>
  q
    .select({ total: count() })
    .from(t.scimUsers)
    .where(and(buildEquals(t.scimUsers, "providerUid"), sql`${t.scimUsers.rejectTimeMs} IS NOT NULL`)),
);
// People who have signed in through a provider, in the order of uids, with the person in the directory. Those who are being
// deleted, or whom the directory has deactivated, are none that it does not know.
const registered = statement<
  { providerUid: string; after: string; limit: number },
  { uid: string; isUnknown: boolean | number }
>((q, t) => {
  const { identities, scimUsers } = t;
  const people = q
    .select({
      uid: identities.uid,
      deleteTimeMs: identities.deleteTimeMs,
      deactivateTimeMs: identities.deactivateTimeMs,
    })
    .from(identities)
    .where(and(buildEquals(identities, "providerUid"), gt(identities.uid, value("after"))))
    .orderBy(asc(identities.uid))
    .limit(rowLimit("limit"))
    .as("people");
  return q
    .select({
      uid: people.uid,
      isUnknown: sql<
        boolean | number
      >`${scimUsers.uid} IS NULL AND ${people.deleteTimeMs} IS NULL AND ${people.deactivateTimeMs} IS NULL`,
    })
    .from(people)
    .leftJoin(scimUsers, eq(scimUsers.identityUid, people.uid))
    .orderBy(asc(people.uid));
});

const findFormer = selectRows("formerScimUsers", ["providerUid", "externalId"]);
const anySent = statement<{ providerUid: string }, object>((q, t) =>
  q
    .select({ uid: t.identityProviders.uid })
    .from(t.identityProviders)
    .where(and(eq(t.identityProviders.uid, value("providerUid")), hasSent(t, value("providerUid")))),
);
const putFormer = putRow("formerScimUsers", "providerUid", "externalId");
const deleteFormer = deleteRows("formerScimUsers", "providerUid", "externalId");
const deleteSomeFormer = deleteSome("formerScimUsers", "providerUid", ["providerUid", "externalId"], ["externalId"]);

/** The people whom directories have sent, and what is left of those whom they have deleted. */
export class ScimUsers extends SentRows<ScimUserRow, ScimUserOrder["by"]> {
  protected override readonly sent = sent;

  /** Reads a long page in steps, between which other calls run, because rows are large. */
  override async list(query: ListQuery): Promise<Page<ScimUserRow>> {
    const page = await super.list({ ...query, limit: Math.min(query.limit, LIST_STEP) });
    let { next } = page;
    while (next !== undefined && page.rows.length < query.limit) {
      await this.tx.pause?.();
      const limit = Math.min(query.limit - page.rows.length, LIST_STEP);
      const more = await super.list({ ...query, after: next, skip: 0, limit, uncounted: true });
      for (const row of more.rows) page.rows.push(row);
      next = more.next;
    }
    return { ...page, next };
  }

  /** @param userNameKey the name in small letters */
  findByUserName(providerUid: string, userNameKey: string): Promise<ScimUserRow | undefined> {
    return this.first(byUserName, { providerUid, userNameKey });
  }

  /** The person as whom an identity has signed in. */
  findByIdentity(identityUid: string): Promise<ScimUserRow | undefined> {
    return this.first(byIdentity, { identityUid });
  }

  /** The people of whom a change is rejected, the first one rejected first, at most `limit`. */
  findRejected(providerUid: string, limit: number): Promise<ScimUserRow[]> {
    return this.all(rejected, { providerUid, limit });
  }

  /** How many people there are of whom a change is rejected. */
  async countRejected(providerUid: string): Promise<number> {
    return (await this.first(countRejected, { providerUid }))?.total ?? 0;
  }

  /**
   * The people who have signed in through a provider and whom its directory has not sent: how many there are, and the first
   * ones in the order of uids, at most `limit`. Reads everybody who has, in steps between which other calls run.
   */
  async findUnlinked(providerUid: string, limit: number): Promise<{ readonly uids: string[]; readonly total: number }> {
    const uids: string[] = [];
    let total = 0;
    for (let after: string | undefined = ""; after !== undefined; ) {
      const people: { uid: string; isUnknown: boolean | number }[] = await this.all(registered, {
        ...{ providerUid, after, limit: REGISTERED_STEP },
      });
      for (const { uid, isUnknown } of people) {
        if (!isUnknown) continue;
        total += 1;
        if (uids.length < limit) uids.push(uid);
      }
      after = people.length < REGISTERED_STEP ? undefined : people.at(-1)?.uid;
      await this.tx.pause?.();
    }
    return { uids, total };
  }

  /** What is left of a person whom the directory has deleted. */
  findFormer(providerUid: string, externalId: string): Promise<FormerScimUserRow | undefined> {
    return this.first(findFormer, { providerUid, externalId });
  }

  /** Whether the directory of a provider has sent people or groups; see {@link hasSent}. */
  hasAny(providerUid: string): Promise<boolean> {
    return this.has(anySent, { providerUid });
  }

  putFormer(row: FormerScimUserRow): Promise<void> {
    return this.run(putFormer, row);
  }

  deleteFormer(providerUid: string, externalId: string): Promise<void> {
    return this.run(deleteFormer, { providerUid, externalId });
  }

  /** Deletes what is left of people of a provider, at most `limit`; returns of how many. */
  deleteSomeFormer(providerUid: string, limit: number): Promise<number> {
    return this.countOf(deleteSomeFormer, { providerUid, limit });
  }
}

export const scimUserKind = defineKind(declared, ScimUsers);
