// Traces, which the variables of OpenTelemetry turn on. Otherwise its SDK is not loaded, and a call takes one
// comparison.
import type { Logger } from "./logger.js";
import type { Tracing } from "./spans.js";
import { type Environment, readTraceSettings } from "./trace-settings.js";

export interface TracingOptions {
  readonly env: Environment;
  readonly logger: Logger;
  readonly version: string;
}

/** Starts to record traces; undefined when they are off. */
export async function startTracing({ env, logger, version }: TracingOptions): Promise<Tracing | undefined> {
  const settings = readTraceSettings(env, (problem) => logger.warn(problem));
  if (settings === undefined) return undefined;
  const { createTracing } = await import("./trace-exporter.js");
  return createTracing({ settings, logger, version });
}
