// Appends the rows of the audit log to their chains, behind the transactions
// that write them (docs/adr/0006-audit-chain.md).
import type { KeyObject } from "node:crypto";
import type { Clock } from "../kernel/clock.js";
import type { AuditHead, SealerRow, Store, StoredAuditRow, Tx } from "../store/port.js";
import { type Batch, batchOf, type HeadKey, type Link, nameOfLog, start } from "./chain.js";
import { createTrustedKeys, type VerificationFailure } from "./head-verifier.js";

/** The keys of the log. */
export interface AuditKeys {
  auditSigning(): HeadKey;
  auditVerifying(kid: string): KeyObject | undefined;
  /** Looks for keys that another node made. */
  refresh(): Promise<boolean>;
}

/** What the sealer needs. */
export interface SealerDeps {
  readonly store: Store;
  readonly keys: AuditKeys;
  readonly clock: Clock;
  /** Names this node among those that share the store. */
  readonly holder: string;
  /** Told what an operator should know: a chain that is not continued, or a pass that failed. */
  readonly onProblem: (problem: string, cause?: unknown) => void;
  /** Time that never jumps, in milliseconds. */
  readonly monotonic?: () => number;
  /** Rows sealed in one transaction at most. */
  readonly batchRows?: number;
}

/** Seals the log while the service runs. */
export interface Sealer {
  /** Begins to seal, now and every half second. */
  start(): void;
  /**
   * Seals everything there is, unless another node does, for a second at most; resolves to the number
   * of rows. Two calls at once share a pass.
   */
  pass(): Promise<number>;
  /** Seals what is there, lets other nodes take over, and ends. */
  stop(): Promise<void>;
}

/** Between two passes, in milliseconds. */
const PERIOD_MS = 500;
/** After this a pass ends although more rows wait, in milliseconds; the next one goes on. */
const MAX_PASS_MS = 1_000;
/** How long a sealer that is gone keeps others from taking over, in milliseconds. */
const LEASE_MS = 3_000;
/** A lease that ends later than this was taken by a clock that was wrong, and binds nobody. */
const MAX_LEASE_MS = 60_000;
/** How often to look again at rows of a chain that is not continued, in milliseconds. */
const RETRY_MS = 10_000;
/** On SQLite a batch holds other writers up for some 2 ms. */
const BATCH_ROWS = 256;

const unclaimed: SealerRow = { holder: "", expireTimeMs: 0, settledId: 0, passes: 0 };

/** The end of a chain as it is stored. */
interface StoredEnd {
  readonly head: AuditHead | undefined;
  readonly lastSeq: number;
}

interface Found {
  readonly sealer: SealerRow;
  readonly rows: readonly StoredAuditRow[];
  /** Of the chains the rows belong to. */
  readonly ends: ReadonlyMap<string, StoredEnd>;
}

