// Watches the machine of the service: jumps of its clock, and the supply of file descriptors. Logs the begin and the
// end of each fault, and pauses jobs that would delete rows because of a wrong clock.
import { closeSync, openSync, readFileSync } from "node:fs";
import { devNull } from "node:os";
import type { Settings } from "../config/config.js";
import type { Job } from "../jobs/jobs.js";
import { type Clock, systemClock } from "../kernel/time.js";
import { type DatabaseFaultEvent, databaseFaults } from "../store/sqlite/faults.js";
import type { Store } from "../store/store.js";
import type { Logger } from "../telemetry/logger.js";
import { readValues, type Source } from "../telemetry/metrics/samples.js";
import { defaultLimits, type Limits } from "../transport/http/limits.js";

const CHECK_MS = 1_000;
/** Smaller differences are no jumps: the clock is adjusted, or the process was delayed between reading both clocks. */
const JUMP_MS = 5_000;
/** After a jump forward of more than this, irreversible jobs pause. */
const LONG_JUMP_MS = 60_000;
const PAUSE_MS = 3_600_000;
/** How often a lack of file descriptors is logged, in milliseconds. */
const LOG_MS = 60_000;

export interface HostWatchDeps {
  readonly logger: Pick<Logger, "error" | "warn" | "info">;
  /** The clock of the machine; replaced in tests. */
  readonly clock?: Clock;
  /** A monotonic clock; replaced in tests. */
  readonly monotonicMs?: () => number;
  /** Opens a file, to find out whether that is possible; replaced in tests. */
  readonly openFile?: () => void;
}

/** Creates the watch, which checks every second until it is stopped. */
export function createHostWatch(deps: HostWatchDeps) {
  const { logger, clock = systemClock, monotonicMs = () => performance.now(), openFile = openNothing } = deps;
  const jumps = { forward: 0, back: 0 };
  const shortages = { accept: 0, check: 0 };
  let offsetMs = clock() - monotonicMs();
  let pausedUntilMs = Number.NEGATIVE_INFINITY;
  /** The time of the last jump, and the sum of the jumps of the last hour. */
  let lastJumpMs = Number.NEGATIVE_INFINITY;
  let aheadMs = 0;
  let shortageMs: number | undefined;
  let loggedMs = Number.NEGATIVE_INFINITY;

  function checkClock(): void {
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

  function noteShortage(foundBy: keyof typeof shortages, err: unknown): void {
    shortages[foundBy]++;
    const nowMs = monotonicMs();
    shortageMs ??= nowMs;
    if (nowMs - loggedMs < LOG_MS) return;
    loggedMs = nowMs;
    logger.error(
      { err, limit: readFileLimit() },
      "no more files or connections can be opened: new connections are cut",
    );
  }

  function checkFiles(): void {
    try {
      openFile();
    } catch (error) {
      if (isFileShortage(error)) noteShortage("check", error);
      return;
    }
    if (shortageMs === undefined) return;
    const durationMs = Math.round(monotonicMs() - shortageMs);
    shortageMs = undefined;
    loggedMs = Number.NEGATIVE_INFINITY;
    logger.info({ durationMs }, "files and connections can be opened again");
  }

  function check(): void {
    checkClock();
    checkFiles();
  }

  const timer = setInterval(check, CHECK_MS).unref();
  return {
    check,
    stop: () => clearInterval(timer),
    /** Notes an error of accepting a connection. */
    noteAcceptError(error: unknown): void {
      if (isFileShortage(error)) noteShortage("accept", error);
      else logger.error({ err: error }, "accepting a connection failed");
    },
    /** Makes a job that cannot be undone pause after a jump forward. */
    pauseAfterJump(job: Job): Job {
      if (!job.waitsAfterClockJump) return job;
      return {
        ...job,
        async run(run) {
          checkClock();
          return monotonicMs() < pausedUntilMs ? 0 : job.run(run);
        },
      };
    },
    sources: [
      readValues("arbor_clock_jumps_total", "direction", () => jumps),
      readValues("arbor_file_shortages_total", "found_by", () => shortages),
    ] satisfies Source[],
  };
}

/** Creates the metrics of faults of SQLite; PostgreSQL has none. */
export function createDatabaseFaultSources(store: Pick<Store, "stats">): Source[] {
  const byFault = (read: (fault: (typeof databaseFaults)[number]) => number) =>
    Object.fromEntries(databaseFaults.map((fault) => [fault, read(fault)]));
  return [
    readValues("arbor_database_fault", "fault", () => {
      const current = store.stats().faults?.current;
      return current && byFault((fault) => Number(current.has(fault)));
    }),
    readValues("arbor_database_fault_errors_total", "fault", () => store.stats().faults?.errors),
  ];
}

/** Logs the begin and the end of each fault of the database in one line each, however many calls fail. */
export function logDatabaseFault(logger: Pick<Logger, "error" | "info">) {
  return ({ state, message, ...fields }: DatabaseFaultEvent): void => {
    if (state === "began") logger.error(fields, message);
    else logger.info(fields, message);
  };
}

/** Reads how many files and connections this process may open; undefined if the system does not tell. */
export function readFileLimit(): number | undefined {
  try {
    const limit = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1];
    return limit === undefined ? undefined : Number(limit);
  } catch {
    return undefined;
  }
}

/** File descriptors for the database, keys, logs, connections to other services and temporary files. */
const RESERVED_FILES = 200;

/**
 * Builds the limits of a server.
 *
 * @param fileLimit how many file descriptors the process may have: some are reserved, so that too many connections do
 * not make the database, keys and outgoing requests fail
 */
export function buildLimits(settings: Settings, fileLimit = Number.POSITIVE_INFINITY): Limits {
  const room = fileLimit - Math.min(RESERVED_FILES, Math.ceil(fileLimit / 2));
  return {
    ...defaultLimits,
    connections: Math.min(defaultLimits.connections, room),
    requestBufferBytes: settings.requestBuffer,
    responseBufferBytes: settings.answerBuffer,
    connectionsPerAddress: settings.connectionsPerAddress,
    maxWaitMs: settings.maxWait * 1000,
    keepAliveMs: settings.keepAlive * 1000,
    drainMs: settings.drainTime * 1000,
  };
}

function isFileShortage(error: unknown): boolean {
  return ["EMFILE", "ENFILE"].includes(String((error as NodeJS.ErrnoException).code));
}

function openNothing(): void {
  closeSync(openSync(devNull, "r"));
}
