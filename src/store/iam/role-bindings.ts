import {
  and,
  asc,
  between,
  eq,
  exists,
  gt,
  inArray,
  isNotNull,
  isNull,
  lt,
  lte,
  ne,
  notExists,
  or,
  type SQL,
  type SQLWrapper,
  sql,
} from "drizzle-orm";
import { ANONYMOUS_UID } from "../../kernel/ids.js";
import { rootOf } from "../../kernel/uidp.js";
import { byCreation, declareKind, defineKind, type KindPatch, type KindRow, type KindTable } from "../kind.js";
import { ListedTable } from "../lists/listed-table.js";
import type { ListQuery, Page } from "../lists/query.js";
import type { Filter, Join } from "../lists/resource.js";
import { unindexed } from "../lists/statements.js";
import { readByUids } from "../lists/walk.js";
import { ownColumns, selectAny, selectRows, selectSome, updateRows } from "../rows.js";
import { buildEquals, rowLimit, statement, statementFamily, sumOf, toNumber, value } from "../statement.js";
import type { Tables } from "../tables/tables.js";
import type { RoleRow } from "./roles.js";

/**
 * A role binding with the columns of its group, role and identity that responses contain; null where there is no
 * identity. Those of an identity that is being deleted are neither found nor listed.
 */
export interface HydratedBinding extends RoleBindingRow {
  readonly groupName: string;
  readonly groupDescription: string;
  readonly roleName: string;
  readonly roleDescription: string;
  readonly identityName: string | null;
  readonly identityDescription: string | null;
  readonly identityIssuer: string | null;
  readonly identitySubject: string | null;
  readonly identityEmail: string | null;
  readonly identityRelationship: object | null;
  readonly identityDeleteTimeMs: number | null;
  /** 1 where callers manage it or its directory still grants it, else 0. */
  readonly isJustified: number;
}

/** The columns of a role binding that change after its creation. */
/** How a person accepts a binding: by saying so, or by a call that uses it. */
export type Acceptance = "consent" | "use";

export type BindingChange = Pick<RoleBindingRow, "identityUid" | "roleUid" | "accepted" | "pending">;

// The columns of the group, the role and the identity that responses contain.
const join: Join = {
  columns: (t) => ({
    groupName: t.groups.name,
    groupDescription: t.groups.description,
    roleName: t.roles.name,
    roleDescription: t.roles.description,
    identityName: t.identities.name,
    identityDescription: t.identities.description,
    identityIssuer: t.identities.issuer,
    identitySubject: t.identities.subject,
    identityEmail: t.identities.email,
    identityRelationship: t.identities.relationship,
    identityDeleteTimeMs: t.identities.deleteTimeMs,
    isJustified: sql<number>`case when ${t.roleBindings.managedByUid} is null or ${isJustified(t)} then 1 else 0 end`,
  }),
  tables: (t) => [
    [t.groups, eq(t.groups.uid, t.roleBindings.groupUid)],
    [t.roles, eq(t.roles.uid, t.roleBindings.roleUid)],
    [t.identities, eq(t.identities.uid, t.roleBindings.identityUid)],
  ],
};

const filters: Readonly<Record<string, Filter>> = {
  // Those that end, and do so after a time.
  endsAfter: (t) => sql`coalesce(${t.roleBindings.endTimeMs}, 0) > ${value("endsAfter")}`,
};

