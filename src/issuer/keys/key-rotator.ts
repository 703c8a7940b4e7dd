// Rotates the keys while the service runs: once a second it reads the changes of other nodes and commands, and applies
// state changes that are due.
import type { KeyRing } from "./key-ring.js";
import type { KeySchedule, KeyStateChange } from "./key-states.js";

export interface KeyRotatorDeps {
  readonly keys: Pick<KeyRing, "advanceKeys">;
  readonly schedule: KeySchedule;
  /** Called with each state change that this node made. */
  readonly onKeyStateChange: (change: KeyStateChange) => void;
  /** Called once when the keys cannot be read, and again only after a success. */
  readonly onProblem: (problem: string, cause: unknown) => void;
}

/** Rotates the keys while the service runs. */
export interface KeyRotator {
  /** Starts: now, then every second. */
  start(): void;
  /** Stops; resolves when no rotation is running. */
  stop(): Promise<void>;
}

/** The period in milliseconds: a revoked key is trusted at most this much longer. */
const PERIOD_MS = 1_000;

/** Creates the rotator; it does nothing before it is started. */
export function createKeyRotator({ keys, schedule, onKeyStateChange, onProblem }: KeyRotatorDeps): KeyRotator {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let failing = false;

  async function pass(): Promise<void> {
    try {
      for (const change of await keys.advanceKeys(schedule)) onKeyStateChange(change);
      failing = false;
    } catch (error) {
      if (!failing) onProblem("the keys could not be read again and will be tried again", error);
      failing = true;
    }
  }

  function tick(): void {
    running ??= pass().finally(() => {
      running = undefined;
    });
  }

  return {
    start() {
      tick();
      timer = setInterval(tick, PERIOD_MS);
      timer.unref();
    },
    async stop() {
      clearInterval(timer);
      await running;
    },
  };
}
