// The processor time of the turns of the event loop: how long one caller keeps all others waiting, whatever else the
// machine does meanwhile.

/** What {@link watchTurns} measures. */
export interface Turns {
  /** The longest turn since the last call, in milliseconds of processor time. */
  takeLongestMs(): number;
  stop(): void;
}

// Of the thread where Node tells it (22.19, 23.9 and newer), which leaves out the threads of the garbage collector;
// otherwise of the process.
const readUsage = (process as { threadCpuUsage?: () => NodeJS.CpuUsage }).threadCpuUsage ?? process.cpuUsage;

function readMs(): number {
  const { user, system } = readUsage.call(process);
  return (user + system) / 1000;
}

/** Measures every turn of the event loop until it is stopped. The loop does not sleep meanwhile. */
export function watchTurns(): Turns {
  let longestMs = 0;
  let beganMs = readMs();
  const measure = () => {
    const nowMs = readMs();
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
 * The longest turn of a repeated action in its best try, because the garbage collector and a cold cache lengthen others.
 *
 * @param act gets the number of the try
 */
export async function takeShortest(turns: Turns, act: (n: number) => Promise<void>, tries = 4): Promise<number> {
  let shortest = Number.POSITIVE_INFINITY;
  for (let n = 0; n < tries; n++) {
    turns.takeLongestMs();
    await act(n);
    // The turn that answered ends.
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    shortest = Math.min(shortest, turns.takeLongestMs());
  }
  return shortest;
}
