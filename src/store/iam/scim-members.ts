// Who is a member of which group of a directory. A group has one set of members that counts, by its number. Rows of greater
// numbers are of a set that is being written, and becomes that of the group at once; rows of lower ones, and those of a group
// that is gone, count no more and are deleted in parts. Numbers of sets only grow.
import { and, asc, count, eq, gt, lt, max, sql } from "drizzle-orm";
import { deleteRows, insertMissing, ownColumns, selectAny, selectSome } from "../rows.js";
import { buildEquals, rowLimit, statement, TransactionPart, value } from "../statement.js";
import type { ScimMemberRow } from "../tables/scim.js";
import type { GroupMappingRow } from "./group-mappings.js";
import type { ScimGroupRow } from "./scim-groups.js";
import type { ScimUserRow } from "./scim-users.js";

/** A member of a group, as responses show it. */
export type ScimMember = Pick<ScimUserRow, "uid" | "displayName" | "userName" | "identityUid">;

/** A role that a mapping gives the members of a group. */
export type MappedRole = Pick<GroupMappingRow, "scope" | "roleUid" | "createdBy">;

/** A group and a mapping of it that grant a role. */
export interface RoleSource {
  readonly groupUid: string;
  readonly groupName: string;
  readonly externalGroupId: string;
  readonly mappingUid: string;
}

/** A set of members of a group. */
type MemberSet = Pick<ScimMemberRow, "groupUid" | "memberSet">;

/** Greater than the number of every set. */
const ALL_SETS = Number.MAX_SAFE_INTEGER;

const insertMember = insertMissing("scimMembers");
const deleteMember = deleteRows("scimMembers", "groupUid", "memberSet", "userUid");
const isMember = selectAny("scimMembers", "groupUid", "memberSet", "userUid");
const ofUser = selectSome("scimMembers", ["userUid"]);

// In the order of uids, from the first one after `after`.
const members = statement<MemberSet & { after: string; limit: number }, ScimMember>((q, t) => {
  const { scimMembers, scimUsers } = t;
  const page = q
    .select({ userUid: scimMembers.userUid })
    .from(scimMembers)
    .where(and(buildEquals(scimMembers, "groupUid", "memberSet"), gt(scimMembers.userUid, value("after"))))
    .orderBy(asc(scimMembers.userUid))
    .limit(rowLimit("limit"))
    .as("page");
  const { uid, displayName, userName, identityUid } = scimUsers;
  return q
    .select({ uid, displayName, userName, identityUid })
    .from(page)
    .innerJoin(scimUsers, eq(uid, page.userUid))
    .orderBy(asc(page.userUid));
});

const countMembers = statement<MemberSet, { total: number }>((q, t) =>
  q
    .select({ total: count() })
    .from(t.scimMembers)
    .where(buildEquals(t.scimMembers, "groupUid", "memberSet")),
);

// The groups of which somebody is a member, in the order of uids, from the first one after `after`.
const groupsOf = statement<{ userUid: string; after: string; limit: number }, ScimGroupRow>((q, t) => {
  const { scimGroups, scimMembers } = t;
  return q
    .select(ownColumns(scimGroups))
    .from(scimMembers)
    .innerJoin(
      scimGroups,
      and(eq(scimGroups.uid, scimMembers.groupUid), eq(scimGroups.memberSet, scimMembers.memberSet)),
    )
    .where(and(buildEquals(scimMembers, "userUid"), gt(scimMembers.groupUid, value("after"))))
    .orderBy(asc(scimMembers.groupUid))
    .limit(rowLimit("limit"));
});

// What the mappings of a provider give somebody, as often as mappings do.
const mappedRoles = statement<{ userUid: string }, MappedRole>((q, t) => {
  const { groupMappings, scimGroups, scimMembers } = t;
  return q
    .select({ scope: groupMappings.scope, roleUid: groupMappings.roleUid, createdBy: groupMappings.createdBy })
    .from(scimMembers)
    .innerJoin(
      scimGroups,
      and(eq(scimGroups.uid, scimMembers.groupUid), eq(scimGroups.memberSet, scimMembers.memberSet)),
    )
    .innerJoin(
      groupMappings,
      and(
        eq(groupMappings.providerUid, scimGroups.providerUid),
        eq(groupMappings.externalGroupId, scimGroups.mappedId),
      ),
    )
    .where(buildEquals(scimMembers, "userUid"));
});

