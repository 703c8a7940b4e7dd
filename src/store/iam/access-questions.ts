// The store of questions about rights (iam/access): the bindings of an identity, of a group, and the rules of an
// organisation that let further people. Lists are read by statements of at most `limit` rows in the order of an index, and other
// calls run between them. The bindings of one identity at a resource and above it are read at once, as calls are authorized.
import { and, asc, eq, gt, inArray, isNull, lt, or, type SQL, sql } from "drizzle-orm";
import type { ListedKind, ListedRow } from "../lists/resource.js";
import { readByUids } from "../lists/walk.js";
import { ownColumns } from "../rows.js";
import {
  buildEquals,
  padParams,
  rowLimit,
  type Statement,
  statement,
  statementFamily,
  TransactionPart,
  value,
} from "../statement.js";
import type { Tables } from "../tables/tables.js";
import type { GroupInviteRow } from "./group-invites.js";
import type { GroupMappingRow } from "./group-mappings.js";
import { groupMappingKind } from "./group-mappings.js";
import type { IdentityRow } from "./identities.js";
import { identityKind } from "./identities.js";
import type { IdentityProviderRow } from "./identity-providers.js";
import { isLive, type RoleBindingRow } from "./role-bindings.js";
import type { RoleRow } from "./roles.js";
import { roleKind } from "./roles.js";

/** A role binding without the times of its changes. */
export type BindingRow = Omit<RoleBindingRow, "createTimeMs" | "updateTimeMs">;

/** The time that {@link isLive} takes. */
interface Now {
  readonly now: number;
}

const bindingColumns = ({ roleBindings: b }: Tables) => ({
  uid: b.uid,
  identityUid: b.identityUid,
  groupUid: b.groupUid,
  roleUid: b.roleUid,
  pending: b.pending,
  accepted: b.accepted,
  automatic: b.automatic,
  endTimeMs: b.endTimeMs,
  managedByUid: b.managedByUid,
});

const groupPlaceholders = (size: number) => Array.from({ length: size }, (_, i) => value(`group${i}`));

// The bindings of an identity at some groups.
const bindingsAt = statementFamily<number, Record<string, string | number>, BindingRow>(String, (size) => (q, t) => {
  const { identityUid, groupUid } = t.roleBindings;
  return q
    .select(bindingColumns(t))
    .from(t.roleBindings)
    .where(and(eq(identityUid, value("identityUid")), inArray(groupUid, groupPlaceholders(size)), isLive(t)));
});

// The bindings of an identity below a group, in the order of groups and roles.
const bindingsBelow = statement<
  Now & { identityUid: string; groupUid: string; roleUid: string; end: string; limit: number },
  BindingRow
>((q, t) => {
  const { identityUid, groupUid, roleUid } = t.roleBindings;
  const position = sql`(${value("groupUid")}, ${value("roleUid")})`;
  return q
    .select(bindingColumns(t))
    .from(t.roleBindings)
    .where(
      and(
        eq(identityUid, value("identityUid")),
        sql`(${groupUid}, ${roleUid}) > ${position}`,
        lt(groupUid, value("end")),
        isLive(t),
      ),
    )
    .orderBy(asc(groupUid), asc(roleUid))
    .limit(rowLimit("limit"));
});

// Whether a person has joined below a group: by creating it, by an invite, or through its provider.
const joinedBelow = statement<Now & { identityUid: string; groupUid: string; end: string }, object>((q, t) => {
  const { uid, identityUid, groupUid, automatic, accepted } = t.roleBindings;
  return q
    .select({ uid })
    .from(t.roleBindings)
    .where(
      and(
        eq(identityUid, value("identityUid")),
        sql`${groupUid} >= ${value("groupUid")}`,
        lt(groupUid, value("end")),
        or(eq(automatic, true), eq(accepted, true)),
        isLive(t),
      ),
    )
    .limit(rowLimit(1));
});

// The bindings of a group itself, in the order of identities and roles.
const bindingsOfGroup = statement<
  Now & { groupUid: string; identityUid: string; roleUid: string; limit: number },
  BindingRow
>((q, t) => {
  const { identityUid, roleUid } = t.roleBindings;
  const position = sql`(${value("identityUid")}, ${value("roleUid")})`;
  return q
    .select(bindingColumns(t))
    .from(t.roleBindings)
    .where(and(buildEquals(t.roleBindings, "groupUid"), sql`(${identityUid}, ${roleUid}) > ${position}`, isLive(t)))
    .orderBy(asc(identityUid), asc(roleUid))
    .limit(rowLimit("limit"));
});

// Those that bind an identity to a role at a group: the one that callers manage, and one for each directory.
const sameBindings = statement<Now & { groupUid: string; identityUid: string; roleUid: string }, BindingRow>((q, t) =>
  q
    .select(bindingColumns(t))
    .from(t.roleBindings)
    .where(and(buildEquals(t.roleBindings, "groupUid", "identityUid", "roleUid"), isLive(t))),
);

