// An identity and its role bindings, as far as the asker may know them. Another identity than the asker's own is known by
// the bindings that lists show, and the decision is made with those alone, by the code that authorizes calls.
import { Capability } from "#gen/chainguard/capabilities/capabilities_pb.js";
import type { Principal } from "../../kernel/principal.js";
import { rootOf } from "../../kernel/uidp.js";
import { Caller } from "../../pipeline/auth/caller.js";
import { getCapability, type NeededCapability } from "../../pipeline/method-table.js";
import type { AccessRow } from "../../store/iam/access.js";
import type { BindingRow } from "../../store/iam/access-questions.js";
import type { GroupMappingRow } from "../../store/iam/group-mappings.js";
import { groupKind } from "../../store/iam/groups.js";
import type { IdentityRow } from "../../store/iam/identities.js";
import { type RoleRow, roleKind } from "../../store/iam/roles.js";
import { type ScimGroupRow, scimGroupKind } from "../../store/iam/scim-groups.js";
import type { RoleSource } from "../../store/iam/scim-members.js";
import { type ScimUserRow, scimUserKind } from "../../store/iam/scim-users.js";
import type { Tx } from "../../store/transaction.js";
import { isPerson } from "../people/pending-bindings.js";
import { isOperatorRole } from "../roles/builtin-roles.js";

/** What it takes to see the bindings of a group. */
export const listBindings = [getCapability(Capability.CAP_IAM_ROLE_BINDINGS_LIST, "AccessService")];
/** What it takes to see the providers of a group, and their mappings. */
export const listProviders = [getCapability(Capability.CAP_IAM_IDENTITY_PROVIDERS_LIST, "AccessService")];
/** What it takes to see the groups that a directory has sent, besides {@link listProviders}. */
const listScim = [getCapability(Capability.CAP_IAM_SCIM_USERS_LIST, "AccessService")];
/** What it takes to see the invites of a group. */
export const listInvites = [getCapability(Capability.CAP_IAM_GROUP_INVITES_LIST, "AccessService")];
/** What it takes to see the names of groups. */
export const listGroups = [getCapability(Capability.CAP_IAM_GROUPS_LIST, "AccessService")];
const listRoles = [getCapability(Capability.CAP_IAM_ROLES_LIST, "AccessService")];

/** The most groups and mappings that say why a directory grants a binding. */
const MAX_SOURCES = 10;

/** Names and capabilities that several answers of a call need; each is read once. */
export class Lookups {
  readonly #tx: Tx;
  readonly #seenBy: Caller | undefined;
  readonly #roles = new Map<string, RoleRow | undefined>();
  readonly #groups = new Map<string, Promise<string>>();
  readonly #users = new Map<string, ScimUserRow | undefined>();
  #hidRole = false;

  /** @param seenBy the caller, who sees those roles that lists of roles show; undefined for all roles */
  constructor(tx: Tx, seenBy: Caller | undefined) {
    this.#tx = tx;
    this.#seenBy = seenBy;
  }

  /** Whether a role was left out because the caller does not see it. */
  get hidRole(): boolean {
    return this.#hidRole;
  }

