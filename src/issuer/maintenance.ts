// What the issuer does in the background: writes down who was seen, and deletes
// what has expired.
import { setImmediate } from "node:timers/promises";
import type { Clock } from "../kernel/clock.js";
import type { Store, Tx } from "../store/port.js";

/** How late `lastSeenTime` may be, in milliseconds. */
const FLUSH_MS = 5_000;

/** How often what has expired is deleted, in milliseconds. */
const SWEEP_MS = 600_000;

/**
 * How many rows one statement deletes. On SQLite that is work of the main thread, and all calls wait for it: 50 rows
 * of 48 KiB, which no row has any more, took 7 ms.
 */
const SWEEP_ROWS = 50;

/** Work in the background. */
export interface Maintenance {
  start(): void;
  /** Stops it, after what is known has been written. */
  stop(): Promise<void>;
}

/** Creates it; `onProblem` is told of what failed, which is tried again. */
export function createMaintenance(deps: {
  readonly store: Store;
  readonly lastSeen: LastSeen;
  readonly clock: Clock;
  readonly onProblem: (problem: string, error: unknown) => void;
}): Maintenance {
  const { store, lastSeen, clock, onProblem } = deps;
  const flush = () => lastSeen.flush().catch((error) => onProblem("who was seen could not be written", error));
  let stopped = false;
  let sweeping: Promise<void> | undefined;
  const sweep = () => {
    sweeping ??= deleteExpired(store, clock(), () => stopped)
      .catch((error) => onProblem("what has expired could not be deleted", error))
      .finally(() => {
        sweeping = undefined;
      });
    return sweeping;
  };
  let timers: NodeJS.Timeout[] = [];
  return {
    start() {
      timers = [setInterval(flush, FLUSH_MS), setInterval(sweep, SWEEP_MS)];
      for (const timer of timers) timer.unref();
    },
    async stop() {
      stopped = true;
      for (const timer of timers) clearInterval(timer);
      await sweeping;
      await flush();
    },
  };
}

/**
 * Deletes the tickets and refresh tokens that have expired, in transactions of a few rows each. Other calls are
 * answered between two of them.
 *
 * @param isStopped asked before each transaction; what is left then is deleted another time
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

/** Remembers when identities were last seen, and writes that down now and then, not with every exchange. */
export interface LastSeen {
  touch(identityUid: string, nowMs: number): void;
  /** Writes down what is not yet; what could not be written stays for the next time. */
  flush(): Promise<void>;
}

/** So many are written in one transaction. */
const BATCH = 200;

/** Creates it. */
export function createLastSeen(store: Store): LastSeen {
  let seen = new Map<string, number>();

  function touch(identityUid: string, nowMs: number): void {
    seen.set(identityUid, Math.max(nowMs, seen.get(identityUid) ?? 0));
  }

  return {
    touch,
    async flush() {
      const pending = [...seen];
      seen = new Map();
      for (let i = 0; i < pending.length; i += BATCH) {
        try {
          await store.write(async (tx) => {
            for (const [uid, timeMs] of pending.slice(i, i + BATCH)) await tx.identities.seen(uid, timeMs);
          });
        } catch (error) {
          for (const [uid, timeMs] of pending.slice(i)) touch(uid, timeMs);
          throw error;
        }
      }
    },
  };
}
