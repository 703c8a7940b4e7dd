// The metrics of a service: what serves them, and what is counted in this process.
import type { Logger } from "pino";
import type { DeliveryCounts } from "../events/delivery/deliver.js";
import type { ExchangeCounts } from "../issuer/exchange-counts.js";
import { Histogram } from "../kernel/histogram.js";
import type { ListenAddress } from "../kernel/ip-address.js";
import { type QuotaKind, quotas } from "../kernel/quotas.js";
import { type RejectReason, rejectReasons } from "../kernel/reject-reason.js";
import { type CacheCounts, createCacheCounts } from "../pipeline/auth/authenticate.js";
import type { MethodTable } from "../pipeline/method-table.js";
import type { Store } from "../store/store.js";
import { VERSION } from "../store/version.js";
import { type MetricsServer, serveMetrics } from "../telemetry/metrics/metrics-server.js";
import { createRenderer, type Renderer } from "../telemetry/metrics/renderer.js";
import { createRequestCounts } from "../telemetry/metrics/request-counts.js";
import { type FamilySamples, readHistogram, readValue, readValues, type Source } from "../telemetry/metrics/samples.js";
import { codeOfStatus, protocolNames, type RequestObserver, requestProtocols } from "../telemetry/request-record.js";
import type { HttpBinding } from "../transport/http/http-binding.js";
import type { Limits } from "../transport/http/limits/limits.js";
import type { Server } from "../transport/server.js";
import type { ExtraService } from "../transport/services/extra-service.js";

export const DEFAULT_METRICS_ADDRESS: ListenAddress = { host: "127.0.0.1", port: 9464 };

