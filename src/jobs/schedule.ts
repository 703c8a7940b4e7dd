// Work that repeats: at an interval, later after failures, and never two runs at once.

/** Nodes that start together soon run at different times, because an interval is up to this share shorter. */
const JITTER = 0.1;
/** The pause after the first failure, in milliseconds, unless the interval is shorter; it doubles with each failure. */
const FIRST_BACKOFF_MS = 1_000;
/** The shortest pause between two runs, in milliseconds. */
const MIN_PAUSE_MS = 20;
/** How long `stop` waits for a run, in milliseconds. */
const STOP_MS = 5_000;

/** The pauses of repeated work. */
export interface Pauses {
  /** From the start of one run to the start of the next, in milliseconds. */
  readonly intervalMs: number;
  /** The longest pause after failures, in milliseconds; 60 s unless set. */
  readonly maxBackoffMs?: number;
}

export interface ScheduleDeps extends Pauses {
  /** Resolves to the pause until the next run in milliseconds, where it is another than the interval. */
  readonly run: () => Promise<number | undefined>;
  /** Called with the first of several failures in a row, for the operator's log. */
  readonly onFailure: (error: unknown) => void;
  /** From 0 to below 1; replaced in tests. */
  readonly random?: () => number;
}

/** Repeated work. */
export type Schedule = ReturnType<typeof createSchedule>;

/** Creates a schedule, which does nothing before it is started. */
export function createSchedule(deps: ScheduleDeps) {
  const { run, onFailure, random = Math.random } = deps;
  let failures = 0;
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let stopped = false;

  async function runOnce(): Promise<void> {
    const startMs = performance.now();
    let pauseMs: number;
    try {
      const chosenMs = await run();
      failures = 0;
      pauseMs = chosenMs ?? deps.intervalMs * (1 - JITTER * random()) - (performance.now() - startMs);
    } catch (error) {
      failures++;
      if (failures === 1) onFailure(error);
      pauseMs = computeBackoffMs(deps, failures, random);
    }
    if (stopped) return;
    timer = setTimeout(tick, Math.max(pauseMs, MIN_PAUSE_MS));
    timer.unref();
  }

  function tick(): void {
    running = runOnce();
  }

  return {
    /** Starts: now, then at the interval. */
    start: tick,
    /** Stops. Resolves when the run in progress ends, or after five seconds. */
    async stop(): Promise<void> {
      stopped = true;
      clearTimeout(timer);
      await waitAtMost(running, STOP_MS);
    },
  };
}

/**
 * The pause after failures: it doubles with each one, and half of it is random.
 *
 * @param failures how many runs failed in a row, 1 or more
 * @returns milliseconds
 */
export function computeBackoffMs(
  { intervalMs, maxBackoffMs = 60_000 }: Pauses,
  failures: number,
  random: () => number,
): number {
  const first = Math.min(intervalMs, FIRST_BACKOFF_MS);
  const longest = Math.min(first * 2 ** Math.min(failures - 1, 30), Math.max(maxBackoffMs, first));
  return longest * (0.5 + random() / 2);
}

/** Resolves when `work` has settled, or after `ms` milliseconds; to whether it has settled. */
export async function waitAtMost(work: Promise<unknown> | undefined, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  const settled = Promise.resolve(work).then(
    () => true,
    () => true,
  );
  try {
    return await Promise.race([settled, late]);
  } finally {
    clearTimeout(timer);
  }
}
