// The store of questions about rights (iam/access): the bindings of an identity, of a group, and the rules of an
// organisation that let further people. Each statement reads at most `limit` rows in the order of an index, and other calls
// run between those of an answer that needs many.
import { and, asc, eq, gt, inArray, lt, or, sql } from "drizzle-orm";
import { rootOf } from "../../kernel/uidp.js";
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
import type { GroupMappingRow, IdentityProviderRow, IdentityRow } from "../tables/identities.js";
import type { GroupInviteRow, RoleBindingRow } from "../tables/roles.js";
import type { Tables } from "../tables/schema.js";
import { groupMappingKind } from "./group-mappings.js";
import { identityKind } from "./identities.js";

/** A role binding without its times. */
export type BindingRow = Omit<RoleBindingRow, "createTimeMs" | "updateTimeMs">;

const bindingColumns = ({ roleBindings: b }: Tables) => ({
  uid: b.uid,
  identityUid: b.identityUid,
  groupUid: b.groupUid,
  roleUid: b.roleUid,
  pending: b.pending,
  accepted: b.accepted,
  automatic: b.automatic,
});

const groupPlaceholders = (size: number) => Array.from({ length: size }, (_, i) => value(`group${i}`));

// The bindings of an identity at some groups.
const bindingsAt = statementFamily<number, Record<string, string>, BindingRow>(String, (size) => (q, t) => {
  const { identityUid, groupUid, roleUid } = t.roleBindings;
  return q
    .select(bindingColumns(t))
    .from(t.roleBindings)
    .where(and(eq(identityUid, value("identityUid")), inArray(groupUid, groupPlaceholders(size))))
    .orderBy(asc(groupUid), asc(roleUid));
});

// The bindings of an identity below a group, in the order of groups and roles.
const bindingsBelow = statement<
  { identityUid: string; groupUid: string; roleUid: string; end: string; limit: number },
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
      ),
    )
    .orderBy(asc(groupUid), asc(roleUid))
    .limit(rowLimit("limit"));
});

// Whether a person has joined below a group: by creating it, by an invite, or through its provider.
const joinedBelow = statement<{ identityUid: string; groupUid: string; end: string }, object>((q, t) => {
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
      ),
    )
    .limit(rowLimit(1));
});

// The bindings of a group itself, in the order of identities and roles.
const bindingsOfGroup = statement<
  { groupUid: string; identityUid: string; roleUid: string; limit: number },
  BindingRow
>((q, t) => {
  const { identityUid, roleUid } = t.roleBindings;
  const position = sql`(${value("identityUid")}, ${value("roleUid")})`;
  return q
    .select(bindingColumns(t))
    .from(t.roleBindings)
    .where(and(buildEquals(t.roleBindings, "groupUid"), sql`(${identityUid}, ${roleUid}) > ${position}`))
    .orderBy(asc(identityUid), asc(roleUid))
    .limit(rowLimit("limit"));
});

const mappingsOf = statementFamily<
  "providerUid" | "rootUid",
  { owner: string; after: string; end: string; limit: number },
  GroupMappingRow
>(String, (column) => (q, t) => {
  const mappings = t.groupMappings;
  return q
    .select(ownColumns(mappings))
    .from(mappings)
    .where(and(eq(mappings[column], value("owner")), gt(mappings.uid, value("after")), lt(mappings.uid, value("end"))))
    .orderBy(asc(mappings.uid))
    .limit(rowLimit("limit"));
});

const providersIn = statementFamily<number, Record<string, string | number>, IdentityProviderRow>(
  String,
  (size) => (q, t) => {
    const providers = t.identityProviders;
    return q
      .select(ownColumns(providers))
      .from(providers)
      .where(and(inArray(providers.groupUid, groupPlaceholders(size)), gt(providers.uid, value("after"))))
      .orderBy(asc(providers.uid))
      .limit(rowLimit("limit"));
  },
);

const invitesIn = statementFamily<number, Record<string, string | number>, GroupInviteRow>(String, (size) => (q, t) => {
  const invites = t.groupInvites;
  return q
    .select(ownColumns(invites))
    .from(invites)
    .where(
      and(
        inArray(invites.groupUid, groupPlaceholders(size)),
        gt(invites.uid, value("after")),
        gt(invites.expireTimeMs, value("nowMs")),
      ),
    )
    .orderBy(asc(invites.uid))
    .limit(rowLimit("limit"));
});

