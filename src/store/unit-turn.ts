// How a unit of work waits for the database, whichever it is.
import { type ApiError, databaseBusy, deadlineExceeded } from "../kernel/errors.js";
import { SERVICE, type Turn } from "../kernel/fair-queue.js";
import type { Clock } from "../kernel/time.js";
import type { UnitOptions } from "./store.js";

/** The turn of a unit of work. */
export interface UnitTurn extends Turn {
  /** What its caller is told if it was given up: its own deadline has passed, or the database was busy for too long. */
  readonly late: () => ApiError;
}

/** Begins to wait, until the unit may wait no longer or the deadline of its caller. */
export function waitForTurn(
  {
    key = SERVICE,
    maxWaitMs = Number.POSITIVE_INFINITY,
    deadlineMs = Number.POSITIVE_INFINITY,
  }: Pick<UnitOptions, "key" | "maxWaitMs" | "deadlineMs">,
  clock: Clock,
): UnitTurn {
  const leftMs = deadlineMs - clock();
  const isCallers = leftMs < maxWaitMs;
  return {
    key,
    startByMs: performance.now() + (isCallers ? leftMs : maxWaitMs),
    late: isCallers ? deadlineExceeded : databaseBusy,
  };
}
