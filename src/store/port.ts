// What the rest of the service sees of storage: types only. Two stores
// implement it, SQLite and PostgreSQL; `test/store/store-suite.ts` says what
// both must do.
import type { CapabilitySet } from "../kernel/capability-set.js";

/** A value that may be there at once (SQLite) or later (PostgreSQL). */
export type Awaitable<T> = T | Promise<T>;

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
  readonly identityProviders: ListedStore<IdentityProviderRow>;
  readonly accountAssociations: ListedStore<AccountAssociationRow>;
  readonly groupInvites: ListedStore<GroupInviteRow>;
  readonly groupMappings: ListedStore<GroupMappingRow>;
  readonly terms: TermsStore;
  readonly accessRequests: AccessRequestStore;
  readonly keys: KeyStore;
  readonly audit: AuditStore;
  readonly settings: SettingStore;
}

/** One row of the answer to "who is this and what may it do": the identity with one of its grants, or none. */
export interface AccessRow {
  readonly identityUid: string;
  /** Tokens issued before this epoch second are void. */
  readonly notBefore: number;
  readonly groupUid: string | null;
  readonly capabilities: CapabilitySet | null;
}

/** Answers the authorization question in one indexed query. */
export interface AccessStore {
  /** The identity and its grants at a group and above it, root first. Empty: there is no such identity. */
  at(identityUid: string, lineage: readonly string[]): Awaitable<AccessRow[]>;
  /** The identity and all of its grants. Empty: there is no such identity. */
  everywhere(identityUid: string): Awaitable<AccessRow[]>;
}

/** A group as stored. */
export interface GroupRow {
  readonly uid: string;
  /** Null for a root group. */
  readonly parentUid: string | null;
  readonly name: string;
  readonly description: string;
  readonly verified: boolean;
  /** The number of the OrgKind. */
  readonly kind: number;
  readonly resourceLimits: Readonly<Record<string, number>>;
  readonly createTimeMs: number;
  readonly updateTimeMs: number;
}

/** The columns of a group that change after its creation. */
export type GroupPatch = Partial<Pick<GroupRow, "name" | "description" | "verified" | "kind">>;

/** What a list asks for; the resource kit makes it from a request. */
export interface ListQuery {
  /** The groups whose subtrees the caller sees, none within another. */
  readonly visible: readonly string[];
  /** Things visible besides, that lie in no group: the built-in roles. */
  readonly also?: readonly string[];
  readonly filter: ListFilter;
  readonly order: { readonly field: string; readonly descending: boolean };
  /** The last row of the page before: its sort key and uid. */
  readonly after?: ListPosition;
  /** How many rows to pass over first. */
  readonly skip: number;
  /** How many rows the page holds at most. */
  readonly limit: number;
}

/** A position in an ordered list. */
export interface ListPosition {
  readonly key: string | number;
  readonly uid: string;
}

/** Restricts a list; all that are set must hold. */
export interface ListFilter {
  readonly name?: string;
  readonly uids?: readonly string[];
  readonly ancestorsOf?: string;
  readonly descendantsOf?: string;
  /** A uid, or "/" for the place above all roots. */
  readonly childrenOf?: string;
  readonly inRoot?: boolean;
  /** Columns that must have these values; at a cost bounded by the visible subtrees. */
  readonly equals?: Readonly<Record<string, string | number>>;
}

/** One page of a list. */
export interface Page<Row> {
  readonly rows: Row[];
  /** The position after the last row when more follow, else undefined. */
  readonly next: ListPosition | undefined;
  /** How many rows match on all pages. */
  readonly total: number;
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
  /** Root groups with this name; more than one unless verified. */
  rootsNamed(name: string): Awaitable<GroupRow[]>;
}

