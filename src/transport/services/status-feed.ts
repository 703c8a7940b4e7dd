// A value that many streams follow. It is polled once for all of them, and only while there are any.

/** How often the value is polled, in milliseconds. */
const POLL_MS = 1_000;

export interface FeedOptions<T> {
  /** Reads the value. Must not reject. */
  readonly check: () => Promise<T>;
  /** Aborted when the feed ends. */
  readonly end: AbortSignal;
  /** The value after the end. */
  readonly last: T;
}

/** A stream that follows the value. */
export interface Follower<T> {
  /**
   * Resolves with the value when it differs from `known`. Resolves to undefined when the follower has disconnected, and
   * at the end of the feed when `known` is its last value.
   */
  next(known: T | undefined): Promise<T | undefined>;
  /** Resolves at the end of the feed, or when the follower has disconnected. */
  waitForEnd(): Promise<void>;
  /** Must be called at the end. */
  close(): void;
}

/** A feed of one value. */
export interface Feed<T> {
  /** @param gone aborted when the follower disconnects */
  follow(gone: AbortSignal): Follower<T>;
  /** Reads the value now, if there are followers. */
  refresh(): void;
}

/** Creates a feed. It does nothing without followers. */
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
    // Without followers polling stops, and the next follower reads the value again.
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

  // Resolves at the next change, at the end, or when the follower has disconnected.
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
    refresh() {
      if (timer === undefined) return;
      clearTimeout(timer);
      void poll();
    },
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