// The groups of somebody with a mapping that grants a role at a scope. The mapping is a value and not joined, so that the groups of
// the person are read, and not all that have mappings.
const sources = statement<{ userUid: string; scope: string; roleUid: string; limit: number }, RoleSource>((q, t) => {
  const { groupMappings: x, scimGroups, scimMembers } = t;
  const mapping = sql<string>`(select ${x.uid} from ${x} where ${x.providerUid} = ${scimGroups.providerUid}
    and ${x.externalGroupId} = ${scimGroups.mappedId} and ${x.roleUid} = ${value("roleUid")} and ${x.scope} = ${value("scope")})`;
  return q
    .select({
      groupUid: scimGroups.uid,
      groupName: scimGroups.displayName,
      externalGroupId: scimGroups.mappedId,
      mappingUid: mapping.as("mapping_uid"),
    })
    .from(scimMembers)
    .innerJoin(
      scimGroups,
      and(eq(scimGroups.uid, scimMembers.groupUid), eq(scimGroups.memberSet, scimMembers.memberSet)),
    )
    .where(and(buildEquals(scimMembers, "userUid"), sql`${mapping} is not null`))
    .limit(rowLimit("limit"));
});

// The rows of a group in sets with numbers below that of the parameter.
const before = statement<MemberSet & { limit: number }, ScimMemberRow>((q, t) =>
  q
    .select(ownColumns(t.scimMembers))
    .from(t.scimMembers)
    .where(and(buildEquals(t.scimMembers, "groupUid"), lt(t.scimMembers.memberSet, value("memberSet"))))
    .orderBy(asc(t.scimMembers.memberSet), asc(t.scimMembers.userUid))
    .limit(rowLimit("limit")),
);

const lastSet = statement<Pick<MemberSet, "groupUid">, { last: number | null }>((q, t) =>
  q
    .select({ last: max(t.scimMembers.memberSet) })
    .from(t.scimMembers)
    .where(buildEquals(t.scimMembers, "groupUid")),
);

/** The members of groups of directories. */
export class ScimMembers extends TransactionPart {
  /** The members of a set, in the order of uids, from the first one after `after`, at most `limit`. */
  async list({ groupUid, memberSet }: MemberSet, after: string, limit: number): Promise<ScimMember[]> {
    await this.tx.pause?.();
    return this.all(members, { groupUid, memberSet, after, limit });
  }

  /** How many members a set has; reads all of them. */
  async count({ groupUid, memberSet }: MemberSet): Promise<number> {
    await this.tx.pause?.();
    return (await this.first(countMembers, { groupUid, memberSet }))?.total ?? 0;
  }

  isMember(row: ScimMemberRow): Promise<boolean> {
    return this.has(isMember, row);
  }

  /** The groups that somebody is a member of, in the order of uids, from the first one after `after`, at most `limit`. */
  findGroupsOf(userUid: string, after: string, limit: number): Promise<ScimGroupRow[]> {
    return this.all(groupsOf, { userUid, after, limit });
  }

  /** What mappings give somebody by the groups that the person is a member of; a role at a scope once for each mapping. */
  findMappedRoles(userUid: string): Promise<MappedRole[]> {
    return this.all(mappedRoles, { userUid });
  }

  /** By which of somebody's groups and their mappings the person has a role at a scope, at most `limit`. */
  async findSources(
    userUid: string,
    { scope, roleUid }: Pick<GroupMappingRow, "scope" | "roleUid">,
    limit: number,
  ): Promise<RoleSource[]> {
    await this.tx.pause?.();
    return this.all(sources, { userUid, scope, roleUid, limit });
  }

  /** The rows of somebody in all sets of all groups, at most `limit`. */
  findRowsOf(userUid: string, limit: number): Promise<ScimMemberRow[]> {
    return this.all(ofUser, { userUid, limit });
  }

  /**
   * The rows of a group that count no more, at most `limit`.
   *
   * @param memberSet the set of the group that counts; undefined for a group that is gone
   */
  findStale(groupUid: string, memberSet: number | undefined, limit: number): Promise<ScimMemberRow[]> {
    return this.all(before, { groupUid, memberSet: memberSet ?? ALL_SETS, limit });
  }

  /** The greatest number of a set of a group that has rows; 0 where there is none. */
  async findLastSet(groupUid: string): Promise<number> {
    return (await this.first(lastSet, { groupUid }))?.last ?? 0;
  }

  /** Adds a row unless it is there. */
  add(row: ScimMemberRow): Promise<void> {
    return this.run(insertMember, row);
  }

  remove(row: ScimMemberRow): Promise<void> {
    return this.run(deleteMember, row);
  }
}
