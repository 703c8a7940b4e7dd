// The clock, and time slices: long work yields to the event loop, so that short calls are not delayed.

/** Returns the time in epoch milliseconds; replaced in tests. */
export type Clock = () => number;

export const systemClock: Clock = () => Date.now();

/** An instant, in epoch milliseconds, as a google.protobuf.Timestamp. */
export function timestampOf(ms: number) {
  const seconds = Math.floor(ms / 1000);
  const nanos = Math.round((ms - seconds * 1000) * 1_000_000);
  return { $typeName: "google.protobuf.Timestamp" as const, seconds: BigInt(seconds), nanos };
}

/** The longest time slice, in milliseconds. */
const SLICE_MS = 5;

/**
 * The number of event loop ticks between two slices: a short call needs about this many from its first byte to its
 * response.
 */
const TICKS_BETWEEN = 6;

let lastSlice = Promise.resolve();

/**
 * Resolves in a later tick of the event loop, after all earlier callers. With several long tasks, one slice runs at a
 * time, and short calls run between slices.
 */
export function yieldToEventLoop(): Promise<void> {
  lastSlice = lastSlice.then(async () => {
    for (let i = 0; i < TICKS_BETWEEN; i++) await new Promise((resolve) => setImmediate(resolve));
  });
  return lastSlice;
}

/** Runs the work without yielding, where no other work waits. */
export function runSync<T>(work: Generator<void, T>): T {
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
  }
}

/** Runs the work in time slices, and yields to the event loop between them. */
export async function runInSlices<T>(work: Generator<void, T>): Promise<T> {
  for (let startMs = performance.now(); ; ) {
    const { done, value } = work.next();
    if (done) return value;
    if (performance.now() - startMs < SLICE_MS) continue;
    await yieldToEventLoop();
    startMs = performance.now();
  }
}
