// `arbor serve`
import { type App, startApp } from "../../app/app.js";
import { exitOnUncaughtError, limitHeapGrowth } from "../../app/process.js";
import type { Settings } from "../../config/config.js";
import { createLogger } from "../../telemetry/logger.js";

/**
 * Runs the service until SIGTERM or SIGINT, then stops it gracefully; a second signal ends it at
 * once. It prints one line to standard output, when it is ready. An uncaught error ends the
 * process with exit code 70 after committed writes are answered.
 *
 * @param ignoredVariables environment variables that are no settings and may be of Kubernetes, for the log
 */
export async function serve(settings: Settings, ignoredVariables: readonly string[] = []): Promise<void> {
  limitHeapGrowth();
  const logger = createLogger(settings.logLevel);
  let app: App | undefined;
  exitOnUncaughtError({ logger, abandon: (drainMs) => app?.abandon(drainMs) });
  app = await startApp({ settings, ignoredVariables, logger });
  const stopped = untilStopped();
  process.stdout.write(`arbor listening on ${app.url}\n`);
  await stopped;
  await app.stop();
}

/** Resolves at SIGTERM or SIGINT. A second signal ends the process at once. */
export function untilStopped(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT"] as const) {
      process.once(signal, () => {
        process.once(signal, () => process.exit(1));
        resolve();
      });
    }
  });
}