/** Role bindings as they are listed; they have no names. */
const declared = declareKind({
  number: 4,
  key: "roleBindings",
  name: "role_bindings",
  columns: (c, t) => ({
    uid: c.str("uid").primaryKey(),
    groupUid: c
      .str("group_uid")
      .notNull()
      .references(() => t.groups.uid),
    rootUid: c.str("root_uid").notNull(),
    identityUid: c.str("identity_uid").notNull(),
    roleUid: c
      .str("role_uid")
      .notNull()
      .references(() => t.roles.uid),
    /** Whether it was created with its root group; it is then deleted with the group. */
    automatic: c.bool("automatic").notNull(),
    /** Whether the person it is for has agreed to be shown by name to those who list it: by an invite, or by accepting it. */
    accepted: c.bool("accepted").notNull().default(false),
    /**
     * Whether the person it is for has yet to accept it. It grants its role wherever a call names the group,
     * but adds nothing to lists over all groups. One that a directory manages is never pending.
     */
    pending: c.bool("pending").notNull().default(false),
    /** When it ends, in epoch milliseconds; null: never. See {@link isLive}. */
    endTimeMs: c.long("end_time_ms"),
    /** The uid of the identity provider whose directory manages it; null where callers do. */
    managedByUid: c.str("managed_by_uid"),
    createTimeMs: c.long("create_time_ms").notNull(),
    updateTimeMs: c.long("update_time_ms").notNull(),
  }),
  indexes: (c, t) => [
    c.index("role_bindings_identity").on(t.identityUid, t.groupUid, t.roleUid),
    c.index("role_bindings_group").on(t.groupUid, t.automatic),
    c.index("role_bindings_pending").on(t.identityUid, t.pending, t.uid),
    c.index("role_bindings_role").on(t.roleUid, t.uid),
    c.index("role_bindings_end").on(t.endTimeMs).where(sql`end_time_ms IS NOT NULL`),
    // One binding that callers manage, and one of each directory.
    c.uniqueIndex("role_bindings_manual").on(t.groupUid, t.identityUid, t.roleUid).where(sql`managed_by_uid IS NULL`),
    c.uniqueIndex("role_bindings_managed").on(t.groupUid, t.identityUid, t.roleUid, t.managedByUid),
  ],
  parent: "groupUid",
  references: {
    // The uid of a person is known before the person registers, and stays bound when they are deleted.
    identityUid: {
      to: "identities",
      where: (identityUid) => sql`${identityUid} like '%/%'`,
      remedy: (uid) => `arbor admin unbind ${uid}`,
    },
    managedByUid: { to: "identityProviders", remedy: (uid) => `arbor admin unbind ${uid}` },
  },
  quota: "bindings",
  sorts: byCreation,
  join,
  filters,
});

declare module "../tables/kind-tables.js" {
  interface KindTables {
    readonly roleBindings: KindTable<typeof declared>;
  }
}

export type RoleBindingRow = KindRow<typeof declared>;

/** Later than every end: the greatest time that a number holds exactly. */
const NEVER_MS = Number.MAX_SAFE_INTEGER;

/**
 * Whether the directory that manages a binding still grants it: its identity is that of a member of a group, and a mapping of the
 * provider gives the members of that group the role of the binding there. So whatever a directory takes away has no effect from
 * one row on, however many bindings follow from it; src/iam/directories/rights.ts deletes them afterwards.
 *
 * The queries begin with what few rows have, the mappings of a role at a group. They are values and not `exists`, for which
 * PostgreSQL may choose to read whole tables.
 */
const isJustified = ({
  groupMappings: x,
  roleBindings: b,
  scimGroups: g,
  scimMembers: m,
  scimUsers: u,
}: Tables): SQL => {
  const ofPerson = and(eq(u.identityUid, b.identityUid), eq(u.providerUid, b.managedByUid));
  const person = sql`(select ${u.uid} from ${u} where ${ofPerson})`;
  const ofSet = and(eq(m.groupUid, g.uid), eq(m.memberSet, g.memberSet), eq(m.userUid, person));
  const member = sql`(select 1 from ${m} where ${ofSet} limit 1)`;
  const ofMapping = and(eq(g.mappedId, x.externalGroupId), eq(unindexed(g.providerUid), x.providerUid));
  const group = sql`(select 1 from ${g} where ${ofMapping} and ${member} is not null limit 1)`;
  const ofBinding = and(eq(x.scope, b.groupUid), eq(x.roleUid, b.roleUid), eq(x.providerUid, b.managedByUid));
  return sql`(select 1 from ${x} where ${ofBinding} and ${group} is not null limit 1) is not null`;
};

/**
 * Whether a binding counts at the time `now`, a parameter that every statement with it takes: the time of the process,
 * when the statement runs. One that has ended, or that the directory which manages it grants no more, gives no rights, and is
 * there for nobody, until it is deleted. Statements that do without it are listed with their reasons in
 * test/store/ended-bindings-suite.ts.
 */
export const isLive = (t: Tables): SQL => {
  const { endTimeMs, managedByUid } = t.roleBindings;
  // No index is used for it: nearly all bindings are live.
  return sql`coalesce(${endTimeMs}, ${sql.raw(String(NEVER_MS))}) > ${value("now")} and (${managedByUid} is null or ${isJustified(t)})`;
};

