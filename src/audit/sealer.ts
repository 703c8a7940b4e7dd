// Appends the rows of the audit log to their chains, after the transactions that write them
// (docs/adr/0006-audit-chain.md).
import type { Job, JobRun } from "../jobs/jobs.js";
import type { Clock } from "../kernel/time.js";
import type { Store } from "../store/store.js";
import type { AuditHead, SealerRow, StoredAuditRow } from "../store/tables/audit.js";
import type { Tx } from "../store/transaction.js";
import {
  type AuditKeys,
  type Batch,
  buildBatch,
  CHAIN_START,
  formatLogName,
  isKnownVersion,
  type Link,
} from "./chain.js";
import { ChainContinuation } from "./continuation.js";

export interface SealerDeps {
  readonly store: Store;
  readonly keys: AuditKeys;
  readonly clock: Clock;
  /** Called with each chain that is not continued, for the operator's log. */
  readonly onProblem: (problem: string) => void;
  /** Called with the number of chains that this process does not continue, 0 while another one seals. */
  readonly onStopped?: (chains: number) => void;
  /** Monotonic time in milliseconds. */
  readonly monotonic?: () => number;
  /** The largest number of rows in one transaction. */
  readonly batchRows?: number;
}

/** How often rows are sealed, and how often while events are delivered, which must be sealed first; in milliseconds. */
const INTERVAL_MS = 500;
const EVENTS_INTERVAL_MS = 100;
/** How often it is looked whether events are delivered, in milliseconds. */
const EVENTS_CHECK_MS = 1_000;
/** A row is sealed at most this long after the database can be used again, in milliseconds. */
const MAX_BACKOFF_MS = 5_000;
/** The longest run, in milliseconds; the next one continues. */
const MAX_RUN_MS = 1_000;
/** The pause before rows of a chain that is not continued are checked again, in milliseconds. */
const RETRY_MS = 10_000;
/** How much of the time between two runs is for verifying older entries in the background, in milliseconds. */
const VERIFY_MS = 20;
/** On SQLite a batch blocks other writers for some 2 ms. */
const BATCH_ROWS = 256;

const unknownVersion = "its next row has a version that is not known here";

const NO_SEALER: SealerRow = { settledId: 0, passes: 0 };

interface StoredChainEnd {
  readonly head: AuditHead | undefined;
  readonly lastSeq: number;
}

interface UnsealedRows {
  readonly sealer: SealerRow;
  readonly rows: readonly StoredAuditRow[];
  /** The ends of the chains of these rows. */
  readonly ends: ReadonlyMap<string, StoredChainEnd>;
}