// The uid of a mapping begins with that of its provider, and so with that of the group of the provider.
const mappingsBelow = statement<{ after: string; end: string; limit: number }, GroupMappingRow>((q, t) => {
  const { groupMappings } = t;
  return q
    .select(ownColumns(groupMappings))
    .from(groupMappings)
    .where(and(gt(groupMappings.uid, value("after")), lt(groupMappings.uid, value("end"))))
    .orderBy(asc(groupMappings.uid))
    .limit(rowLimit("limit"));
});

/** What a person is looked up by. */
export type PersonKey = { readonly uid: string } | { readonly email: string };

/** How many groups one statement asks about. */
const MAX_TOPS = 64;

// Whether a person has joined below a group, by a binding with a lower uid than another. As a value and not by `exists`, for
// which PostgreSQL may choose to read all bindings of the group.
const hasJoined = (t: Tables, i: number): SQL => {
  const { uid, identityUid, groupUid, automatic, accepted } = t.roleBindings;
  return sql`(select ${uid} from ${t.roleBindings} where ${identityUid} = ${t.identities.uid}
    and ${groupUid} >= ${value(`top${i}`)} and ${groupUid} < ${value(`end${i}`)} and ${uid} < ${value("before")}
    and (${eq(automatic, true)} or ${eq(accepted, true)}) and ${isLive(t)} limit 1) is not null`;
};

interface JoinedShape {
  readonly by: "uid" | "email";
  readonly size: number;
}

// The people who have joined below some groups. Both conditions are in one statement, so that people who have joined elsewhere
// take as long as those who do not exist. The one on addresses is that of the index, which has those with an address alone.
const joinedBelowSome = statementFamily<JoinedShape, Now & Record<string, string | number>, IdentityRow>(
  ({ by, size }) => `${by} ${size}`,
  ({ by, size }) =>
    (q, t) => {
      const { uid, email, deleteTimeMs } = t.identities;
      return q
        .select(ownColumns(t.identities))
        .from(t.identities)
        .where(
          and(
            buildEquals(t.identities, by),
            by === "email" ? sql`${email} <> ''` : undefined,
            isNull(deleteTimeMs),
            or(...Array.from({ length: size }, (_, i) => hasJoined(t, i))),
          ),
        )
        .orderBy(asc(uid))
        .limit(rowLimit("limit"));
    },
);

type InGroup = { groupUid: string; after: string; limit: number };

const providersIn = statement<InGroup, IdentityProviderRow>((q, { identityProviders }) =>
  q
    .select(ownColumns(identityProviders))
    .from(identityProviders)
    .where(and(buildEquals(identityProviders, "groupUid"), gt(identityProviders.uid, value("after"))))
    .orderBy(asc(identityProviders.uid))
    .limit(rowLimit("limit")),
);

const invitesIn = statement<InGroup, GroupInviteRow>((q, { groupInvites }) =>
  q
    .select(ownColumns(groupInvites))
    .from(groupInvites)
    .where(and(buildEquals(groupInvites, "groupUid"), gt(groupInvites.uid, value("after"))))
    .orderBy(asc(groupInvites.uid))
    .limit(rowLimit("limit")),
);

/** Greater than all uids. */
const END = "g";
/** Greater than the uid of a group and of everything below it, or where it is empty than all: uids are hex digits and slashes. */
const endOf = (groupUid: string) => (groupUid === "" ? END : `${groupUid}0`);

const keyOf = ({ groupUid, roleUid, uid }: BindingRow) => `${groupUid} ${roleUid} ${uid}`;
const byGroup = (a: BindingRow, b: BindingRow) => (keyOf(a) < keyOf(b) ? -1 : 1);

export class AccessQuestions extends TransactionPart {
  /** The bindings of an identity at `groupUids`, in the order of groups and roles. */
  async findBindingsAt(identityUid: string, groupUids: readonly string[]): Promise<BindingRow[]> {
    const { size, params } = padParams("group", groupUids);
    const rows = await this.#slice(bindingsAt(size), { ...params, identityUid, now: this.tx.clockMs() });
    return rows.sort(byGroup);
  }

  /**
   * The bindings of an identity at a group and below it, in the order of groups, roles and uids: at least `limit` where there are
   * so many, and those that have the same group and role as the last one.
   *
   * @param top the uid of the group; empty for all groups
   * @param after what the last one before has
   */
  async findBindingsBelow(
    identityUid: string,
    top: string,
    after: Pick<BindingRow, "groupUid" | "roleUid" | "uid"> | undefined,
    limit: number,
  ): Promise<BindingRow[]> {
    const { groupUid, roleUid, uid } = after ?? { groupUid: top, roleUid: "", uid: "" };
    const same = uid === "" ? [] : await this.#findSame({ groupUid, identityUid, roleUid });
    const params = { identityUid, groupUid, roleUid, end: endOf(top), limit, now: this.tx.clockMs() };
    const rows = await this.#addSame(await this.#slice(bindingsBelow, params), limit);
    return [...same.filter((row) => row.uid > uid), ...rows].sort(byGroup);
  }

