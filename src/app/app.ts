// The composition root.
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { ConnectError } from "@connectrpc/connect";
import type { Logger } from "pino";
import { Health } from "#gen/health/v1/health_pb.js";
import { auditV1, createEventIds, readEventIdKey } from "../audit/audit-v1.js";
import { createEventFeed, createEventStreams } from "../audit/event-feed.js";
import { readComments } from "../codec/proto-comments.js";
import { buildServerUrl, describeChanged, resolveOrigin, type Settings } from "../config/config.js";
import { createAcceptances } from "../iam/people/pending-bindings.js";
import { createIssuer } from "../issuer/issuer.js";
import { storeTokenAlgorithm } from "../issuer/keys/key-ring.js";
import { sealForStore } from "../issuer/keys/master-key.js";
import { createFailureThrottle } from "../issuer/sts/failure-throttle.js";
import { createJobs, type Job } from "../jobs/jobs.js";
import { unavailable } from "../kernel/errors.js";
import { type Ids, randomIds } from "../kernel/ids.js";
import { createPageTokens } from "../kernel/page-token.js";
import { type Clock, runInSlices } from "../kernel/time.js";
import { VERSION } from "../kernel/version.js";
import type { WebRoutes } from "../kernel/web.js";
import { createAuthenticate, createAuthenticateCaller } from "../pipeline/auth/authenticate.js";
import type { CallContext } from "../pipeline/call.js";
import { createInvoke } from "../pipeline/invoke.js";
import { createInvokeStream } from "../pipeline/invoke-stream.js";
import { createMethodTable, findBodyReaders } from "../pipeline/method-table.js";
import type { Mount } from "../pipeline/mount-options.js";
import { buildRoomChecks, createQuotas } from "../pipeline/resource/quota.js";
import { notificationRoutes } from "../registry/oci/notification-routes.js";
import { createRegistryClient } from "../registry/oci/registry-client.js";
import { createInternalTokens } from "../registry/oci/registry-token.js";
import { TOKEN_FAILURES, tokenRoutes } from "../registry/oci/token-routes.js";
import { watchUnits } from "../store/unit-watch.js";
import { countLostLines, createLogger } from "../telemetry/logger.js";
import { readValue } from "../telemetry/metrics/samples.js";
import { startTracing } from "../telemetry/tracing.js";
import { HEALTH_PATHS } from "../transport/http/health-routes.js";
import type { HttpBinding } from "../transport/http/http-binding.js";
import { bindPort, type OpenWork } from "../transport/http/listener.js";
import { createServerSpans } from "../transport/http/server-span.js";
import { createDocsRoutes } from "../transport/openapi/docs.js";
import { buildOpenApiDocument } from "../transport/openapi/document.js";
import { createGuide } from "../transport/openapi/guide.js";
import { createHomeRoutes, VERSION_PATH } from "../transport/openapi/home.js";
import { createGateway } from "../transport/rest/gateway.js";
import { createHealth } from "../transport/rpc/health.js";
import { createReflection } from "../transport/rpc/reflection.js";
import { createServer } from "../transport/server.js";
import { createDatabaseMetrics } from "./database-metrics.js";
import { bodiesOfOthers, definitions } from "./definitions.js";
import {
  buildLimits,
  createDatabaseFaultSources,
  createHostWatch,
  logDatabaseFault,
  readFileLimit,
} from "./host-watch.js";
import { type Installation, nameDiskFault, openInstallation } from "./installation.js";
import { countRuns, createServiceJobs } from "./jobs.js";
import {
  createRequestMetrics,
  createServiceCounts,
  createServiceSources,
  listServed,
  openMetrics,
  type RequestMetrics,
} from "./metrics.js";
import { addMounts, assertNothingShadowed } from "./mounts.js";
import { readCertificate, watchCertificate, watchIssuerKeys, watchMasterKey } from "./reload.js";
import { createPlatformServices } from "./services.js";

/** A running service. */
export interface App {
  /** The URL of the address on which it listens. */
  readonly url: string;
  /** The URL of its metrics; undefined when they are off. */
  readonly metricsUrl: string | undefined;
  /** The counts of its requests. */
  readonly requestMetrics: RequestMetrics;
  readonly installation: Installation;
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
}

