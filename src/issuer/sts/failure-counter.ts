import { LRUCache } from "lru-cache";

/** How many failures are allowed within how many seconds. */
export interface FailureLimit {
  readonly points: number;
  readonly seconds: number;
}

/** So many names are counted; beyond that the one counted least lately is forgotten. */
const MAX_NAMES = 20_000;

/** Counts failures by name, in windows that begin with the first one; keeps a bounded number of names. */
export interface FailureCounter {
  add(name: string): void;
  /** Until when the limit is reached, in milliseconds from now; 0 when it is not. */
  exhaustedForMs(name: string): number;
}

/** Creates the counter, in memory. */
export function createFailureCounter({ points, seconds }: FailureLimit, maxNames = MAX_NAMES): FailureCounter {
  const windows = new LRUCache<string, { failures: number; readonly endMs: number }>({ max: maxNames });

  function open(name: string) {
    const found = windows.get(name);
    return found !== undefined && found.endMs > performance.now() ? found : undefined;
  }

  return {
    add(name) {
      const found = open(name);
      if (found !== undefined) found.failures++;
      else windows.set(name, { failures: 1, endMs: performance.now() + seconds * 1000 });
    },
    exhaustedForMs(name) {
      const found = open(name);
      return found !== undefined && found.failures >= points ? found.endMs - performance.now() : 0;
    },
  };
}