  /** Whether lists of the bindings at a group and below it show that the person has joined. */
  async hasJoinedBelow(identityUid: string, top: string): Promise<boolean> {
    const now = this.tx.clockMs();
    return (await this.#slice(joinedBelow, { identityUid, groupUid: top, end: endOf(top), now })).length > 0;
  }

  /**
   * The bindings of a group itself, in the order of identities and roles: `limit` of them, and those that have the same identity
   * and role as the last one.
   *
   * @param after the identity and the role of the last one before
   */
  async findBindingsOfGroup(
    groupUid: string,
    after: Pick<BindingRow, "identityUid" | "roleUid">,
    limit: number,
  ): Promise<BindingRow[]> {
    const { identityUid, roleUid } = after;
    const params = { groupUid, identityUid, roleUid, limit, now: this.tx.clockMs() };
    return this.#addSame(await this.#slice(bindingsOfGroup, params), limit);
  }

  #findSame({ groupUid, identityUid, roleUid }: Pick<BindingRow, "groupUid" | "identityUid" | "roleUid">) {
    return this.#slice(sameBindings, { groupUid, identityUid, roleUid, now: this.tx.clockMs() });
  }

  // Lists are in an order that bindings with several managers share, so a part of them must not end between such bindings.
  async #addSame(rows: readonly BindingRow[], limit: number): Promise<BindingRow[]> {
    const last = rows.at(-1);
    if (last === undefined || rows.length < limit) return [...rows];
    const known = new Set(rows.map(({ uid }) => uid));
    return [...rows, ...(await this.#findSame(last)).filter(({ uid }) => !known.has(uid))];
  }

  /** Those of the identities that exist, by uid; also those that are being deleted. */
  async findIdentities(uids: readonly string[]): Promise<ReadonlyMap<string, IdentityRow>> {
    return new Map((await this.#byUids<IdentityRow>(identityKind, uids)).map((row) => [row.uid, row]));
  }

  /**
   * The people with a uid or a confirmed address who have joined below one of some groups, in the order of uids.
   *
   * @param tops in the order of uids, none below another
   * @param before the uid of a binding: only those count by which people joined that have lower ones
   */
  async findJoined(by: PersonKey, tops: readonly string[], limit: number, before = END): Promise<IdentityRow[]> {
    const found = new Map<string, IdentityRow>();
    const now = this.tx.clockMs();
    for (let from = 0; from < tops.length; from += MAX_TOPS) {
      const chunk = tops.slice(from, from + MAX_TOPS);
      const { size, params } = padParams("top", chunk);
      const ends = padParams("end", chunk.map(endOf)).params;
      const statement = joinedBelowSome({ by: "uid" in by ? "uid" : "email", size });
      const rows = await this.#slice(statement, { ...by, ...params, ...ends, before, limit, now });
      for (const row of rows) found.set(row.uid, row);
      if ("uid" in by && found.size > 0) break;
    }
    return [...found.values()].sort((a, b) => (a.uid < b.uid ? -1 : 1)).slice(0, limit);
  }

  /** Whether a person has joined below one of some groups by a binding with a lower uid than that of another one. */
  async hasJoinedBefore(identityUid: string, tops: readonly string[], bindingUid: string): Promise<boolean> {
    const lower = tops.filter((top) => top < bindingUid);
    return (await this.findJoined({ uid: identityUid }, lower, 1, bindingUid)).length > 0;
  }

  /** Those of the roles that exist, by uid. */
  async findRoles(uids: readonly string[]): Promise<ReadonlyMap<string, RoleRow>> {
    return new Map((await this.#byUids<RoleRow>(roleKind, uids)).map((row) => [row.uid, row]));
  }

  /** Those of the mappings that exist, in the order of uids. */
  async findMappings(uids: readonly string[]): Promise<GroupMappingRow[]> {
    const rows = await this.#byUids<GroupMappingRow>(groupMappingKind, uids);
    return rows.sort((a, b) => (a.uid < b.uid ? -1 : 1));
  }

  /**
   * The mappings of a provider, or of those in a group and below it, with uids after `after`, in the order of uids.
   *
   * @param top the uid of the provider or of the group
   */
  findMappingsBelow(top: string, after: string, limit: number): Promise<GroupMappingRow[]> {
    return this.#slice(mappingsBelow, { after: after > top ? after : top, end: endOf(top), limit });
  }

  /** The providers of a group itself with uids after `after`, in the order of uids. */
  findProvidersIn(groupUid: string, after: string, limit: number): Promise<IdentityProviderRow[]> {
    return this.#slice(providersIn, { groupUid, after, limit });
  }

  /** The invites to a group itself, expired or not, with uids after `after`, in the order of uids. */
  findInvitesIn(groupUid: string, after: string, limit: number): Promise<GroupInviteRow[]> {
    return this.#slice(invitesIn, { groupUid, after, limit });
  }

  async #byUids<Row extends ListedRow>(kind: ListedKind, uids: readonly string[]): Promise<Row[]> {
    return uids.length === 0 ? [] : ((await readByUids(this.tx, kind, uids)) as Row[]);
  }

  async #slice<Params extends object, Row>(slice: Statement<Params, Row>, params: Params): Promise<Row[]> {
    await this.tx.pause?.();
    return this.all(slice, params);
  }
}