/** Whether a binding has not ended. */
export function hasNotEnded({ endTimeMs }: Pick<RoleBindingRow, "endTimeMs">, nowMs: number): boolean {
  return (endTimeMs ?? NEVER_MS) > nowMs;
}

/** Whether a binding can make an owner: it never ends, and callers manage it. */
const makesOwner = ({ endTimeMs, managedByUid }: Tables["roleBindings"]) =>
  and(isNull(endTimeMs), isNull(managedByUid));

/** The time that {@link isLive} takes. */
interface Now {
  readonly now: number;
}

/** A limit that no number of bindings reaches. */
const NO_LIMIT = 2 ** 31 - 1;

// The one that callers manage.
const same = statement<Named<"groupUid" | "identityUid" | "roleUid">, RoleBindingRow>((q, t) =>
  q
    .select(ownColumns(t.roleBindings))
    .from(t.roleBindings)
    .where(and(buildEquals(t.roleBindings, "groupUid", "identityUid", "roleUid"), isNull(t.roleBindings.managedByUid))),
);
// A row of a uid, where the directory that manages it still grants it.
const justified = statement<{ uid: string }, object>((q, t) =>
  q
    .select({ uid: t.roleBindings.uid })
    .from(t.roleBindings)
    .where(and(buildEquals(t.roleBindings, "uid"), isJustified(t))),
);
// The bindings of an identity that a directory manages, whether it grants them or not.
const managedOf = statement<Named<"identityUid"> & { providerUid: string }, RoleBindingRow>((q, t) =>
  q
    .select(ownColumns(t.roleBindings))
    .from(t.roleBindings)
    .where(and(buildEquals(t.roleBindings, "identityUid"), eq(t.roleBindings.managedByUid, value("providerUid"))))
    .orderBy(asc(t.roleBindings.groupUid), asc(t.roleBindings.roleUid)),
);
const ofIdentity = selectSome("roleBindings", ["identityUid"]);
const anyOfRole = selectAny("roleBindings", "roleUid");
const anyOf = selectAny("roleBindings", "roleUid", "identityUid");
const inGroup = selectRows("roleBindings", ["groupUid", "automatic"]);
const acceptByUse = updateRows("roleBindings", ["uid"], ["pending"]);
const acceptOpenly = updateRows("roleBindings", ["uid"], ["pending", "accepted"]);
const setEnd = updateRows("roleBindings", ["uid"], ["endTimeMs", "updateTimeMs"]);

const grantsOfIdentity = statement<
  Named<"identityUid"> & Now & { limit: number },
  Pick<RoleBindingRow, "groupUid" | "roleUid">
>((q, t) =>
  q
    .select({ groupUid: t.roleBindings.groupUid, roleUid: t.roleBindings.roleUid })
    .from(t.roleBindings)
    .where(and(buildEquals(t.roleBindings, "identityUid"), isLive(t)))
    .limit(rowLimit("limit")),
);

const ofRole = statement<Named<"roleUid"> & Now, RoleBindingRow>((q, t) =>
  q
    .select(ownColumns(t.roleBindings))
    .from(t.roleBindings)
    .where(and(buildEquals(t.roleBindings, "roleUid"), isLive(t)))
    .orderBy(asc(t.roleBindings.uid)),
);

const grantedInGroup = statement<Named<"groupUid"> & Now & { limit: number }, object>((q, t) =>
  q
    .select({ uid: t.roleBindings.uid })
    .from(t.roleBindings)
    .where(and(buildEquals(t.roleBindings, "groupUid"), eq(t.roleBindings.automatic, false), isLive(t)))
    .limit(rowLimit("limit")),
);

// The bindings that have ended, in the order of their ends; or those of a group that do not count, in the order of identities and
// roles.
const ended = statementFamily<"all" | "group", Partial<Named<"groupUid">> & Now & { limit: number }, RoleBindingRow>(
  String,
  (which) => (q, t) => {
    const { endTimeMs, identityUid, roleUid } = t.roleBindings;
    const rows = q.select(ownColumns(t.roleBindings)).from(t.roleBindings);
    const some =
      which === "group"
        ? rows
            .where(and(buildEquals(t.roleBindings, "groupUid"), sql`not (${isLive(t)})`))
            .orderBy(asc(identityUid), asc(roleUid))
        : rows.where(and(isNotNull(endTimeMs), lte(endTimeMs, value("now")))).orderBy(asc(endTimeMs));
    return some.limit(rowLimit("limit"));
  },
);

