// Limits unfinished logins by address. Each is a row in the store, written before the caller has authenticated.
import { LRUCache } from "lru-cache";
import { invalidArgument, resourceExhausted } from "../../kernel/errors.js";
import { addressKey } from "../../kernel/ip-address.js";
import type { Clock } from "../../kernel/time.js";

/** The limit per window, and the length of a window in milliseconds. */
const MAX_STARTED = 300;
const WINDOW_MS = 10 * 60 * 1000;
/**
 * A login is counted at most twice: when the code of a terminal or device is typed, and when the browser is sent to a
 * provider.
 */
const COUNTS_PER_LOGIN = 2;
/** The largest number of counted addresses; beyond it the least recently counted one is forgotten. */
const MAX_ADDRESSES = 20_000;

/** The largest row of an unfinished login, in characters of JSON. A request that names every capability fits. */
const MAX_ROW_CHARS = 8 * 1024;

/** Limits the unfinished logins of addresses. */
export type StartLimit = ReturnType<typeof createStartLimit>;

/** Creates the limit. It counts in memory, which is bounded. */
export function createStartLimit(clock: Clock) {
  // Created with the first login, because it allocates for all its addresses at once.
  let windows: LRUCache<string, { count: number; readonly endMs: number }> | undefined;

  function getWindow(key: string, nowMs: number) {
    windows ??= new LRUCache({ max: MAX_ADDRESSES });
    const found = windows.get(key);
    // After the clock was set back, windows that end too late start again.
    if (found !== undefined && found.endMs > nowMs && found.endMs <= nowMs + WINDOW_MS) return found;
    const fresh = { count: 0, endMs: nowMs + WINDOW_MS };
    windows.set(key, fresh);
    return fresh;
  }

  return {
    /**
     * Counts a login that an address starts.
     *
     * @param stored the row to be stored
     * @throws ApiError INVALID_ARGUMENT when the row is too large, RESOURCE_EXHAUSTED with the time to wait
     */
    start(address: string | undefined, stored: object): void {
      assertSmall(stored);
      const nowMs = clock();
      const window = getWindow(addressKey(address), nowMs);
      if (window.count >= MAX_STARTED) {
        throw resourceExhausted("too many unfinished logins from this address", window.endMs - nowMs, "rate");
      }
      window.count++;
    },
    /** Uncounts a finished login, so that addresses from which people sign in are not limited. */
    finish(address: string | undefined): void {
      const window = windows?.get(addressKey(address));
      if (window !== undefined) window.count = Math.max(0, window.count - COUNTS_PER_LOGIN);
    },
  };
}

function assertSmall(stored: object): void {
  if (JSON.stringify(stored).length <= MAX_ROW_CHARS) return;
  throw invalidArgument({
    field: "request",
    description: `the parameters of a login must be at most ${MAX_ROW_CHARS} characters together`,
  });
}
