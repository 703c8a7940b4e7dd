// Appends the rows of the audit log to their chains, after the transactions that write them
// (docs/adr/0006-audit-chain.md).
import type { Clock } from "../kernel/time.js";
import type { AuditHead, SealerRow, Store, StoredAuditRow, Tx } from "../store/port.js";
import { type AuditKeys, type Batch, buildBatch, CHAIN_START, formatLogName, type Link } from "./chain.js";
import { createHeadVerifier, type VerificationFailure } from "./verify.js";

export interface SealerDeps {
  readonly store: Store;
  readonly keys: AuditKeys;
  readonly clock: Clock;
  /** The name of this node among those that share the store. */
  readonly holder: string;
  /** Called with problems for the operator's log: a chain that is not continued, or a failed pass. */
  readonly onProblem: (problem: string, cause?: unknown) => void;
  /** Monotonic time in milliseconds. */
  readonly monotonic?: () => number;
  /** The largest number of rows in one transaction. */
  readonly batchRows?: number;
}

/** The period of passes, in milliseconds. */
const PERIOD_MS = 500;
/** The longest pass, in milliseconds; the next one continues. */
const MAX_PASS_MS = 1_000;
/** The lease of a sealer, in milliseconds: other nodes take over after it. */
const LEASE_MS = 3_000;
/** A lease that ends later than this was taken with a wrong clock, and is ignored. */
const MAX_LEASE_MS = 60_000;
/** The pause before rows of a chain that is not continued are checked again, in milliseconds. */
const RETRY_MS = 10_000;
/** On SQLite a batch blocks other writers for some 2 ms. */
const BATCH_ROWS = 256;

const NO_SEALER: SealerRow = { holder: "", expireTimeMs: 0, settledId: 0, passes: 0 };

/** The stored end of a chain. */
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

