/**
 * Keeps this process from doing anything else, as a long computation does, and leaves the processor to others.
 *
 * @param ms how long, in milliseconds
 */
export function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
