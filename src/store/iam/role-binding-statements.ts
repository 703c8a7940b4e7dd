// The statements of role bindings; roles.ts runs them.
import {
  and,
  asc,
  between,
  eq,
  exists,
  gt,
  gte,
  inArray,
  isNull,
  lt,
  ne,
  notExists,
  or,
  type SQL,
  type SQLWrapper,
  sql,
} from "drizzle-orm";
import { ANONYMOUS_UID } from "../../kernel/ids.js";
import { type Join, ownColumns } from "../lists/resource.js";
import { toNumber } from "../lists/statements.js";
import {
  buildEquals,
  buildInsertValues,
  buildUpdateValues,
  type Preparable,
  statement,
  statementFamily,
} from "../statement.js";
import type { RoleBindingRow, RoleRow } from "../tables/roles.js";
import type { Tables } from "../tables/schema.js";

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
  readonly identityProvider: string | null;
}

/** The columns of a role binding that change after its creation. */
export type BindingChange = Pick<RoleBindingRow, "identityUid" | "roleUid" | "accepted" | "pending">;

type Named<K extends "groupUid" | "identityUid" | "roleUid"> = Record<K, string>;

/** A binding by uid. */
export const get = statement<{ uid: string }, RoleBindingRow>((q, t) =>
  q.select(ownColumns(t.roleBindings)).from(t.roleBindings).where(buildEquals(t.roleBindings, "uid")),
);

/** The binding of this identity to this role at this group. */
export const same = statement<Named<"groupUid" | "identityUid" | "roleUid">, RoleBindingRow>((q, t) =>
  q
    .select(ownColumns(t.roleBindings))
    .from(t.roleBindings)
    .where(buildEquals(t.roleBindings, "groupUid", "identityUid", "roleUid")),
);

/** The columns of the group, the role and the identity that responses contain. */
export const join: Join = {
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
    identityProvider: t.identities.providerUid,
  }),
  tables: (t) => [
    [t.groups, eq(t.groups.uid, t.roleBindings.groupUid)],
    [t.roles, eq(t.roles.uid, t.roleBindings.roleUid)],
    [t.identities, eq(t.identities.uid, t.roleBindings.identityUid)],
  ],
};

/** Adds a binding. */
export const insert = statement<RoleBindingRow & { readonly rootUid: string }>((q, t) =>
  q.insert(t.roleBindings).values(buildInsertValues(t.roleBindings)),
);

/** Changes the identity or the role of a binding. */
export const update = statement<BindingChange & Pick<RoleBindingRow, "uid" | "automatic" | "updateTimeMs">>((q, t) =>
  q
    .update(t.roleBindings)
    .set(
      buildUpdateValues(t.roleBindings, "identityUid", "roleUid", "automatic", "accepted", "pending", "updateTimeMs"),
    )
    .where(buildEquals(t.roleBindings, "uid")),
);

/** Removes a binding. */
export const remove = statement<{ uid: string }>((q, t) =>
  q.delete(t.roleBindings).where(buildEquals(t.roleBindings, "uid")),
);

/** Bindings of an identity. */
export const ofIdentity = statement<Named<"identityUid"> & { limit: number }, RoleBindingRow>((q, t) =>
  q
    .select(ownColumns(t.roleBindings))
    .from(t.roleBindings)
    .where(buildEquals(t.roleBindings, "identityUid"))
    .limit(sql.placeholder("limit")),
);

/** Bindings of an identity that are pending, or that are not, with uids between `after` and `end`. */
export const byPending = statementFamily<
  boolean,
  Named<"identityUid"> & { after: string; end: string; limit: number },
  RoleBindingRow
>(
  String,
  (pending) => (q, t) =>
    q
      .select(ownColumns(t.roleBindings))
      .from(t.roleBindings)
      .where(
        and(
          eq(t.roleBindings.identityUid, sql.placeholder("identityUid")),
          eq(t.roleBindings.pending, pending),
          gt(t.roleBindings.uid, sql.placeholder("after")),
          lt(t.roleBindings.uid, sql.placeholder("end")),
        ),
      )
      .orderBy(asc(t.roleBindings.uid))
      .limit(sql.placeholder("limit")),
);

/** How many bindings an identity has at groups from `from` to before `to`; counts up to `cap`. */
export const bindingsInRange = statement<
  Named<"identityUid"> & { from: string; to: string; cap: number },
  { total: number }