/** Greater than the uid of a group and of everything below it, or where it is empty than all: uids are hex digits and slashes. */
const endOf = (groupUid: string) => (groupUid === "" ? "g" : `${groupUid}0`);

export class AccessQuestions extends TransactionPart {
  /** The bindings of an identity at `groupUids`, in the order of groups. */
  findBindingsAt(identityUid: string, groupUids: readonly string[]): Promise<BindingRow[]> {
    const { size, params } = padParams("group", groupUids);
    return this.all(bindingsAt(size), { ...params, identityUid });
  }

  /**
   * The bindings of an identity at a group and below it, in the order of groups and roles.
   *
   * @param top the uid of the group; empty for all groups
   * @param after the group and the role of the last one before
   */
  findBindingsBelow(
    identityUid: string,
    top: string,
    after: Pick<BindingRow, "groupUid" | "roleUid"> | undefined,
    limit: number,
  ): Promise<BindingRow[]> {
    const { groupUid, roleUid } = after ?? { groupUid: top, roleUid: "" };
    return this.#slice(bindingsBelow, { identityUid, groupUid, roleUid, end: endOf(top), limit });
  }

  /** Whether lists of the bindings at a group and below it show that the person has joined. */
  hasJoinedBelow(identityUid: string, top: string): Promise<boolean> {
    return this.has(joinedBelow, { identityUid, groupUid: top, end: endOf(top) });
  }

  /**
   * The bindings of a group itself, in the order of identities and roles.
   *
   * @param after the identity and the role of the last one before
   */
  findBindingsOfGroup(
    groupUid: string,
    after: Pick<BindingRow, "identityUid" | "roleUid">,
    limit: number,
  ): Promise<BindingRow[]> {
    return this.#slice(bindingsOfGroup, { groupUid, identityUid: after.identityUid, roleUid: after.roleUid, limit });
  }

  /** Those of the identities that exist, by uid; also those that are being deleted. */
  async findIdentities(uids: readonly string[]): Promise<ReadonlyMap<string, IdentityRow>> {
    const rows = uids.length === 0 ? [] : await readByUids(this.tx, identityKind, uids);
    return new Map((rows as unknown as IdentityRow[]).map((row) => [row.uid, row]));
  }

  /** Those of the mappings that exist, in the order of uids. */
  async findMappings(uids: readonly string[]): Promise<GroupMappingRow[]> {
    const rows = uids.length === 0 ? [] : await readByUids(this.tx, groupMappingKind, [...uids].sort());
    return (rows as unknown as GroupMappingRow[]).sort((a, b) => (a.uid < b.uid ? -1 : 1));
  }

  /** The mappings of a provider with uids after `after`, in the order of uids. */
  findMappingsOf(providerUid: string, after: string, limit: number): Promise<GroupMappingRow[]> {
    return this.#slice(mappingsOf("providerUid"), { owner: providerUid, after, end: endOf(providerUid), limit });
  }

  /** The mappings of the providers in a group and below it with uids after `after`, in the order of uids. */
  findMappingsBelow(top: string, after: string, limit: number): Promise<GroupMappingRow[]> {
    const range = { after: after > top ? after : top, end: endOf(top) };
    return this.#slice(mappingsOf("rootUid"), { owner: rootOf(top), ...range, limit });
  }

  /** The providers in `groupUids` with uids after `after`, in the order of uids. */
  findProvidersIn(groupUids: readonly string[], after: string, limit: number): Promise<IdentityProviderRow[]> {
    const { size, params } = padParams("group", groupUids);
    return this.#slice(providersIn(size), { ...params, after, limit });
  }

  /** The invites to `groupUids` that have not expired, with uids after `after`, in the order of uids. */
  findInvitesIn(groupUids: readonly string[], after: string, nowMs: number, limit: number): Promise<GroupInviteRow[]> {
    const { size, params } = padParams("group", groupUids);
    return this.#slice(invitesIn(size), { ...params, after, nowMs, limit });
  }

  async #slice<Params extends object, Row>(slice: Statement<Params, Row>, params: Params): Promise<Row[]> {
    await this.tx.pause?.();
    return this.all(slice, params);
  }
}
