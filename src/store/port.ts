// What the rest of the service sees of storage: types only. Two stores
// implement it, SQLite and PostgreSQL; `test/store/store-suite.ts` says what
// both must do.

import type { QuotaKind } from "../kernel/quotas.js";
import type { AuditChainStore, AuditStore } from "./port-audit.js";
import type { KeyStore, SettingStore } from "./port-keys.js";
import type { Awaitable, ListedStore, ListQuery, Page } from "./port-lists.js";
import type { AdvisoryStore, RegistryStore, RepoStore, TagStore } from "./port-registry.js";
import type { RefreshTokenStore, TicketStore } from "./port-secrets.js";
import type {
  AccessRow,
  AccountAssociationRow,
  GroupInviteRow,
  GroupMappingRow,
  GroupPatch,
  GroupRow,
  HydratedBinding,
  IdentityPatch,
  IdentityProviderRow,
  IdentityRow,
  MappedGrant,
  RoleBindingRow,
  RolePatch,
  RoleRow,
  SubscriptionRow,
  TermsAcceptanceRow,
} from "./rows.js";

export type * from "./port-audit.js";
export type * from "./port-keys.js";
export type * from "./port-lists.js";
export type * from "./port-registry.js";
export type * from "./port-secrets.js";
export type * from "./rows.js";

/** Limits of one unit of work. */
export interface UnitOptions {
  /** When the caller stops waiting, in epoch milliseconds: a unit not begun by then is not begun. */
  readonly deadlineMs?: number;
}

/** A database. */
export interface Store {
  /**
   * Runs `unit` on one snapshot that holds every write acknowledged before. The unit must await
   * nothing but its `tx`, which is dead once the unit settles.
   *
   * @throws ApiError UNAVAILABLE when the database cannot be reached.
   */
  read<T>(unit: (tx: Tx) => Awaitable<T>, options?: UnitOptions): Awaitable<T>;

  /**
   * Runs `unit` in one serializable transaction and resolves after it is durable. A unit may be run
   * again from the start when it lost against another, so it must have no effect besides its `tx`.
   *
   * @throws ApiError ABORTED when it keeps losing, UNAVAILABLE, DEADLINE_EXCEEDED; whatever the unit
   * throws, after everything it wrote is undone.
   */
  write<T>(unit: (tx: Tx) => Awaitable<T>, options?: UnitOptions): Promise<T>;

  /**
   * A row may become visible at most this many milliseconds after it was given its number: writers
   * that run side by side commit in another order than they begin. 0 where they take turns. Holds for
   * rows that a unit of work writes last, as it does with the audit log.
   */
  readonly lateCommitMs: number;

  /** Resolves when the database answers and its schema is current; rejects otherwise. */
  check(): Promise<void>;

  /** Closes every connection after the writes in hand are done. */
  close(): Promise<void>;
}

/** One open transaction. */
export interface Tx {
  readonly access: AccessStore;
  readonly groups: GroupStore;
  readonly identities: IdentityStore;
  readonly roles: RoleStore;
  readonly roleBindings: RoleBindingStore;
  readonly identityProviders: IdentityProviderStore;
  readonly accountAssociations: ListedStore<AccountAssociationRow>;
  readonly groupInvites: GroupInviteStore;
  readonly groupMappings: ListedStore<GroupMappingRow>;
  readonly subscriptions: ListedStore<SubscriptionRow>;
  readonly terms: TermsStore;
  readonly accessRequests: AccessRequestStore;
  readonly repos: RepoStore;
  readonly tags: TagStore;
  readonly registry: RegistryStore;
  readonly advisories: AdvisoryStore;
  readonly usage: UsageStore;
  readonly keys: KeyStore;
  readonly tickets: TicketStore;
  readonly refreshTokens: RefreshTokenStore;
  readonly audit: AuditStore;
  readonly auditChain: AuditChainStore;
  readonly settings: SettingStore;
}

/** Answers the authorization question in one indexed query. */
export interface AccessStore {
  /** The identity and its grants at a group and above it, root first. Empty: there is no such identity. */
  at(identityUid: string, lineage: readonly string[]): Awaitable<AccessRow[]>;
  /** The identity, without its grants. Empty: there is no such identity. */
  alone(identityUid: string): Awaitable<AccessRow[]>;
  /** The identity and all of its grants that are not pending. Empty: there is no such identity. */
  everywhere(identityUid: string): Awaitable<AccessRow[]>;
  /** What those of `mappingUids` that belong to the provider and still exist grant; they are few. */
  mapped(providerUid: string, mappingUids: readonly string[]): Awaitable<MappedGrant[]>;
}

/** Groups. */
export interface GroupStore {
  get(uid: string): Awaitable<GroupRow | undefined>;
  insert(row: GroupRow): Awaitable<void>;
  /** Applies `patch` to the group and returns it, or undefined when it is not there. */
  update(uid: string, patch: GroupPatch, nowMs: number): Awaitable<GroupRow | undefined>;
  delete(row: GroupRow): Awaitable<void>;
  list(query: ListQuery): Awaitable<Page<GroupRow>>;
  hasChildren(uid: string): Awaitable<boolean>;
  /** The verified root group with this name: there is one at most. */
  verifiedRoot(name: string): Awaitable<GroupRow | undefined>;
  /** Whether any root group has this name. */
  anyRootNamed(name: string): Awaitable<boolean>;
}