/** How long the last spans may take to be sent, at a stop and after an error that ends the process, in milliseconds. */
const FLUSH_MS = 3_000;
const ABANDON_FLUSH_MS = 500;

/** Closes a resource. `drainMs` is how long calls in flight may take, in milliseconds. */
type Close = (drainMs?: number) => Promise<void> | void;

/**
 * Opens the installation and serves it.
 *
 * @throws Error when it cannot be opened, the address is taken, or the protos contradict each other. Whatever was
 * opened by then is closed.
 */
export async function startApp(options: AppOptions): Promise<App> {
  const opened: Close[] = [];
  try {
    return await nameDiskFault(options.settings, () => openApp(options, opened));
  } catch (error) {
    // The error of the start is thrown, because it says more than one of closing.
    await closeAll(opened).catch(() => {});
    throw error;
  }
}

async function openApp(options: AppOptions, opened: Close[]): Promise<App> {
  const { settings, ignoredVariables: variables = [], mounts = [], ids = randomIds } = options;
  const logger = options.logger ?? createLogger(settings.logLevel);
  if (variables.length > 0)
    logger.info({ variables }, "variables of Kubernetes Services are not settings and are ignored");
  const onProblem = (problem: string, err?: unknown) => logger.error({ err }, problem);
  if (settings.behindProxy && settings.trustedProxies === undefined) {
    logger.warn(
      "--behind-proxy without --trusted-proxies: all callers have the address of the proxy, so limits by address count " +
        "them together",
    );
  }
  // Closed last, so that metrics are served while the service drains.
  const metrics = await openMetrics(settings.metricsListen, logger);
  opened.push(metrics.close);
  const counts = createServiceCounts();
  // Stopped after everything that is traced, so that all spans are sent.
  const tracing = await startTracing({ env: process.env, logger, version: VERSION });
  opened.push((drainMs) => tracing?.stop(drainMs === undefined ? FLUSH_MS : ABANDON_FLUSH_MS));
  const installation = await openInstallation({
    settings,
    mode: settings.create ? "create" : "update",
    exclusive: true,
    onFault: logDatabaseFault(logger),
    onMigration: ({ name, done, total }) => logger.info({ migration: name, done, total }, "upgrading the database"),
    ...(options.clock && { clock: options.clock }),
  });
  opened.push(installation.close);
  const { store, keys, masterKey, clock } = installation;
  // What callers wait for; background work uses the store itself.
  const units = watchUnits(store, settings.maxWait * 1000);

  // Bound first, because with port 0 the port is a part of the issuer's URL. Connections wait until the server starts.
  const port = await bindPort(settings.listen);
  opened.push(port.close);
  const origin = resolveOrigin(settings, { ...settings.listen, port: port.address.port });
  const { errorDomain, baseUrl, issuer: issuerName } = origin;

  // Stopped after everything that writes, so that the audit log is sealed to its end.
  const holder = nameNode();
  const jobs = createJobs({ store, holder, onProblem });
  opened.push(() => jobs.stop());
  const hostWatch = createHostWatch({ logger });
  opened.push(hostWatch.stop);
  const addJob = (job: Job) => jobs.add(countRuns(hostWatch.pauseAfterJump(job), counts));
  for (const job of createServiceJobs({ settings, store, keys, clock, onProblem })) addJob(job);
  const acceptances = createAcceptances({ store, clock, ids, onProblem });
  opened.push(acceptances.stop);
  const quotas = createQuotas(settings.quotas, (kind) => counts.quotaRejections[kind]++);
  const issuer = createIssuer({
    ...{ settings, store: units.store, keys, masterKey, clock, ids, quotas, onProblem },
    origin,
    onKeyStateChange: (change) => logger.info(change, "a key changed state"),
    onRedirectNotice: ({ message, ...named }) => logger.warn(named, message),
    startRequest: tracing?.startRequest,
  });
  opened.push(issuer.stop);
  for (const job of issuer.jobs) addJob(job);
  const leaving = new AbortController();
  const stopping = new AbortController();
  const tokens = createPageTokens(keys.pageKeys);
  const platformServices = [
    ...createPlatformServices({
      tokens,
      ids,
      seal: (tx, secret, context) => sealForStore(tx, masterKey, secret, context),
      rootCreation: settings.rootCreation,
      limits: settings.quotas,
      trustedIssuers: settings.trustedIssuers,
      store: units.store,
      registry: createRegistry(),
    }),
    ...issuer.services,
  ];
  const services = [
    ...platformServices,
    auditV1({
      ...{ store: units.store, clock, keys, tokens, stopping: stopping.signal },
      eventIds: createEventIds(await store.write(readEventIdKey)),
      eventFeed: createEventFeed({ store, onProblem }),
      streams: createEventStreams(),
      bodyReaders: findBodyReaders(platformServices, bodiesOfOthers),
    }),
  ];
  const described = [...services.map(({ desc, published = desc }) => published), ...mounts.map(({ desc }) => desc)];
  const methods = addMounts(createMethodTable(services, buildRoomChecks(definitions, quotas)), mounts);
  const authenticate = createAuthenticate({ keys, policy: origin, clock, cache: counts.tokenCache });
  const onInternalError = (error: ConnectError, call: CallContext | undefined) => {
    logger.error({ err: error.cause ?? error, method: call?.method.name, requestId: call?.requestId }, "call failed");
  };
  const pipeline = {
    ...{ store: units.store, clock, errorDomain, onInternalError },
    onPendingUsed: acceptances.note,
    stopping: stopping.signal,
  };
  const shared = {
    methods,
    invoke: createInvoke(pipeline),
    invokeStream: createInvokeStream(pipeline),
    authenticateCaller: createAuthenticateCaller(authenticate),
    spans: createServerSpans(tracing),
    clock,
    errorDomain,
    proxies: settings.trustedProxies && {
      addresses: settings.trustedProxies,
      header: settings.forwardedHeader,
    },
  };
  const gateway = createGateway({
    ...shared,
    methods: methods.values(),
    strictBody: settings.strictBody,
    onInternalError,
  });
  const documentUrl = resolveOrigin(settings, port.address).baseUrl;
  const docs = createDocsRoutes(() => buildOpenApiJson(gateway.routes, documentUrl));
  const home = createHomeRoutes({ version: VERSION, isRootTaken: gateway.methodsAt("/") !== undefined });
  const guide = createGuide();
  const webRoutes = [...issuer.routes, ...createRegistryRoutes()];
  // `/` is not among them, because a mounted service may serve it.
  const fixedPaths = [
    ...HEALTH_PATHS,
    ...docs.paths,
    ...guide.paths,
    VERSION_PATH,
    ...webRoutes.map(({ path }) => path),
  ];
  assertNothingShadowed(gateway.routes, fixedPaths);
  let wereStuck = false;
  const ready = async () => {
    const areStuck = units.areStuck();
    if (areStuck && !wereStuck) logger.error("not ready: calls wait for the database, and none has ended for 5 s");
    if (!areStuck && wereStuck) logger.info("calls that wait for the database end again");
    wereStuck = areStuck;
    if (areStuck) throw unavailable("no unit of work ends");
    return store.check();
  };
  const limits = buildLimits(settings, readFileLimit());
  const tls = readCertificate(settings);
  const extraServices = [
    createHealth({
      services: described.map(({ typeName }) => typeName),
      ready,
      leaving: leaving.signal,
      stopping: stopping.signal,
      errorDomain,
    }),
    ...createReflection([...described, Health], stopping.signal),
  ];
  const server = createServer({
    ...shared,
    port,
    gateway,
    ready,
    logger,
    limits,
    tls,
    behindProxy: settings.behindProxy,
    onAcceptError: hostWatch.noteAcceptError,
    extraRoutes: [docs, home, guide],
    webRoutes,
    extraServices,
    observers: [(record) => requestMetrics.observe(record)],
    accessLog: settings.accessLog,
    corsOrigins: settings.corsOrigins,
    corsHeaders: settings.corsHeaders,
  });
  opened.push((drainMs) => {
    leaving.abort();
    stopping.abort();
    return server.stop(drainMs);
  });

  const masterKeyWatch = watchMasterKey({ masterKey, store, logger });
  opened.push(masterKeyWatch.stop);
  const certificate = tls && watchCertificate({ settings, current: tls, replace: server.replaceTls, logger, clock });
  if (certificate) opened.push(certificate.stop);
  const issuerKeyWatch = watchIssuerKeys({ keys: issuer.operatorKeys, logger });
  opened.push(issuerKeyWatch.stop);
  const served = listServed(server.methodNames, { methods, extraServices, routes: gateway.routes });
  const requestMetrics = createRequestMetrics(served, server.rejected);
  const stored = createDatabaseMetrics({ store, clock, holder, jobs: () => new Set(counts.jobRuns.keys()) });
  metrics.prepare(stored.refresh);
  metrics.add(readValue("arbor_log_lines_lost_total", () => countLostLines(logger)));
  metrics.add(...requestMetrics.sources, ...hostWatch.sources, ...createDatabaseFaultSources(store));
  const { exchanges, caches } = issuer;
  metrics.add(...createServiceSources({ counts, store, server, exchanges, caches, limits }), ...stored.sources);

  await store.write(async (tx) => {
    await tx.settings.put("origin", JSON.stringify({ baseUrl, issuer: issuerName }));
    await storeTokenAlgorithm(tx, settings.tokenAlgorithm);
  });
  jobs.start();
  issuer.start();
  server.start();
  const url = buildServerUrl(settings, port.address);
  const storeName = settings.databaseUrl === undefined ? "sqlite" : "postgresql";
  const service = { version: VERSION, store: storeName, address: url };
  logger.info({ ...service, node: process.version, settings: describeChanged(settings) }, "started");
  const close = async (reason: string, drainMs?: number) => {
    const startMs = performance.now();
    await closeAll(opened, drainMs);
    logger.info({ ...service, reason, durationMs: Math.round(performance.now() - startMs) }, "stopped");
  };
  return {
    url,
    metricsUrl: metrics.url,
    requestMetrics,
    installation,
    async stop(reason = "stop", delayMs = 0) {
      if (delayMs > 0) {
        leaving.abort();
        server.leave();
        await sleep(delayMs);
      }
      await close(reason);
    },
    async reload() {
      await masterKeyWatch.reload();
      await certificate?.reload();
      await issuerKeyWatch.reload();
    },
    openWork: server.openWork,
    abandon(drainMs) {
      installation.rejectWork();
      return close("uncaught error", drainMs);
    },
  };

  function createRegistry() {
    const { registryUrl: url, registryService: service } = settings;
    if (url === undefined) return undefined;
    const token = createInternalTokens({ keys, clock, ids, issuer: issuerName, service });
    return createRegistryClient({ url, token });
  }

  function createRegistryRoutes(): WebRoutes {
    return [
      ...tokenRoutes({
        ...{ store: units.store, keys, ids, clock, authenticate },
        exchanger: issuer.exchanger,
        service: settings.registryService,
        issuer: issuerName,
        baseUrl,
        failures: createFailureThrottle(TOKEN_FAILURES),
        onToken: issuer.lastSeen.touch,
      }),
      ...notificationRoutes({
        ...{ store: units.store, ids, clock },
        secretFile: settings.registrySecretFile,
        onEvents: (counts) => logger.info(counts, "events of the registry"),
      }),
    ];
  }
}

/** Creates a unique name of this process, for operators. */
function nameNode(): string {
  return `${hostname()}-${process.pid}-${randomIds.newId().slice(0, 8)}`;
}

/** Closes everything in the reverse order of opening, also after an error; then throws the first error. */
async function closeAll(opened: readonly Close[], drainMs?: number): Promise<void> {
  const errors: unknown[] = [];
  for (const close of [...opened].reverse()) {
    try {
      await close(drainMs);
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}

const IMAGE = fileURLToPath(new URL("../../gen/api.binpb", import.meta.url));

/**
 * Builds the OpenAPI document of the routes as JSON.
 *
 * @param baseUrl the base URL of the service
 */
async function buildOpenApiJson(routes: readonly HttpBinding[], baseUrl: string): Promise<string> {
  const description =
    "Organisations as a tree of groups, identities, roles and access. Every operation is a gRPC method too, on the same " +
    "host and port.";
  const info = { title: "Arbor", version: VERSION, description, baseUrl };
  const comments = await runInSlices(readComments(readFileSync(IMAGE)));
  return JSON.stringify(await runInSlices(buildOpenApiDocument(routes, comments, info)));
}
