// The network side of the service: the pipeline that every call runs through, and the server of all protocols.
import type { ConnectError } from "@connectrpc/connect";
import { Health } from "#gen/health/v1/health_pb.js";
import { type Origin, resolveOrigin } from "../../config/origin.js";
import { CONSOLE_PATH } from "../../kernel/web.js";
import { createAuthenticateCaller } from "../../pipeline/auth/authenticate.js";
import type { CallContext } from "../../pipeline/call.js";
import { createInvoke } from "../../pipeline/invoke.js";
import { createInvokeStream } from "../../pipeline/invoke-stream.js";
import type { Tracing } from "../../telemetry/spans.js";
import { HEALTH_PATHS } from "../../transport/http/health-routes.js";
import type { BoundPort } from "../../transport/http/listener.js";
import { createServerSpans } from "../../transport/http/server-span.js";
import { createSite } from "../../transport/openapi/site.js";
import { Gateway } from "../../transport/rest/gateway.js";
import { createServe } from "../../transport/serve.js";
import { createServer } from "../../transport/server.js";
import { createHealth } from "../../transport/services/health.js";
import { createReflection } from "../../transport/services/reflection.js";
import { createApiPages } from "../api-pages.js";
import { readFileLimit, watchFileShortages } from "../file-shortages.js";
import { buildLimits } from "../limits.js";
import { createRequestMetrics, listServed } from "../metrics.js";
import { assertNothingShadowed } from "../mounts.js";
import { readCertificate } from "../reload.js";
import type { AreaDeps } from "./area.js";
import type { Background } from "./background.js";
import type { IssuerArea } from "./issuer.js";
import type { Platform } from "./platform.js";
import type { StoreArea } from "./store.js";

export interface TransportDeps extends Omit<AreaDeps, "ids" | "counts" | "onProblem"> {
  readonly port: BoundPort;
  readonly origin: Origin;
  readonly storage: StoreArea;
  readonly background: Background;
  readonly issuer: IssuerArea;
  readonly platform: Platform;
  readonly tracing: Tracing | undefined;
  /** Aborted when balancers are told to use another server. */
  readonly leaving: AbortController;
  /** Aborted when streams end. */
  readonly stopping: AbortController;
}

/**
 * Creates the server, which serves the connections of its port after `start`.
 *
 * @throws TypeError when a mounted service would take requests of the platform
 * @throws SettingsError naming each file of the certificate that cannot be used
 */
export function createTransport(deps: TransportDeps) {
  const { settings, logger, opened, port, storage, platform, tracing, leaving, stopping } = deps;
  const { callStore, clock, ready } = storage;
  const { methods, described, webRoutes } = platform;
  const { errorDomain } = deps.origin;

  const onInternalError = (error: ConnectError, call: CallContext | undefined) => {
    logger.error({ err: error.cause ?? error, method: call?.method.name, requestId: call?.requestId }, "call failed");
  };
  const pipeline = {
    ...{ store: callStore, clock, errorDomain, onInternalError },
    onPendingUsed: deps.background.acceptances.note,
    stopping: stopping.signal,
  };
  const limits = buildLimits(settings, readFileLimit());
  const spans = createServerSpans(tracing);
  const serve = createServe({
    invoke: createInvoke(pipeline),
    invokeStream: createInvokeStream(pipeline),
    authenticateCaller: createAuthenticateCaller(deps.issuer.authenticate),
    ...{ clock, errorDomain, limits, spans, behindProxy: settings.behindProxy },
    onInternalError: (err, requestId) => logger.error({ err, requestId }, "an answer could not be made"),
  });
  const site = createSite();
  const gateway = new Gateway({
    ...{ serve, methods: methods.values(), strictBody: settings.strictBody },
    sendNotFound: site.sendNotFound,
  });
  const pages = createApiPages(gateway, {
    baseUrl: resolveOrigin(settings, port.address).baseUrl,
    hasConsole: settings.console,
    site,
  });
  assertNothingShadowed(gateway.routes, [...HEALTH_PATHS, ...pages.paths, ...webRoutes.map(({ path }) => path)]);

  const fileShortages = watchFileShortages({ logger });
  opened.add(fileShortages.stop);
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
    ...{ methods, serve, gateway, spans, errorDomain, port },
    proxies: settings.trustedProxies && {
      addresses: settings.trustedProxies,
      header: settings.forwardedHeader,
    },
    ready,
    logger,
    limits,
    tls,
    behindProxy: settings.behindProxy,
    onAcceptError: fileShortages.noteAcceptError,
    extraRoutes: pages.routes,
    webRoutes,
    extraServices,
    observers: [(record) => requestMetrics.observe(record)],
    accessLog: settings.accessLog,
    corsOrigins: settings.corsOrigins,
    corsHeaders: settings.corsHeaders,
    ownPath: settings.console ? CONSOLE_PATH : undefined,
  });
  opened.add((drainMs) => {
    leaving.abort();
    stopping.abort();
    return server.stop(drainMs);
  });
  const served = listServed(server.methodNames, { methods, extraServices, routes: gateway.routes });
  const requestMetrics = createRequestMetrics(served, server.rejected);
  return { server, tls, limits, requestMetrics, sources: [...requestMetrics.sources, ...fileShortages.sources] };
}