/** An identity as stored. */
export interface IdentityRow {
  readonly uid: string;
  /** Null for people and for identities Arbor itself names. */
  readonly groupUid: string | null;
  readonly name: string;
  readonly description: string;
  /** Of people: the login provider's issuer and subject. */
  readonly issuer: string;
  readonly subject: string;
  /** The e-mail address a trusted login provider confirmed, else empty. */
  readonly email: string;
  readonly emailUnverified: string;
  readonly company: string;
  /** The number of the RelationshipType; 0 for people. */
  readonly relation: number;
  /** How the identity is assumed, in the JSON of its message; empty for people. */
  readonly relationship: object;
  /** What a person told of themselves. */
  readonly metadata: object;
  /** Tokens issued before this epoch second are void. */
  readonly notBefore: number;
  readonly createTimeMs: number;
  readonly updateTimeMs: number;
  readonly lastSeenTimeMs: number;
}

/** The columns of an identity that change after its creation. */
export type IdentityPatch = Partial<
  Pick<IdentityRow, "name" | "description" | "company" | "relation" | "relationship" | "metadata">
>;

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
}

/** A role as stored. */
export interface RoleRow {
  readonly uid: string;
  /** Null for built-in roles. */
  readonly groupUid: string | null;
  readonly name: string;
  readonly description: string;
  readonly capabilities: CapabilitySet;
  readonly createTimeMs: number;
  readonly updateTimeMs: number;
}

/** The columns of a role that change after its creation. */
export type RolePatch = Partial<Pick<RoleRow, "name" | "description" | "capabilities">>;

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

/** A role binding as stored. */
export interface RoleBindingRow {
  readonly uid: string;
  readonly groupUid: string;
  readonly identityUid: string;
  readonly roleUid: string;
  /** Whether it came with the creation of its root group; such a one goes with the group. */
  readonly automatic: boolean;
  readonly createTimeMs: number;
  readonly updateTimeMs: number;
}

/** A role binding with what its answers show of the things it joins; null where one is not there. */
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
}

/** Role bindings. */
export interface RoleBindingStore {
  get(uid: string): Awaitable<RoleBindingRow | undefined>;
  /** The binding of exactly these, if there is one. */
  same(groupUid: string, identityUid: string, roleUid: string): Awaitable<RoleBindingRow | undefined>;
  /** Those of `uids` that exist, with what they join, in no order; one query. */
  hydrated(uids: readonly string[]): Awaitable<HydratedBinding[]>;
  insert(row: RoleBindingRow): Awaitable<void>;
  /** Binds another identity or role; a binding so changed is no longer automatic. */
  update(uid: string, change: Pick<RoleBindingRow, "identityUid" | "roleUid">, nowMs: number): Awaitable<void>;
  /** Does nothing when it is not there. */
  delete(uid: string): Awaitable<void>;
  list(query: ListQuery): Awaitable<Page<RoleBindingRow>>;
  /** All bindings of an identity. */
  ofIdentity(identityUid: string): Awaitable<RoleBindingRow[]>;
  /** The groups a role is bound at, each once. */
  groupsOfRole(roleUid: string): Awaitable<string[]>;
  /** Whether the group has a binding that did not come with it. */
  anyGranted(groupUid: string): Awaitable<boolean>;
  /** How many existing identities have the role at the group; not more than two are counted. */
  holders(groupUid: string, roleUid: string): Awaitable<number>;
  /** Whether the identity has the role at any root group. */
  holdsAtRoot(identityUid: string, roleUid: string): Awaitable<boolean>;
  deleteAutomatic(groupUid: string): Awaitable<void>;
}

/** The credentials by which a provider's directory may push people and groups. */
export interface ScimState {
  readonly enabled: boolean;
  /** Hashes of the token in use and of the one before it, while that is still good. */
  readonly tokenHash: string;
  readonly previousHash: string;
  /** Epoch milliseconds; absent: never. */
  readonly expireTimeMs?: number;
  readonly previousExpireTimeMs?: number;
  readonly revoked: boolean;
  readonly etag: string;
}

