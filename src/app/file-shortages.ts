// Finds out when the process may open no more files or connections, and logs the begin and the end of each shortage.
import { closeSync, openSync, readFileSync } from "node:fs";
import { devNull } from "node:os";
import type { Logger } from "../telemetry/logger.js";
import { readValues, type Source } from "../telemetry/metrics/samples.js";

const CHECK_MS = 1_000;
/** How often a shortage that lasts is logged, in milliseconds. */
const LOG_MS = 60_000;

export interface FileShortageDeps {
  readonly logger: Pick<Logger, "error" | "info">;
  /** A monotonic clock; replaced in tests. */
  readonly monotonicMs?: () => number;
  /** Opens a file, to find out whether that is possible; replaced in tests. */
  readonly openFile?: () => void;
}

/** Opens a file every second, until it is stopped. Accepting connections finds a shortage as well, and reports it here. */
export function watchFileShortages(deps: FileShortageDeps) {
  const { logger, monotonicMs = () => performance.now(), openFile = openNothing } = deps;
  const shortages = { accept: 0, check: 0 };
  let beganMs: number | undefined;
  let loggedMs = Number.NEGATIVE_INFINITY;

  function noteShortage(foundBy: keyof typeof shortages, err: unknown): void {
    shortages[foundBy]++;
    const nowMs = monotonicMs();
    beganMs ??= nowMs;
    if (nowMs - loggedMs < LOG_MS) return;
    loggedMs = nowMs;
    logger.error(
      { err, limit: readFileLimit() },
      "no more files or connections can be opened: new connections are cut",
    );
  }

  function check(): void {
    try {
      openFile();
    } catch (error) {
      if (isFileShortage(error)) noteShortage("check", error);
      return;
    }
    if (beganMs === undefined) return;
    const durationMs = Math.round(monotonicMs() - beganMs);
    beganMs = undefined;
    loggedMs = Number.NEGATIVE_INFINITY;
    logger.info({ durationMs }, "files and connections can be opened again");
  }

  const timer = setInterval(check, CHECK_MS).unref();
  return {
    check,
    stop: () => clearInterval(timer),
    /** Notes an error of accepting a connection, which may have another reason. */
    noteAcceptError(error: unknown): void {
      if (isFileShortage(error)) noteShortage("accept", error);
      else logger.error({ err: error }, "accepting a connection failed");
    },
    sources: [readValues("arbor_file_shortages_total", "found_by", () => shortages)] satisfies Source[],
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

function isFileShortage(error: unknown): boolean {
  return ["EMFILE", "ENFILE"].includes(String((error as NodeJS.ErrnoException).code));
}

function openNothing(): void {
  closeSync(openSync(devNull, "r"));
}
