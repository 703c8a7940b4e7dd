// The composition root: opens the areas of the service one after the other, starts them, and closes them in the reverse
// order. `areas/area.ts` says what the areas are.
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { describeChanged, type Settings } from "../config/config.js";
import { buildServerUrl, type Origin, resolveOrigin } from "../config/origin.js";
import { createDeadLetterSweep, createDelivery } from "../events/delivery/deliver.js";
import { storeTokenAlgorithm } from "../issuer/keys/key-ring.js";
import { type FailureNews, noFailureNews } from "../issuer/sts/failure-limiter.js";
import { type Ids, randomIds } from "../kernel/ids.js";
import type { Clock } from "../kernel/time.js";
import { VERSION } from "../kernel/version.js";
import type { Mount } from "../pipeline/mount-options.js";
import { createQuotas } from "../pipeline/resource/quota.js";
import { countLostLines, createLogger } from "../telemetry/logger.js";
import { type FamilySamples, readValue } from "../telemetry/metrics/samples.js";
import { startTracing } from "../telemetry/tracing.js";
import { type BoundPort, bindPort, type OpenWork } from "../transport/http/listener.js";
import { createOpened, type Opened } from "./areas/area.js";
import { createBackground } from "./areas/background.js";
import { createEventSender } from "./areas/events.js";
import { createIssuerArea } from "./areas/issuer.js";
import { createPlatform } from "./areas/platform.js";
import { openStoreArea } from "./areas/store.js";
import { createTransport } from "./areas/transport.js";
import { createDatabaseMetrics } from "./database-metrics.js";
import { type Installation, nameDiskFault } from "./installation.js";
import { createServiceCounts, createServiceSources, openMetrics, type RequestMetrics } from "./metrics.js";
import { watchFiles } from "./reload.js";

/** A running service. */
export interface App {
  /** The URL of the address on which it listens. */
  readonly url: string;
  /** The URL of its metrics; undefined when they are off. */
  readonly metricsUrl: string | undefined;
  readonly requestMetrics: RequestMetrics;
  readonly installation: Installation;
  /** Tells balancers to use another server, while all calls are still served. */
  leave(): void;
  /**
   * Stops accepting, lets calls in flight finish, and closes the store.
   *
   * @param reason the reason in the log, such as the name of a signal
   * @param delayMs for how long balancers are told to use another server before that, while all calls are still served
   */
  stop(reason?: string, delayMs?: number): Promise<void>;
  /** Reads the master key file and the TLS certificate again. Logs the result. */
  reload(): Promise<void>;
  /** Counts the open calls and connections. */
  openWork(): OpenWork;
  /** Reads all metrics, for another process that serves them. */
  collectMetrics(): Promise<readonly FamilySamples[]>;
  /**
   * Stops after an error that may have left the process in any state: no unit of work begins any more, and calls whose
   * work is committed get their response.
   *
   * @param drainMs how long calls in flight may take to end, in milliseconds
   */
  abandon(drainMs: number): Promise<void>;
}

export interface AppOptions {
  readonly settings: Settings;
  /** Environment variables that are not settings, which Kubernetes may have set. Their names are logged. */
  readonly ignoredVariables?: readonly string[];
  /** Services to serve beside the platform's own. */
  readonly mounts?: readonly Mount[];
  readonly clock?: Clock;
  readonly ids?: Ids;
  readonly logger?: Logger;
  /** What the parent of a worker gives it. */
  readonly worker?: WorkerParts;
}

export interface WorkerParts {
  /** The port of the parent, which passes its connections. */
  readonly port: BoundPort;
  readonly failureNews: FailureNews;
  /** Called at each step of a start that takes long. */
  readonly noteProgress: () => void;
}

/** How long the last spans may take to be sent, at a stop and after an error that ends the process, in milliseconds. */
const FLUSH_MS = 3_000;
const ABANDON_FLUSH_MS = 500;

/**
 * Opens the installation and serves it.
 *
 * @throws Error when it cannot be opened, the address is taken, or the protos contradict each other. Whatever was
 * opened by then is closed.
 */
export async function startApp(options: AppOptions): Promise<App> {
  const opened = createOpened();
  try {
    return await nameDiskFault(options.settings, () => openApp(options, opened));
  } catch (error) {
    // The error of the start is thrown, because it says more than one of closing.
    await opened.close().catch(() => {});
    throw error;
  }
}

