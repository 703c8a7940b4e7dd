// Waits for what happens soon. A test whose condition never holds fails within the limit, and says where.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";

const PAUSE_MS = 10;
/** How long anything may take, a call too: long enough for a machine that does thirty times as much. */
export const LIMIT_MS = 120_000;

/**
 * Asks again and again until something is found.
 *
 * @param find what is waited for; false or undefined while it is not there
 * @param limitMs how long it may take, in milliseconds of the machine: none of the test's own clock. Campaigns alone give one
 * @returns what was found
 * @throws AssertionError once the limit has passed
 */
export async function waitUntil<T>(
  find: () => T | false | undefined | Promise<T | false | undefined>,
  limitMs = LIMIT_MS,
): Promise<T> {
  for (const startMs = performance.now(); ; await sleep(PAUSE_MS)) {
    const found = await find();
    if (found !== false && found !== undefined) return found;
    if (performance.now() - startMs > limitMs) assert.fail(`it did not happen within ${limitMs} ms: ${find}`);
  }
}