/** Creates the sealer, which seals the log while the service runs: after `start` or `pass`. */
export function createSealer(deps: SealerDeps) {
  const { store, keys, clock, holder, onProblem, batchRows = BATCH_ROWS } = deps;
  const monotonic = deps.monotonic ?? (() => performance.now());
  const watermark = createWatermark(store.lateCommitMs);
  const headVerifier = createHeadVerifier(keys);
  const reported = new Map<string, VerificationFailure>();
  let highestId = 0;
  /** All rows up to this id are sealed, except those of chains that are not continued. */
  let floor = 0;
  /** The lowest row id of chains that are not continued, and when to check them again. */
  let brokenChainId = Number.POSITIVE_INFINITY;
  let retryMs = 0;
  let running: Promise<number> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let failing = false;

  async function sealUnsealed(): Promise<number> {
    const beganMs = monotonic();
    watermark.observe(highestId, beganMs);
    // The reads of this pass see every row up to here; those of the last pass may not have.
    const settled = watermark.at(beganMs);
    let afterId = floor;
    if (beganMs >= retryMs) {
      afterId = Math.min(floor, brokenChainId - 1);
      brokenChainId = Number.POSITIVE_INFINITY;
      retryMs = beganMs + RETRY_MS;
    }
    for (let sealed = 0; ; ) {
      const found = await store.read((tx) => readUnsealed(tx, afterId));
      if (found === undefined) return sealed;
      const more = found.rows.length === batchRows;
      const last = found.rows.at(-1);
      if (last !== undefined) {
        highestId = Math.max(highestId, last.id);
        watermark.observe(highestId, monotonic());
        const reached = store.lateCommitMs === 0 ? last.id : settled;
        const count = await seal(found, more ? Math.min(reached, last.id) : reached);
        if (count === undefined) return sealed;
        sealed += count;
        afterId = last.id;
      }
      if (!more) {
        floor = Math.max(floor, settled);
        return sealed;
      }
      // Rows may be written faster than they are sealed, and a pass must end.
      if (monotonic() - beganMs > MAX_PASS_MS) return sealed;
    }
  }

  // Read-only: on PostgreSQL, a transaction that reads where others append and also writes causes serialization
  // failures in those others.
  async function readUnsealed(tx: Tx, afterId: number): Promise<UnsealedRows | undefined> {
    const sealer = (await tx.auditChain.sealer()) ?? NO_SEALER;
    const leftMs = sealer.expireTimeMs - clock();
    if (sealer.holder !== holder && leftMs > 0 && leftMs <= MAX_LEASE_MS) return undefined;
    const rows = await tx.auditChain.unsealed(Math.max(afterId, sealer.settledId), batchRows);
    const ends = new Map<string, StoredChainEnd>();
    for (const { rootUid } of rows) {
      if (ends.has(rootUid)) continue;
      ends.set(rootUid, { head: await tx.auditChain.head(rootUid), lastSeq: await tx.auditChain.lastSeq(rootUid) });
    }
    return { sealer, rows, ends };
  }

  // Returns the number of sealed rows; undefined when another node sealed them first.
  async function seal({ sealer, rows, ends }: UnsealedRows, reachedId: number): Promise<number | undefined> {
    const trusted = await verifyChainEnds(ends);
    const accepted = rows.filter(({ rootUid }) => trusted.has(rootUid));
    const refused = rows.find(({ rootUid }) => !trusted.has(rootUid));
    if (refused !== undefined) brokenChainId = Math.min(brokenChainId, refused.id);
    if (accepted.length === 0) return 0;
    const settledId = Math.max(sealer.settledId, Math.min(reachedId, brokenChainId - 1));
    // Signed before the transaction, which may await nothing but its own statements.
    const batch = await buildBatch(accepted, trusted, keys.auditSigning(), clock());
    if (!(await store.write((tx) => commit(tx, batch, { ...sealer, settledId })))) return undefined;
    for (const head of batch.heads) headVerifier.remember(head);
    return accepted.length;
  }

  // A changed chain is not continued: a new signature would cover the change.
  async function verifyChainEnds(ends: ReadonlyMap<string, StoredChainEnd>): Promise<ReadonlyMap<string, Link>> {
    const trusted = new Map<string, Link>();
    for (const [rootUid, { head, lastSeq }] of ends) {
      const failure = await headVerifier.check(rootUid, head, lastSeq);
      if (failure === undefined) {
        trusted.set(rootUid, head ?? CHAIN_START);
        reported.delete(rootUid);
      } else if (reported.get(rootUid) !== failure) {
        reported.set(rootUid, failure);
        onProblem(
          `the audit log of ${formatLogName(rootUid)} is sealed no further: ${failure}; run arbor audit verify`,
        );
      }
    }
    return trusted;
  }

  // Returns false when another node sealed since the batch was read.
  async function commit(tx: Tx, { entries, heads }: Batch, { passes, settledId }: SealerRow): Promise<boolean> {
    const current = (await tx.auditChain.sealer()) ?? NO_SEALER;
    if (current.passes !== passes) return false;
    await tx.auditChain.putSealer({ holder, expireTimeMs: clock() + LEASE_MS, settledId, passes: passes + 1 });
    await tx.auditChain.append(entries);
    for (const head of heads) await tx.auditChain.putHead(head);
    return true;
  }

  async function release(tx: Tx): Promise<void> {
    const current = await tx.auditChain.sealer();
    if (current?.holder === holder) await tx.auditChain.putSealer({ ...current, expireTimeMs: 0 });
  }

  function pass(): Promise<number> {
    running ??= sealUnsealed().finally(() => {
      running = undefined;
    });
    return running;
  }

  async function tick(): Promise<void> {
    try {
      await pass();
      failing = false;
    } catch (error) {
      // Reported once: an unreachable database would be reported twice a second.
      if (!failing) onProblem("the audit log could not be sealed and will be tried again", error);
      failing = true;
    }
  }

  return {
    /** Starts: now, then every half second. */
    start(): void {
      void tick();
      timer = setInterval(() => void tick(), PERIOD_MS);
      timer.unref();
    },
    /**
     * Seals all rows, unless another node does, for a second at most. Resolves to the number of rows. Concurrent calls
     * share a pass.
     */
    pass,
    /** Seals the remaining rows, releases the lease, and stops. */
    async stop(): Promise<void> {
      clearInterval(timer);
      try {
        await running?.catch(() => {});
        await pass();
        await store.write(release);
      } catch (error) {
        onProblem("the audit log could not be sealed to its end", error);
      }
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
