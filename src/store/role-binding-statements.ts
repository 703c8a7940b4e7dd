// The statements behind role-binding-store.ts.
import { and, between, eq, isNull, or, sql } from "drizzle-orm";
import type { Joined } from "./listed-kind.js";
import { placeholderSet, placeholdersFor } from "./placeholders.js";
import type { BindingChange, RoleBindingRow } from "./port.js";
import { statement } from "./statement.js";

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
  q.insert(t.roleBindings).values(placeholdersFor(t.roleBindings)),
);

/** Changes what a binding joins. */
export const update = statement<BindingChange & Pick<RoleBindingRow, "uid" | "automatic" | "updateTimeMs">>((q, t) =>
  q
    .update(t.roleBindings)
    .set(placeholderSet(t.roleBindings, "identityUid", "roleUid", "automatic", "accepted", "updateTimeMs"))
    .where(eq(t.roleBindings.uid, sql.placeholder("uid"))),
);

/** Removes a binding. */
export const remove = statement<{ uid: string }>((q, t) =>
  q.delete(t.roleBindings).where(eq(t.roleBindings.uid, sql.placeholder("uid"))),
);

/** All bindings of an identity. */
export const ofIdentity = statement<Named<"identityUid">, RoleBindingRow>((q, t) =>
  q
    .select()
    .from(t.roleBindings)
    .where(eq(t.roleBindings.identityUid, sql.placeholder("identityUid"))),
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
