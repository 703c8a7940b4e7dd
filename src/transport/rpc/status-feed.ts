// One value that many streams follow: looked at once for all of them, and only while there are any.

/** How often the value is looked at, in milliseconds. */
const POLL_MS = 1_000;

/** What a feed follows. */
export interface FeedOptions<T> {
  /** Looks at the value. Must not reject. */
  readonly check: () => Promise<T>;
  /** Aborted when the feed ends. */
  readonly end: AbortSignal;
  /** The last value, from the end on. */
  readonly last: T;
}

/** One of those that follow the value. */
export interface Follower<T> {
  /**
   * Resolves with the value as soon as it is another than `known`, at once if it is. Undefined when the
   * follower has gone, and at the end of the feed when the last value is known.
   */
  next(known: T | undefined): Promise<T | undefined>;
  /** Resolves at the end of the feed, or when the follower has gone. */
  waitForEnd(): Promise<void>;
  /** Must be called once nothing more is asked. */
  close(): void;
}

/** The value, for its subscribers. */
export interface Feed<T> {
  /** @param gone aborted when nobody reads any more */
  follow(gone: AbortSignal): Follower<T>;
}

/** Creates a feed; it does nothing until somebody follows. */
export function createFeed<T>({ check, end, last }: FeedOptions<T>): Feed<T> {
  const waiting = new Set<() => void>();
  let followers = 0;
  let value: T | undefined;
  let checking = false;
  let timer: NodeJS.Timeout | undefined;

  function publish(found: T): void {
    if (found === value) return;
    value = found;
    for (const wake of waiting) wake();
  }

  async function poll(): Promise<void> {
    timer = undefined;
    checking = true;
    const found = await check();
    checking = false;
    // What has no followers is looked at anew for the next one.
    if (followers === 0 || end.aborted) return;
    timer = setTimeout(poll, POLL_MS);
    publish(found);
  }

  const finish = () => {
    clearTimeout(timer);
    value = last;
    for (const wake of waiting) wake();
  };
  end.addEventListener("abort", finish, { once: true });

  // Resolves with the next change, the end, or when the follower has gone.
  function change(gone: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        waiting.delete(wake);
        gone.removeEventListener("abort", wake);
        resolve();
      };
      waiting.add(wake);
      gone.addEventListener("abort", wake, { once: true });
    });
  }

  return {
    follow(gone) {
      followers++;
      if (end.aborted) value = last;
      else if (timer === undefined && !checking) void poll();
      return {
        async next(known) {
          for (;;) {
            if (gone.aborted) return undefined;
            if (value !== undefined && value !== known) return value;
            if (end.aborted) return undefined;
            await change(gone);
          }
        },
        async waitForEnd() {
          while (!gone.aborted && !end.aborted) await change(gone);
        },
        close() {
          if (--followers > 0) return;
          clearTimeout(timer);
          timer = undefined;
          value = undefined;
        },
      };
    },
  };
}
