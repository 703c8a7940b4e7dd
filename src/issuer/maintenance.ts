// Background work of the issuer. One node deletes expired rows and rotates keys. Every node reads the keys again each
// second, so that it follows the changes of others, and writes its last-seen times.
import { setImmediate } from "node:timers/promises";
import type { Job } from "../jobs/jobs.js";
import { createSchedule, type Schedule } from "../jobs/schedule.js";
import type { Clock } from "../kernel/time.js";
import { identityKind } from "../store/iam/identities.js";
import type { Store } from "../store/store.js";
import type { Tx } from "../store/transaction.js";
import type { KeyRing } from "./keys/key-ring.js";
import type { KeySchedule, KeyStateChange } from "./keys/key-states.js";

/** The interval between deletions of expired rows, in milliseconds. */
const SWEEP_MS = 600_000;

/**
 * How many rows one statement deletes. On SQLite a statement blocks the main thread: 50 rows of 48 KiB, larger than
 * any row today, took 7 ms.
 */
const SWEEP_ROWS = 50;

export interface ExpiredRowSweepDeps {
  readonly store: Pick<Store, "read">;
  readonly clock: Clock;
}

/** Creates the job that deletes expired rows. A clock that is ahead does not decide alone what has expired. */
export function createExpiredRowSweep({ store, clock }: ExpiredRowSweepDeps): Job {
  return {
    name: "expired-rows",
    problem: "expired rows could not be deleted",
    intervalMs: SWEEP_MS,
    waitsAfterClockJump: true,
    async run(run) {
      const nowMs = Math.min(clock(), await store.read((tx) => tx.jobs.nowMs()));
      return deleteExpired(run, nowMs, () => run.signal.aborted);
    },
  };
}

/**
 * Deletes expired tickets, refresh tokens and records of revoked tokens in transactions of a few rows each, so that other calls run between them.
 *
 * @param isStopped checked before each transaction; the rest is deleted next time
 * @returns how many were deleted
 */
export async function deleteExpired(
  { write }: Pick<Store, "write">,
  nowMs: number,
  isStopped: () => boolean,
): Promise<number> {
  const sweeps = [
    (tx: Tx) => tx.tickets.sweep(nowMs, SWEEP_ROWS),
    (tx: Tx) => tx.refreshTokens.sweep(nowMs, SWEEP_ROWS),
    (tx: Tx) => tx.revokedTokens.sweep(nowMs, SWEEP_ROWS),
  ];
  let deleted = 0;
  for (const sweep of sweeps) {
    for (let count = SWEEP_ROWS; count === SWEEP_ROWS && !isStopped(); deleted += count) {
      count = await write(async (tx) => sweep(tx));
      await setImmediate();
    }
  }
  return deleted;
}

/** How late `lastSeenTime` may be, in milliseconds. */
const FLUSH_MS = 5_000;

/** How many times are written in one transaction. */
const BATCH = 200;

export interface LastSeenFlushDeps {
  readonly lastSeen: Pick<LastSeen, "flush">;
  /** Called once when the times cannot be written, and again only after a success. */
  readonly onProblem: (problem: string, error: unknown) => void;
}

/** Creates the schedule on which this node writes the last-seen times; `stop` writes those that are pending. */
export function createLastSeenFlush({ lastSeen, onProblem }: LastSeenFlushDeps): Schedule {
  const onFailure = (error: unknown) => onProblem("last-seen times could not be written", error);
  const schedule = createSchedule({
    ...{ intervalMs: FLUSH_MS, maxBackoffMs: FLUSH_MS, onFailure },
    run: async () => {
      await lastSeen.flush();
      return undefined;
    },
  });
  return {
    start: schedule.start,
    async stop() {
      await schedule.stop();
      await lastSeen.flush().catch(onFailure);
    },
  };
}

/** Collects the last-seen times of identities and writes them in batches instead of with every exchange. */
export type LastSeen = ReturnType<typeof createLastSeen>;

export function createLastSeen(store: Store) {
  let times = new Map<string, number>();

  function touch(identityUid: string, nowMs: number): void {
    times.set(identityUid, Math.max(nowMs, times.get(identityUid) ?? 0));
  }

  return {
    touch,
    /** Writes the pending times; those that cannot be written stay pending. */
    async flush(): Promise<void> {
      const pending = [...times];
      times = new Map();
      for (let i = 0; i < pending.length; i += BATCH) {
        try {
          await store.write(async (tx) => {
            for (const [uid, timeMs] of pending.slice(i, i + BATCH))
              await tx.table(identityKind).updateLastSeen(uid, timeMs);
          });
        } catch (error) {
          for (const [uid, timeMs] of pending.slice(i)) touch(uid, timeMs);
          throw error;
        }
      }
    },
  };
}

/** How often keys are read and rotated, in milliseconds. */
const KEY_INTERVAL_MS = 1_000;
/** The pause never grows after failures, because keys may have been revoked meanwhile. */
const KEY_PAUSES = { intervalMs: KEY_INTERVAL_MS, maxBackoffMs: KEY_INTERVAL_MS };

export interface KeyRotationDeps {
  readonly keys: Pick<KeyRing, "isChangeDue" | "advanceKeys">;
  readonly schedule: KeySchedule;
  /** Called with each state change that this node made. */
  readonly onKeyStateChange: (change: KeyStateChange) => void;
}

/** Creates the job that applies state changes of keys when they are due. */
export function createKeyRotation({ keys, schedule, onKeyStateChange }: KeyRotationDeps): Job {
  return {
    ...KEY_PAUSES,
    name: "key-rotation",
    waitsAfterClockJump: true,
    problem: "the keys could not be rotated",
    hasWork: async () => keys.isChangeDue(schedule),
    async run({ write }) {
      const changes = await keys.advanceKeys(schedule, write);
      for (const change of changes) onKeyStateChange(change);
      return changes.length;
    },
  };
}

export interface KeyReloadDeps {
  readonly keys: Pick<KeyRing, "refresh">;
  /** Called once when the keys cannot be read, and again only after a success. */
  readonly onProblem: (problem: string, error: unknown) => void;
}

/** Creates the schedule on which this node reads the keys. */
export function createKeyReload({ keys, onProblem }: KeyReloadDeps): Schedule {
  return createSchedule({
    ...KEY_PAUSES,
    run: async () => {
      await keys.refresh();
      return undefined;
    },
    onFailure: (error) => onProblem("the keys could not be read again and will be tried again", error),
  });
}
