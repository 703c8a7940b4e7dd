import { Refusal } from "./refusal.js";

/** Bounds how many of something run at once. */
export interface Slots {
  /**
   * Takes a slot, waiting for one in the order of arrival; resolves to the function that gives it back.
   *
   * @throws the reason of `signal` when that comes first, or a Refusal when too many wait already
   */
  take(signal: AbortSignal): Promise<() => void>;
}

/** Makes `running` slots, for which at most `waiting` may wait. */
export function createSlots(running: number, waiting: number): Slots {
  const queue = new Set<() => void>();
  let free = running;

  // A slot goes from hand to hand while anyone waits.
  function giveBack(): void {
    const [next] = queue;
    if (next === undefined) free++;
    else next();
  }

  return {
    async take(signal) {
      signal.throwIfAborted();
      if (free > 0) {
        free--;
        return giveBack;
      }
      if (queue.size === waiting) throw new Refusal("too many are waiting");
      await new Promise<void>((resolve, reject) => {
        const leave = () => {
          queue.delete(enter);
          signal.removeEventListener("abort", abort);
        };
        const enter = () => {
          leave();
          resolve();
        };
        const abort = () => {
          leave();
          reject(signal.reason);
        };
        queue.add(enter);
        signal.addEventListener("abort", abort, { once: true });
      });
      return giveBack;
    },
  };
}
