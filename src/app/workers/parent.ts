// `arbor serve --workers N`: one process listens, and its workers serve.
//
//   parent          has the port, the lock of the data directory, the metrics and the signals. It accepts each connection,
//                   counts it for its address, and hands its socket to the worker with the fewest (connections.ts)
//   workers         are nodes of their own on one database, as on several machines (worker.ts). The parent starts and
//                   replaces them (workforce.ts), and sees each as a process (worker-process.ts)
//   messages        what both tell each other (messages.ts)
//   metrics         the parent asks the workers at each scrape, and answers for all of them (metrics.ts)
//   log             the parent writes the lines of its workers, so that they do not tear each other's
//
// What the clients of a worker that ends had open is cut. A worker whose parent has ended stops. A parent of which no worker
// can start ends as that worker did.
import { availableParallelism } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { type Settings, writeSettings } from "../../config/config.js";
import { buildServerUrl, resolveOrigin } from "../../config/origin.js";
import { waitAtMost } from "../../jobs/schedule.js";
import { choosePoolSize } from "../../store/pg/pool-size.js";
import { countLostLines, type Logger } from "../../telemetry/logger.js";
import { families } from "../../telemetry/metrics/families.js";
import { readProcessMetrics } from "../../telemetry/metrics/process-metrics.js";
import { type FamilySamples, readValue } from "../../telemetry/metrics/samples.js";
import { bindPort } from "../../transport/http/listener.js";
import { type App, describeService, describeStart, logDoubtfulSettings } from "../app.js";
import { createOpened, type Opened } from "../areas/area.js";
import { readFileLimit, watchFileShortages } from "../file-shortages.js";
import { lockInstallation } from "../installation.js";
import { buildLimits } from "../limits.js";
import { eventLoopSource, openMetrics } from "../metrics.js";
import { Connections, type ConnectionsDeps } from "./connections.js";
import type { FromWorker, ToWorker } from "./messages.js";
import { mergeMetrics } from "./metrics.js";
import type { WorkerProcess } from "./worker-process.js";
import { type StartLimits, type WorkerStartError, Workforce } from "./workforce.js";

/** The service as the command sees it, whether it has workers or not. */
export type Service = Pick<App, "url" | "reload" | "stop" | "abandon"> & {
  openWork(): Partial<ReturnType<App["openWork"]>>;
  /** Rejects when the service ends because no worker can start any more; absent without workers. */
  readonly failed?: Promise<never>;
};

export interface ParentOptions {
  readonly settings: Settings;
  readonly ignoredVariables: readonly string[];
  readonly logger: Logger;
  /** How many workers. */
  readonly count: number;
  /** Limits; replaced in tests. */
  readonly startLimits?: StartLimits;
  readonly queue?: Partial<Pick<ConnectionsDeps, "maxWaiting" | "keyOf">>;
}

/** How long a worker may take to get ready, in seconds. */
const START_LIMITS: StartLimits = { firstS: 600, nextS: 60 };
/** How many connections may wait for a worker, where the process may have twice as many. */
const MAX_WAITING = 4_096;
/** How long a scrape waits for a worker, in milliseconds: a second longer than a worker waits for the database. */
const COLLECT_MS = 2_000;
/** How long connections that were accepted before a stop may take until a worker has them, in milliseconds. */
const HAND_OVER_MS = 1_000;
/** How long a worker may take to end after its drain time, in milliseconds. */
const END_MS = 5_000;
/** The least budgets of one worker: a quarter must hold a whole list of version 1, or the largest request. */
const MIN_RESPONSE_BUFFER = 128 * 1024 * 1024;
const MIN_REQUEST_BUFFER = 32 * 1024 * 1024;
/** The fewest connections of a worker to PostgreSQL: one that a long read has, and another. */
const MIN_POOL = 2;

/**
 * Starts the workers and serves.
 *
 * @throws Error as `startApp` does, or WorkerStartError. All that was started is ended.
 */
export async function startParent(options: ParentOptions): Promise<Service> {
  const opened = createOpened();
  try {
    return await openParent(options, opened);
  } catch (error) {
    await opened.close().catch(() => {});
    throw error;
  }
}

