// What the issuer does in the background: writes down who was seen, and deletes
// what has expired.
import type { Clock } from "../kernel/clock.js";
import type { Store } from "../store/port.js";
import type { LastSeen } from "./exchange/last-seen.js";

/** How late `lastSeenTime` may be, in milliseconds. */
const FLUSH_MS = 5_000;

/** How often what has expired is deleted, in milliseconds. */
const SWEEP_MS = 600_000;

/** Work in the background. */
export interface Upkeep {
  start(): void;
  /** Stops it, after what is known has been written. */
  stop(): Promise<void>;
}

/** Creates it; `onProblem` is told of what failed, which is tried again. */
export function createUpkeep(deps: {
  readonly store: Store;
  readonly lastSeen: LastSeen;
  readonly clock: Clock;
  readonly onProblem: (problem: string, error: unknown) => void;
}): Upkeep {
  const { store, lastSeen, clock, onProblem } = deps;
  const flush = () => lastSeen.flush().catch((error) => onProblem("who was seen could not be written", error));
  const sweep = () =>
    store
      .write(async (tx) => {
        await tx.tickets.sweep(clock());
        await tx.refreshTokens.sweep(clock());
      })
      .catch((error) => onProblem("what has expired could not be deleted", error));
  let timers: NodeJS.Timeout[] = [];
  return {
    start() {
      timers = [setInterval(flush, FLUSH_MS), setInterval(sweep, SWEEP_MS)];
      for (const timer of timers) timer.unref();
    },
    async stop() {
      for (const timer of timers) clearInterval(timer);
      await flush();
    },
  };
}
