// Advances the states of a running node's keys once a second, and reads what
// other nodes and commands changed.
import type { KeyRing } from "./key-ring.js";
import type { KeyMove, KeySchedule } from "./key-states.js";

export interface KeyRotatorDeps {
  readonly keys: Pick<KeyRing, "advanceKeys">;
  readonly schedule: KeySchedule;
  /** Told of each move that this node made. */
  readonly onMove: (move: KeyMove) => void;
  /** Told once when the keys cannot be read any more, and again only after they could. */
  readonly onProblem: (problem: string, cause: unknown) => void;
}

/** Advances the states of the keys while the service runs. */
export interface KeyRotator {
  /** Begins to advance their states, now and every second. */
  start(): void;
  /** Ends; resolves when nothing is under way any more. */
  stop(): Promise<void>;
}

/** Between two looks, in milliseconds: a key that was revoked is trusted that much longer. */
const PERIOD_MS = 1_000;

/** Creates the rotator; it does nothing before it is started. */
export function createKeyRotator({ keys, schedule, onMove, onProblem }: KeyRotatorDeps): KeyRotator {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let failing = false;

  async function pass(): Promise<void> {
    try {
      for (const move of await keys.advanceKeys(schedule)) onMove(move);
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