>((q, t) => {
  const found = q
    .select({ uid: t.roleBindings.uid })
    .from(t.roleBindings)
    .where(
      and(
        eq(t.roleBindings.identityUid, sql.placeholder("identityUid")),
        gte(t.roleBindings.groupUid, sql.placeholder("from")),
        lt(t.roleBindings.groupUid, sql.placeholder("to")),
      ),
    )
    .limit(sql.placeholder("cap"))
    .as("found");
  return q.select({ total: toNumber(sql`count(*)`) }).from(found);
});

/** How many bindings of an identity are pending, or are not. */
export const countPending = statementFamily<boolean, Named<"identityUid">, { total: number }>(
  String,
  (pending) => (q, t) =>
    q
      .select({ total: toNumber(sql`count(*)`) })
      .from(t.roleBindings)
      .where(and(eq(t.roleBindings.identityUid, sql.placeholder("identityUid")), eq(t.roleBindings.pending, pending))),
);

/**
 * The root groups in whose subtrees bindings of an identity are pending. Seeks in the index from one root to the
 * next, so that the cost does not depend on the number of bindings. Its parameter `limit` is at least 1.
 */
export const pendingRoots = statement<Named<"identityUid"> & { limit: number }, { root: string }>((q, t) => {
  const b = t.roleBindings;
  const next = (after?: SQL) => {
    const pending = and(eq(b.identityUid, sql.placeholder("identityUid")), eq(b.pending, true), after);
    return sql`(select substr(${b.uid}, 1, 40) from ${b} where ${pending} order by ${b.uid} limit 1)`;
  };
  return q.select({ root: sql<string>`roots.root`.as("root") }).from(
    sql`(with recursive found(root, n) as (
      select ${next()}, 1
      union all
      select ${next(sql`${b.uid} > found.root || '0'`)}, n + 1 from found
      where found.root is not null and n < ${sql.placeholder("limit")}
    ) select root from found where root is not null) as roots`,
  ) as Preparable;
});

/** Accepts a binding. */
export const accept = statement<{ uid: string }>((q, t) =>
  q.update(t.roleBindings).set({ pending: false }).where(buildEquals(t.roleBindings, "uid")),
);

/** A binding of the identity to the role. */
export const anyOf = statement<Named<"identityUid" | "roleUid">, object>((q, t) =>
  q
    .select({ uid: t.roleBindings.uid })
    .from(t.roleBindings)
    .where(buildEquals(t.roleBindings, "roleUid", "identityUid"))
    .limit(1),
);

/** The roles of an identity, each once. */
export const rolesOfIdentity = statement<Named<"identityUid">, Pick<RoleRow, "uid" | "capabilities">>((q, t) => {
  const bound = q
    .select({ uid: t.roleBindings.roleUid })
    .from(t.roleBindings)
    .where(buildEquals(t.roleBindings, "identityUid"));
  return q
    .select({ uid: t.roles.uid, capabilities: t.roles.capabilities })
    .from(t.roles)
    .where(inArray(t.roles.uid, bound));
});

/** The groups and roles of an identity's bindings, which are all different. */
export const grantsOfIdentity = statement<Named<"identityUid"> & { limit: number }, Named<"groupUid" | "roleUid">>(
  (q, t) =>
    q
      .select({ groupUid: t.roleBindings.groupUid, roleUid: t.roleBindings.roleUid })
      .from(t.roleBindings)
      .where(buildEquals(t.roleBindings, "identityUid"))
      .limit(sql.placeholder("limit")),
);

const isOutside = (column: SQLWrapper, name: string) => {
  const top = sql.placeholder(name);
  return or(sql`${column} < ${top}`, sql`${column} > ${top} || '0'`);
};

/** A binding of the identity outside the subtree of a group. */
export const ofIdentityOutside = statement<Named<"identityUid" | "groupUid">, object>((q, t) =>
  q
    .select({ uid: t.roleBindings.uid })
    .from(t.roleBindings)
    .where(and(buildEquals(t.roleBindings, "identityUid"), isOutside(t.roleBindings.groupUid, "groupUid")))
    .limit(1),
);

/** A binding of the role outside the subtree of a group; the uid of a binding begins with that of its group. */
export const ofRoleOutside = statement<Named<"roleUid" | "groupUid">, object>((q, t) =>
  q
    .select({ uid: t.roleBindings.uid })
    .from(t.roleBindings)
    .where(and(buildEquals(t.roleBindings, "roleUid"), isOutside(t.roleBindings.uid, "groupUid")))
    .limit(1),
);

