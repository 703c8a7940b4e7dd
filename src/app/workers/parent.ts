// `arbor serve --workers N`: one process listens, and its workers serve.
//
//   parent    has the port, the lock of the data directory, the metrics and the signals. It accepts each connection, counts
//             it for its address, and hands its socket to the worker with the fewest (connections.ts)
//   workers   are nodes of their own on one database, as on several machines (worker.ts). The first one starts alone, and
//             creates or expands the database where that is needed
//   messages  what both tell each other (messages.ts)
//   metrics   the parent asks the workers at each scrape, and answers for all of them (metrics.ts)
//   log       the parent writes the lines of its workers, so that they do not tear each other's
//
// A worker that ends is replaced at once; where those that replace it do not get ready, after pauses. One that hangs is
// killed. What its clients had open is cut. A worker whose parent has ended stops.
import { type ChildProcess, fork } from "node:child_process";
import { availableParallelism } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { type Settings, writeSettings } from "../../config/config.js";
import { buildServerUrl, resolveOrigin } from "../../config/origin.js";
import { waitAtMost } from "../../jobs/schedule.js";
import { choosePoolSize } from "../../store/pg/pool-size.js";
import { countLostLines, type Logger, relayLog } from "../../telemetry/logger.js";
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
import { createConnections, type Receiver } from "./connections.js";
import { type FromWorker, type ToWorker, WORKER_ARGUMENT } from "./messages.js";
import { type Collected, keepCounts, mergeMetrics } from "./metrics.js";

/** The service as the command sees it, whether it has workers or not. */
export type Service = Pick<App, "url" | "reload" | "stop" | "abandon"> & {
  openWork(): Partial<ReturnType<App["openWork"]>>;
};

export interface ParentOptions {
  readonly settings: Settings;
  readonly ignoredVariables: readonly string[];
  readonly logger: Logger;
  /** How many workers. */
  readonly count: number;
}

/** The pauses before a worker is replaced that ended before it was ready, in milliseconds. */
const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 10_000;
/** How long a scrape waits for a worker, in milliseconds: a second longer than a worker waits for the database. */
const COLLECT_MS = 2_000;
/** How often a worker is asked whether it is alive, in milliseconds, and how often it may fail to answer. */
const PING_MS = 1_000;
const MAX_UNANSWERED = 10;
/** How long a worker may take to end after its drain time, in milliseconds. */
const END_MS = 5_000;
/** The least budgets of one worker: a quarter must hold a whole list of version 1, or the largest request. */
const MIN_RESPONSE_BUFFER = 128 * 1024 * 1024;
const MIN_REQUEST_BUFFER = 32 * 1024 * 1024;
/** The fewest connections of a worker to PostgreSQL: one that a long read has, and another. */
const MIN_POOL = 2;

/** Thrown when the first workers cannot start. They have written why. */
export class WorkerStartError extends Error {
  override readonly name = "WorkerStartError";
  readonly exitCode: number;

  constructor(worker: number, exitCode: number | null, signal: NodeJS.Signals | null) {
    super(`worker ${worker} ended with ${signal ?? `exit code ${exitCode}`} before it was ready`);
    this.exitCode = exitCode ?? 1;
  }
}

