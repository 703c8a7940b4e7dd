// The interfaces of the stores of the audit log: types only.
import type { Awaitable } from "./port-lists.js";
import type {
  AuditCheckpoint,
  AuditHead,
  AuditRow,
  ChainEntry,
  RecordedAuditRow,
  SealerRow,
  StoredAuditRow,
} from "./tables/audit.js";

/** A recorded change, and its number in the chain: null while it is not sealed. */
export type AuditEventRow = StoredAuditRow & { readonly seq: number | null };

/** The columns by which an index finds the rows of an organisation. */
export type AuditFilterColumn = "subjectUid" | "actorUid" | "type";

/** A position in the order of time. */
export interface AuditPosition {
  readonly timeMs: number;
  readonly id: number;
}

/** Which rows of an organisation to read, in the order of their times. */
export interface AuditEventQuery {
  readonly rootUid: string;
  /** The column whose index is read; the order of time alone where undefined. */
  readonly by: { readonly column: AuditFilterColumn; readonly value: string } | undefined;
  /** The first time, inclusive. */
  readonly startMs: number;
  /** The last time, exclusive. */
  readonly endMs: number;
  readonly descending: boolean;
  readonly after: AuditPosition | undefined;
  /** The largest number of rows on the page. */
  readonly limit: number;
  /** What the index does not answer. The rows are read in slices and their number is bounded. */
  readonly matches: ((row: AuditEventRow) => boolean) | undefined;
  /** Called between slices; throws when the caller waits no longer. */
  readonly assertInTime: () => void;
}

/** A page of rows. */
export interface AuditEventPage {
  readonly rows: readonly AuditEventRow[];
  /** Where the next page begins; undefined after the last one. A page may be short although there is a next one. */
  readonly next: AuditPosition | undefined;
}

/** The audit log as the API reads it. */
export interface AuditEventStore {
  find(id: number): Awaitable<AuditEventRow | undefined>;
  list(query: AuditEventQuery): Promise<AuditEventPage>;
  /** The rows of all organisations with higher ids, in the order of ids. */
  listAfter(id: number, limit: number): Awaitable<AuditEventRow[]>;
  /** The rows with these ids that exist, in the order of ids. */
  findByIds(ids: readonly number[]): Awaitable<AuditEventRow[]>;
  /** The highest id; 0 in an empty log. */
  lastId(): Awaitable<number>;
}

/** Restricts the rows that are listed; all that is set must hold. */
export type AuditRowFilter = Partial<Readonly<Record<AuditFilterColumn | "requestId", string>>> & {
  /** The first time, inclusive. */
  readonly startMs?: number;
  /** The last time, exclusive. */
  readonly endMs?: number;
};

/** The audit log; append-only. */
export interface AuditStore {
  append(row: AuditRow): Awaitable<void>;
  /**
   * The newest rows first, at most `limit`, of one organisation or of all. With a filter it may read the whole log, so
   * only commands on the host use one.
   */
  listNewest(limit: number, rootUid?: string, filter?: AuditRowFilter): Awaitable<RecordedAuditRow[]>;
}

/** A chain entry with the audit row it seals; null when the row no longer exists. */
export interface SealedRow extends Omit<ChainEntry, "rootUid"> {
  readonly row: StoredAuditRow | null;
}

/** The rows of an organisation's log that are not sealed. */
export interface UnsealedTail {
  readonly rows: number;
  /** Of the oldest such row; null where there is none. */
  readonly firstId: number | null;
  readonly firstTimeMs: number | null;
}

/** How many rows of the log are not sealed. */
export interface UnsealedCount {
  readonly rows: number;
  /** Of the oldest one; null where there is none. */
  readonly oldestTimeMs: number | null;
}

/** The hash chains of the audit log. Only the sealer writes here. */
export interface AuditChainStore {
  /** The sealer's own row; undefined before anything was sealed. */
  findSealer(): Awaitable<SealerRow | undefined>;
  putSealer(row: SealerRow): Awaitable<void>;
  /** Unsealed rows of all organisations with ids greater than `afterId`, in the order of ids, at most `limit`. */
  listUnsealed(afterId: number, limit: number): Awaitable<StoredAuditRow[]>;
  readUnsealedTail(rootUid: string): Awaitable<UnsealedTail>;
  /**
   * Rows of an organisation that are not sealed, with ids greater than `afterId` and up to `lastId`, in the order of
   * ids, at most `limit`. Unlike {@link readUnsealedTail} it reads that range alone.
   */
  listUnsealedBetween(
    rootUid: string,
    range: { readonly afterId: number; readonly lastId: number },
    limit: number,
  ): Awaitable<{ id: number; timeMs: number }[]>;
  /**
   * Counts the unsealed rows of all organisations.
   *
   * @param newest among how many of the newest rows
   */
  countUnsealed(newest: number): Promise<UnsealedCount>;
  append(entries: readonly ChainEntry[]): Promise<void>;
  /** The number of the last entry of a chain; 0 where there is none. */
  lastSeq(rootUid: string): Awaitable<number>;
  /** Entries with numbers greater than `afterSeq`, in order, with their rows, at most `limit`. */
  listEntries(rootUid: string, afterSeq: number, limit: number): Awaitable<SealedRow[]>;
  findHead(rootUid: string): Awaitable<AuditHead | undefined>;
  putHead(head: AuditHead): Awaitable<void>;
  /** Every organisation that has rows, a chain, a head or a checkpoint, in order. */
  listRoots(): Awaitable<string[]>;
}

/** A part of the organisations, some of which have chains that begin with an old row. */
export interface OldChains {
  readonly rootUids: readonly string[];
  /** Where the next part begins; undefined at the end. */
  readonly next: string | undefined;
}

/** The beginnings of chains. Only the job that deletes old rows writes here. */
export interface AuditCheckpointStore {
  find(rootUid: string): Awaitable<AuditCheckpoint | undefined>;
  /** Inserts or replaces a checkpoint. */
  put(checkpoint: AuditCheckpoint): Awaitable<void>;
  /**
   * Searches a part of all organisations, in some milliseconds, for those whose first row is older than `beforeMs` and
   * is not the one that their head signs.
   *
   * @param after `next` of the response before; by default the search begins
   */
  findOld(beforeMs: number, after?: string): Promise<OldChains>;
  /**
   * Deletes the entries of a chain after number `afterSeq` up to number `lastSeq`, with their rows.
   *
   * @returns how many entries and how many rows were deleted
   */
  deleteEntries(rootUid: string, afterSeq: number, lastSeq: number): Promise<{ entries: number; rows: number }>;
}