  /** The role; undefined where the caller does not see what it grants. */
  async role(uid: string): Promise<RoleRow | undefined> {
    const row = await this.#roleRow(uid);
    if (row === undefined || this.#sees(row)) return row;
    this.#hidRole = true;
    return undefined;
  }

  // Built-in roles are shown to everybody, those of the operator to nobody.
  #sees({ uid, groupUid }: RoleRow): boolean {
    if (this.#seenBy === undefined) return true;
    return groupUid === null ? !isOperatorRole(uid) : this.#seenBy.holds(listRoles, groupUid);
  }

  /** The name of a role, which bindings show whatever their reader may list. */
  async roleName(uid: string): Promise<string> {
    return (await this.#roleRow(uid))?.name ?? "";
  }

  /** Whether the caller sees the groups that the directory of a provider has sent, and their mappings. */
  seesDirectory(providerUid: string): boolean {
    return this.#seenBy === undefined || this.#seenBy.holds([...listProviders, ...listScim], providerUid);
  }

  /** Why the directory that manages a binding grants it, at most {@link MAX_SOURCES}; none unless the caller sees that. */
  async sources({ identityUid, groupUid: scope, roleUid, managedByUid }: BindingRow): Promise<RoleSource[]> {
    if (managedByUid === null || !this.seesDirectory(managedByUid)) return [];
    if (!this.#users.has(identityUid))
      this.#users.set(identityUid, await this.#tx.table(scimUserKind).findByIdentity(identityUid));
    const user = this.#users.get(identityUid);
    return user === undefined ? [] : this.#tx.scimMembers.findSources(user.uid, { scope, roleUid }, MAX_SOURCES);
  }

  /** The group that a mapping matches; undefined where there is none or the caller does not see it. */
  async directoryGroup({ providerUid, externalGroupId }: GroupMappingRow): Promise<ScimGroupRow | undefined> {
    if (!this.seesDirectory(providerUid)) return undefined;
    return (await this.#tx.table(scimGroupKind).findByMappedId(providerUid, externalGroupId))[0];
  }

  groupName(uid: string): Promise<string> {
    let name = this.#groups.get(uid);
    if (name === undefined) {
      name = Promise.resolve(this.#tx.table(groupKind).find(uid)).then((row) => row?.name ?? "");
      this.#groups.set(uid, name);
    }
    return name;
  }

  /** Reads the roles of bindings at once: an identity may have a thousand. */
  async load(bindings: readonly Pick<BindingRow, "roleUid">[]): Promise<void> {
    const unknown = [...new Set(bindings.map(({ roleUid }) => roleUid))].filter((uid) => !this.#roles.has(uid));
    if (unknown.length === 0) return;
    const found = await this.#tx.accessQuestions.findRoles(unknown);
    for (const uid of unknown) this.#roles.set(uid, found.get(uid));
  }

  async #roleRow(uid: string): Promise<RoleRow | undefined> {
    if (!this.#roles.has(uid)) this.#roles.set(uid, await this.#tx.table(roleKind).find(uid));
    return this.#roles.get(uid);
  }
}

/** An identity with what it is granted at some groups. */
export interface Holder {
  /** With these grants; undefined for an identity that does not exist, is being deleted, or is deactivated. */
  readonly caller: Caller | undefined;
  readonly bindings: readonly BindingRow[];
  /** The identity, where the asker may know it. */
  readonly identity: IdentityRow | undefined;
  /** Whether it is a person who may never have signed in. */
  readonly unconfirmed: boolean;
}

/** What a holder is asked about, and what the asker sees. */
export interface HolderContext {
  readonly capabilities: readonly NeededCapability[];
  readonly lookups: Lookups;
  readonly tx: Tx;
  /** The highest group whose bindings the asker sees. */
  readonly top: string;
}

/**
 * Builds a holder from bindings that lists show to the asker.
 *
 * Lists show who a person is only where the person has joined; anybody can bind a person, registered or not. So of others
 * the bindings alone decide.
 *
 * @param stored the row of the identity, whatever the asker may know of it
 * @param bindings its bindings at the resource and above it, as far as the asker sees them
 */
export async function buildHolder(
  uid: string,
  stored: IdentityRow | undefined,
  bindings: readonly BindingRow[],
  { capabilities, lookups, tx, top }: HolderContext,
): Promise<Holder> {
  const unconfirmed = isPerson(uid) && !bindings.some(isJoin) && !(await tx.accessQuestions.hasJoinedBelow(uid, top));
  const isGone = unconfirmed ? hasNoAccess(stored, [top]) : stored === undefined || hasNoAccess(stored, [top]);
  if (isGone) return { caller: undefined, bindings: [], identity: undefined, unconfirmed: isPerson(uid) };
  const identity = unconfirmed ? undefined : stored;
  const rows = await buildAccessRows(uid, identity, bindings, lookups);
  return { caller: new Caller(newPrincipal(uid), capabilities, rows), bindings, identity, unconfirmed };
}

/** Whether the person joined by this binding, so that lists of bindings show who they are. */
export function isJoin({ automatic, accepted }: BindingRow): boolean {
  return automatic || accepted;
}

/**
 * Whether a stored identity has no access whatever it is bound to: lists show no bindings of one that is being deleted, and those
 * of a deactivated one have no effect. Only its own organisation learns that a directory has deactivated a person.
 *
 * @param groups the groups whose bindings the asker sees
 */
export function hasNoAccess(row: IdentityRow | undefined, groups: readonly string[]): boolean {
  if (row === undefined) return false;
  const { deleteTimeMs, deactivateTimeMs, providerUid } = row;
  if (deleteTimeMs !== null) return true;
  if (deactivateTimeMs === null || providerUid === null) return false;
  return groups.some((uid) => rootOf(uid) === rootOf(providerUid));
}

/** The claims of a token that is issued now, without a limit and without groups of a directory. */
function newPrincipal(identityUid: string): Principal {
  const always = Number.MAX_SAFE_INTEGER;
  return { identityUid, tokenId: "", issuedAt: always, expiresAt: always };
}

// Converts bindings to the rows from which calls are authorized.
async function buildAccessRows(
  identityUid: string,
  identity: Pick<IdentityRow, "notBefore" | "providerUid"> | undefined,
  bindings: readonly BindingRow[],
  lookups: Lookups,
): Promise<AccessRow[]> {
  const { notBefore = 0, providerUid = null } = identity ?? {};
  const known = { identityUid, notBefore, revokeTimeMs: 0, revokedTokenId: null, keyId: null, providerUid };
  const rows: AccessRow[] = [];
  await lookups.load(bindings);
  for (const { groupUid, roleUid, pending, endTimeMs } of bindings) {
    const capabilities = (await lookups.role(roleUid))?.capabilities ?? null;
    rows.push({ ...known, groupUid, roleUid, capabilities, pending, endTimeMs });
  }
  if (rows.length > 0) return rows;
  const nothing = { groupUid: null, roleUid: null, capabilities: null, pending: null, endTimeMs: null };
  return [{ ...known, ...nothing }];
}
