// The interfaces of the store: types only. SQLite and PostgreSQL implement them; `test/store/store-suite.ts` tests
// both.
export type * from "./port-audit.js";
export type * from "./port-iam.js";
export type * from "./port-lists.js";
export type * from "./tables/advisories.js";
export type * from "./tables/audit.js";
export type * from "./tables/groups.js";
export type * from "./tables/identities.js";
export type * from "./tables/registry.js";
export type * from "./tables/roles.js";
export type * from "./tables/schema.js";
export type * from "./tables/tokens.js";

import type { Histogram } from "../kernel/histogram.js";
import type { QuotaKind } from "../kernel/quotas.js";
import type { TraceSpan } from "../kernel/trace.js";
import type { AuditChainStore, AuditCheckpointStore, AuditEventStore, AuditStore } from "./port-audit.js";
import type {
  AccessRequestStore,
  AccessStore,
  GroupInviteStore,
  GroupStore,
  IdentityProviderStore,
  IdentityStore,
  RoleBindingStore,
  RoleStore,
  TermsStore,
} from "./port-iam.js";
import type { Awaitable, IndexedStore, ListQuery, Page } from "./port-lists.js";
import type { DatabaseFaultCounts } from "./sqlite/faults.js";
import type { AdvisoryEventRow, AdvisoryRow } from "./tables/advisories.js";
import type { AccountAssociationRow, SubscriptionRow } from "./tables/groups.js";
import type { GroupMappingRow } from "./tables/identities.js";
import type {
  DeploymentRow,
  ManifestRow,
  RegistryNameRow,
  RegistrySettingsRow,
  RepoRow,
  TagFamily,
  TagMove,
  TagRow,
} from "./tables/registry.js";
import type { JobRow } from "./tables/schema.js";
import type { KeyRow, KeyState, RefreshTokenRow, TicketKind, TicketOrigin, TicketRow } from "./tables/tokens.js";

/** Limits of one unit of work. */
export interface UnitOptions {
  /** When the caller stops waiting, in epoch milliseconds: a unit does not start after that. */
  readonly deadlineMs?: number;
  /**
   * How long the transaction may wait for this process, in milliseconds, for rows that other nodes wait for: PostgreSQL
   * ends the transaction of a node that is suspended. 30 s unless set; SQLite ignores it.
   */
  readonly maxIdleMs?: number;
  /** The span of the unit, to which the store adds its commit, the batch that it shares, and why it runs again. */
  readonly trace?: TraceSpan | undefined;
}

/** What a store counts since it was opened, for metrics. */
export interface StoreStats {
  /** How many units of work a transaction committed; PostgreSQL commits each one alone and counts none. */
  readonly batchUnits: Histogram;
  /** How long commits of transactions that wrote took, in seconds. */
  readonly commitSeconds: Histogram;
  /** How many transactions ran again after a conflict. */
  readonly conflicts: number;
  /** How many units wait for the writer of SQLite, or for a connection to PostgreSQL. */
  readonly waiting: number;
  /** The connections to PostgreSQL. */
  readonly pool?: { readonly busy: number; readonly idle: number; readonly max: number };
  /** Reads the sizes of the files of SQLite and what is free beside them, in bytes. */
  readonly files?: () => { readonly database: number; readonly wal: number; readonly free: number };
  /** The faults of the machine that SQLite met. */
  readonly faults?: DatabaseFaultCounts;
}

/** A database. */
export interface Store {
  /**
   * Runs `unit` on one snapshot that contains every write acknowledged before. The unit must await
   * nothing but its `tx`, which can no longer be used once the unit settles.
   *
   * @throws ApiError UNAVAILABLE when the database cannot be reached.
   */
  read<T>(unit: (tx: Tx) => Awaitable<T>, options?: UnitOptions): Awaitable<T>;

  /**
   * Runs `unit` in one serializable transaction and resolves after it is durable. When a concurrent
   * transaction conflicts with it, the unit is rolled back and runs again from the start, so it must
   * have no effect besides its `tx`.
   *
   * @throws ApiError ABORTED when conflicts do not end, UNAVAILABLE, DEADLINE_EXCEEDED; what the unit
   * throws, after its writes are rolled back.
   */
  write<T>(unit: (tx: Tx) => Awaitable<T>, options?: UnitOptions): Promise<T>;

  /**
   * A row may become visible at most this many milliseconds after its number was assigned: concurrent
   * writers commit in another order than they begin. 0 where there is one writer at a time. Holds for
   * rows that a unit of work writes last, as it does with the audit log.
   */
  readonly lateCommitMs: number;

  /** Reads the counts of this process. */
  stats(): StoreStats;

