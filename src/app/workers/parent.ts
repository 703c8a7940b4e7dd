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
// can start ends as that worker did:
//
//   opening ──> serving ── stop ──> leaving ──> handing over ──> draining ──> stopped
//      │           │                balancers   workers get      workers end
//      ▼           │                are told    what was accepted
//   the start      ├── abandon, after an uncaught error ───────> draining ──> stopped
//   is rejected    └── no worker can start any more ──> failed
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
import { type BoundPort, bindPort } from "../../transport/http/listener.js";
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
  const { settings, logger } = options;
  const opened = createOpened();
  try {
    logDoubtfulSettings(options, logger);
    opened.add(await lockInstallation(settings));
    const port = await bindPort(settings.listen, true);
    opened.add(port.close);
    const parent = new Parent(options, port, opened);
    await parent.open();
    return parent;
  } catch (error) {
    await opened.close().catch(() => {});
    throw error;
  }
}

class Parent implements Service {
  readonly url: string;
  readonly failed: Promise<never>;
  readonly #options: ParentOptions;
  readonly #port: BoundPort;
  /** What the end closes, in the reverse order. */
  readonly #opened: Opened;
  readonly #limits: ReturnType<typeof buildLimits>;
  readonly #shortages: ReturnType<typeof watchFileShortages>;
  readonly #connections: Connections;
  readonly #workforce: Workforce;
  readonly #rejectFailed: (error: WorkerStartError) => void;
  /** What the log says of the service at its start and its end. */
  readonly #description: ReturnType<typeof describeService> & { readonly workers: number };
  #scrapes = 0;
  /** How many answers of workers to scrapes were missed. */
  #missedScrapes = 0;