/** Bindings of a role. */
export const ofRole = statement<Named<"roleUid">, RoleBindingRow>((q, t) =>
  q
    .select(ownColumns(t.roleBindings))
    .from(t.roleBindings)
    .where(buildEquals(t.roleBindings, "roleUid"))
    .orderBy(asc(t.roleBindings.uid)),
);

/** A binding of the role. */
export const anyOfRole = statement<Named<"roleUid">, object>((q, t) =>
  q.select({ uid: t.roleBindings.uid }).from(t.roleBindings).where(buildEquals(t.roleBindings, "roleUid")).limit(1),
);

/** A binding of the group that is not automatic. */
export const notAutomatic = statement<Named<"groupUid">, object>((q, t) =>
  q
    .select({ uid: t.roleBindings.uid })
    .from(t.roleBindings)
    .where(and(eq(t.roleBindings.groupUid, sql.placeholder("groupUid")), eq(t.roleBindings.automatic, false)))
    .limit(1),
);

// The identities that hold a role at the group `groupUid`: those that exist, and no identity that stands for several.
// Bindings of people from another organisation's provider have no effect here, and neither have those of an identity
// that is being deleted: its provider is none.
const isHolder = (identities: Tables["identities"], groupUid: SQLWrapper) =>
  and(
    // `anonymous` is every caller without a token.
    ne(identities.uid, ANONYMOUS_UID),
    or(
      isNull(identities.providerUid),
      between(identities.providerUid, sql`${groupUid} || '/'`, sql`${groupUid} || '0'`),
    ),
  );

/** Two bindings of existing identities to the role at the group, without the people of a provider. */
export const holders = statement<Named<"groupUid" | "roleUid"> & { except: string }, object>((q, t) =>
  q
    .select({ uid: t.roleBindings.uid })
    .from(t.roleBindings)
    .innerJoin(t.identities, eq(t.identities.uid, t.roleBindings.identityUid))
    .where(
      and(
        buildEquals(t.roleBindings, "groupUid", "roleUid"),
        isHolder(t.identities, sql`${sql.placeholder("groupUid")}`),
        or(isNull(t.identities.providerUid), ne(t.identities.providerUid, sql.placeholder("except"))),
      ),
    )
    .limit(2),
);

/**
 * A root group at which the identity has the role and no other identity holds it. It jumps from each organisation in which
 * the identity has bindings to the next, so that the cost does not depend on the number of bindings.
 */
export const soleRoot = statement<Named<"identityUid" | "roleUid">, { root: string }>((q, t) => {
  const b = t.roleBindings;
  const next = (after?: SQL) => {
    const bound = and(buildEquals(b, "identityUid"), after);
    return sql`(select substr(${b.groupUid}, 1, 40) from ${b} where ${bound} order by ${b.groupUid} limit 1)`;
  };
  const root = sql<string>`roots.root`;
  const own = q
    .select({ uid: b.uid })
    .from(b)
    .where(and(buildEquals(b, "identityUid", "roleUid"), eq(b.groupUid, root)));
  const other = q
    .select({ uid: b.uid })
    .from(b)
    .innerJoin(t.identities, eq(t.identities.uid, b.identityUid))
    .where(
      and(
        eq(b.groupUid, root),
        buildEquals(b, "roleUid"),
        ne(b.identityUid, sql.placeholder("identityUid")),
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
    .limit(1) as Preparable;
});

/** A binding of the identity to the role at a root group. */
export const atRoot = statement<Named<"identityUid" | "roleUid">, object>((q, t) =>
  q
    .select({ uid: t.roleBindings.uid })
    .from(t.roleBindings)
    .where(
      and(buildEquals(t.roleBindings, "identityUid", "roleUid"), eq(t.roleBindings.groupUid, t.roleBindings.rootUid)),
    )
    .limit(1),
);

/** The automatic bindings of the group. */
export const automatic = statement<Named<"groupUid">, RoleBindingRow>((q, t) =>
  q
    .select(ownColumns(t.roleBindings))
    .from(t.roleBindings)
    .where(and(eq(t.roleBindings.groupUid, sql.placeholder("groupUid")), eq(t.roleBindings.automatic, true))),
);