  /**
   * Whether a unit that begins now would run soon; false while too many wait for the database, or the first of them
   * has waited too long. Units are queued in either case: callers ask before they do any work.
   */
  hasRoom(access: "read" | "write"): boolean;

  /**
   * Resolves when the database answers and its schema is current, to what works; rejects otherwise. `read-only` says
   * that writes failed a moment ago, as on a full disk.
   */
  check(): Promise<"ok" | "read-only">;

  /** Closes every connection after the writes in progress are done. */
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
  readonly accountAssociations: IndexedStore<AccountAssociationRow>;
  readonly groupInvites: GroupInviteStore;
  readonly groupMappings: IndexedStore<GroupMappingRow>;
  readonly subscriptions: IndexedStore<SubscriptionRow>;
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
  readonly auditEvents: AuditEventStore;
  readonly auditChain: AuditChainStore;
  readonly auditCheckpoints: AuditCheckpointStore;
  readonly jobs: JobStore;
  readonly settings: SettingStore;
  readonly sealed: SealedStore;
}

/** Counts what quotas limit. */
export interface UsageStore {
  /**
   * How many resources of a kind belong to an owner. A unit of work that writes conflicts by it, on PostgreSQL, with all
   * others that create something in the same organisation.
   *
   * @param ownerUid the root group of the organisation, or the person or the identity where the quota is theirs
   * @param cap where no counter is stored, counting stops here
   * @param rootUid the root group in whose organisation the quota of an identity counts
   */
  count(kind: QuotaKind, ownerUid: string, cap: number, rootUid?: string): Awaitable<number>;
}

/** Keys. */
export interface KeyStore {
  list(): Awaitable<KeyRow[]>;
  insert(row: KeyRow): Awaitable<void>;
  setState(kid: string, state: KeyState, nextTimeMs: number | null): Awaitable<void>;
  /** Does nothing when the key does not exist. */
  delete(kid: string): Awaitable<void>;
}

/** Values that belong to the installation itself, such as the check value of the master key. */
export interface SettingStore {
  find(name: string): Awaitable<string | undefined>;
  put(name: string, value: string): Awaitable<void>;
}

/** What the master key has encrypted, besides the check value of the settings. Only its rotation writes here. */
export interface SealedStore {
  /** Does nothing when the key does not exist. */
  setKey(kid: string, sealed: string): Awaitable<void>;
  /** Client secrets of identity providers with uids after `after`, in their order. */
  listClientSecrets(after: string, limit: number): Awaitable<{ uid: string; sealed: string }[]>;
  setClientSecret(uid: string, sealed: string): Awaitable<void>;
  /** Tickets with hashes after `after`, in their order. */
  listTickets(after: string, limit: number): Awaitable<TicketRow[]>;
}

/** Tickets. */
export interface TicketStore {
  /** The ticket of this kind, also when it is expired and not yet swept. */
  find(kind: TicketKind, hash: string): Awaitable<TicketRow | undefined>;
  /**
   * Stores a ticket; replaces one with the same hash.
   *
   * @param origin what a limit counts it for; without it, a ticket that is replaced keeps its origin
   */
  put(row: TicketRow, origin?: TicketOrigin): Awaitable<void>;
  /**
   * Finds tickets of an origin beyond the `kept` ones that a limit keeps: first those that are to be kept, then the
   * newest. Expired ones do not count.
   *
   * @returns hashes, at most 20
   */
  findExcess(kind: TicketKind, origin: string, kept: number, nowMs: number): Promise<string[]>;
  /** Does nothing when the ticket does not exist. */
  delete(hash: string): Awaitable<void>;
  /**
   * Deletes up to `limit` tickets that expired before `timeMs`. A small limit keeps other calls from waiting.
   *
   * @returns how many were deleted; fewer than `limit` when none are left
   */
  sweep(timeMs: number, limit: number): Awaitable<number>;
}

/** Refresh tokens. */
export interface RefreshTokenStore {
  find(hash: string): Awaitable<RefreshTokenRow | undefined>;
  insert(row: RefreshTokenRow): Awaitable<void>;
  markUsed(hash: string): Awaitable<void>;
  deleteFamily(family: string): Awaitable<void>;
  deleteOf(identityUid: string): Awaitable<void>;
  /** As {@link TicketStore.sweep}. */
  sweep(timeMs: number, limit: number): Awaitable<number>;
}

/** Background jobs. Only src/jobs and commands of the operator use it. */
export interface JobStore {
  /**
   * The time of the database in epoch milliseconds. All nodes on PostgreSQL share its clock; on SQLite it is the clock
   * of the process.
   */
  nowMs(): Awaitable<number>;
  find(name: string): Awaitable<JobRow | undefined>;
  /** Inserts or replaces a job. */
  put(row: JobRow): Awaitable<void>;
  /** All jobs in the order of their names. */
  list(): Awaitable<JobRow[]>;
}