async function openApp(options: AppOptions, opened: Opened): Promise<App> {
  const { settings, mounts = [], ids = randomIds } = options;
  const logger = options.logger ?? createLogger(settings.logLevel);
  const { worker } = options;
  const isWorker = worker !== undefined;
  if (!isWorker) logDoubtfulSettings(options, logger);
  const onProblem = (problem: string, err?: unknown) => logger.error({ err }, problem);

  // Closed last, so that metrics are served while the service drains.
  const metrics = await openMetrics(isWorker ? "off" : settings.metricsListen, logger);
  opened.add(metrics.close);
  const counts = createServiceCounts();
  // Closed after everything that is traced, so that all spans are sent.
  const tracing = await startTracing({ env: process.env, logger, version: VERSION });
  opened.add((drainMs) => tracing?.stop(drainMs === undefined ? FLUSH_MS : ABANDON_FLUSH_MS));

  const storage = await openStoreArea({
    ...{ settings, clock: options.clock, isWorker, logger, opened },
    noteProgress: worker?.noteProgress,
  });
  const { installation, store, clock } = storage;
  // Bound before the issuer exists, because with port 0 the port is a part of its URL. Connections wait until the server
  // starts.
  const port = worker?.port ?? (await bindPort(settings.listen));
  opened.add(port.close);
  const origin = resolveOrigin(settings, { ...settings.listen, port: port.address.port });
  const quotas = createQuotas(settings.quotas, (kind) => counts.quotaRejections[kind]++);
  const leaving = new AbortController();
  const stopping = new AbortController();
  const failureNews = worker?.failureNews ?? noFailureNews;
  const shared = { settings, ids, logger, counts, failureNews, onProblem, opened, origin, storage, tracing };

  const background = createBackground({ ...shared, quotas });
  const issuer = createIssuerArea({ ...shared, quotas });
  background.addJobs(issuer.jobs);
  const eventSender = createEventSender(shared);
  const platform = await createPlatform({ ...shared, issuer, eventSender, quotas, mounts, stopping: stopping.signal });
  background.addJobs([
    createDelivery({ store, clock, onProblem, events: platform.events, send: eventSender.send, counts: counts.events }),
    createDeadLetterSweep(clock),
  ]);
  const transport = createTransport({ ...shared, port, background, issuer, platform, leaving, stopping });
  const { server, tls, limits, requestMetrics } = transport;
  const files = watchFiles({ ...shared, tls, replaceTls: server.replaceTls, operatorKeys: issuer.operatorKeys });

  const stored = createDatabaseMetrics({
    ...{ store, clock, holder: background.holder },
    jobs: () => new Set(counts.jobRuns.keys()),
  });
  metrics.prepare(stored.refresh);
  metrics.add(readValue("arbor_log_lines_lost_total", () => countLostLines(logger)));
  metrics.add(...storage.sources, ...background.sources, ...transport.sources, ...stored.sources);
  const { exchanges, caches } = issuer;
  metrics.add(...createServiceSources({ counts, store, server, exchanges, caches, limits }));

  await store.write(async (tx) => {
    await tx.settings.put("origin", JSON.stringify({ baseUrl: origin.baseUrl, issuer: origin.issuer }));
    await storeTokenAlgorithm(tx, settings.tokenAlgorithm);
  });
  background.start();
  issuer.start();
  server.start();
  const url = buildServerUrl(settings, port.address);
  const service = describeService(settings, url);
  logger.info({ ...service, ...describeStart(settings, origin) }, isWorker ? "a worker has started" : "started");

  const close = async (reason: string, drainMs?: number) => {
    const startMs = performance.now();
    await opened.close(drainMs);
    logger.info(
      { ...service, reason, durationMs: Math.round(performance.now() - startMs) },
      isWorker ? "a worker has stopped" : "stopped",
    );
  };
  const leave = () => {
    leaving.abort();
    server.leave();
  };
  return {
    url,
    metricsUrl: metrics.url,
    requestMetrics,
    installation,
    leave,
    async stop(reason = "stop", delayMs = 0) {
      if (delayMs > 0) {
        leave();
        await sleep(delayMs);
      }
      await close(reason);
    },
    reload: files.reload,
    openWork: server.openWork,
    collectMetrics: metrics.renderer.collect,
    abandon(drainMs) {
      installation.rejectWork();
      return close("uncaught error", drainMs);
    },
  };
}

/** What the log says of a service at its start and at its end. */
export function describeService(settings: Settings, address: string) {
  return { version: VERSION, store: settings.databaseUrl === undefined ? "sqlite" : "postgresql", address };
}

/** What the log says beside {@link describeService} at a start. */
export function describeStart(settings: Settings, { baseUrl, issuer, audiences }: Origin) {
  return { baseUrl, issuer, audiences, node: process.version, settings: describeChanged(settings) };
}

/** Logs what settings do not mean, and what they may not have been meant to. */
export function logDoubtfulSettings({ settings, ignoredVariables: variables = [] }: AppOptions, logger: Logger): void {
  if (variables.length > 0)
    logger.info({ variables }, "variables of Kubernetes Services are not settings and are ignored");
  if (settings.behindProxy && settings.trustedProxies === undefined) {
    logger.warn(
      "--behind-proxy without --trusted-proxies: all callers have the address of the proxy, so limits by address count " +
        "them together",
    );
  }
}