/** Creates the job that seals the log while the service runs. */
export function createSealer(deps: SealerDeps): Job {
  const { store, keys, clock, onProblem, onStopped, batchRows = BATCH_ROWS } = deps;
  const monotonic = deps.monotonic ?? (() => performance.now());
  const watermark = createWatermark(store.lateCommitMs);
  const continuation = new ChainContinuation({ store, keys, monotonic });
  const reported = new Map<string, string>();
  let isSealing = false;
  let highestId = 0;
  /** All rows up to this id are sealed, except those of chains that are not continued. */
  let floor = 0;
  /** The lowest row id of chains that are not continued, and when to check them again. */
  let brokenChainId = Number.POSITIVE_INFINITY;
  let retryMs = 0;
  let hasSubscriptions = false;
  let subscriptionsMs = Number.NEGATIVE_INFINITY;
  let verifiedMs = Number.NEGATIVE_INFINITY;

  // The reads that follow see every row up to the result; those of the last run may not have.
  function observeSettled(nowMs: number): number {
    watermark.observe(highestId, nowMs);
    return watermark.at(nowMs);
  }

  function firstIdToCheck(nowMs: number): number {
    return nowMs >= retryMs ? Math.min(floor, brokenChainId - 1) : floor;
  }

  async function hasWork(): Promise<boolean> {
    const nowMs = monotonic();
    const settled = observeSettled(nowMs);
    const [oldest] = await store.read(async (tx) => {
      if (nowMs - subscriptionsMs >= EVENTS_CHECK_MS) {
        hasSubscriptions = await tx.eventPositions.hasActive();
        subscriptionsMs = nowMs;
      }
      const { settledId } = (await tx.auditChain.findSealer()) ?? NO_SEALER;
      return tx.auditChain.listUnsealed(Math.max(firstIdToCheck(nowMs), settledId), 1);
    });
    if (oldest === undefined) floor = Math.max(floor, settled);
    return oldest !== undefined || isVerificationDue(nowMs) || (reported.size > 0 && nowMs >= retryMs);
  }

  async function sealUnsealed(run: JobRun): Promise<number> {
    const beganMs = monotonic();
    const settled = observeSettled(beganMs);
    let afterId = firstIdToCheck(beganMs);
    if (beganMs >= retryMs) {
      brokenChainId = Number.POSITIVE_INFINITY;
      retryMs = beganMs + RETRY_MS;
      await retryStopped();
    }
    for (let sealed = 0; ; ) {
      const found = await store.read((tx) => readUnsealed(tx, afterId));
      const more = found.rows.length === batchRows;
      const last = found.rows.at(-1);
      if (last !== undefined) {
        highestId = Math.max(highestId, last.id);
        watermark.observe(highestId, monotonic());
        const reached = store.lateCommitMs === 0 ? last.id : settled;
        const count = await seal(run, found, more ? Math.min(reached, last.id) : reached);
        if (count === undefined) return sealed;
        sealed += count;
        afterId = last.id;
      }
      if (!more) {
        floor = Math.max(floor, settled);
        return sealed;
      }
      // Rows may be written faster than they are sealed, and a run must end.
      if (monotonic() - beganMs > MAX_RUN_MS || run.signal.aborted) return sealed;
    }
  }

  // Read-only: on PostgreSQL, a transaction that reads where others append and also writes causes serialization
  // failures in those others.
  async function readUnsealed(tx: Tx, afterId: number): Promise<UnsealedRows> {
    const sealer = (await tx.auditChain.findSealer()) ?? NO_SEALER;
    const rows = await tx.auditChain.listUnsealed(Math.max(afterId, sealer.settledId), batchRows);
    const ends = new Map<string, StoredChainEnd>();
    for (const { rootUid } of rows) {
      if (!ends.has(rootUid)) ends.set(rootUid, await readEnd(tx, rootUid));
    }
    return { sealer, rows, ends };
  }

  async function readEnd({ auditChain }: Tx, rootUid: string): Promise<StoredChainEnd> {
    return { head: await auditChain.findHead(rootUid), lastSeq: await auditChain.lastSeq(rootUid) };
  }

  // Returns the number of sealed rows; undefined when another node sealed them first.
  async function seal(
    run: JobRun,
    { sealer, rows, ends }: UnsealedRows,
    reachedId: number,
  ): Promise<number | undefined> {
    const unknown = new Set(rows.filter((row) => !isKnownVersion(row)).map(({ rootUid }) => rootUid));
    const trusted = await verifyChainEnds(ends, unknown);
    const accepted = rows.filter(({ rootUid }) => trusted.has(rootUid));
    const refused = rows.find(({ rootUid }) => !trusted.has(rootUid));
    if (refused !== undefined) brokenChainId = Math.min(brokenChainId, refused.id);
    if (accepted.length === 0) return 0;
    const settledId = Math.max(sealer.settledId, Math.min(reachedId, brokenChainId - 1));
    // Signed before the transaction, which may await nothing but its own statements.
    const batch = await buildBatch(accepted, trusted, keys.getAuditSigningKey(), clock());
    if (!(await run.write((tx) => commit(tx, batch, { settledId, passes: sealer.passes })))) return undefined;
    for (const head of batch.heads) continuation.remember(head);
    return accepted.length;
  }

  // A changed chain is not continued: a new signature would cover the change. Neither is one with a row of a newer
  // version, which that version of Arbor will seal: a hash without its new members would not be that of the row.
  async function verifyChainEnds(
    ends: ReadonlyMap<string, StoredChainEnd>,
    unknown: ReadonlySet<string>,
  ): Promise<ReadonlyMap<string, Link>> {
    const trusted = new Map<string, Link>();
    for (const [rootUid, { head, lastSeq }] of ends) {
      const failure = unknown.has(rootUid) ? unknownVersion : await continuation.findFailure(rootUid, head, lastSeq);
      if (failure === undefined) {
        trusted.set(rootUid, head ?? CHAIN_START);
        reported.delete(rootUid);
        countStopped();
      } else {
        report(rootUid, failure);
      }
    }
    return trusted;
  }

  // A chain that was put right may have no row to seal, or another process may have sealed it meanwhile.
  async function retryStopped(): Promise<void> {
    for (const [rootUid, failure] of reported) {
      const { head, lastSeq, unsealed } = await store.read(async (tx) => {
        return { ...(await readEnd(tx, rootUid)), unsealed: await tx.auditChain.readUnsealedTail(rootUid) };
      });
      if (failure === unknownVersion && unsealed.rows > 0) continue;
      if ((await continuation.findFailure(rootUid, head, lastSeq)) === undefined) reported.delete(rootUid);
    }
    countStopped();
  }

  function countStopped(): void {
    onStopped?.(isSealing ? reported.size : 0);
  }

  function report(rootUid: string, failure: string): void {
    if (reported.get(rootUid) === failure) return;
    reported.set(rootUid, failure);
    countStopped();
    onProblem(`the audit log of ${formatLogName(rootUid)} is sealed no further: ${failure}; run arbor audit verify`);
  }

  // After what is new is sealed, because events wait for that.
  async function verifyOlder(signal: AbortSignal): Promise<void> {
    const nowMs = monotonic();
    if (!isVerificationDue(nowMs) || signal.aborted) return;
    verifiedMs = nowMs;
    for (const [rootUid, failure] of await continuation.verifyMore(nowMs + VERIFY_MS)) report(rootUid, failure);
  }

  function isVerificationDue(nowMs: number): boolean {
    return continuation.hasMore && nowMs - verifiedMs >= INTERVAL_MS;
  }

  // Returns false when another node sealed since the batch was read.
  async function commit(tx: Tx, { entries, heads }: Batch, next: SealerRow): Promise<boolean> {
    const current = (await tx.auditChain.findSealer()) ?? NO_SEALER;
    if (current.passes !== next.passes) return false;
    await tx.auditChain.putSealer({ ...next, passes: next.passes + 1 });
    await tx.auditChain.append(entries);
    for (const head of heads) await tx.auditChain.putHead(head);
    return true;
  }

  return {
    name: "audit-sealer",
    problem: "the audit log could not be sealed",
    intervalMs: INTERVAL_MS,
    maxBackoffMs: MAX_BACKOFF_MS,
    runsAtStop: true,
    nextPauseMs: () => (hasSubscriptions ? EVENTS_INTERVAL_MS : undefined),
    hasWork,
    onOtherLeader() {
      isSealing = false;
      countStopped();
    },
    async run(run) {
      isSealing = true;
      countStopped();
      const sealed = await sealUnsealed(run);
      await verifyOlder(run.signal);
      return sealed;
    },
  };
}