// Repos, tags, images and advisories.

/** Repos. */
export interface RepoStore extends IndexedStore<RepoRow> {
  /** The child of the group with this name. */
  findByName(groupUid: string, name: string): Awaitable<RepoRow | undefined>;
}

/** Tags. `list` without a filter on families contains only usual tags, whose order is stored separately. */
export interface TagStore extends IndexedStore<TagRow> {
  findByName(repoUid: string, name: string): Awaitable<TagRow | undefined>;
  /** Lists tags of these families, or of all. */
  listAll(query: ListQuery, families?: readonly TagFamily[]): Promise<Page<TagRow>>;
  /** Records the digest that a tag points to; does nothing when it is already recorded. */
  recordMove(move: TagMove): Awaitable<void>;
  /** The moves of a tag from `fromMs` to before `toMs`, oldest first, at most `limit`. */
  listMoves(tagUid: string, fromMs: number, toMs: number, limit: number): Awaitable<TagMove[]>;
  /** Every digest that the existing tags of a repo point to or pointed to. */
  digestsOf(repoUid: string): Promise<string[]>;
  /** When a tag was last pushed or deleted according to the registry; undefined: never. */
  findMark(repoUid: string, name: string): Awaitable<number | undefined>;
  putMark(repoUid: string, name: string, timeMs: number): Awaitable<void>;
  /** Deletes some tags of a repo with their histories; resolves to how many, which is zero when none is left. */
  deleteSome(repoUid: string): Promise<number>;
  /** Deletes all tags of a repo with their histories and marks. */
  deleteOf(repoUid: string): Promise<void>;
  /** Deletes marks older than `timeMs` of tags that no longer exist. */
  sweepMarks(timeMs: number): Awaitable<void>;
}

/** Events of a registry, contents of its manifests, and its settings. */
export interface RegistryStore {
  /** Records an event of a registry; false when it is already recorded. */
  recordEvent(id: string, timeMs: number): Promise<boolean>;
  /** Deletes events older than `timeMs`, as {@link TicketStore.sweep} does. */
  sweep(timeMs: number, limit: number): Awaitable<number>;
  findManifest(repoUid: string, digest: string): Awaitable<ManifestRow | undefined>;
  putManifest(row: ManifestRow): Awaitable<void>;
  deleteManifestsOf(repoUid: string): Awaitable<void>;
  findDeployment(repoUid: string): Awaitable<DeploymentRow | undefined>;
  /** Inserts or replaces a deployment. */
  putDeployment(row: DeploymentRow): Awaitable<void>;
  deleteDeployment(repoUid: string): Awaitable<void>;
  findSettings(groupUid: string): Awaitable<RegistrySettingsRow | undefined>;
  /** Inserts or replaces the settings of a group. */
  putSettings(row: RegistrySettingsRow): Awaitable<void>;
  deleteSettings(groupUid: string): Awaitable<void>;
  /** The names of all organisations in paths of the registry, those of deleted organisations included. */
  listNames(): Awaitable<RegistryNameRow[]>;
  /** The name of a root group in paths of the registry; undefined where it was never verified. */
  findName(groupUid: string): Awaitable<RegistryNameRow | undefined>;
  /** The root group, which may be deleted, with this name in paths of the registry. */
  findByName(name: string): Awaitable<RegistryNameRow | undefined>;
  /** Records a name, or replaces the row of the same name. */
  putName(row: RegistryNameRow): Awaitable<void>;
}

/** Advisories. Their filters are named in `ListFilter.equals`; see advisories/advisories.ts. */
export interface AdvisoryStore extends IndexedStore<AdvisoryRow> {
  /** The advisory that was imported from this record. */
  findBySource(groupUid: string, sourceKey: string): Awaitable<AdvisoryRow | undefined>;
  /** The events of these advisories, ordered by advisory, then oldest first. */
  listEvents(advisoryUids: readonly string[]): Awaitable<AdvisoryEventRow[]>;
  putEvent(row: AdvisoryEventRow): Awaitable<void>;
  deleteEvents(advisoryUid: string): Awaitable<void>;
  /** Whether advisories changed since they were indexed. */
  hasChanges(): Awaitable<boolean>;
  /**
   * Indexes advisories that changed, so that filters find them at once. Lists are right without, but slow after more
   * than a thousand changes.
   *
   * @param limit how many changes to take up at most
   * @returns how many it took up: fewer than `limit` when none is left
   */
  indexChanges(limit: number): Awaitable<number>;
}
