// The process of the service: how much its heap may grow, and how it ends after an uncaught error. The process may be
// in any state then, but callers whose writes are committed get their response.

import { setFlagsFromString } from "node:v8";
import type { Logger } from "../telemetry/logger.js";

/** The exit code after an uncaught error (EX_SOFTWARE of sysexits.h). */
const SOFTWARE_ERROR = 70;

/** How long calls in flight may take, and how long the whole end may take, in milliseconds. */
const DRAIN_MS = 3_000;
const END_MS = 4_500;

export interface LastResortOptions {
  readonly logger: Pick<Logger, "fatal">;
  /**
   * Rejects all further units of work, answers calls whose work is committed, and resolves when the service has
   * stopped.
   *
   * @param drainMs how long calls in flight may take, in milliseconds
   */
  readonly abandon: (drainMs: number) => Promise<void> | undefined;
}

/**
 * Makes this process end with exit code 70 within 5 s of an uncaught exception or an unhandled rejection.
 *
 * The error is logged at level fatal, the service is abandoned, and the process exits when that is done, or after 4.5
 * s. Further errors are only logged.
 */
export function exitOnUncaughtError({ logger, abandon }: LastResortOptions): void {
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
    const exit = () => process.exit(SOFTWARE_ERROR);
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

/** How much the heap may grow between two full collections, in percent of what the first one left. */
const GROWTH_PERCENT = 100;

/**
 * Makes V8 begin full garbage collections earlier than it would by itself.
 *
 * V8 reads the flag at every collection, so it may be set while the process runs. Unlike `--max-old-space-size` it is
 * no limit: a heap that needs more gets more.
 */
export function limitHeapGrowth(): void {
  setFlagsFromString(`--heap-growing-percent=${GROWTH_PERCENT}`);
}
