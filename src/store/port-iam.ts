// The interfaces of the stores of groups, identities, roles and what belongs to them.
import type { CapabilitySet } from "../kernel/capability-set.js";
import type { Awaitable, IndexedStore, ListQuery, Page, PatchStore } from "./port-lists.js";
import type { GroupRow, TermsAcceptanceRow } from "./tables/groups.js";
import type { IdentityProviderRow, IdentityRow } from "./tables/identities.js";
import type { GroupInviteRow, RoleBindingRow, RoleRow } from "./tables/roles.js";

/** An identity with one of its grants, or with none; the rows from which a call is authorized. */
export interface AccessRow {
  readonly identityUid: string;
  /** Tokens issued before this epoch second are void. */
  readonly notBefore: number;
  /** The organisation's own provider that the person logs in through; grants outside its organisation do not count. */
  readonly providerUid: string | null;
  readonly groupUid: string | null;
  /** The role that grants the capabilities; null where there is no grant. */
  readonly roleUid: string | null;
  readonly capabilities: CapabilitySet | null;
  /** Whether the binding that grants this is pending; null where there is no grant. */
  readonly pending: boolean | null;
}

/** What a mapping of a directory's group grants to the members of that group. */
export interface MappedGrant {
  readonly groupUid: string;
  readonly roleUid: string;
  readonly capabilities: CapabilitySet;
}

/** Reads what an identity is granted. */
export interface AccessStore {
  /**
   * The identity and its grants at a group and its ancestors; empty where there is no such identity.
   *
   * @param lineage the uids of the ancestors and of the group, root first
   */
  findGrantsAt(identityUid: string, lineage: readonly string[]): Awaitable<AccessRow[]>;
  /**
   * The identity and its grants at any of `groupUids`, in a number of statements that grows with them, not with the
   * grants of the identity. There may be other grants of the organisation among them.
   *
   * @param root the root group that the groups belong to
   */
  findGrantsIn(identityUid: string, root: string, groupUids: readonly string[]): Awaitable<AccessRow[]>;
  /** The identity in one row without a grant; empty where there is no such identity. */
  findIdentity(identityUid: string): Awaitable<AccessRow[]>;
  /** The identity and all of its grants that are not pending; empty where there is no such identity. */
  findAllGrants(identityUid: string): Awaitable<AccessRow[]>;
  /** The grants of those of `mappingUids`, which are few, that exist and belong to the provider. */
  findMappedGrants(providerUid: string, mappingUids: readonly string[]): Awaitable<MappedGrant[]>;
}

/** The columns of a group that change after its creation. */
export type GroupPatch = Partial<Pick<GroupRow, "name" | "description" | "verified" | "kind" | "resourceLimits">>;

/** Groups. */
export interface GroupStore extends Omit<PatchStore<GroupRow, GroupPatch>, "delete"> {
  delete(row: GroupRow): Awaitable<void>;
  hasChildren(uid: string): Awaitable<boolean>;
  /** The verified root group with this name: there is at most one. */
  findVerifiedRoot(name: string): Awaitable<GroupRow | undefined>;
  /** Whether any root group has this name. */
  hasRootNamed(name: string): Awaitable<boolean>;
}

/** The columns of an identity that change after its creation. */
export type IdentityPatch = Partial<
  Pick<
    IdentityRow,
    | "name"
    | "description"
    | "company"
    | "relation"
    | "relationship"
    | "metadata"
    | "email"
    | "emailUnverified"
    | "notBefore"
  >
>;

/** Identities. Those that are being deleted are neither found nor listed, but their rows are there. */
export interface IdentityStore extends PatchStore<IdentityRow, IdentityPatch> {
  /**
   * Takes all rights and tokens of an identity away, before its bindings and its row are deleted in several units of
   * work.
   */
  markDeleted(uid: string): Awaitable<void>;
  /** Does the same to all people of a provider. */
  markDeletedOf(providerUid: string): Awaitable<void>;
  /** The uids of identities that are being deleted, at most `limit`. */
  findMarked(limit: number): Awaitable<string[]>;
  /** Whether the identity is being deleted. */
  isMarked(uid: string): Awaitable<boolean>;
  /** Whether any identity is a child of the group. */
  hasAnyIn(groupUid: string): Awaitable<boolean>;
  /** Sets the last seen time unless the stored one is later. */
  updateLastSeen(uid: string, timeMs: number): Awaitable<void>;
}

/** The columns of a role that change after its creation. */
export type RolePatch = Partial<Pick<RoleRow, "name" | "description" | "capabilities">>;

/** Roles. */
export interface RoleStore extends PatchStore<RoleRow, RolePatch> {
  /** Whether any role is a child of the group. */
  hasAnyIn(groupUid: string): Awaitable<boolean>;
  /** The roles that belong to no group, in the order of uids: those built in, and those of the operator. */
  listOutsideGroups(): Awaitable<RoleRow[]>;
}

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

