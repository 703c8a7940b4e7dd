// Whose unit of work gets the next connection to PostgreSQL: units wait in fair queues, so that a busy address does not
// stand before the others.
import { databaseBusy } from "../../kernel/errors.js";
import { FairQueue } from "../../kernel/fair-queue.js";
import type { UnitTurn } from "../unit-turn.js";

/** How often units are looked for that have waited too long, in milliseconds. */
const CHECK_MS = 100;

interface WaitingUnit extends UnitTurn {
  readonly begin: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Creates the turns of a pool of connections.
 *
 * @param connections how many units run at one time
 * @param capacity how many may wait
 */
export function createTurns(connections: number, capacity: number) {
  const queue = new FairQueue<WaitingUnit>(capacity);
  let free = connections;
  let timer: NodeJS.Timeout | undefined;

  function rejectExpired(): void {
    for (const unit of queue.expired(performance.now())) unit.reject(unit.late());
    if (queue.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  }

  function end(key: string, startMs: number): void {
    queue.charge(key, performance.now() - startMs);
    rejectExpired();
    const next = queue.take();
    if (next === undefined) free++;
    else next.begin();
  }

  return {
    /** How many units wait. */
    get waiting(): number {
      return queue.size;
    },

    /**
     * Runs a unit when it is its turn.
     *
     * @throws ApiError UNAVAILABLE when it has waited too long, or too many wait; DEADLINE_EXCEEDED
     */
    async run<T>(turn: UnitTurn, unit: () => Promise<T>): Promise<T> {
      if (free > 0) free--;
      else {
        await new Promise<void>((begin, reject) => {
          queue.push({ ...turn, begin, reject })?.reject(databaseBusy());
          timer ??= setInterval(rejectExpired, CHECK_MS).unref();
        });
      }
      const startMs = performance.now();
      try {
        return await unit();
      } finally {
        end(turn.key, startMs);
      }
    },
  };
}
