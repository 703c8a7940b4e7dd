// `arbor serve`
import { startApp } from "../../app/app.js";
import { exitOnUncaughtError } from "../../app/process.js";
import { countWorkers } from "../../app/workers/count.js";
import type { ParentOptions, Service } from "../../app/workers/parent.js";
import type { Settings } from "../../config/config.js";
import { openLineStream } from "../../telemetry/line-stream.js";
import { createLogger, flushLog } from "../../telemetry/logger.js";

/**
 * Runs the service until SIGTERM or SIGINT, then stops it gracefully; a second signal ends it at once, with exit code 1,
 * and logs what was cut. SIGHUP reads the TLS certificate again. It prints one line to standard output, when it is ready.
 * With several workers they do the same, each for its part.
 * An uncaught error ends the process with exit code 70 after committed writes have their responses.
 *
 * @throws WorkerStartError when no worker can start, also later
 * @param ignoredVariables environment variables that are not settings and may be of Kubernetes, for the log
 */
export async function serve(settings: Settings, ignoredVariables: readonly string[] = []): Promise<void> {
  const logger = createLogger(settings.logLevel);
  const writeLog = () => flushLog(logger);
  let app: Service | undefined;
  // The entry of the program listens as well, from its first statement on.
  process.on("SIGHUP", () => void app?.reload());
  exitOnUncaughtError({ logger, abandon: (drainMs) => app?.abandon(drainMs), flushLog: writeLog });
  const count = countWorkers(settings.workers);
  const options = { settings, ignoredVariables, logger };
  app = count > 1 ? await startWorkers({ ...options, count }) : await startApp(options);
  const { openWork } = app;
  // Whoever presses Ctrl-C waits for it, and no balancer sends calls there.
  const delayOf = (signal: NodeJS.Signals) => (signal === "SIGTERM" ? settings.drainDelay : 0);
  const stopped = waitForStop({
    onStop: (signal) =>
      logger.info({ signal, ...openWork(), delayS: delayOf(signal), drainS: settings.drainTime }, "stopping"),
    onCut(signal) {
      logger.warn({ signal, ...openWork() }, "a second signal: calls and connections are cut");
      return writeLog();
    },
  });
  const output = openLineStream(1);
  output.write(Buffer.from(`arbor listening on ${app.url}\n`));
  const signal = await Promise.race([stopped, ...(app.failed ? [app.failed] : [])]).catch(async (error: unknown) => {
    await Promise.all([writeLog(), output.flush()]);
    throw error;
  });
  await app.stop(signal, delayOf(signal) * 1000);
  await Promise.all([writeLog(), output.flush()]);
  // A write that does not end, or a request to a trace collector that does not answer, would keep the process alive. The
  // exit code is set already.
  setImmediate(() => process.exit());
}

// Loaded only where it is needed.
async function startWorkers(options: ParentOptions): Promise<Service> {
  const { startParent } = await import("../../app/workers/parent.js");
  return startParent(options);
}

/** Callbacks for signals. */
export interface StopListeners {
  /** The first signal: the stop begins. */
  readonly onStop?: (signal: NodeJS.Signals) => void;
  /** The second signal: the process ends when this has ended. */
  readonly onCut?: (signal: NodeJS.Signals) => Promise<unknown>;
}

/** Resolves at SIGTERM or SIGINT, to its name. A second signal, of either kind, ends the process at once with exit code 1. */
export function waitForStop({ onStop, onCut }: StopListeners = {}): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let isStopping = false;
    const onSignal = (signal: NodeJS.Signals) => {
      if (isStopping) {
        process.exitCode = 1;
        void Promise.resolve(onCut?.(signal)).finally(() => process.exit(1));
        return;
      }
      isStopping = true;
      onStop?.(signal);
      resolve(signal);
    };
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, onSignal);
  });
}