/** An identity provider as stored. */
export interface IdentityProviderRow {
  readonly uid: string;
  readonly groupUid: string;
  readonly name: string;
  readonly description: string;
  readonly defaultRole: string;
  /** The JSON of its OIDC message, without the secret. */
  readonly oidc: object;
  /** The client secret, sealed; empty where there is none. */
  readonly sealedSecret: string;
  readonly scim: ScimState;
  readonly createTimeMs: number;
  readonly updateTimeMs: number;
}

/** An account association as stored; its uid is that of its group. */
export interface AccountAssociationRow {
  readonly uid: string;
  readonly parentUid: string | null;
  readonly name: string;
  readonly description: string;
  /** The JSON of its providers' messages. */
  readonly accounts: object;
  readonly createTimeMs: number;
  readonly updateTimeMs: number;
}

/** A group invite as stored; of its code only a hash. */
export interface GroupInviteRow {
  readonly uid: string;
  readonly groupUid: string;
  readonly roleUid: string;
  readonly email: string;
  readonly singleUse: boolean;
  readonly keyId: string;
  readonly codeHash: string;
  readonly expireTimeMs: number;
  readonly createTimeMs: number;
}

/** A mapping of a directory's group to a role, as stored. */
export interface GroupMappingRow {
  readonly uid: string;
  readonly providerUid: string;
  readonly externalGroupId: string;
  readonly roleUid: string;
  readonly scope: string;
  readonly createTimeMs: number;
}

/** The acceptance of a document by a group, as stored. */
export interface TermsAcceptanceRow {
  readonly groupUid: string;
  readonly docId: string;
  readonly acceptedBy: string;
  readonly createTimeMs: number;
}

/** What stores of listed kinds have in common. */
export interface ListedStore<Row> {
  get(uid: string): Awaitable<Row | undefined>;
  insert(row: Row): Awaitable<void>;
  /** Makes the stored row equal to `row`, which has the uid and creation time it had. */
  replace(row: Row): Awaitable<void>;
  /** Does nothing when it is not there. */
  delete(uid: string): Awaitable<void>;
  list(query: ListQuery): Awaitable<Page<Row>>;
  /** The uids of those whose `column` has this value, at most `limit`. */
  uidsWhere(column: keyof Row & string, value: string, limit?: number): Awaitable<string[]>;
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

/** What a key is for; keys never serve two purposes. */
export type KeyPurpose = "api-token" | "page-token";

/** A key as stored; what is secret is sealed with the master key. */
export interface KeyRow {
  readonly kid: string;
  readonly purpose: KeyPurpose;
  /** `active` makes new tokens, `verify` opens old ones. */
  readonly state: "active" | "verify";
  /** The public JWK as JSON; empty for secret keys. */
  readonly publicJwk: string;
  readonly sealed: string;
  readonly createTimeMs: number;
}

/** Keys. */
export interface KeyStore {
  list(): Awaitable<KeyRow[]>;
  insert(row: KeyRow): Awaitable<void>;
  setState(kid: string, state: KeyRow["state"]): Awaitable<void>;
}

/** One recorded change. */
export interface AuditRow {
  /** The organisation it concerns. */
  readonly rootUid: string;
  readonly timeMs: number;
  /** The CloudEvents type, or the full name of the method. */
  readonly type: string;
  /** The RPC path, or the command line's name of it. */
  readonly method: string;
  readonly subjectUid: string;
  /** The identity that did it; empty for somebody on the host. */
  readonly actorUid: string;
  readonly tokenId: string;
  readonly requestId: string;
  readonly remoteAddress: string;
}

/** The audit log; append-only. */
export interface AuditStore {
  append(row: AuditRow): Awaitable<void>;
  /** The newest rows first, at most `limit`, of one organisation or of all. */
  newest(limit: number, rootUid?: string): Awaitable<AuditRow[]>;
}

/** Facts about the installation itself, such as the master key's check value. */
export interface SettingStore {
  get(name: string): Awaitable<string | undefined>;
  put(name: string, value: string): Awaitable<void>;
}
