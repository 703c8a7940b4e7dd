// How many logins one address may leave unfinished: each is a row in the store,
// and nobody has proven anything yet when it is written.
import { LRUCache } from "lru-cache";
import type { Clock } from "../../kernel/clock.js";
import { invalidArgument, resourceExhausted } from "../../kernel/errors.js";
import { addressKey } from "../../kernel/ip-address.js";

/** How many in how many milliseconds. */
const MAX_STARTED = 300;
const WINDOW_MS = 10 * 60 * 1000;
/** How often a login is counted at most: a terminal's or a device's when its code is typed, and all on the way out. */
const STEPS = 2;
/** How many addresses are counted; beyond that the one that was counted least recently starts anew. */
const MAX_ADDRESSES = 20_000;

/** The largest row of an unfinished login, in characters of JSON: a request that names every capability fits. */
const MAX_ROW_CHARS = 8 * 1024;

/** Counts the unfinished logins of addresses. */
export interface StartLimit {
  /**
   * Counts a login that an address starts.
   *
   * @param stored what is to be stored of it
   * @throws ApiError INVALID_ARGUMENT when that is too large, RESOURCE_EXHAUSTED with the time to wait.
   */
  start(address: string | undefined, stored: object): void;
  /** Takes one off again that was finished: people who sign in are not limited. */
  finish(address: string | undefined): void;
}

/** Creates the counters, which are in memory and bounded. */
export function createStartLimit(clock: Clock): StartLimit {
  const windows = new LRUCache<string, { count: number; readonly endMs: number }>({ max: MAX_ADDRESSES });

  function windowOf(key: string, nowMs: number) {
    const found = windows.get(key);
    // A clock that was set back must not keep anybody out.
    if (found !== undefined && found.endMs > nowMs && found.endMs <= nowMs + WINDOW_MS) return found;
    const fresh = { count: 0, endMs: nowMs + WINDOW_MS };
    windows.set(key, fresh);
    return fresh;
  }

  return {
    start(address, stored) {
      requireSmall(stored);
      const nowMs = clock();
      const window = windowOf(addressKey(address), nowMs);
      if (window.count >= MAX_STARTED) {
        throw resourceExhausted("too many unfinished logins from this address", window.endMs - nowMs);
      }
      window.count++;
    },
    finish(address) {
      const window = windows.get(addressKey(address));
      if (window !== undefined) window.count = Math.max(0, window.count - STEPS);
    },
  };
}

function requireSmall(stored: object): void {
  if (JSON.stringify(stored).length <= MAX_ROW_CHARS) return;
  throw invalidArgument({
    field: "request",
    description: `the parameters of a login must be at most ${MAX_ROW_CHARS} characters together`,
  });
}
