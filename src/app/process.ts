// What the process of the service is set up with: how much garbage it keeps, and how
// it ends when an error reaches no handler. The process may be in any state then, but
// it does not end in the middle of a response to a caller whose write is committed.

import { setFlagsFromString } from "node:v8";
import type { Logger } from "../telemetry/logger.js";

/** The exit code of a process that ended because of an error that nothing caught (EX_SOFTWARE of sysexits.h). */
const SOFTWARE_ERROR = 70;

/** How long answers may take to leave, and how long the end may take in all, in milliseconds. */
const DRAIN_MS = 3_000;
const END_MS = 4_500;

/** What {@link exitOnUncaughtError} needs. */
export interface LastResortOptions {
  readonly logger: Pick<Logger, "fatal">;
  /**
   * Starts no unit of work from the moment it is called, answers what is committed, and resolves when the
   * service has stopped.
   *
   * @param drainMs how long calls in flight may take, in milliseconds
   */
  readonly abandon: (drainMs: number) => Promise<void> | undefined;
}

/**
 * Has this process end with exit code 70 within 5 s of an uncaught exception or an unhandled rejection.
 *
 * The error is logged at level fatal, the service is abandoned and the process exits when that is done, or
 * after 4.5 s if it is not. Further errors meanwhile are logged and change nothing.
 */
export function exitOnUncaughtError({ logger, abandon }: LastResortOptions): void {
  let ending = false;
  const log = (err: unknown, event: string) => {
    try {
      logger.fatal({ err, event }, ending ? "another uncaught error" : "uncaught error: the process ends");
    } catch {
      // The log cannot be written any more; the exit code says enough.
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
    const exit = () => process.exit(SOFTWARE_ERROR);
    // Does not hold up a process that has nothing left to do.
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
  // Named, lest --unhandled-rejections=warn makes Node go on.
  process.on("unhandledRejection", (reason) => onFailure(reason, "unhandledRejection"));
}

/** How much the heap may grow after a full collection before the next one begins, in percent of what was left. */
const GROWTH_PERCENT = 100;

/**
 * Makes the collector of this process begin its full collections earlier than V8 would by itself.
 *
 * The flag is read anew with every collection, so it may be set while the process runs. Unlike
 * `--max-old-space-size` it ends nothing: a heap that needs more gets more.
 */
export function limitHeapGrowth(): void {
  setFlagsFromString(`--heap-growing-percent=${GROWTH_PERCENT}`);
}