interface Worker extends Receiver {
  readonly number: number;
  readonly child: ChildProcess;
  readonly ready: Promise<void>;
  readonly ended: Promise<void>;
  /** What it told at the last scrape. */
  families: readonly FamilySamples[];
  /** How many pings were sent since it told something. */
  unanswered: number;
}

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
  const { settings, logger, count } = options;
  logDoubtfulSettings(options, logger);
  opened.add(await lockInstallation(settings));
  const port = await bindPort(settings.listen, true);
  opened.add(port.close);
  const shortages = watchFileShortages({ logger });
  opened.add(shortages.stop);

  const workers = new Map<number, Worker>();
  const counts = { exits: 0, missed: 0 };
  const limits = buildLimits(settings, readFileLimit());
  const connections = createConnections({
    limit: settings.behindProxy ? Number.POSITIVE_INFINITY : settings.connectionsPerAddress,
    receivers: () => workers.values(),
    onLost: (worker) => logger.warn({ worker }, "a connection did not reach its worker"),
  });
  let isStopping = false;
  let endedCounts: FamilySamples[] = [];
  let pauseMs = 0;
  const text = writeSettings(shareSettings(settings, count));
  const collecting = new Map<number, (families: readonly FamilySamples[]) => void>();
  let collections = 0;

  const killAll = () => {
    for (const { child } of workers.values()) child.kill("SIGKILL");
  };
  // However this process ends. After a SIGKILL the workers notice it themselves.
  process.on("exit", killAll);
  opened.add(async () => {
    isStopping = true;
    killAll();
    await Promise.all([...workers.values()].map(({ ended }) => ended));
    process.off("exit", killAll);
  });

  function tellAll(message: ToWorker, except?: Worker): void {
    for (const worker of workers.values()) if (worker !== except) worker.child.send(message, () => {});
  }

  function start(number: number): Worker {
    const child = fork(process.argv[1] ?? "", [WORKER_ARGUMENT], { stdio: ["ignore", "ignore", "pipe", "ipc"] });
    const log = relayLog(logger);
    child.stderr?.on("data", (chunk: Buffer) => log?.write(chunk));
    const tell = (message: ToWorker) => void child.send(message, () => {});
    let onReady = () => {};
    let onEarlyEnd: (error: Error) => void = () => {};
    const ready = new Promise<void>((resolve, reject) => {
      onReady = resolve;
      onEarlyEnd = reject;
    });
    // Only the first workers have somebody who waits for them.
    ready.catch(() => {});
    const ended = new Promise<void>((resolve) => {
      const end = (code: number | null, signal: NodeJS.Signals | null) => {
        onEarlyEnd(new WorkerStartError(number, code, signal));
        noteEnd(worker, code, signal);
      };
      child.once("exit", end);
      child.on("error", (err) => {
        logger.error({ err, worker: number }, "a worker cannot be started or reached");
        // What could not be started does not exit.
        if (child.pid === undefined) end(null, null);
      });
      // All that it wrote was read.
      child.once("close", () => {
        log?.end();
        resolve();
      });
    });
    const worker: Worker = { number, child, ready, ended, families: [], isReady: false, unanswered: 0 };
    child.on("message", (message: FromWorker) => {
      worker.unanswered = 0;
      if (message.kind === "ready") {
        worker.isReady = true;
        onReady();
        connections.dispatch();
      } else if (message.kind === "taken") connections.noteTaken(worker, message);
      else if (message.kind === "closed") connections.noteClosed(worker, message.ids);
      else if (message.kind === "failures") tellAll(message, worker);
      else if (message.kind === "collected") collecting.get(message.id)?.(message.families);
    });
    workers.set(number, worker);
    // Where no process could be started there may be no channel.
    if (child.pid !== undefined) tell({ kind: "start", worker: number, settings: text, address: port.address });
    return worker;
  }

  function noteEnd(worker: Worker, code: number | null, signal: NodeJS.Signals | null): void {
    const { number } = worker;
    const cut = connections.release(worker);
    workers.delete(number);
    endedCounts = keepCounts(endedCounts, worker.families);
    if (isStopping) return;
    counts.exits++;
    pauseMs = worker.isReady ? 0 : Math.min(Math.max(pauseMs * 2, FIRST_PAUSE_MS), MAX_PAUSE_MS);
    logger.error({ worker: number, code, signal, connections: cut, pauseMs }, "a worker has ended and is replaced");
    if (pauseMs === 0) start(number);
    else setTimeout(() => isStopping || start(number), pauseMs);
  }

  // By count and not by time, so that none is killed because the machine slept.
  function ping(): void {
    for (const worker of workers.values()) {
      if (!worker.isReady) continue;
      if (worker.unanswered++ === MAX_UNANSWERED) {
        logger.error({ worker: worker.number }, "a worker hangs and is killed");
        worker.child.kill("SIGKILL");
      } else worker.child.send({ kind: "ping" } satisfies ToWorker, () => {});
    }
  }

  async function collect(worker: Worker): Promise<Collected> {
    const id = ++collections;
    const answer = new Promise<readonly FamilySamples[]>((resolve) => collecting.set(id, resolve));
    worker.child.send({ kind: "collect", id } satisfies ToWorker, () => {});
    const isOld = !(await waitAtMost(answer, COLLECT_MS));
    collecting.delete(id);
    if (isOld) counts.missed++;
    else worker.families = await answer;
    return { worker: String(worker.number), families: worker.families, isOld };
  }

  // What the parent has of what workers have as well.
  async function readOwn(): Promise<FamilySamples[]> {
    const others = await Promise.all(readProcessMetrics().map((metric) => metric.get()));
    const own = [
      eventLoopSource,
      ...shortages.sources,
      readValue("arbor_log_lines_lost_total", () => countLostLines(logger)),
    ].map(({ name, collect }) => ({ ...families[name], name, values: [...collect()] }));
    return [...others, ...own];
  }

  const metrics = await openMetrics(settings.metricsListen, logger, async () => {
    const collected = await Promise.all([...workers.values()].filter(({ isReady }) => isReady).map(collect));
    const gone = { worker: "", families: endedCounts, isOld: true };
    return mergeMetrics([...collected, gone, { worker: "parent", families: await readOwn() }]);
  });
  opened.add(metrics.close);
  metrics.add(
    readValue("arbor_workers", () => [...workers.values()].filter(({ isReady }) => isReady).length),
    readValue("arbor_workers_configured", () => count),
    readValue("arbor_worker_exits_total", () => counts.exits),
    readValue("arbor_worker_scrapes_missed_total", () => counts.missed),
  );

  // A worker that ends now is not replaced, because the start has failed.
  isStopping = true;
  await start(1).ready;
  await Promise.all(Array.from({ length: count - 1 }, (_, i) => start(i + 2).ready));
  isStopping = false;
  const pings = setInterval(ping, PING_MS);
  opened.add(() => clearInterval(pings));
  port.accept(connections.add, { onError: shortages.noteAcceptError, onDrop() {} }, limits.connections);
  const origin = resolveOrigin(settings, port.address);
  const url = buildServerUrl(settings, port.address);
  const service = { ...describeService(settings, url), workers: count };
  logger.info({ ...service, ...describeStart(settings, origin) }, "started");

  async function end(message: ToWorker, reason: string, waitMs: number): Promise<void> {
    const startMs = performance.now();
    isStopping = true;
    tellAll(message);
    if (message.kind === "stop") await sleep(message.delayMs);
    port.close();
    connections.cutWaiting();
    await waitAtMost(Promise.all([...workers.values()].map(({ ended }) => ended)), waitMs);
    await opened.close();
    logger.info({ ...service, reason, durationMs: Math.round(performance.now() - startMs) }, "stopped");
  }

  return {
    url,
    stop: (reason = "stop", delayMs = 0) => end({ kind: "stop", reason, delayMs }, reason, limits.drainMs + END_MS),
    abandon: (drainMs) => end({ kind: "abandon", drainMs }, "uncaught error", drainMs),
    async reload() {
      tellAll({ kind: "reload" });
    },
    openWork: () => ({ connections: connections.count() }),
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
