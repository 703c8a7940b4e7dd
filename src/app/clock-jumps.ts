// Finds jumps of the machine's clock, counts and logs them, and pauses jobs that would rotate keys or delete rows because
// of a wrong clock.
import type { Job } from "../jobs/jobs.js";
import { type Clock, systemClock } from "../kernel/time.js";
import type { Logger } from "../telemetry/logger.js";
import { readValues, type Source } from "../telemetry/metrics/samples.js";

const CHECK_MS = 1_000;
/** Smaller differences are no jumps: the clock is adjusted, or the process was delayed between reading both clocks. */
const JUMP_MS = 5_000;
/** After a jump forward of more than this, irreversible jobs pause. */
const LONG_JUMP_MS = 60_000;
const PAUSE_MS = 3_600_000;

export interface ClockWatchDeps {
  readonly logger: Pick<Logger, "warn">;
  /** The clock of the machine; replaced in tests. */
  readonly clock?: Clock;
  /** A monotonic clock; replaced in tests. */
  readonly monotonicMs?: () => number;
}

/** Compares the clock with a monotonic one every second, until it is stopped. */
export function watchClock(deps: ClockWatchDeps) {
  const { logger, clock = systemClock, monotonicMs = () => performance.now() } = deps;
  const jumps = { forward: 0, back: 0 };
  let offsetMs = clock() - monotonicMs();
  let pausedUntilMs = Number.NEGATIVE_INFINITY;
  /** The time of the last jump, and the sum of the jumps of the last hour. */
  let lastJumpMs = Number.NEGATIVE_INFINITY;
  let aheadMs = 0;

  function check(): void {
    const nowMs = monotonicMs();
    const jumpMs = clock() - nowMs - offsetMs;
    offsetMs += jumpMs;
    if (Math.abs(jumpMs) < JUMP_MS) return;
    jumps[jumpMs > 0 ? "forward" : "back"]++;
    // A jump back cancels a jump forward.
    aheadMs = (nowMs - lastJumpMs < PAUSE_MS ? aheadMs : 0) + jumpMs;
    lastJumpMs = nowMs;
    const isPaused = aheadMs > LONG_JUMP_MS;
    pausedUntilMs = isPaused ? nowMs + PAUSE_MS : Number.NEGATIVE_INFINITY;
    const fields = { jumpSeconds: Math.round(jumpMs / 1000), ...(isPaused && { pauseSeconds: PAUSE_MS / 1000 }) };
    logger.warn(
      fields,
      isPaused
        ? "the clock of the machine jumped forward: keys do not rotate and expired rows are not deleted for now"
        : "the clock of the machine jumped",
    );
  }

  const timer = setInterval(check, CHECK_MS).unref();
  return {
    check,
    stop: () => clearInterval(timer),
    /** Makes a job that cannot be undone pause after a jump forward. */
    pauseAfterJump(job: Job): Job {
      if (!job.waitsAfterClockJump) return job;
      return {
        ...job,
        async run(run) {
          check();
          return monotonicMs() < pausedUntilMs ? 0 : job.run(run);
        },
      };
    },
    sources: [readValues("arbor_clock_jumps_total", "direction", () => jumps)] satisfies Source[],
  };
}
