// How the process of the service ends after an uncaught error. It may be in any state then, but callers whose writes are
// committed get their response.
import type { Logger } from "../telemetry/logger.js";

/** The exit code after an uncaught error (EX_SOFTWARE of sysexits.h). */
const SOFTWARE_ERROR = 70;

/** How long calls in flight may take, and after how long the process exits at the latest, in milliseconds. */
const DRAIN_MS = 3_000;
const END_MS = 4_000;

export interface LastResortOptions {
  readonly logger: Pick<Logger, "fatal">;
  /**
   * Rejects all further units of work, responds to calls whose work is committed, and resolves when the service has
   * stopped.
   *
   * @param drainMs how long calls in flight may take, in milliseconds
   */
  readonly abandon: (drainMs: number) => Promise<void> | undefined;
  /** Writes the last lines of the log, and resolves within half a second. */
  readonly flushLog: () => Promise<unknown>;
}

/**
 * Makes this process end with exit code 70 within 5 s of an uncaught exception or an unhandled rejection.
 *
 * The error is logged at level fatal, the service is abandoned, and the process exits when that is done, or after 4 s,
 * and the log is written. Further errors are only logged.
 */
export function exitOnUncaughtError({ logger, abandon, flushLog }: LastResortOptions): void {
  let ending = false;
  const log = (err: unknown, event: string) => {
    try {
      logger.fatal({ err, event }, ending ? "another uncaught error" : "uncaught error: the process ends");
    } catch {
      // The log cannot be written any more; the exit code remains.
    }
  };

  function onFailure(error: unknown, event: string): void {
    log(error, event);
    if (ending) return;
    ending = true;
    // A signal that ends the process meanwhile must not change the exit code.
    process.exitCode = SOFTWARE_ERROR;
    process.on("exit", () => {
      process.exitCode = SOFTWARE_ERROR;
    });
    const exit = () => void flushLog().finally(() => process.exit(SOFTWARE_ERROR));
    // Does not keep a process alive that has nothing left to do.
    setTimeout(exit, END_MS).unref();
    try {
      Promise.resolve(abandon(DRAIN_MS)).then(exit, (problem) => {
        log(problem, "abandon");
        exit();
      });
    } catch (problem) {
      log(problem, "abandon");
      exit();
    }
  }

  process.on("uncaughtException", onFailure);
  // A handler of its own, because with --unhandled-rejections=warn Node would go on.
  process.on("unhandledRejection", (reason) => onFailure(reason, "unhandledRejection"));
}
