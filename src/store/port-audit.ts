// What the rest of the service sees of the audit log's storage; part of port.ts.
import type { Awaitable } from "./port-lists.js";

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

/** A recorded change with the number the store gave it. */
export interface StoredAuditRow extends AuditRow {
  readonly id: number;
}

/** The audit log; append-only. */
export interface AuditStore {
  append(row: AuditRow): Awaitable<void>;
  /** The newest rows first, at most `limit`, of one organisation or of all. */
  newest(limit: number, rootUid?: string): Awaitable<AuditRow[]>;
}

/** The place of an audit row in the chain of its organisation. */
export interface ChainEntry {
  readonly rootUid: string;
  /** 1 for the first entry, without gaps from there. */
  readonly seq: number;
  readonly auditId: number;
  readonly hash: string;
}

/** A chain entry with the audit row it seals; null when that is gone. */
export interface SealedRow extends Omit<ChainEntry, "rootUid"> {
  readonly row: StoredAuditRow | null;
}

/** The signed end of a chain. */
export interface AuditHead {
  readonly rootUid: string;
  readonly seq: number;
  readonly hash: string;
  /** When it was signed. */
  readonly timeMs: number;
  readonly signature: string;
}

/** Who seals the log, until when, and how far that is done. */
export interface SealerRow {
  readonly holder: string;
  readonly expireTimeMs: number;
  /** No row up to this id is unsealed, and none will appear. */
  readonly settledId: number;
  /** How often anything was sealed; tells whether another node did in between. */
  readonly passes: number;
}

/** What of an organisation's log is not sealed. */
export interface UnsealedTail {
  readonly rows: number;
  /** Of the oldest such row; null where there is none. */
  readonly firstId: number | null;
  readonly firstTimeMs: number | null;
}

/** What seals the audit log. Only the sealer writes here. */
export interface AuditChainStore {
  /** The sealer's own row; undefined before anything was sealed. */
  sealer(): Awaitable<SealerRow | undefined>;
  putSealer(row: SealerRow): Awaitable<void>;
  /** Unsealed rows of all organisations with ids above `afterId`, in the order of ids, at most `limit`. */
  unsealed(afterId: number, limit: number): Awaitable<StoredAuditRow[]>;
  unsealedOf(rootUid: string): Awaitable<UnsealedTail>;
  append(entries: readonly ChainEntry[]): Promise<void>;
  /** The number of the last entry of a chain; 0 where there is none. */
  lastSeq(rootUid: string): Awaitable<number>;
  /** Entries behind `afterSeq` in order, with their rows, at most `limit`. */
  entries(rootUid: string, afterSeq: number, limit: number): Awaitable<SealedRow[]>;
  head(rootUid: string): Awaitable<AuditHead | undefined>;
  putHead(head: AuditHead): Awaitable<void>;
  /** Every organisation that has rows, a chain or a head, in order. */
  roots(): Awaitable<string[]>;
}