/** Role bindings. */
export interface RoleBindingStore {
  find(uid: string): Awaitable<RoleBindingRow | undefined>;
  /** The binding of this identity to this role at this group. */
  findSame(groupUid: string, identityUid: string, roleUid: string): Awaitable<RoleBindingRow | undefined>;
  /** Those of `uids` that exist, in no order; one query. */
  findHydrated(uids: readonly string[]): Awaitable<HydratedBinding[]>;
  insert(row: RoleBindingRow): Awaitable<void>;
  /** Changes the identity or the role; a changed binding is no longer automatic. */
  update(uid: string, change: BindingChange, nowMs: number): Awaitable<void>;
  /** Does nothing when the binding does not exist. */
  delete(uid: string): Awaitable<void>;
  list(query: ListQuery): Awaitable<Page<HydratedBinding>>;
  /** Bindings of an identity, at most `limit`; all of them by default. */
  findByIdentity(identityUid: string, limit?: number): Awaitable<RoleBindingRow[]>;
  /** The roles of an identity, each once; one statement, however many bindings there are. */
  findRolesOf(identityUid: string): Awaitable<Pick<RoleRow, "uid" | "capabilities">[]>;
  /** The groups and roles of an identity's bindings, at most `limit`. */
  findGrantsOf(identityUid: string, limit: number): Awaitable<Pick<RoleBindingRow, "groupUid" | "roleUid">[]>;
  /** Whether the identity has a binding outside the subtree of a group. */
  isBoundOutside(identityUid: string, groupUid: string): Awaitable<boolean>;
  /** A root group whose only holder of the role is this identity; undefined where there is none. */
  findSoleRoot(identityUid: string, roleUid: string): Awaitable<string | undefined>;
  /** The bindings of an identity that are pending, or are not, with uids greater than `after`, in the order of uids. */
  findByPending(identityUid: string, pending: boolean, after: string, limit: number): Awaitable<HydratedBinding[]>;
  /** How many bindings of an identity are pending, or are not. */
  countPending(identityUid: string, pending: boolean): Awaitable<number>;
  /** The root groups in whose subtrees bindings of an identity are pending, in the order of uids. */
  findPendingRoots(identityUid: string, limit: number): Awaitable<string[]>;
  /** Whether the identity has a binding that is not pending in the subtree of a root group. */
  hasAccepted(identityUid: string, rootUid: string): Awaitable<boolean>;
  /** Accepts pending bindings of the identity in the subtree of the root group, at most `limit`; returns their uids. */
  accept(identityUid: string, rootUid: string, limit: number): Awaitable<string[]>;
  /** Accepts one binding. */
  acceptOne(uid: string): Awaitable<void>;
  /** Whether the identity has the role at any group. */
  hasRole(identityUid: string, roleUid: string): Awaitable<boolean>;
  /** The bindings of a role, in the order of uids. */
  findByRole(roleUid: string): Awaitable<RoleBindingRow[]>;
  /** Whether the role is bound anywhere. */
  isBound(roleUid: string): Awaitable<boolean>;
  /** Whether the role is bound outside the subtree of a group. */
  isRoleBoundOutside(roleUid: string, groupUid: string): Awaitable<boolean>;
  /** Whether the group has a binding besides the automatic ones. */
  hasGranted(groupUid: string): Awaitable<boolean>;
  /**
   * How many existing identities have the role at the group, without `anonymous`; counts up to two.
   *
   * @param except a provider whose people do not count
   */
  countHolders(groupUid: string, roleUid: string, except?: string): Awaitable<number>;
  /** Whether the identity has the role at any root group. */
  hasRoleAtRoot(identityUid: string, roleUid: string): Awaitable<boolean>;
  deleteAutomatic(groupUid: string): Awaitable<void>;
}

/** Group invites. */
export interface GroupInviteStore extends IndexedStore<GroupInviteRow> {
  /** The uids of the group's invites that expire after `nowMs` (`live`) or do not, at most `limit`. */
  findByExpiry(groupUid: string, nowMs: number, live: boolean, limit: number): Awaitable<string[]>;
}

/** Identity providers. */
export interface IdentityProviderStore extends IndexedStore<IdentityProviderRow> {
  /** The uids of up to `limit` providers last changed before `timeMs`; scans the whole table. */
  findUnchangedSince(timeMs: number, limit: number): Awaitable<string[]>;
}

/** Acceptances of terms. */
export interface TermsStore {
  /** Records the acceptance unless it is already recorded. */
  accept(row: TermsAcceptanceRow): Awaitable<void>;
  findByGroup(groupUid: string): Awaitable<TermsAcceptanceRow[]>;
  deleteOf(groupUid: string): Awaitable<void>;
}

/** When identities last requested access to a group. */
export interface AccessRequestStore {
  findLastMs(groupUid: string, identityUid: string): Awaitable<number | undefined>;
  put(groupUid: string, identityUid: string, nowMs: number): Awaitable<void>;
  deleteOf(groupUid: string): Awaitable<void>;
}
