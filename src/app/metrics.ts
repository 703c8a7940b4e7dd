// Serves the metrics of a service: counters of its parts, and values of the database.
import type { Logger } from "pino";
import type { ListenAddress } from "../kernel/ip-address.js";
import { VERSION } from "../store/version.js";
import { type MetricsServer, serveMetrics } from "../telemetry/metrics/metrics-server.js";
import { createRenderer, type Renderer } from "../telemetry/metrics/renderer.js";
import type { Source } from "../telemetry/metrics/samples.js";
import { readValue } from "../telemetry/metrics/samples.js";

/** The default address of metrics. */
export const DEFAULT_METRICS_ADDRESS: ListenAddress = { host: "127.0.0.1", port: 9464 };

/** The metrics of a service. */
export interface Metrics {
  /** The URL of the metrics; undefined when they are off. */
  readonly url: string | undefined;
  readonly renderer: Renderer;
  /** Adds sources, which are read at each scrape. */
  add(...sources: readonly Source[]): void;
  /** Adds a function that runs before each scrape, for sources that need to wait. */
  prepare(run: () => Promise<void>): void;
  /** Stops serving them. */
  close(): void;
}

/**
 * Serves the metrics of a service.
 *
 * @param listen the address; undefined for the default one, which another program may use
 * @throws Error when an address is given and cannot be used
 */
export async function openMetrics(listen: ListenAddress | "off" | undefined, logger: Logger): Promise<Metrics> {
  const sources: Source[] = [];
  const preparations: (() => Promise<void>)[] = [];
  const renderer = createRenderer(sources, async () => {
    await Promise.all(preparations.map((run) => run()));
  });
  sources.push(
    {
      name: "arbor_build_info",
      collect: () => [{ value: 1, labels: { version: VERSION, node: process.versions.node } }],
    },
    readValue("arbor_event_loop_active_seconds_total", () => performance.eventLoopUtilization().active / 1000),
    readValue("arbor_scrape_duration_seconds", () => renderer.timing.durationS),
    readValue("arbor_scrape_longest_slice_seconds", () => renderer.timing.longestSliceS),
  );
  const server = listen === "off" ? undefined : await listenOn(renderer, listen, logger);
  return {
    url:
      server &&
      `http://${server.address.host.includes(":") ? `[${server.address.host}]` : server.address.host}:${server.address.port}/metrics`,
    renderer,
    add: (...added) => void sources.push(...added),
    prepare: (run) => void preparations.push(run),
    close: () => server?.close(),
  };
}

async function listenOn(
  renderer: Renderer,
  listen: ListenAddress | undefined,
  logger: Logger,
): Promise<MetricsServer | undefined> {
  try {
    return await serveMetrics(renderer, listen ?? DEFAULT_METRICS_ADDRESS);
  } catch (err) {
    if (listen !== undefined) throw err;
    logger.warn({ err, ...DEFAULT_METRICS_ADDRESS }, "metrics are not served: the default address cannot be used");
    return undefined;
  }
}
