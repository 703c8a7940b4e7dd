// Every node reads the keys again each second, so that it follows the changes of others. One node rotates them.
import type { Job } from "../../jobs/jobs.js";
import { createSchedule, type Schedule } from "../../jobs/schedule.js";
import type { KeyRing } from "./key-ring.js";
import type { KeySchedule, KeyStateChange } from "./key-states.js";

/** How often keys are read and rotated, in milliseconds: a revoked key is trusted at most this much longer. */
const INTERVAL_MS = 1_000;
/** The pause never grows after failures, because keys may have been revoked meanwhile. */
const PAUSES = { intervalMs: INTERVAL_MS, maxBackoffMs: INTERVAL_MS };

export interface KeyRotationDeps {
  readonly keys: Pick<KeyRing, "isChangeDue" | "advanceKeys">;
  readonly schedule: KeySchedule;
  /** Called with each state change that this node made. */
  readonly onKeyStateChange: (change: KeyStateChange) => void;
}

/** Creates the job that applies state changes of keys when they are due. */
export function createKeyRotation({ keys, schedule, onKeyStateChange }: KeyRotationDeps): Job {
  return {
    ...PAUSES,
    name: "key-rotation",
    waitsAfterClockJump: true,
    problem: "the keys could not be rotated",
    hasWork: () => keys.isChangeDue(schedule),
    async run({ write }) {
      const changes = await keys.advanceKeys(schedule, write);
      for (const change of changes) onKeyStateChange(change);
      return changes.length;
    },
  };
}

export interface KeyReloadDeps {
  readonly keys: Pick<KeyRing, "reload">;
  /** Called once when the keys cannot be read, and again only after a success. */
  readonly onProblem: (problem: string, error: unknown) => void;
}

/** Creates the schedule on which this node reads the keys. */
export function createKeyReload({ keys, onProblem }: KeyReloadDeps): Schedule {
  return createSchedule({
    ...PAUSES,
    run: async () => {
      await keys.reload();
      return undefined;
    },
    onFailure: (error) => onProblem("the keys could not be read again and will be tried again", error),
  });
}