interface Metrics {
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
 * @param listen the address; undefined for the default one, or a free port of its host where another program uses that
 * @param others reads what is measured of Node and the process; by default of this one
 * @throws Error when the address cannot be used
 */
export async function openMetrics(
  listen: ListenAddress | "off" | undefined,
  logger: Logger,
  others?: () => Promise<readonly FamilySamples[]>,
): Promise<Metrics> {
  const sources: Source[] = [];
  const preparations: (() => Promise<void>)[] = [];
  const renderer = createRenderer(sources, {
    async prepare() {
      await Promise.all(preparations.map((run) => run()));
    },
    ...(others && { others }),
    onUnreadable: (family, err) => logger.warn({ err, family }, "a metric cannot be read and is left out"),
  });
  sources.push(
    {
      name: "arbor_build_info",
      collect: () => [{ value: 1, labels: { version: VERSION, node: process.versions.node } }],
    },
    readValue("arbor_scrape_duration_seconds", () => renderer.timing.durationS),
    readValue("arbor_scrape_longest_slice_seconds", () => renderer.timing.longestSliceS),
  );
  if (others === undefined) {
    sources.push(
      eventLoopSource,
      readValue("arbor_workers", () => 1),
      readValue("arbor_workers_configured", () => 1),
      readValue("arbor_worker_exits_total", () => 0),
      readValue("arbor_worker_scrapes_missed_total", () => 0),
      readValue("arbor_worker_connections_refused_total", () => 0),
    );
  }
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

/** The load of the event loop of this process. */
export const eventLoopSource = readValue(
  "arbor_event_loop_active_seconds_total",
  () => performance.eventLoopUtilization().active / 1000,
);

async function listenOn(renderer: Renderer, listen: ListenAddress | undefined, logger: Logger): Promise<MetricsServer> {
  try {
    return await serveMetrics(renderer, listen ?? DEFAULT_METRICS_ADDRESS);
  } catch (err) {
    if (listen !== undefined || (err as NodeJS.ErrnoException).code !== "EADDRINUSE") throw err;
    // Another node on this machine has it. Its metrics must not be taken for those of this one.
    const server = await serveMetrics(renderer, { ...DEFAULT_METRICS_ADDRESS, port: 0 });
    logger.warn(
      { taken: DEFAULT_METRICS_ADDRESS, ...server.address },
      "metrics are served on a free port, because the default one is taken: set --metrics-listen",
    );
    return server;
  }
}

/** Counts that the parts of a service increment. */
export interface ServiceCounts {
  readonly quotaRejections: Record<QuotaKind, number>;
  readonly tokenCache: CacheCounts;
  /** By the name of the job. */
  readonly jobRuns: Map<string, { success: number; failure: number }>;
  /** What was delivered to sinks of events. */
  readonly events: DeliveryCounts;
  /** How many chains of the audit log this process does not continue. */
  stoppedChains: number;
}

/** The bounds of times from a change to the response of a sink, in seconds. */
const DELIVERY_BOUNDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600, 3_600, 86_400];

/** Creates the counts, which are 0. */
export function createServiceCounts(): ServiceCounts {
  const quotaRejections = Object.fromEntries(Object.keys(quotas).map((kind) => [kind, 0])) as Record<QuotaKind, number>;
  const events = {
    attempts: { accepted: 0, failed: 0, gone: 0 },
    deadLetters: 0,
    seconds: new Histogram(DELIVERY_BOUNDS),
  };
  return { quotaRejections, tokenCache: createCacheCounts(), jobRuns: new Map(), events, stoppedChains: 0 };
}

/** The parts of a service with counts of their own. */
interface MeasuredService {
  readonly counts: ServiceCounts;
  readonly store: Pick<Store, "stats">;
  readonly server: Pick<Server, "openWork" | "countBufferedBytes" | "countConnections" | "countWaiting">;
  readonly exchanges: ExchangeCounts;
  /** The caches of the issuer, by name. */
  readonly caches: Readonly<Record<string, CacheCounts>>;
  readonly limits: Limits;
}

export function createServiceSources({ counts, store, server, exchanges, caches, limits }: MeasuredService): Source[] {
  const readCaches = (name: keyof CacheCounts) => () =>
    Object.fromEntries(
      Object.entries({ tokens: counts.tokenCache, ...caches }).map(([cache, values]) => [cache, values[name]]),
    );
  return [
    readValue("arbor_requests_in_flight", () => server.openWork().calls),
    readValue("arbor_requests_waiting", server.countWaiting),
    readValues("arbor_quota_rejections_total", "kind", () => counts.quotaRejections),
    readValues("arbor_connections", "kind", server.countConnections),
    readValues("arbor_buffered_bytes", "direction", server.countBufferedBytes),
    readValues("arbor_buffered_bytes_limit", "direction", () => ({
      requests: limits.requestBufferBytes,
      answers: limits.responseBufferBytes,
    })),
    ...createStoreSources(store),
    {
      name: "arbor_token_exchanges_total",
      *collect() {
        for (const [grant, outcomes] of Object.entries(exchanges))
          for (const [outcome, value] of Object.entries(outcomes)) yield { value, labels: { grant, outcome } };
      },
    },
    {
      name: "arbor_job_runs_total",
      *collect() {
        for (const [name, outcomes] of counts.jobRuns)
          for (const [outcome, value] of Object.entries(outcomes)) yield { value, labels: { job_name: name, outcome } };
      },
    },
    readValues("arbor_event_deliveries_total", "result", () => counts.events.attempts),
    readValue("arbor_event_dead_letters_total", () => counts.events.deadLetters),
    readHistogram("arbor_event_delivery_seconds", () => counts.events.seconds),
    readValue("arbor_audit_stopped_chains", () => counts.stoppedChains),
    readValues("arbor_cache_hits_total", "cache", readCaches("hits")),
    readValues("arbor_cache_misses_total", "cache", readCaches("misses")),
    readValues("arbor_cache_entries", "cache", readCaches("entries")),
  ];
}

function createStoreSources(store: Pick<Store, "stats">): Source[] {
  return [
    readValue("arbor_write_queue_length", () => store.stats().waiting),
    readHistogram("arbor_write_batch_size", () => store.stats().batchUnits),
    readHistogram("arbor_write_commit_duration_seconds", () => store.stats().commitSeconds),
    readValue("arbor_write_conflicts_total", () => store.stats().conflicts),
    readValues("arbor_database_file_bytes", "file", () => {
      const files = store.stats().files?.();
      return files && { database: files.database, wal: files.wal };
    }),
    readValue("arbor_data_free_bytes", () => store.stats().files?.().free),
    readValues("arbor_database_connections", "state", () => {
      const { pool } = store.stats();
      return pool && { busy: pool.busy, idle: pool.idle };
    }),
    readValue("arbor_database_connections_limit", () => store.stats().pool?.max),
  ];
}

/** The methods and routes of a service. */
interface ServedMethods {
  /** All values of `method` in records: `package.Service/Method` of RPCs, and names of routes. */
  readonly names: readonly string[];
  /** Those that are served over REST. */
  readonly rest: ReadonlySet<string>;
  /** Those that stream. */
  readonly streams: ReadonlySet<string>;
}

/** Lists the methods and routes of a service. */
export function listServed(
  names: readonly string[],
  {
    methods,
    extraServices,
    routes,
  }: {
    readonly methods: MethodTable;
    readonly extraServices: readonly ExtraService[];
    readonly routes: readonly HttpBinding[];
  },
): ServedMethods {
  const extra = extraServices.flatMap(({ desc }) => desc.methods);
  const streams = [
    ...[...methods.values()].filter(({ kind }) => kind !== "unary").map(({ desc }) => desc),
    ...extra.filter(({ methodKind }) => methodKind !== "unary"),
  ];
  return {
    names,
    rest: new Set(routes.map(({ entry }) => entry.path.slice(1))),
    streams: new Set(streams.map(({ parent, name }) => `${parent.typeName}/${name}`)),
  };
}

/** Counts requests; see {@link createRequestMetrics}. */
export interface RequestMetrics {
  /** The names of all methods and routes that have counts of their own. */
  readonly names: readonly string[];
  readonly observe: RequestObserver;
  readonly sources: readonly Source[];
}

/**
 * Creates the counts of requests, which are 0 and count their records.
 *
 * @param rejectedEarly rejections that the transport counts, because not all of them have a record; for each reason the
 * larger count is used
 */
export function createRequestMetrics(
  { names, rest, streams }: ServedMethods,
  rejectedEarly: Readonly<Partial<Record<RejectReason, number>>> = {},
): RequestMetrics {
  const methods = names.map((name) => {
    const isMethod = name.includes("/");
    const isServed = { methods: isMethod, rules: rest.has(name), routes: !isMethod };
    const protocols = protocolNames.filter((protocol) => isServed[requestProtocols[protocol].serves]);
    return { name, protocols, isStream: streams.has(name) };
  });
  const counts = createRequestCounts(methods, protocolNames);
  const rejected = Object.fromEntries(rejectReasons.map((reason) => [reason, 0])) as Record<RejectReason, number>;
  const readRejected = () =>
    Object.fromEntries(rejectReasons.map((reason) => [reason, Math.max(rejected[reason], rejectedEarly[reason] ?? 0)]));
  return {
    names,
    observe(record) {
      const { protocol, method, code, status, reason, isCanceled, isEarly, durationMs } = record;
      const seconds = isEarly ? undefined : durationMs / 1000;
      counts.count(protocol, method, code ?? (isCanceled ? CANCELLED : codeOfStatus(status ?? 500)), seconds);
      if (reason !== undefined) rejected[reason]++;
    },
    sources: [...counts.sources, readValues("arbor_requests_rejected_total", "reason", readRejected)],
  };
}

const CANCELLED = 1;
