// Traces, where the variables of OpenTelemetry ask for them. Without these nothing of its SDK is loaded, and a call
// costs one comparison.
import type { StartRequest, TraceAttributes, TraceSpan } from "../kernel/trace.js";
import type { Logger } from "./logger.js";
import { type Environment, readTraceSettings } from "./trace-settings.js";

/** The header fields of a request that name the operation of its caller. */
export interface TraceFields {
  readonly traceparent?: string | undefined;
  readonly tracestate?: string | undefined;
}

/** Records what requests do. */
export interface Tracing {
  /**
   * Begins the span of a request. It is part of the caller's trace if `fields` name one.
   *
   * @param name one of a small set of names; never from a request
   * @param startMs when the request began, by `performance.now()`
   * @param describe is called where the sampler takes the trace
   */
  startServer(name: string, fields: TraceFields, startMs: number, describe: () => TraceAttributes): TraceSpan;

  /** Begins the span of a request to another service that belongs to no call. */
  readonly startRequest: StartRequest;

  /** Sends what is recorded, for at most this many milliseconds. */
  stop(maxMs: number): Promise<void>;
}

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
