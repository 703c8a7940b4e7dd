// The statements of role bindings; role-store.ts runs them.
import { and, asc, between, eq, gt, isNull, lt, ne, or, type SQL, sql } from "drizzle-orm";
import { ANONYMOUS_UID } from "../kernel/ids.js";
import { total } from "./list-statements.js";
import type { BindingChange, RoleBindingRow } from "./port.js";
import type { Joined } from "./resource-index.js";
import { buildInsertValues, buildUpdateValues, type Preparable, statement, statementFamily } from "./statement.js";

type Named<K extends "groupUid" | "identityUid" | "roleUid"> = Record<K, string>;

/** A binding by uid. */
export const get = statement<{ uid: string }, RoleBindingRow>((q, t) =>
  q
    .select()
    .from(t.roleBindings)
    .where(eq(t.roleBindings.uid, sql.placeholder("uid"))),
);

/** The binding of exactly these. */
export const same = statement<Named<"groupUid" | "identityUid" | "roleUid">, RoleBindingRow>((q, t) =>
  q
    .select()
    .from(t.roleBindings)
    .where(
      and(
        eq(t.roleBindings.groupUid, sql.placeholder("groupUid")),
        eq(t.roleBindings.identityUid, sql.placeholder("identityUid")),
        eq(t.roleBindings.roleUid, sql.placeholder("roleUid")),
      ),
    ),
);

/** What answers show of the things a binding joins. */
export const joined: Joined = {
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
  }),
  tables: (t) => [
    [t.groups, eq(t.groups.uid, t.roleBindings.groupUid)],
    [t.roles, eq(t.roles.uid, t.roleBindings.roleUid)],
    [t.identities, eq(t.identities.uid, t.roleBindings.identityUid)],
  ],
};

/** Adds a binding. */
export const insert = statement<RoleBindingRow>((q, t) =>
  q.insert(t.roleBindings).values(buildInsertValues(t.roleBindings)),
);

/** Changes what a binding joins. */
export const update = statement<BindingChange & Pick<RoleBindingRow, "uid" | "automatic" | "updateTimeMs">>((q, t) =>
  q
    .update(t.roleBindings)
    .set(
      buildUpdateValues(t.roleBindings, "identityUid", "roleUid", "automatic", "accepted", "pending", "updateTimeMs"),
    )
    .where(eq(t.roleBindings.uid, sql.placeholder("uid"))),
);

/** Removes a binding. */
export const remove = statement<{ uid: string }>((q, t) =>
  q.delete(t.roleBindings).where(eq(t.roleBindings.uid, sql.placeholder("uid"))),
);

/** Bindings of an identity. */
export const ofIdentity = statement<Named<"identityUid"> & { limit: number }, RoleBindingRow>((q, t) =>
  q
    .select()
    .from(t.roleBindings)
    .where(eq(t.roleBindings.identityUid, sql.placeholder("identityUid")))
    .limit(sql.placeholder("limit")),
);

/** Bindings of an identity that are pending, or those that are not, below a place in the order of uids. */
export const byPending = statementFamily<
  boolean,
  Named<"identityUid"> & { after: string; end: string; limit: number },
  RoleBindingRow
>(
  String,
  (pending) => (q, t) =>
    q
      .select()
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

/** How many bindings of an identity are pending, or are not. */
export const countPending = statementFamily<boolean, Named<"identityUid">, { total: number }>(
  String,
  (pending) => (q, t) =>
    q
      .select({ total: total(sql`count(*)`) })
      .from(t.roleBindings)
      .where(and(eq(t.roleBindings.identityUid, sql.placeholder("identityUid")), eq(t.roleBindings.pending, pending))),
);

/**
 * The root groups that pending bindings of an identity lie in. Goes from one root to the next through the index,
 * so that bindings of the same root cost nothing. Its parameter `limit` is at least 1.
 */
export const pendingRoots = statement<Named<"identityUid"> & { limit: number }, { root: string }>((q, t) => {
  const b = t.roleBindings;
  const next = (after?: SQL) => {
    const mine = and(eq(b.identityUid, sql.placeholder("identityUid")), eq(b.pending, true), after);
    return sql`(select substr(${b.uid}, 1, 40) from ${b} where ${mine} order by ${b.uid} limit 1)`;
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
  q
    .update(t.roleBindings)
    .set({ pending: false })
    .where(eq(t.roleBindings.uid, sql.placeholder("uid"))),
);

/** A binding of the identity to the role. */
export const anyOf = statement<Named<"identityUid" | "roleUid">, object>((q, t) =>
  q
    .select({ uid: t.roleBindings.uid })
    .from(t.roleBindings)
    .where(
      and(
        eq(t.roleBindings.roleUid, sql.placeholder("roleUid")),
        eq(t.roleBindings.identityUid, sql.placeholder("identityUid")),
      ),
    )
    .limit(1),
);

/** The groups a role is bound at. */
export const groupsOfRole = statement<Named<"roleUid">, Named<"groupUid">>((q, t) =>
  q
    .select({ groupUid: t.roleBindings.groupUid })
    .from(t.roleBindings)
    .where(eq(t.roleBindings.roleUid, sql.placeholder("roleUid")))
    .groupBy(t.roleBindings.groupUid),
);

/** A binding of the group that did not come with it. */
export const granted = statement<Named<"groupUid">, object>((q, t) =>
  q
    .select({ uid: t.roleBindings.uid })
    .from(t.roleBindings)
    .where(and(eq(t.roleBindings.groupUid, sql.placeholder("groupUid")), eq(t.roleBindings.automatic, false)))
    .limit(1),
);

/** Two bindings of existing identities to the role at the group. */
export const holder = statement<Named<"groupUid" | "roleUid">, object>((q, t) =>
  q
    .select({ uid: t.roleBindings.uid })
    .from(t.roleBindings)
    .innerJoin(t.identities, eq(t.identities.uid, t.roleBindings.identityUid))
    .where(
      and(
        eq(t.roleBindings.groupUid, sql.placeholder("groupUid")),
        eq(t.roleBindings.roleUid, sql.placeholder("roleUid")),
        // Everybody is nobody in particular.
        ne(t.roleBindings.identityUid, ANONYMOUS_UID),
        // Of people of another organisation's provider no binding counts here.
        or(
          isNull(t.identities.providerUid),
          between(
            t.identities.providerUid,
            sql`${sql.placeholder("groupUid")} || '/'`,
            sql`${sql.placeholder("groupUid")} || '0'`,
          ),
        ),
      ),
    )
    .limit(2),
);

/** A binding of the identity to the role at a root group. */
export const atRoot = statement<Named<"identityUid" | "roleUid">, object>((q, t) =>
  q
    .select({ uid: t.roleBindings.uid })
    .from(t.roleBindings)
    .innerJoin(t.groups, eq(t.groups.uid, t.roleBindings.groupUid))
    .where(
      and(
        eq(t.roleBindings.identityUid, sql.placeholder("identityUid")),
        eq(t.roleBindings.roleUid, sql.placeholder("roleUid")),
        isNull(t.groups.parentUid),
      ),
    )
    .limit(1),
);

/** The bindings that came with the group. */
export const automatic = statement<Named<"groupUid">, RoleBindingRow>((q, t) =>
  q
    .select()
    .from(t.roleBindings)
    .where(and(eq(t.roleBindings.groupUid, sql.placeholder("groupUid")), eq(t.roleBindings.automatic, true))),
);
