// The statements of role bindings; role-store.ts runs them.
import { and, asc, between, eq, gt, isNull, lt, ne, or, type SQL, sql } from "drizzle-orm";
import { ANONYMOUS_UID } from "../kernel/ids.js";
import { toNumber } from "./list-statements.js";
import type { BindingChange, RoleBindingRow } from "./port.js";
import type { Join } from "./resource-index.js";
import {
  buildEquals,
  buildInsertValues,
  buildUpdateValues,
  type Preparable,
  statement,
  statementFamily,
} from "./statement.js";

type Named<K extends "groupUid" | "identityUid" | "roleUid"> = Record<K, string>;

/** A binding by uid. */
export const get = statement<{ uid: string }, RoleBindingRow>((q, t) =>
  q.select().from(t.roleBindings).where(buildEquals(t.roleBindings, "uid")),
);

/** The binding of this identity to this role at this group. */
export const same = statement<Named<"groupUid" | "identityUid" | "roleUid">, RoleBindingRow>((q, t) =>
  q
    .select()
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
  q.select().from(t.roleBindings).where(buildEquals(t.roleBindings, "identityUid")).limit(sql.placeholder("limit")),
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

/** Bindings of a role. */
export const ofRole = statement<Named<"roleUid">, RoleBindingRow>((q, t) =>
  q.select().from(t.roleBindings).where(buildEquals(t.roleBindings, "roleUid")).orderBy(asc(t.roleBindings.uid)),
);

/** The groups a role is bound at. */
export const groupsOfRole = statement<Named<"roleUid">, Named<"groupUid">>((q, t) =>
  q
    .select({ groupUid: t.roleBindings.groupUid })
    .from(t.roleBindings)
    .where(buildEquals(t.roleBindings, "roleUid"))
    .groupBy(t.roleBindings.groupUid),
);

/** A binding of the group that is not automatic. */
export const notAutomatic = statement<Named<"groupUid">, object>((q, t) =>
  q
    .select({ uid: t.roleBindings.uid })
    .from(t.roleBindings)
    .where(and(eq(t.roleBindings.groupUid, sql.placeholder("groupUid")), eq(t.roleBindings.automatic, false)))
    .limit(1),
);

/** Two bindings of existing identities to the role at the group. */
export const holders = statement<Named<"groupUid" | "roleUid">, object>((q, t) =>
  q
    .select({ uid: t.roleBindings.uid })
    .from(t.roleBindings)
    .innerJoin(t.identities, eq(t.identities.uid, t.roleBindings.identityUid))
    .where(
      and(
        eq(t.roleBindings.groupUid, sql.placeholder("groupUid")),
        eq(t.roleBindings.roleUid, sql.placeholder("roleUid")),
        // `anonymous` is every caller without a token, not one identity.
        ne(t.roleBindings.identityUid, ANONYMOUS_UID),
        // Bindings of people from another organisation's provider have no effect here.
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

/** The automatic bindings of the group. */
export const automatic = statement<Named<"groupUid">, RoleBindingRow>((q, t) =>
  q
    .select()
    .from(t.roleBindings)
    .where(and(eq(t.roleBindings.groupUid, sql.placeholder("groupUid")), eq(t.roleBindings.automatic, true))),
);