async function openParent(options: ParentOptions, opened: Opened): Promise<Service> {
  const { settings, logger, count, startLimits = START_LIMITS, queue } = options;
  logDoubtfulSettings(options, logger);
  opened.add(await lockInstallation(settings));
  const port = await bindPort(settings.listen, true);
  opened.add(port.close);
  const shortages = watchFileShortages({ logger });
  opened.add(shortages.stop);
  const limits = buildLimits(settings, readFileLimit());

  const connections: Connections = new Connections({
    limit: settings.behindProxy ? Number.POSITIVE_INFINITY : settings.connectionsPerAddress,
    maxWaiting: Math.min(MAX_WAITING, Math.floor(limits.connections / 2)),
    maxWaitMs: limits.maxWaitMs,
    receivers: () => workforce.workers(),
    canServe: () => workforce.canServe(),
    logger,
    ...queue,
  });
  const failure = createFailure();
  const workforce = new Workforce({
    count,
    start: { settings: writeSettings(shareSettings(settings, count)), address: port.address },
    limits: startLimits,
    logger,
    onChange: () => connections.dispatch(),
    onMessage: hear,
    onEnd: (worker) => connections.release(worker),
    onFailed: (error) => void fail(error),
  });
  // However this process ends. After a SIGKILL the workers notice it themselves.
  const killAll = () => workforce.killAll();
  process.on("exit", killAll);
  opened.add(() => void process.off("exit", killAll));
  opened.add(() => workforce.close());
  opened.add(() => connections.close());

  function hear(worker: WorkerProcess, message: FromWorker): void {
    if (message.kind === "taken") connections.noteTaken(worker, message);
    else if (message.kind === "closed") connections.noteClosed(worker, message.ids);
    else if (message.kind === "failures") workforce.tellAll(message, worker);
  }

  const scrapes = createScrapes(workforce, async () => {
    const others = await Promise.all(readProcessMetrics().map((metric) => metric.get()));
    const own = [
      eventLoopSource,
      ...shortages.sources,
      readValue("arbor_log_lines_lost_total", () => countLostLines(logger)),
    ].map(({ name, collect }) => ({ ...families[name], name, values: [...collect()] }));
    return [...others, ...own];
  });
  const metrics = await openMetrics(settings.metricsListen, logger, scrapes.collect);
  opened.add(metrics.close);
  metrics.add(
    readValue("arbor_workers", () => workforce.ready().length),
    readValue("arbor_workers_configured", () => count),
    readValue("arbor_worker_exits_total", () => workforce.exits),
    readValue("arbor_worker_scrapes_missed_total", scrapes.countMissed),
    readValue("arbor_worker_connections_refused_total", () => connections.refused),
  );

  await workforce.open();
  const events = { onError: shortages.noteAcceptError, onDrop() {} };
  port.accept((socket) => connections.add(socket), events, limits.connections);
  const origin = resolveOrigin(settings, port.address);
  const url = buildServerUrl(settings, port.address);
  const service = { ...describeService(settings, url), workers: count };
  logger.info({ ...service, ...describeStart(settings, origin) }, "started");

  async function end(message: ToWorker, reason: string, waitMs: number): Promise<void> {
    const startMs = performance.now();
    workforce.stop();
    port.close();
    // The connections on their way come first, so that workers still serve them.
    if (message.kind === "stop") await waitAtMost(connections.handOver(), HAND_OVER_MS);
    workforce.tellAll(message);
    connections.close();
    await waitAtMost(workforce.ended(), waitMs);
    await opened.close();
    logger.info({ ...service, reason, durationMs: Math.round(performance.now() - startMs) }, "stopped");
  }

  async function fail(error: WorkerStartError): Promise<void> {
    await opened.close().catch((err: unknown) => logger.error({ err }, "the service could not be closed"));
    failure.reject(error);
  }

  return {
    url,
    failed: failure.promise,
    async stop(reason = "stop", delayMs = 0) {
      // None is replaced from now on, as it would have to leave as well.
      workforce.stop();
      if (delayMs > 0) {
        workforce.tellAll({ kind: "leave" });
        await sleep(delayMs);
      }
      await port.acceptWaiting();
      await end({ kind: "stop", reason }, reason, limits.drainMs + END_MS);
    },
    abandon: (drainMs) => end({ kind: "abandon", drainMs }, "uncaught error", drainMs),
    async reload() {
      workforce.tellAll({ kind: "reload" });
    },
    openWork: () => ({ connections: connections.size }),
  };
}

function createFailure() {
  let reject: (error: Error) => void = () => {};
  const promise = new Promise<never>((_resolve, onError) => {
    reject = onError;
  });
  // Whoever stops the service first does not wait for it.
  promise.catch(() => {});
  return { promise, reject };
}

/** Answers scrapes for the workers and the parent. */
function createScrapes(workforce: Workforce, readOwn: () => Promise<readonly FamilySamples[]>) {
  let scrapes = 0;
  let missed = 0;
  return {
    /** How many answers of workers were missed. */
    countMissed: () => missed,
    async collect(): Promise<FamilySamples[]> {
      const scrape = ++scrapes;
      const answers = Promise.all(workforce.ready().map((worker) => worker.collect(scrape, COLLECT_MS)));
      const own = { worker: "parent", families: await readOwn() };
      missed += (await answers).filter((isAnswered) => !isAnswered).length;
      // A worker that has ended meanwhile is among the ended ones alone, since nothing is waited for from here on.
      const running = [...workforce.workers()].map(({ metrics }) => metrics.read(scrape));
      return mergeMetrics([...running, workforce.endedMetrics.read(), own]);
    },
  };
}

// The budgets of bytes and the connections to PostgreSQL are for all workers together, as far as one worker has enough.
function shareSettings(settings: Settings, count: number): Settings {
  const { databaseUrl, databasePoolSize = choosePoolSize(availableParallelism()) } = settings;
  const share = (bytes: number, least: number) => Math.max(Math.floor(bytes / count), Math.min(bytes, least));
  return {
    ...settings,
    responseBuffer: toUnit(share(settings.responseBuffer, MIN_RESPONSE_BUFFER)),
    requestBuffer: toUnit(share(settings.requestBuffer, MIN_REQUEST_BUFFER)),
    databasePoolSize: databaseUrl === undefined ? undefined : Math.max(Math.floor(databasePoolSize / count), MIN_POOL),
  };
}

// Settings are written in whole KiB.
const toUnit = (bytes: number) => Math.floor(bytes / 1024) * 1024;
