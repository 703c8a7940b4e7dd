// Background work of the issuer: writes last-seen times and deletes expired rows.
import { setImmediate } from "node:timers/promises";
import type { Clock } from "../kernel/time.js";
import type { Store, Tx } from "../store/port.js";

/** How late `lastSeenTime` may be, in milliseconds. */
const FLUSH_MS = 5_000;

/** The interval between deletions of expired rows, in milliseconds. */
const SWEEP_MS = 600_000;

/**
 * How many rows one statement deletes. On SQLite a statement blocks the main thread: 50 rows of 48 KiB, larger than
 * any row today, took 7 ms.
 */
const SWEEP_ROWS = 50;

/** Creates the background work; `onProblem` gets errors of attempts, which are repeated. */
export function createMaintenance(deps: {
  readonly store: Store;
  readonly lastSeen: LastSeen;
  readonly clock: Clock;
  readonly onProblem: (problem: string, error: unknown) => void;
}) {
  const { store, lastSeen, clock, onProblem } = deps;
  const flush = () => lastSeen.flush().catch((error) => onProblem("last-seen times could not be written", error));
  let stopped = false;
  let sweeping: Promise<void> | undefined;
  const sweep = () => {
    sweeping ??= deleteExpired(store, clock(), () => stopped)
      .catch((error) => onProblem("expired rows could not be deleted", error))
      .finally(() => {
        sweeping = undefined;
      });
    return sweeping;
  };
  let timers: NodeJS.Timeout[] = [];
  return {
    start(): void {
      timers = [setInterval(flush, FLUSH_MS), setInterval(sweep, SWEEP_MS)];
      for (const timer of timers) timer.unref();
    },
    /** Stops, after the pending last-seen times are written. */
    async stop(): Promise<void> {
      stopped = true;
      for (const timer of timers) clearInterval(timer);
      await sweeping;
      await flush();
    },
  };
}

/**
 * Deletes expired tickets and refresh tokens in transactions of a few rows each, so that other calls run between them.
 *
 * @param isStopped checked before each transaction; the rest is deleted next time
 */
export async function deleteExpired(store: Store, nowMs: number, isStopped: () => boolean): Promise<void> {
  const sweeps = [
    (tx: Tx) => tx.tickets.sweep(nowMs, SWEEP_ROWS),
    (tx: Tx) => tx.refreshTokens.sweep(nowMs, SWEEP_ROWS),
  ];
  for (const sweep of sweeps) {
    while (!isStopped() && (await store.write(async (tx) => sweep(tx))) === SWEEP_ROWS) await setImmediate();
  }
}

/** How many times are written in one transaction. */
const BATCH = 200;

/** Collects the last-seen times of identities and writes them in batches instead of with every exchange. */
export type LastSeen = ReturnType<typeof createLastSeen>;

/** Creates the collector. */
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
            for (const [uid, timeMs] of pending.slice(i, i + BATCH)) await tx.identities.updateLastSeen(uid, timeMs);
          });
        } catch (error) {
          for (const [uid, timeMs] of pending.slice(i)) touch(uid, timeMs);
          throw error;
        }
      }
    },
  };
}
