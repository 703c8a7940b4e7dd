// What the metrics of a service read: counters that its parts keep, and values of the database.
import type { Logger } from "pino";
import type { ListenAddress } from "../kernel/ip-address.js";
import { VERSION } from "../store/version.js";
import { type MetricsServer, serveMetrics } from "../telemetry/metrics/metrics-server.js";
import { createRenderer, type Renderer } from "../telemetry/metrics/renderer.js";
import type { Source } from "../telemetry/metrics/samples.js";
import { readValue } from "../telemetry/metrics/samples.js";

/** Where metrics are served unless the settings say otherwise. */
export const DEFAULT_METRICS_ADDRESS: ListenAddress = { host: "127.0.0.1", port: 9464 };

/** The metrics of a service. */
export interface Metrics {
  /** Where they are served; undefined where they are not. */
  readonly url: string | undefined;
  readonly renderer: Renderer;
  /** Adds what is read at each scrape. */
  add(...sources: readonly Source[]): void;
  /** Adds what runs before each scrape, for values that have to be waited for. */
  prepare(run: () => Promise<void>): void;
  /** Stops serving them. */
  close(): void;
}

/**
 * Serves the metrics of a service.
 *
 * @param listen where; undefined for the default address, which another program may have
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
