// Appends the rows of the audit log to their chains, behind the transactions
// that write them (docs/adr/0006-audit-chain.md).
import { performance } from "node:perf_hooks";
import type { CryptoKey } from "jose";
import type { Clock } from "../kernel/clock.js";
import type { AuditHead, ChainEntry, SealerRow, Store, StoredAuditRow, Tx } from "../store/port.js";
import { type Link, linkAfter, nameOfLog, start } from "./chain.js";
import { type HeadKey, signHead } from "./head.js";
import { createSettling } from "./settling.js";
import { createTrust, type Distrust } from "./trust.js";

/** The keys of the log. */
export interface AuditKeys {
  auditSigning(): HeadKey;
  auditVerifying(kid: string): CryptoKey | undefined;
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
   * Seals everything there is, unless another node does; resolves to the number of rows. Two calls at
   * once share a pass.
   */
  pass(): Promise<number>;
  /** Seals what is there, lets other nodes take over, and ends. */
  stop(): Promise<void>;
}

/** Between two passes, in milliseconds. */
const PERIOD_MS = 500;
/** How long a sealer that is gone keeps others from taking over, in milliseconds. */
const LEASE_MS = 3_000;
/** A lease that ends later than this was taken by a clock that was wrong, and binds nobody. */
const MAX_LEASE_MS = 60_000;
/** How often to look again at rows of a chain that is not continued, in milliseconds. */
const RETRY_MS = 10_000;
/** On SQLite a batch holds other writers up for some 2 ms. */
const BATCH_ROWS = 256;

const unclaimed: SealerRow = { holder: "", expireTimeMs: 0, settledId: 0, passes: 0 };

/** What one transaction will write. */
interface Batch {
  readonly sealer: SealerRow;
  readonly entries: readonly ChainEntry[];
  readonly heads: readonly AuditHead[];
}

/** Creates the sealer; it does nothing before it is told to. */
export function createSealer(deps: SealerDeps): Sealer {
  const { store, keys, clock, holder, onProblem, batchRows = BATCH_ROWS } = deps;
  const { monotonic = () => performance.now() } = deps;
  const settling = createSettling(store.lateCommitMs);
  const trust = createTrust(keys);
  const reported = new Map<string, Distrust>();
  let lastSeenId = 0;
  let refused = { fromId: Number.POSITIVE_INFINITY, untilMs: 0 };
  let failing = false;
  let running: Promise<number> | undefined;
  let timer: NodeJS.Timeout | undefined;

  async function sealAll(): Promise<number> {
    const beganMs = monotonic();
    settling.seen(lastSeenId, beganMs);
    // The reads below see every row there will ever be up to here.
    const settled = settling.at(beganMs);
    const again = beganMs >= refused.untilMs;
    if (again) refused = { fromId: Number.POSITIVE_INFINITY, untilMs: beganMs + RETRY_MS };
    let afterId = again ? Math.min(settled, firstRefused - 1) : settled;
    let sealed = 0;
    for (;;) {
      const found = await store.read((tx) => look(tx, afterId));
      const last = found?.rows.at(-1);
      if (found === undefined || last === undefined) return sealed;
      sealed += await sealFound(found, settled)
      if (found.rows.length < batchRows) return sealed;
      afterId = last.id;
    }
  }

  // In a transaction that only reads: on PostgreSQL one that also writes would, by having read where
  // others append, make some of those others start over.
  async function look(tx: Tx, afterId: number) {
    const sealer = (await tx.auditChain.sealer()) ?? unclaimed;
    const leftMs = sealer.expireTimeMs - clock();
    if (sealer.holder !== holder && leftMs > 0 && leftMs <= MAX_LEASE_MS) return undefined;
    const rows = await tx.auditChain.unsealed(Math.max(afterId, sealer.settledId), batchRows);
    const ends = new Map<string, { head: AuditHead | undefined; lastSeq: number }>();
    for (const { rootUid } of rows) {
      if (ends.has(rootUid)) continue;
      ends.set(rootUid, { head: await tx.auditChain.head(rootUid), lastSeq: await tx.auditChain.lastSeq(rootUid) });
    }
    return { sealer, rows, ends };
  }

  // A chain that somebody changed is not continued: a new signature would make the change good.
  async function trustedEnds(
    ends: ReadonlyMap<string, { head: AuditHead | undefined; lastSeq: number }>,
  ): Promise<ReadonlyMap<string, Link>> {
    const trusted = new Map<string, Link>();
    for (const [rootUid, { head, lastSeq }] of ends) {
      const distrust = await trust.check(rootUid, head, lastSeq);
      if (distrust === undefined) trusted.set(rootUid, head ?? start);
      else if (reported.get(rootUid) !== distrust) {
        onProblem(`the audit log of ${nameOfLog(rootUid)} is not sealed any further: ${distrust}; run arbor audit verify`);
      }
      if (distrust === undefined) reported.delete(rootUid);
      else reported.set(rootUid, distrust);
    }
    return trusted;
  }

  // Signs before the transaction: within it nothing but the transaction may be awaited.
  async function batchOf(
    rows: readonly StoredAuditRow[],
    trusted: ReadonlyMap<string, Link>,
    sealer: SealerRow,
  ): Promise<Batch> {
    const ends = new Map<string, Link>();
    const entries = rows.map((row): ChainEntry => {
      const { rootUid } = row;
      const link = linkAfter(ends.get(rootUid) ?? trusted.get(rootUid) ?? start, row);
      ends.set(rootUid, link);
      return { rootUid, auditId: row.id, ...link };
    });
    const timeMs = clock();
    const key = keys.auditSigning();
    const heads = await Promise.all([...ends].map(([rootUid, link]) => signHead({ rootUid, timeMs, ...link }, key)));
    return { sealer, entries, heads };
  }

  // Whether it was this node that sealed; false when another did since the batch was read.
  async function commit(tx: Tx, { sealer, entries, heads }: Batch): Promise<boolean> {
    const current = (await tx.auditChain.sealer()) ?? unclaimed;
    if (current.passes !== sealer.passes) return false;
    const { settledId, passes } = sealer;
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

  function tick(): void {
    pass().catch((error) => onProblem("the audit log could not be sealed", error));
  }

  return {
    start() {
      tick();
      timer = setInterval(tick, PERIOD_MS);
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
