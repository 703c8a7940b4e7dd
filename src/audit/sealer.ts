// Appends the rows of the audit log to their chains, after the transactions that write them
// (docs/adr/0006-audit-chain.md).
//
//                     a run begins
//   A process:  standby ────────> sealing
//                     <──────────
//                     another process seals
//
//                     its end does not verify, or its next row has an unknown version
//   A chain:  continued ────────> stopped
//                     <──────────
//                     found right again, which is checked every 10 s
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
  const sealer = new Sealer(deps);
  return {
    name: "audit-sealer",
    problem: "the audit log could not be sealed",
    intervalMs: INTERVAL_MS,
    maxBackoffMs: MAX_BACKOFF_MS,
    runsAtStop: true,
    nextPauseMs: () => sealer.nextPauseMs(),
    hasWork: () => sealer.hasWork(),
    onOtherLeader: () => sealer.onOtherLeader(),
    run: (jobRun) => sealer.run(jobRun),
  };
}

class Sealer {
  readonly #deps: SealerDeps;
  readonly #monotonic: () => number;
  readonly #batchRows: number;
  readonly #watermark: Watermark;
  readonly #continuation: ChainContinuation;
  #state: "standby" | "sealing" = "standby";
  #highestId = 0;
  /** All rows up to this id are sealed, except those of stopped chains. */
  #sealedId = 0;
  /** Why each stopped chain is not continued. */
  readonly #stopped = new Map<string, string>();
  /** The lowest row id of stopped chains, and when to check them again. */
  #stoppedId = Number.POSITIVE_INFINITY;
  #retryMs = 0;
  #hasSubscriptions = false;
  #subscriptionsReadMs = Number.NEGATIVE_INFINITY;
  #verifiedMs = Number.NEGATIVE_INFINITY;

  constructor(deps: SealerDeps) {
    const { store, keys, monotonic = () => performance.now(), batchRows = BATCH_ROWS } = deps;
    this.#deps = deps;
    this.#monotonic = monotonic;
    this.#batchRows = batchRows;
    this.#watermark = createWatermark(store.lateCommitMs);
    this.#continuation = new ChainContinuation({ store, keys, monotonic });
  }

  nextPauseMs(): number | undefined {
    return this.#hasSubscriptions ? EVENTS_INTERVAL_MS : undefined;
  }

  onOtherLeader(): void {
    this.#state = "standby";
    this.#countStopped();
  }

  async hasWork(): Promise<boolean> {
    const nowMs = this.#monotonic();
    const settled = this.#observeSettled(nowMs);
    const [oldest] = await this.#deps.store.read(async (tx) => {
      if (nowMs - this.#subscriptionsReadMs >= EVENTS_CHECK_MS) {
        this.#hasSubscriptions = await tx.eventPositions.hasActive();
        this.#subscriptionsReadMs = nowMs;
      }
      const { settledId } = (await tx.auditChain.findSealer()) ?? NO_SEALER;
      return tx.auditChain.listUnsealed(Math.max(this.#lastIdToSkip(nowMs), settledId), 1);
    });
    if (oldest === undefined) this.#sealedId = Math.max(this.#sealedId, settled);
    if (oldest !== undefined || this.#isVerificationDue(nowMs)) return true;
    return this.#stopped.size > 0 && nowMs >= this.#retryMs;
  }

  async run(jobRun: JobRun): Promise<number> {
    this.#state = "sealing";
    this.#countStopped();
    const sealed = await this.#sealUnsealed(jobRun);
    await this.#verifyOlder(jobRun.signal);
    return sealed;
  }

  // The reads that follow see every row up to the result; those of the last run may not have.
  #observeSettled(nowMs: number): number {
    this.#watermark.observe(this.#highestId, nowMs);
    return this.#watermark.at(nowMs);
  }

