// The only module that loads prom-client: registries, and its metrics of Node and the process, with the names that
// common dashboards use.
import { collectDefaultMetrics, type Metric, Registry, type RegistryContentType } from "prom-client";
import type { Sample, TextFormat } from "./samples.js";

/** A metric of prom-client, as a registry reads it. */
export interface ProcessMetric {
  readonly name: string;
  get(): Promise<{
    readonly name: string;
    readonly help: string;
    readonly type: string;
    readonly values: readonly Sample[];
  }>;
}

/** To read these takes milliseconds with thousands of connections, because they list every open handle. */
const OMITTED = [
  "nodejs_active_handles",
  "nodejs_active_handles_total",
  "nodejs_active_requests",
  "nodejs_active_requests_total",
  "nodejs_active_resources",
  "nodejs_active_resources_total",
];

let metrics: readonly ProcessMetric[] | undefined;

/**
 * Reads the metrics of this process, which all servers in it share: memory, processor time, garbage collection and the
 * delay of the event loop. The first call starts the measurement.
 */
export function readProcessMetrics(): readonly ProcessMetric[] {
  if (metrics === undefined) {
    const register = new Registry();
    collectDefaultMetrics({ register });
    for (const name of OMITTED) register.removeSingleMetric(name);
    metrics = register.getMetricsAsArray() as unknown as (Metric & ProcessMetric)[];
  }
  return metrics;
}

/** Creates an empty registry that writes a text format. */
export function createRegistry(format: TextFormat): Registry<RegistryContentType> {
  const registry = new Registry<RegistryContentType>();
  registry.setContentType(
    format === "openmetrics" ? Registry.OPENMETRICS_CONTENT_TYPE : Registry.PROMETHEUS_CONTENT_TYPE,
  );
  return registry;
}