/** The watermark of the audit log: the id up to which no more rows can be committed. */
interface Watermark {
  /** Observes that row `id` existed at `ms`; to be repeated until a newer row exists. */
  observe(id: number, ms: number): void;
  /** The watermark at `ms`; 0 when there is none yet. */
  at(ms: number): number;
}

interface Mark {
  readonly id: number;
  readonly ms: number;
}

/** The shortest distance between two observations that are kept, in milliseconds. */
const MARK_PAUSE_MS = 1_000;

/**
 * Creates a watermark. Ids come from a sequence: a transaction with a lower id than an observed one took it earlier,
 * and has ended once the longest commit time has passed since then. Until then a missing id may still be committed.
 *
 * @param lateMs the longest time from taking an id to its commit, in milliseconds
 */
export function createWatermark(lateMs: number): Watermark {
  let settled = 0;
  let marks: Mark[] = [];

  return {
    observe(id, ms) {
      const last = marks.at(-1) ?? { id: settled, ms: Number.NEGATIVE_INFINITY };
      if (id <= last.id) return;
      if (lateMs === 0) settled = id;
      else if (ms >= last.ms + MARK_PAUSE_MS) marks.push({ id, ms });
    },
    at(ms) {
      const over = marks.filter((mark) => mark.ms + lateMs <= ms);
      marks = marks.slice(over.length);
      settled = over.at(-1)?.id ?? settled;
      return settled;
    },
  };
}
