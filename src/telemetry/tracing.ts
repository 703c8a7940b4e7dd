// Traces, where the variables of OpenTelemetry ask for them. Without these nothing of its SDK is loaded, and a call
// costs one comparison.
import type { Logger } from "./logger.js";
import type { Tracing } from "./spans.js";
import { type Environment, readTraceSettings } from "./trace-settings.js";

/** What {@link startTracing} needs. */
export interface TracingOptions {
  readonly env: Environment;
  readonly logger: Logger;
  /** Of this service. */
  readonly version: string;
}

/** Starts to record traces; undefined where the variables do not ask for it. */
export async function startTracing({ env, logger, version }: TracingOptions): Promise<Tracing | undefined> {
  const settings = readTraceSettings(env, (problem) => logger.warn(problem));
  if (settings === undefined) return undefined;
  const { createTracing } = await import("./trace-exporter.js");
  return createTracing({ settings, logger, version });
}