  #lastIdToSkip(nowMs: number): number {
    return nowMs >= this.#retryMs ? Math.min(this.#sealedId, this.#stoppedId - 1) : this.#sealedId;
  }

  async #sealUnsealed(jobRun: JobRun): Promise<number> {
    const { store } = this.#deps;
    const startMs = this.#monotonic();
    const settled = this.#observeSettled(startMs);
    let afterId = this.#lastIdToSkip(startMs);
    if (startMs >= this.#retryMs) {
      this.#stoppedId = Number.POSITIVE_INFINITY;
      this.#retryMs = startMs + RETRY_MS;
      await this.#retryStopped();
    }
    for (let sealed = 0; ; ) {
      const found = await store.read((tx) => this.#readUnsealed(tx, afterId));
      const more = found.rows.length === this.#batchRows;
      const last = found.rows.at(-1);
      if (last !== undefined) {
        this.#highestId = Math.max(this.#highestId, last.id);
        this.#watermark.observe(this.#highestId, this.#monotonic());
        const reached = store.lateCommitMs === 0 ? last.id : settled;
        const count = await this.#seal(jobRun, found, more ? Math.min(reached, last.id) : reached);
        if (count === undefined) return sealed;
        sealed += count;
        afterId = last.id;
      }
      if (!more) {
        this.#sealedId = Math.max(this.#sealedId, settled);
        return sealed;
      }
      // Rows may be written faster than they are sealed, and a run must end.
      if (this.#monotonic() - startMs > MAX_RUN_MS || jobRun.signal.aborted) return sealed;
    }
  }

  // Read-only: on PostgreSQL, a transaction that reads where others append and also writes causes serialization
  // failures in those others.
  async #readUnsealed(tx: Tx, afterId: number): Promise<UnsealedRows> {
    const sealer = (await tx.auditChain.findSealer()) ?? NO_SEALER;
    const rows = await tx.auditChain.listUnsealed(Math.max(afterId, sealer.settledId), this.#batchRows);
    const ends = new Map<string, StoredChainEnd>();
    for (const { rootUid } of rows) {
      if (!ends.has(rootUid)) ends.set(rootUid, await readEnd(tx, rootUid));
    }
    return { sealer, rows, ends };
  }

  // Returns the number of sealed rows; undefined when another node sealed them first.
  async #seal(jobRun: JobRun, { sealer, rows, ends }: UnsealedRows, reachedId: number): Promise<number | undefined> {
    const { keys, clock } = this.#deps;
    const unknown = new Set(rows.filter((row) => !isKnownVersion(row)).map(({ rootUid }) => rootUid));
    const trusted = await this.#verifyChainEnds(ends, unknown);
    const accepted = rows.filter(({ rootUid }) => trusted.has(rootUid));
    const refused = rows.find(({ rootUid }) => !trusted.has(rootUid));
    if (refused !== undefined) this.#stoppedId = Math.min(this.#stoppedId, refused.id);
    if (accepted.length === 0) return 0;
    const settledId = Math.max(sealer.settledId, Math.min(reachedId, this.#stoppedId - 1));
    // Signed before the transaction, which may await nothing but its own statements.
    const batch = await buildBatch(accepted, trusted, keys.getAuditSigningKey(), clock());
    if (!(await jobRun.write((tx) => appendBatch(tx, batch, { settledId, passes: sealer.passes })))) return undefined;
    for (const head of batch.heads) this.#continuation.remember(head);
    return accepted.length;
  }

  // A changed chain is not continued: a new signature would cover the change. Neither is one with a row of a newer
  // version, which that version of Arbor will seal: a hash without its new members would not be that of the row.
  async #verifyChainEnds(
    ends: ReadonlyMap<string, StoredChainEnd>,
    unknown: ReadonlySet<string>,
  ): Promise<ReadonlyMap<string, Link>> {
    const trusted = new Map<string, Link>();
    for (const [rootUid, { head, lastSeq }] of ends) {
      const failure = unknown.has(rootUid)
        ? unknownVersion
        : await this.#continuation.findFailure(rootUid, head, lastSeq);
      if (failure === undefined) {
        trusted.set(rootUid, head ?? CHAIN_START);
        this.#stopped.delete(rootUid);
        this.#countStopped();
      } else {
        this.#stopChain(rootUid, failure);
      }
    }
    return trusted;
  }

  // A chain that was put right may have no row to seal, or another process may have sealed it meanwhile.
  async #retryStopped(): Promise<void> {
    for (const [rootUid, failure] of this.#stopped) {
      const { head, lastSeq, unsealed } = await this.#deps.store.read(async (tx) => {
        return { ...(await readEnd(tx, rootUid)), unsealed: await tx.auditChain.readUnsealedTail(rootUid) };
      });
      if (failure === unknownVersion && unsealed.rows > 0) continue;
      if ((await this.#continuation.findFailure(rootUid, head, lastSeq)) === undefined) this.#stopped.delete(rootUid);
    }
    this.#countStopped();
  }

  #countStopped(): void {
    this.#deps.onStopped?.(this.#state === "sealing" ? this.#stopped.size : 0);
  }

  #stopChain(rootUid: string, failure: string): void {
    if (this.#stopped.get(rootUid) === failure) return;
    this.#stopped.set(rootUid, failure);
    this.#countStopped();
    const log = formatLogName(rootUid);
    this.#deps.onProblem(`the audit log of ${log} is sealed no further: ${failure}; run arbor audit verify`);
  }

  // After what is new is sealed, because events wait for that.
  async #verifyOlder(signal: AbortSignal): Promise<void> {
    const nowMs = this.#monotonic();
    if (!this.#isVerificationDue(nowMs) || signal.aborted) return;
    this.#verifiedMs = nowMs;
    for (const [rootUid, failure] of await this.#continuation.verifyMore(nowMs + VERIFY_MS)) {
      this.#stopChain(rootUid, failure);
    }
  }

  #isVerificationDue(nowMs: number): boolean {
    return this.#continuation.hasMore && nowMs - this.#verifiedMs >= INTERVAL_MS;
  }
}

async function readEnd({ auditChain }: Tx, rootUid: string): Promise<StoredChainEnd> {
  return { head: await auditChain.findHead(rootUid), lastSeq: await auditChain.lastSeq(rootUid) };
}

/** Writes a batch; returns false when another node sealed since it was read. */
async function appendBatch(tx: Tx, { entries, heads }: Batch, next: SealerRow): Promise<boolean> {
  const current = (await tx.auditChain.findSealer()) ?? NO_SEALER;
  if (current.passes !== next.passes) return false;
  await tx.auditChain.putSealer({ ...next, passes: next.passes + 1 });
  await tx.auditChain.append(entries);
  for (const head of heads) await tx.auditChain.putHead(head);
  return true;
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