// The identities of an organisation: those that are in it, and those that are bound in it. Bindings of people who have never
// registered have no identity.
const members = statement<Now & { rootUid: string; after: string; limit: number }, { uid: string }>((q, t) => {
  const [b, i] = [t.roleBindings, t.identities];
  const bound = sql`select ${b.identityUid} as uid from ${b}
    where ${b.rootUid} = ${value("rootUid")} and ${b.identityUid} > ${value("after")} and ${isLive(t)}`;
  const root = value("rootUid");
  const own = sql`select ${i.uid} as uid from ${i}
    where ${i.uid} > ${root} || '/' and ${i.uid} < ${root} || '0' and ${i.uid} > ${value("after")}`;
  return q
    .select({ uid: sql<string>`members.uid`.as("uid") })
    .from(sql`(${bound} union ${own}) as members`)
    .orderBy(sql`members.uid`)
    .limit(rowLimit("limit"));
});

// What an identity is bound to in an organisation, with the names of roles.
const grantsWithin = statement<
  Named<"identityUid"> & Now & { rootUid: string; limit: number },
  { groupUid: string; roleUid: string; roleName: string }
>((q, t) =>
  q
    .select({ groupUid: t.roleBindings.groupUid, roleUid: t.roleBindings.roleUid, roleName: t.roles.name })
    .from(t.roleBindings)
    .innerJoin(t.roles, eq(t.roles.uid, t.roleBindings.roleUid))
    .where(and(buildEquals(t.roleBindings, "identityUid"), eq(t.roleBindings.rootUid, value("rootUid")), isLive(t)))
    .orderBy(asc(t.roleBindings.groupUid), asc(t.roleBindings.roleUid))
    .limit(rowLimit("limit")),
);

// The bindings in an organisation that a provider's directory manages, with uids after `after`. It reads all bindings of the
// organisation, because few statements need them.
const managed = statement<{ providerUid: string; rootUid: string; after: string; limit: number }, { uid: string }>(
  (q, t) => {
    const { uid, managedByUid } = t.roleBindings;
    const end = sql`${value("rootUid")} || '0'`;
    return q
      .select({ uid })
      .from(t.roleBindings)
      .where(and(gt(uid, value("after")), lt(uid, end), eq(managedByUid, value("providerUid"))))
      .orderBy(asc(uid))
      .limit(rowLimit("limit"));
  },
);

// The identities with a role at a group itself.
const holdersAt = statement<Named<"groupUid" | "roleUid"> & Now & { limit: number }, { uid: string }>((q, t) =>
  q
    .select({ uid: t.roleBindings.identityUid })
    .from(t.roleBindings)
    .where(and(buildEquals(t.roleBindings, "groupUid", "roleUid"), isLive(t)))
    .orderBy(asc(t.roleBindings.identityUid))
    .limit(rowLimit("limit")),
);

type Named<K extends "groupUid" | "identityUid" | "roleUid"> = Record<K, string>;

// Bindings of an identity that are pending, or that are not, with uids between `after` and `end`.
const byPending = statement<
  Named<"identityUid"> & Now & { pending: boolean; after: string; end: string; limit: number },
  RoleBindingRow
>((q, t) =>
  q
    .select(ownColumns(t.roleBindings))
    .from(t.roleBindings)
    .where(
      and(
        buildEquals(t.roleBindings, "identityUid", "pending"),
        gt(t.roleBindings.uid, value("after")),
        lt(t.roleBindings.uid, value("end")),
        isLive(t),
      ),
    )
    .orderBy(asc(t.roleBindings.uid))
    .limit(rowLimit("limit")),
);

// How many bindings of an identity are pending, or are not.
const countPending = statement<Named<"identityUid"> & Now & { pending: boolean }, { total: number }>((q, t) =>
  q
    .select({ total: toNumber(sql`count(*)`) })
    .from(t.roleBindings)
    .where(and(buildEquals(t.roleBindings, "identityUid", "pending"), isLive(t))),
);