/** Identities. */
export interface IdentityStore {
  get(uid: string): Awaitable<IdentityRow | undefined>;
  insert(row: IdentityRow): Awaitable<void>;
  /** Applies `patch` to the identity and returns it, or undefined when it is not there. */
  update(uid: string, patch: IdentityPatch, nowMs: number): Awaitable<IdentityRow | undefined>;
  /** Does nothing when it is not there. */
  delete(uid: string): Awaitable<void>;
  list(query: ListQuery): Awaitable<Page<IdentityRow>>;
  /** Whether any identity lies directly below the group. */
  anyIn(groupUid: string): Awaitable<boolean>;
  /** The people who came through this provider, at most `limit`. */
  ofProvider(providerUid: string, limit: number): Awaitable<string[]>;
  /** Moves the time it was last seen forward, never back. */
  seen(uid: string, timeMs: number): Awaitable<void>;
}

/** Roles. */
export interface RoleStore {
  get(uid: string): Awaitable<RoleRow | undefined>;
  insert(row: RoleRow): Awaitable<void>;
  /** Applies `patch` to the role and returns it, or undefined when it is not there. */
  update(uid: string, patch: RolePatch, nowMs: number): Awaitable<RoleRow | undefined>;
  /** Does nothing when it is not there. */
  delete(uid: string): Awaitable<void>;
  list(query: ListQuery): Awaitable<Page<RoleRow>>;
  anyIn(groupUid: string): Awaitable<boolean>;
}

/** What changes of a binding. */
export type BindingChange = Pick<RoleBindingRow, "identityUid" | "roleUid" | "accepted" | "pending">;

/** Role bindings. */
export interface RoleBindingStore {
  get(uid: string): Awaitable<RoleBindingRow | undefined>;
  /** The binding of exactly these, if there is one. */
  same(groupUid: string, identityUid: string, roleUid: string): Awaitable<RoleBindingRow | undefined>;
  /** Those of `uids` that exist, with what they join, in no order; one query. */
  hydrated(uids: readonly string[]): Awaitable<HydratedBinding[]>;
  insert(row: RoleBindingRow): Awaitable<void>;
  /** Binds another identity or role; a binding so changed is no longer automatic. */
  update(uid: string, change: BindingChange, nowMs: number): Awaitable<void>;
  /** Does nothing when it is not there. */
  delete(uid: string): Awaitable<void>;
  list(query: ListQuery): Awaitable<Page<HydratedBinding>>;
  /** The bindings of an identity, at most `limit`; all unless set. */
  ofIdentity(identityUid: string, limit?: number): Awaitable<RoleBindingRow[]>;
  /** The bindings of an identity that are pending, or are not, in the order of their uids, from behind `after`. */
  byPending(identityUid: string, pending: boolean, after: string, limit: number): Awaitable<HydratedBinding[]>;
  /** How many bindings of an identity are pending, or are not. */
  countPending(identityUid: string, pending: boolean): Awaitable<number>;
  /** The root groups at or below which bindings of an identity are pending, in the order of their uids. */
  pendingRoots(identityUid: string, limit: number): Awaitable<string[]>;
  /** Whether the identity has a binding at a root group, or below it, that is not pending. */
  anyAccepted(identityUid: string, rootUid: string): Awaitable<boolean>;
  /** Accepts pending bindings of the identity at the root group and below it, at most `limit`; returns their uids. */
  accept(identityUid: string, rootUid: string, limit: number): Awaitable<string[]>;
  /** Accepts a binding. */
  acceptOne(uid: string): Awaitable<void>;
  /** Whether the identity has the role at any group. */
  anyOf(identityUid: string, roleUid: string): Awaitable<boolean>;
  /** The groups a role is bound at, each once. */
  groupsOfRole(roleUid: string): Awaitable<string[]>;
  /** Whether the group has a binding that did not come with it. */
  anyGranted(groupUid: string): Awaitable<boolean>;
  /** How many existing identities have the role at the group, `anonymous` aside; not more than two are counted. */
  holders(groupUid: string, roleUid: string): Awaitable<number>;
  /** Whether the identity has the role at any root group. */
  holdsAtRoot(identityUid: string, roleUid: string): Awaitable<boolean>;
  deleteAutomatic(groupUid: string): Awaitable<void>;
}

/** Group invites. */
export interface GroupInviteStore extends ListedStore<GroupInviteRow> {
  /** The uids of those of the group that end after `nowMs` (`live`) or do not, at most `limit`. */
  byExpiry(groupUid: string, nowMs: number, live: boolean, limit: number): Awaitable<string[]>;
}

/** Identity providers. */
export interface IdentityProviderStore extends ListedStore<IdentityProviderRow> {
  /** The uids of up to `limit` of those that were last changed before `timeMs`, at the cost of looking at all. */
  unchangedSince(timeMs: number, limit: number): Awaitable<string[]>;
}

/** How much there is of what quotas limit. */
export interface UsageStore {
  /**
   * How many things of a kind belong to an owner. Units of work that write do not ask: on PostgreSQL
   * each would lose against all others that create something in the same organisation.
   *
   * @param ownerUid the root group of the organisation, or the person where the quota is a person's
   * @param cap where no counter is stored, not more than this are counted
   */
  count(kind: QuotaKind, ownerUid: string, cap: number): Awaitable<number>;
}

/** Acceptances of terms. */
export interface TermsStore {
  /** Records the acceptance unless it is recorded already. */
  accept(row: TermsAcceptanceRow): Awaitable<void>;
  of(groupUid: string): Awaitable<TermsAcceptanceRow[]>;
  deleteOf(groupUid: string): Awaitable<void>;
}

/** When identities last asked to be let into a group. */
export interface AccessRequestStore {
  lastMs(groupUid: string, identityUid: string): Awaitable<number | undefined>;
  put(groupUid: string, identityUid: string, nowMs: number): Awaitable<void>;
  deleteOf(groupUid: string): Awaitable<void>;
}