  constructor(options: ParentOptions, port: BoundPort, opened: Opened) {
    const { settings, logger, count, startLimits = START_LIMITS, queue } = options;
    this.#options = options;
    this.#port = port;
    this.#opened = opened;
    this.#shortages = watchFileShortages({ logger });
    opened.add(this.#shortages.stop);
    this.#limits = buildLimits(settings, readFileLimit());
    this.url = buildServerUrl(settings, port.address);
    this.#description = { ...describeService(settings, this.url), workers: count };
    const failure = createFailure();
    this.failed = failure.promise;
    this.#rejectFailed = failure.reject;
    this.#connections = new Connections({
      limit: settings.behindProxy ? Number.POSITIVE_INFINITY : settings.connectionsPerAddress,
      maxWaiting: Math.min(MAX_WAITING, Math.floor(this.#limits.connections / 2)),
      maxWaitMs: this.#limits.maxWaitMs,
      receivers: () => this.#workforce.workers(),
      canServe: () => this.#workforce.canServe(),
      logger,
      ...queue,
    });
    this.#workforce = new Workforce({
      count,
      start: { settings: writeSettings(shareSettings(settings, count)), address: port.address },
      limits: startLimits,
      logger,
      onChange: () => this.#connections.dispatch(),
      onMessage: (worker, message) => this.#hear(worker, message),
      onEnd: (worker) => this.#connections.release(worker),
      onFailed: (error) => void this.#fail(error),
    });
    // However this process ends. After a SIGKILL the workers notice it themselves.
    const killAll = () => this.#workforce.killAll();
    process.on("exit", killAll);
    opened.add(() => void process.off("exit", killAll));
    opened.add(() => this.#workforce.close());
    opened.add(() => this.#connections.close());
  }

  /**
   * Starts the workers, then accepts connections.
   *
   * @throws WorkerStartError when one cannot start
   */
  async open(): Promise<void> {
    const { settings, logger } = this.#options;
    await this.#openMetrics();
    await this.#workforce.open();
    const events = { onError: this.#shortages.noteAcceptError, onDrop() {} };
    this.#port.accept((socket) => this.#connections.add(socket), events, this.#limits.connections);
    const origin = resolveOrigin(settings, this.#port.address);
    logger.info({ ...this.#description, ...describeStart(settings, origin) }, "started");
  }

  async stop(reason = "stop", delayMs = 0): Promise<void> {
    // None is replaced from now on, as it would have to leave as well.
    this.#workforce.stop();
    if (delayMs > 0) {
      this.#workforce.tellAll({ kind: "leave" });
      await sleep(delayMs);
    }
    await this.#port.acceptWaiting();
    await this.#end({ kind: "stop", reason }, reason, this.#limits.drainMs + END_MS);
  }

  abandon(drainMs: number): Promise<void> {
    return this.#end({ kind: "abandon", drainMs }, "uncaught error", drainMs);
  }

  async reload(): Promise<void> {
    this.#workforce.tellAll({ kind: "reload" });
  }

  // Callers may take it from the service.
  readonly openWork = () => ({ connections: this.#connections.size });

  async #end(message: ToWorker, reason: string, waitMs: number): Promise<void> {
    const startMs = performance.now();
    this.#workforce.stop();
    this.#port.close();
    // The connections on their way come first, so that workers still serve them.
    if (message.kind === "stop") await waitAtMost(this.#connections.handOver(), HAND_OVER_MS);
    this.#workforce.tellAll(message);
    this.#connections.close();
    await waitAtMost(this.#workforce.ended(), waitMs);
    await this.#opened.close();
    const durationMs = Math.round(performance.now() - startMs);
    this.#options.logger.info({ ...this.#description, reason, durationMs }, "stopped");
  }

  async #fail(error: WorkerStartError): Promise<void> {
    const { logger } = this.#options;
    await this.#opened.close().catch((err: unknown) => logger.error({ err }, "the service could not be closed"));
    this.#rejectFailed(error);
  }

  #hear(worker: WorkerProcess, message: FromWorker): void {
    if (message.kind === "taken") this.#connections.noteTaken(worker, message);
    else if (message.kind === "closed") this.#connections.noteClosed(worker, message.ids);
    else if (message.kind === "failures") this.#workforce.tellAll(message, worker);
  }

  async #openMetrics(): Promise<void> {
    const { settings, logger, count } = this.#options;
    const metrics = await openMetrics(settings.metricsListen, logger, () => this.#collectMetrics());
    this.#opened.add(metrics.close);
    metrics.add(
      readValue("arbor_workers", () => this.#workforce.ready().length),
      readValue("arbor_workers_configured", () => count),
      readValue("arbor_worker_exits_total", () => this.#workforce.exits),
      readValue("arbor_worker_scrapes_missed_total", () => this.#missedScrapes),
      readValue("arbor_worker_connections_refused_total", () => this.#connections.refused),
    );
  }

  /** Reads the metrics of the workers, running and ended, and of this process. */
  async #collectMetrics(): Promise<FamilySamples[]> {
    const scrape = ++this.#scrapes;
    const answers = Promise.all(this.#workforce.ready().map((worker) => worker.collect(scrape, COLLECT_MS)));
    const own = { worker: "parent", families: await this.#readOwnMetrics() };
    const missed = (await answers).filter((isAnswered) => !isAnswered).length;
    this.#missedScrapes += missed;
    // A worker that has ended meanwhile is among the ended ones alone, since nothing is waited for from here on.
    const running = [...this.#workforce.workers()].map(({ metrics }) => metrics.read(scrape));
    return mergeMetrics([...running, this.#workforce.endedMetrics.read(), own]);
  }

  async #readOwnMetrics(): Promise<FamilySamples[]> {
    const others = await Promise.all(readProcessMetrics().map((metric) => metric.get()));
    const own = [
      eventLoopSource,
      ...this.#shortages.sources,
      readValue("arbor_log_lines_lost_total", () => countLostLines(this.#options.logger)),
    ].map(({ name, collect }) => ({ ...families[name], name, values: [...collect()] }));
    return [...others, ...own];
  }
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