// The root groups in whose subtrees bindings of an identity are pending. Seeks in the index from one root to the
// next, so that the cost does not depend on the number of bindings. Its parameter `limit` is at least 1.
const pendingRoots = statement<Named<"identityUid"> & Now & { limit: number }, { root: string }>((q, t) => {
  const b = t.roleBindings;
  const next = (after?: SQL) => {
    const pending = and(eq(b.identityUid, value("identityUid")), eq(b.pending, true), isLive(t), after);
    return sql`(select substr(${b.uid}, 1, 40) from ${b} where ${pending} order by ${b.uid} limit 1)`;
  };
  return q.select({ root: sql<string>`roots.root`.as("root") }).from(
    sql`(with recursive found(root, n) as (
      select ${next()}, 1
      union all
      select ${next(sql`${b.uid} > found.root || '0'`)}, n + 1 from found
      where found.root is not null and n < ${value("limit")}
    ) select root from found where root is not null) as roots`,
  );
});

// The roles of an identity, each once.
const rolesOfIdentity = statement<Named<"identityUid"> & Now, Pick<RoleRow, "uid" | "capabilities">>((q, t) => {
  const bound = q
    .select({ uid: t.roleBindings.roleUid })
    .from(t.roleBindings)
    .where(and(buildEquals(t.roleBindings, "identityUid"), isLive(t)));
  return q
    .select({ uid: t.roles.uid, capabilities: t.roles.capabilities })
    .from(t.roles)
    .where(inArray(t.roles.uid, bound));
});

const isOutside = (column: SQLWrapper, name: string) => {
  const top = value(name);
  return or(sql`${column} < ${top}`, sql`${column} > ${top} || '0'`);
};

// A binding of the identity outside the subtree of a group.
const ofIdentityOutside = statement<Named<"identityUid" | "groupUid"> & Now, object>((q, t) =>
  q
    .select({ uid: t.roleBindings.uid })
    .from(t.roleBindings)
    .where(and(buildEquals(t.roleBindings, "identityUid"), isOutside(t.roleBindings.groupUid, "groupUid"), isLive(t)))
    .limit(rowLimit(1)),
);

// A binding of the role outside the subtree of a group; the uid of a binding begins with that of its group.
const ofRoleOutside = statement<Named<"roleUid" | "groupUid">, object>((q, t) =>
  q
    .select({ uid: t.roleBindings.uid })
    .from(t.roleBindings)
    .where(and(buildEquals(t.roleBindings, "roleUid"), isOutside(t.roleBindings.uid, "groupUid")))
    .limit(rowLimit(1)),
);

// The identities that hold a role at the group `groupUid`: those that exist, and no identity that stands for several.
// Bindings of people from another organisation's provider have no effect here, and neither have those of an identity
// that is being deleted or is deactivated.
const isHolder = (identities: Tables["identities"], groupUid: SQLWrapper) =>
  and(
    // `anonymous` is every caller without a token.
    ne(identities.uid, ANONYMOUS_UID),
    isNull(identities.deleteTimeMs),
    isNull(identities.deactivateTimeMs),
    or(
      isNull(identities.providerUid),
      between(identities.providerUid, sql`${groupUid} || '/'`, sql`${groupUid} || '0'`),
    ),
  );

// Two bindings of existing identities to the role at the group that make owners, without the people of a provider.
const holders = statement<Named<"groupUid" | "roleUid"> & { except: string }, object>((q, t) =>
  q
    .select({ uid: t.roleBindings.uid })
    .from(t.roleBindings)
    .innerJoin(t.identities, eq(t.identities.uid, t.roleBindings.identityUid))
    .where(
      and(
        buildEquals(t.roleBindings, "groupUid", "roleUid"),
        makesOwner(t.roleBindings),
        isHolder(t.identities, sql`${value("groupUid")}`),
        or(isNull(t.identities.providerUid), ne(t.identities.providerUid, value("except"))),
      ),
    )
    .limit(rowLimit(2)),
);

