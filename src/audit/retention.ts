// Deletes sealed rows of the audit log that are older than they are to be kept, always from the beginning of a chain,
// and signs a checkpoint at which the chain begins from then on (docs/adr/0006-audit-chain.md).
import type { Job, JobRun } from "../jobs/jobs.js";
import type { Clock } from "../kernel/time.js";
import type { SealedRow } from "../store/audit/chain.js";
import type { Store } from "../store/store.js";
import type { AuditCheckpoint, AuditHead } from "../store/tables/audit.js";
import { type AuditKeys, formatLogName, signCheckpoint } from "./chain.js";
import {
  BEFORE_ALL_ENTRIES,
  buildBodyFault,
  type Fault,
  findChangedBody,
  findCheckpointFault,
  findSignatureFault,
  findStart,
  verifyEntry,
} from "./verify.js";

export interface RetentionDeps {
  readonly store: Store;
  readonly keys: AuditKeys;
  readonly clock: Clock;
  /** How long rows are kept, in milliseconds. */
  readonly retentionMs: number;
  /** Called with each chain of which nothing is deleted, for the operator's log. */
  readonly onProblem: (problem: string) => void;
  /** The largest number of rows in one transaction. */
  readonly batchRows?: number;
}

const RETENTION_JOB = "audit-retention";

const INTERVAL_MS = 3_600_000;
/** On SQLite a batch blocks other writers for some 2 ms. */
const BATCH_ROWS = 128;

/** The beginning of a chain, read in one snapshot. */
interface ChainStart {
  readonly checkpoint: AuditCheckpoint | undefined;
  readonly head: AuditHead | undefined;
  readonly entries: readonly SealedRow[];
  /** The first entry that is still to be delivered to a subscription; undefined where none is. */
  readonly neededSeq: number | undefined;
  /** The first entry whose row has another body than was sealed. */
  readonly changedBody: number | undefined;
}

/** Creates the job that deletes old rows. */
export function createRetention(deps: RetentionDeps): Job {
  const { store, keys, clock, retentionMs, onProblem, batchRows = BATCH_ROWS } = deps;

  async function deleteOldRows(run: JobRun): Promise<number> {
    const beforeMs = (await readNowMs()) - retentionMs;
    let deleted = 0;
    let after: string | undefined;
    do {
      const { rootUids, next } = await store.read((tx) => tx.auditCheckpoints.findOld(beforeMs, after));
      for (const rootUid of rootUids) deleted += await deleteOldRowsOf(run, rootUid, beforeMs);
      after = next;
    } while (after !== undefined && !run.signal.aborted);
    return deleted;
  }

  // What is deleted cannot be brought back, so a clock that is ahead must not decide alone.
  async function readNowMs(): Promise<number> {
    return Math.min(clock(), await store.read((tx) => tx.jobs.nowMs()));
  }

  async function deleteOldRowsOf(run: JobRun, rootUid: string, beforeMs: number): Promise<number> {
    for (let deleted = 0; ; ) {
      if (run.signal.aborted) return deleted;
      const start = await store.read(async (tx): Promise<ChainStart> => {
        const [checkpoint, head] = [await tx.auditCheckpoints.find(rootUid), await tx.auditChain.findHead(rootUid)];
        const entries = await tx.auditChain.listEntries(rootUid, BEFORE_ALL_ENTRIES, batchRows + 1);
        const neededSeq = await tx.eventPositions.findLowestNeeded(rootUid);
        return { checkpoint, head, entries, neededSeq, changedBody: await findChangedBody(tx, entries) };
      });
      const next = await findNextCheckpoint(rootUid, start, beforeMs);
      if (next === undefined) return deleted;
      if ("what" in next) {
        const where = `${formatLogName(rootUid)} are deleted: seq ${next.seq}: ${next.what}`;
        onProblem(`no old rows of the audit log of ${where}; run arbor audit verify`);
        return deleted;
      }
      // Signed before the transaction, which may await nothing but its own statements.
      const checkpoint = await signCheckpoint({ ...next, rootUid, timeMs: clock() }, keys.getAuditSigningKey());
      const startMs = performance.now();
      const count = await commit(run, start, checkpoint);
      if (count === 0) return deleted;
      deleted += count;
      // Other writers get at least half of the time.
      await pause(performance.now() - startMs);
    }
  }

  /**
   * Finds the last entry to delete in one batch: a prefix of the chain, of old rows only, and never the entry that the
   * head signs, nor one that a subscription has still to get. A sealer of any version continues the chain from that entry. What is deleted is verified before,
   * together with the entry after it: otherwise the checkpoint would confirm what an attacker changed.
   *
   * @returns undefined when nothing is to be deleted, or the fault for which nothing is
   */
  async function findNextCheckpoint(
    rootUid: string,
    { checkpoint, head, entries, neededSeq, changedBody }: ChainStart,
    beforeMs: number,
  ): Promise<Pick<AuditCheckpoint, "seq" | "hash" | "entryTimeMs"> | Fault | undefined> {
    if (head === undefined) return { seq: findStart(checkpoint).seq, what: "the signed head is missing" };
    const signatureFault = (await findCheckpointFault(checkpoint, keys)) ?? (await findSignatureFault(head, keys));
    if (signatureFault !== undefined) return signatureFault;
    let end = findStart(checkpoint);
    let found: Pick<AuditCheckpoint, "seq" | "hash" | "entryTimeMs"> | undefined;
    for (const [i, entry] of entries.entries()) {
      const next = verifyEntry(entry, end, rootUid);
      if ("what" in next) return next;
      if (entry.seq === changedBody) return buildBodyFault(entry);
      end = next;
      const { timeMs = Number.POSITIVE_INFINITY } = entry.row ?? {};
      const isNeeded = neededSeq !== undefined && end.seq >= neededSeq;
      if (timeMs >= beforeMs || isNeeded || end.seq >= head.seq || i === batchRows) return found;
      found = { ...end, entryTimeMs: timeMs };
    }
    return { seq: end.seq + 1, what: `the chain is cut: it ends here, and ${head.seq} entries were signed` };
  }

  async function commit(run: JobRun, { checkpoint }: ChainStart, next: AuditCheckpoint): Promise<number> {
    const { rootUid, seq } = next;
    const afterSeq = checkpoint?.seq ?? 0;
    return run.write(async (tx) => {
      // Somebody asked for old events meanwhile.
      if (((await tx.eventPositions.findLowestNeeded(rootUid)) ?? Number.POSITIVE_INFINITY) <= seq) return 0;
      const current = await tx.auditCheckpoints.find(rootUid);
      const { entries, rows } = await tx.auditCheckpoints.deleteEntries(rootUid, afterSeq, seq);
      // The database was changed by hand since it was read. The error undoes the deletion.
      if (current?.signature !== checkpoint?.signature || entries !== seq - afterSeq || rows !== entries) {
        throw new Error(`the log of ${formatLogName(rootUid)} changed while its old rows were deleted`);
      }
      await tx.auditCheckpoints.put(next);
      return rows;
    });
  }

  return {
    name: RETENTION_JOB,
    problem: "old rows of the audit log could not be deleted",
    intervalMs: INTERVAL_MS,
    waitsAfterClockJump: true,
    run: deleteOldRows,
  };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
