// The processor time of the turns of the event loop: how long one caller keeps all others waiting, whatever else the
// machine does meanwhile.
import { readMainThreadMs } from "./stopwatch.js";

/** What {@link watchTurns} measures. */
export interface Turns {
  /** The longest turn since the last call, in milliseconds of processor time. */
  takeLongestMs(): number;
  stop(): void;
}

/** Measures every turn of the event loop until it is stopped. The loop does not sleep meanwhile. */
export function watchTurns(): Turns {
  let longestMs = 0;
  let beganMs = readMainThreadMs();
  const measure = () => {
    const nowMs = readMainThreadMs();
    longestMs = Math.max(longestMs, nowMs - beganMs);
    beganMs = nowMs;
    immediate = setImmediate(measure);
  };
  let immediate = setImmediate(measure);
  return {
    takeLongestMs() {
      const taken = longestMs;
      longestMs = 0;
      return taken;
    },
    stop: () => clearImmediate(immediate),
  };
}

/**
 * The longest turn of a repeated action in its best try: the garbage collector, a cold cache and other processes that use
 * the caches lengthen others. It ends with the first try within `maxMs`.
 *
 * @param act gets the number of the try
 */
export async function takeShortest(
  turns: Turns,
  maxMs: number,
  act: (n: number) => Promise<void>,
  tries = 12,
): Promise<number> {
  let shortest = Number.POSITIVE_INFINITY;
  for (let n = 0; n < tries && shortest > maxMs; n++) {
    turns.takeLongestMs();
    await act(n);
    // The turn that answered ends.
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    shortest = Math.min(shortest, turns.takeLongestMs());
  }
  return shortest;
}