// A root group at which the identity has the role by a binding that makes an owner, and no other identity has it so. It jumps from each organisation in which
// the identity has bindings to the next, so that the cost does not depend on the number of bindings.
const soleRoot = statement<Named<"identityUid" | "roleUid">, { root: string }>((q, t) => {
  const b = t.roleBindings;
  const next = (after?: SQL) => {
    const bound = and(buildEquals(b, "identityUid"), after);
    return sql`(select substr(${b.groupUid}, 1, 40) from ${b} where ${bound} order by ${b.groupUid} limit 1)`;
  };
  const root = sql<string>`roots.root`;
  const own = q
    .select({ uid: b.uid })
    .from(b)
    .where(and(buildEquals(b, "identityUid", "roleUid"), eq(b.groupUid, root), makesOwner(b)));
  const other = q
    .select({ uid: b.uid })
    .from(b)
    .innerJoin(t.identities, eq(t.identities.uid, b.identityUid))
    .where(
      and(
        eq(b.groupUid, root),
        buildEquals(b, "roleUid"),
        ne(b.identityUid, value("identityUid")),
        makesOwner(b),
        isHolder(t.identities, root),
      ),
    );
  return q
    .select({ root: root.as("root") })
    .from(
      sql`(with recursive found(root) as (
        select ${next()}
        union all
        select ${next(sql`${b.groupUid} > found.root || '0'`)} from found where found.root is not null
      ) select root from found where root is not null) as roots`,
    )
    .where(and(exists(own), notExists(other)))
    .limit(rowLimit(1));
});

// A binding of the identity to the role at a root group that makes an owner.
const atRoot = statement<Named<"identityUid" | "roleUid">, object>((q, t) =>
  q
    .select({ uid: t.roleBindings.uid })
    .from(t.roleBindings)
    .where(
      and(
        buildEquals(t.roleBindings, "identityUid", "roleUid"),
        eq(t.roleBindings.groupUid, t.roleBindings.rootUid),
        makesOwner(t.roleBindings),
      ),
    )
    .limit(rowLimit(1)),
);

/** Greater than every uid: uids are hex digits and slashes. */
const MAX_UID = "g";

/**
 * Role bindings. Those that do not count ({@link isLive}) are neither found nor listed until they are deleted, but their rows
 * are there.
 */
export class RoleBindings extends ListedTable<RoleBindingRow, KindPatch<typeof declared>> {
  override async find(uid: string): Promise<RoleBindingRow | undefined> {
    const row = await this.findStored(uid);
    if (row === undefined || !hasNotEnded(row, this.tx.clockMs())) return undefined;
    return row.managedByUid === null || (await this.has(justified, { uid })) ? row : undefined;
  }

  /** The binding of this identity to this role at this group that callers manage. */
  async findSame(groupUid: string, identityUid: string, roleUid: string): Promise<RoleBindingRow | undefined> {
    const row = await this.findStoredSame(groupUid, identityUid, roleUid);
    return row !== undefined && hasNotEnded(row, this.tx.clockMs()) ? row : undefined;
  }

  /** As {@link findSame}, also where it has ended: callers can manage no other row with these values. */
  findStoredSame(groupUid: string, identityUid: string, roleUid: string): Promise<RoleBindingRow | undefined> {
    return this.first(same, { groupUid, identityUid, roleUid });
  }

  /** As {@link findStoredSame}, where it has ended. */
  async findEndedSame(groupUid: string, identityUid: string, roleUid: string): Promise<RoleBindingRow | undefined> {
    const row = await this.findStoredSame(groupUid, identityUid, roleUid);
    return row !== undefined && hasNotEnded(row, this.tx.clockMs()) ? undefined : row;
  }

  /** Those of `uids` that exist, in no order; one query. */
  async findHydrated(uids: readonly string[]): Promise<HydratedBinding[]> {
    return this.#onlyEffective(await this.findStoredHydrated(uids));
  }

  /** As {@link findHydrated}, also those that have ended, or that a directory grants no more. */
  async findStoredHydrated(uids: readonly string[]): Promise<HydratedBinding[]> {
    return (await readByUids(this.tx, roleBindingKind, uids)) as HydratedBinding[];
  }