/** Creates the sealer; it does nothing before it is told to. */
export function createSealer(deps: SealerDeps): Sealer {
  const { store, keys, clock, holder, onProblem, batchRows = BATCH_ROWS } = deps;
  const monotonic = deps.monotonic ?? (() => performance.now());
  const settling = createSettling(store.lateCommitMs);
  const trust = createTrustedKeys(keys);
  const reported = new Map<string, VerificationFailure>();
  let lastSeenId = 0;
  /** No row up to this id is left to be sealed, but for those of chains that are not continued. */
  let floor = 0;
  /** The lowest id of a row whose chain is not continued, and when to look at it again. */
  let refusedId = Number.POSITIVE_INFINITY;
  let retryMs = 0;
  let running: Promise<number> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let failing = false;

  async function sealAll(): Promise<number> {
    const beganMs = monotonic();
    settling.seen(lastSeenId, beganMs);
    // The reads of this pass see every row that will ever be up to here; those of the last one did not.
    const settled = settling.at(beganMs);
    let afterId = floor;
    if (beganMs >= retryMs) {
      afterId = Math.min(floor, refusedId - 1);
      refusedId = Number.POSITIVE_INFINITY;
      retryMs = beganMs + RETRY_MS;
    }
    for (let sealed = 0; ; ) {
      const found = await store.read((tx) => look(tx, afterId));
      if (found === undefined) return sealed;
      const more = found.rows.length === batchRows;
      const last = found.rows.at(-1);
      if (last !== undefined) {
        lastSeenId = Math.max(lastSeenId, last.id);
        settling.seen(lastSeenId, monotonic());
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
      // Rows may come faster than they are sealed; whoever waits for the pass must not wait for ever.
      if (monotonic() - beganMs > MAX_PASS_MS) return sealed;
    }
  }

  // In a transaction that only reads: on PostgreSQL one that also writes would, by having read where
  // others append, make some of those others start over.
  async function look(tx: Tx, afterId: number): Promise<Found | undefined> {
    const sealer = (await tx.auditChain.sealer()) ?? unclaimed;
    const leftMs = sealer.expireTimeMs - clock();
    if (sealer.holder !== holder && leftMs > 0 && leftMs <= MAX_LEASE_MS) return undefined;
    const rows = await tx.auditChain.unsealed(Math.max(afterId, sealer.settledId), batchRows);
    const ends = new Map<string, StoredEnd>();
    for (const { rootUid } of rows) {
      if (ends.has(rootUid)) continue;
      ends.set(rootUid, { head: await tx.auditChain.head(rootUid), lastSeq: await tx.auditChain.lastSeq(rootUid) });
    }
    return { sealer, rows, ends };
  }

  // Returns how many rows were sealed; undefined when another node was faster.
  async function seal({ sealer, rows, ends }: Found, reachedId: number): Promise<number | undefined> {
    const trusted = await trustedOf(ends);
    const accepted = rows.filter(({ rootUid }) => trusted.has(rootUid));
    const refused = rows.find(({ rootUid }) => !trusted.has(rootUid));
    if (refused !== undefined) refusedId = Math.min(refusedId, refused.id);
    if (accepted.length === 0) return 0;
    const settledId = Math.max(sealer.settledId, Math.min(reachedId, refusedId - 1));
    // Signed before the transaction: within it nothing but the transaction may be awaited.
    const batch = await batchOf(accepted, trusted, keys.auditSigning(), clock());
    if (!(await store.write((tx) => commit(tx, batch, { ...sealer, settledId })))) return undefined;
    for (const head of batch.heads) trust.remember(head);
    return accepted.length;
  }

  // A chain that somebody changed is not continued: a new signature would make the change good.
  async function trustedOf(ends: ReadonlyMap<string, StoredEnd>): Promise<ReadonlyMap<string, Link>> {
    const trusted = new Map<string, Link>();
    for (const [rootUid, { head, lastSeq }] of ends) {
      const distrust = await trust.check(rootUid, head, lastSeq);
      if (distrust === undefined) {
        trusted.set(rootUid, head ?? start);
        reported.delete(rootUid);
      } else if (reported.get(rootUid) !== distrust) {
        reported.set(rootUid, distrust);
        onProblem(`the audit log of ${nameOfLog(rootUid)} is sealed no further: ${distrust}; run arbor audit verify`);
      }
    }
    return trusted;
  }

  // Whether it was this node that sealed; false when another did since the batch was read.
  async function commit(tx: Tx, { entries, heads }: Batch, { passes, settledId }: SealerRow): Promise<boolean> {
    const current = (await tx.auditChain.sealer()) ?? unclaimed;
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
    running ??= sealAll().finally(() => {
      running = undefined;
    });
    return running;
  }

  async function tick(): Promise<void> {
    try {
      await pass();
      failing = false;
    } catch (error) {
      // Said once: what keeps the database away would otherwise be said twice a second.
      if (!failing) onProblem("the audit log could not be sealed and will be tried again", error);
      failing = true;
    }
  }

  return {
    start() {
      void tick();
      timer = setInterval(() => void tick(), PERIOD_MS);
      timer.unref();
    },
    pass,
    async stop() {
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

/** Knows up to which id no more rows of the audit log can appear. */
export interface Settling {
  /** Tells that a row `id` was there at `ms`; to be told again while no newer one comes. */
  seen(id: number, ms: number): void;
  /** The highest id of which that is certain at `ms`; 0 when of none. */
  at(ms: number): number;
}

interface Mark {
  readonly id: number;
  readonly ms: number;
}

/** Marks are at least this far apart, in milliseconds, so that they stay few. */
const MARK_PAUSE_MS = 1_000;

/**
 * Ids come from a sequence, so whoever holds a lower one than any that was seen took it before then,
 * and has committed or failed once the longest commit is over. Until then a missing id may be a row
 * still to come, and is looked for again and again.
 *
 * @param lateMs how long a row may take from its id to its commit, in milliseconds
 */
export function createSettling(lateMs: number): Settling {
  let settled = 0;
  let marks: Mark[] = [];

  return {
    seen(id, ms) {
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