  // The bindings of an identity that is being deleted grant nothing either.
  #onlyEffective(rows: HydratedBinding[]): HydratedBinding[] {
    const nowMs = this.tx.clockMs();
    return rows.filter((row) => row.identityDeleteTimeMs === null && row.isJustified === 1 && hasNotEnded(row, nowMs));
  }

  /** Changes the identity or the role; a changed binding is no longer automatic. */
  override update(uid: string, change: BindingChange, nowMs: number): Promise<RoleBindingRow | undefined> {
    return super.update(uid, { ...change, automatic: false }, nowMs);
  }

  override async list(query: ListQuery): Promise<Page<HydratedBinding>> {
    const page = (await super.list(query)) as Page<HydratedBinding>;
    return { ...page, rows: this.#onlyEffective(page.rows) };
  }

  /** As {@link list}, those alone that end. */
  listEnding(query: ListQuery): Promise<Page<HydratedBinding>> {
    const equals = { ...query.filter.equals, endsAfter: this.tx.clockMs() };
    return this.list({ ...query, filter: { ...query.filter, equals } });
  }

  /** Sets when a binding ends, and changes nothing else of it. */
  setEnd(uid: string, endTimeMs: number | null, updateTimeMs: number): Promise<void> {
    return this.run(setEnd, { uid, endTimeMs, updateTimeMs });
  }

  /**
   * The bindings that have ended at `nowMs`, at most `limit`.
   *
   * @param groupUid of this group alone, also those that their directory grants no more; of all groups unless set
   */
  findEnded(nowMs: number, limit: number, groupUid?: string): Promise<RoleBindingRow[]> {
    if (groupUid === undefined) return this.all(ended("all"), { now: nowMs, limit });
    return this.all(ended("group"), { groupUid, now: nowMs, limit });
  }

  /** The stored bindings of an identity, also those that have ended, at most `limit`; all of them by default. */
  findByIdentity(identityUid: string, limit = NO_LIMIT): Promise<RoleBindingRow[]> {
    return this.all(ofIdentity, { identityUid, limit });
  }

  /** The roles of an identity, each once; one statement, however many bindings there are. */
  findRolesOf(identityUid: string): Promise<Pick<RoleRow, "uid" | "capabilities">[]> {
    return this.all(rolesOfIdentity, { identityUid, ...this.#now() });
  }

  /** The groups and roles of an identity's bindings, at most `limit`. */
  findGrantsOf(identityUid: string, limit: number): Promise<Pick<RoleBindingRow, "groupUid" | "roleUid">[]> {
    return this.all(grantsOfIdentity, { identityUid, limit, ...this.#now() });
  }

  /** Whether the identity has a binding outside the subtree of a group. */
  isBoundOutside(identityUid: string, groupUid: string): Promise<boolean> {
    return this.has(ofIdentityOutside, { identityUid, groupUid, ...this.#now() });
  }

  /** A root group whose only active holder of the role is this identity; undefined where there is none. */
  async findSoleRoot(identityUid: string, roleUid: string): Promise<string | undefined> {
    const [row] = await this.all(soleRoot, { identityUid, roleUid });
    return row?.root;
  }

  /** The bindings of an identity that are pending, or are not, with uids greater than `after`, in the order of uids. */
  async findByPending(identityUid: string, pending: boolean, after: string, limit: number): Promise<HydratedBinding[]> {
    const rows = await this.all(byPending, { identityUid, pending, after, end: MAX_UID, limit, ...this.#now() });
    const found = new Map((await this.findHydrated(rows.map(({ uid }) => uid))).map((row) => [row.uid, row]));
    return rows.flatMap(({ uid }) => found.get(uid) ?? []);
  }

  /** How many bindings of an identity are pending, or are not. */
  countPending(identityUid: string, pending: boolean): Promise<number> {
    return this.all(countPending, { identityUid, pending, ...this.#now() }, sumOf);
  }

  /** The root groups in whose subtrees bindings of an identity are pending, in the order of uids. */
  async findPendingRoots(identityUid: string, limit: number): Promise<string[]> {
    const rows = await this.all(pendingRoots, { identityUid, limit, ...this.#now() });
    return rows.map(({ root }) => root);
  }

  /** Whether the identity has a binding that is not pending in the subtree of a root group. */
  hasAccepted(identityUid: string, rootUid: string): Promise<boolean> {
    const range = { after: rootUid, end: `${rootUid}0`, limit: 1, ...this.#now() };
    return this.has(byPending, { identityUid, pending: false, ...range });
  }

  /**
   * Accepts pending bindings of the identity in the subtree of the root group, at most `limit`; returns their uids.
   *
   * @param how whether the person said so, or made a call, which is no consent to be shown by name
   */
  async accept(identityUid: string, rootUid: string, limit: number, how: Acceptance): Promise<string[]> {
    const range = { after: rootUid, end: `${rootUid}0`, limit, ...this.#now() };
    const rows = await this.all(byPending, { identityUid, pending: true, ...range });
    for (const { uid } of rows) await this.acceptOne(uid, how);
    return rows.map(({ uid }) => uid);
  }

  acceptOne(uid: string, how: Acceptance): Promise<void> {
    if (how === "use") return this.run(acceptByUse, { uid, pending: false });
    return this.run(acceptOpenly, { uid, pending: false, accepted: true });
  }

  /** The uids of the identities of an organisation, in their order, from the first one after `after`, at most `limit`. */
  async listMembers(rootUid: string, after: string, limit: number): Promise<string[]> {
    return (await this.all(members, { rootUid, after, limit, ...this.#now() })).map(({ uid }) => uid);
  }

  /** What an identity is bound to in an organisation, at most `limit`. */
  findGrantsWithin(identityUid: string, rootUid: string, limit: number) {
    return this.all(grantsWithin, { identityUid, rootUid, limit, ...this.#now() });
  }

  /** The uids of the identities with a role at a group itself, at most `limit`. */
  async findHolders(groupUid: string, roleUid: string, limit: number): Promise<string[]> {
    return (await this.all(holdersAt, { groupUid, roleUid, limit, ...this.#now() })).map(({ uid }) => uid);
  }

  /**
   * The uids of the bindings that a provider's directory manages, in their order, from the first one after `after`, at most
   * `limit`.
   */
  async findManaged(providerUid: string, limit: number, after = ""): Promise<string[]> {
    const rootUid = rootOf(providerUid);
    const rows = await this.all(managed, { providerUid, rootUid, after: after || rootUid, limit });
    return rows.map(({ uid }) => uid);
  }

  /** The stored bindings of an identity that a provider's directory manages, in the order of groups and roles. */
  findManagedOf(identityUid: string, providerUid: string): Promise<RoleBindingRow[]> {
    return this.all(managedOf, { identityUid, providerUid });
  }

  /** Whether the identity has the role at any group, also by a binding that has ended. */
  hasRole(identityUid: string, roleUid: string): Promise<boolean> {
    return this.has(anyOf, { roleUid, identityUid });
  }

  /** The bindings of a role, in the order of uids. */
  findByRole(roleUid: string): Promise<RoleBindingRow[]> {
    return this.all(ofRole, { roleUid, ...this.#now() });
  }

  /** Whether the role is bound anywhere, also by a binding that has ended: its row refers to the role. */
  isBound(roleUid: string): Promise<boolean> {
    return this.has(anyOfRole, { roleUid });
  }

  /** Whether the role is bound outside the subtree of a group, also by a binding that has ended. */
  isRoleBoundOutside(roleUid: string, groupUid: string): Promise<boolean> {
    return this.has(ofRoleOutside, { roleUid, groupUid });
  }

  /** How many bindings the group has besides the automatic ones, counted up to `limit`. */
  async countGranted(groupUid: string, limit: number): Promise<number> {
    return (await this.all(grantedInGroup, { groupUid, limit, ...this.#now() })).length;
  }

  /**
   * How many existing identities that are active have the role at the group for ever, without `anonymous`, by bindings that no
   * directory manages; counts up to two.
   *
   * @param except a provider whose people do not count
   */
  async countHolders(groupUid: string, roleUid: string, except = ""): Promise<number> {
    return (await this.all(holders, { groupUid, roleUid, except })).length;
  }

  /** Whether the identity has the role at any root group for ever. */
  hasRoleAtRoot(identityUid: string, roleUid: string): Promise<boolean> {
    return this.has(atRoot, { identityUid, roleUid });
  }

  async deleteAutomatic(groupUid: string): Promise<void> {
    for (const { uid } of await this.all(inGroup, { groupUid, automatic: true })) await this.delete(uid);
  }

  /** Deletes the bindings of a group that do not count, which are few: most were deleted before. */
  async deleteEndedIn(groupUid: string): Promise<void> {
    for (const { uid } of await this.findEnded(this.tx.clockMs(), NO_LIMIT, groupUid)) await this.delete(uid);
  }

  #now(): Now {
    return { now: this.tx.clockMs() };
  }
}

export const roleBindingKind = defineKind(declared, RoleBindings);
