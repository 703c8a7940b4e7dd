import type { WebRoutes } from "../kernel/web.js";
import type { MethodTable } from "../pipeline/method-table.js";
import type { Logger } from "../telemetry/logger.js";
import type { RequestObserver } from "../telemetry/request-record.js";
import { Dispatch, type RestHandler } from "./dispatch.js";
import { type AccessLogMode, createAccessLog } from "./http/access-log.js";
import { createCors } from "./http/cors.js";
import { combineRoutes, createHealthCheck, createHealthRoutes, type RouteGroup } from "./http/health-routes.js";
import { createHostCheck } from "./http/host.js";
import { Admission, type RejectionCounts } from "./http/limits/admission.js";
import { createBudgets } from "./http/limits/budgets.js";
import { Connections } from "./http/limits/connections.js";
import { defaultLimits, type Limits } from "./http/limits/limits.js";
import { type BoundPort, createListener, type OpenConnections, type OpenWork } from "./http/listener.js";
import type { TrustedProxies } from "./http/peer-address.js";
import type { TlsIdentity } from "./http/protocol-detection.js";
import { endServerSpan, type ServerSpans } from "./http/server-span.js";
import { createWeb } from "./http/web-routes.js";
import { Rpc } from "./rpc.js";
import type { Serve } from "./serve.js";
import type { ExtraService } from "./services/extra-service.js";

export interface ServerOptions {
  readonly methods: MethodTable;
  /** Answers calls. */
  readonly serve: Serve;
  /** Answers REST requests, and every path that nothing else serves. */
  readonly gateway: RestHandler;
  /** ErrorInfo's domain. */
  readonly errorDomain: string;
  readonly port: BoundPort;
  readonly logger: Logger;
  /** The certificate; cleartext without it. */
  readonly tls?: TlsIdentity | undefined;
  readonly limits?: Limits | undefined;
  /** Called with errors of accepting connections, such as EMFILE; they are logged unless given. */
  readonly onAcceptError?: ((error: Error) => void) | undefined;
  /** Whether all connections are those of a proxy, so that they are not limited by address. */
  readonly behindProxy?: boolean | undefined;
  /** The proxies that are trusted to name their peers; none unless given. */
  readonly proxies?: TrustedProxies | undefined;
  /**
   * Called by `/readyz`. Rejects while the service cannot serve, and resolves to `read-only` while only writes fail.
   */
  readonly ready?: (() => Promise<unknown>) | undefined;
  /** Which requests have a line in the log; none unless given. */
  readonly accessLog?: AccessLogMode | undefined;
  /** Begins the spans of requests, where traces are on. */
  readonly spans?: ServerSpans | undefined;
  /** Called with the record of each request when its response has closed, after the access log. */
  readonly observers?: readonly RequestObserver[] | undefined;
  /** The origins whose scripts may call from browsers, or `*` alone; none unless given. */
  readonly corsOrigins?: readonly string[] | undefined;
  /** Header fields that these scripts may send besides those of the protocols. */
  readonly corsHeaders?: readonly string[] | undefined;
  /** A path that, with all below it, has no fields of CORS; none unless given. */
  readonly ownPath?: string | undefined;
  /** Further routes with fixed paths, such as documentation; tried in their order, before the gateway. */
  readonly extraRoutes?: readonly RouteGroup[] | undefined;
  /** Pages, redirects and the endpoints of OAuth; tried after those, before the gateway. */
  readonly webRoutes?: WebRoutes | undefined;
  /** Services beside the method table, such as health and reflection. */
  readonly extraServices?: readonly ExtraService[] | undefined;
}

/** The server of all protocols on one port. */
export interface Server {
  /** Begins to serve the connections of its port. */
  start(): void;

  /**
   * Tells balancers to use another server: `/readyz` fails, and every response over HTTP/1.1 closes its connection. All
   * calls are still served, also on new connections.
   */
  leave(): void;

  /** Drains: `/readyz` fails, calls in flight get up to `graceMs` (`drainMs` unless given), nothing new begins. */
  stop(graceMs?: number): Promise<void>;

  /**
   * Serves new connections with another certificate.
   *
   * @throws Error when the key does not belong to it
   */
  replaceTls(identity: TlsIdentity): void;

  /** Counts the open calls and connections. */
  openWork(): OpenWork;

  /** How many connections are open. */
  countConnections(): OpenConnections;

  /** The bytes held of requests and of responses. */
  countBufferedBytes(): { readonly requests: number; readonly answers: number };

  /** How many requests wait for their turn. */
  countWaiting(): number;

  /** How many requests and connections were rejected before they were handled, by reason. */
  readonly rejected: Readonly<RejectionCounts>;

  /** Every value of `method` that the record of a request may have. */
  readonly methodNames: readonly string[];
}

/** Creates a server that does not serve yet. */
export function createServer(options: ServerOptions): Server {
  const { logger, errorDomain } = options;
  const limits = options.limits ?? defaultLimits;
  const behindProxy = options.behindProxy ?? false;
  let draining = false;
  const checkHealth = createHealthCheck(options.ready ?? alwaysReady, () => draining);

  const onInternalError = (error: unknown, requestId: string) =>
    logger.error({ err: error, requestId }, "an answer could not be made");
  const { accessLog = "off", spans } = options;
  const log = accessLog === "off" ? undefined : createAccessLog(logger, accessLog);
  const observers = [...(log ? [log.observe] : []), ...(spans ? [endServerSpan] : []), ...(options.observers ?? [])];
  const admission = new Admission({ limits, logger });
  const { methods, serve, extraServices = [] } = options;
  const rpc = new Rpc({ methods, extra: extraServices.flatMap(({ entries }) => entries), serve, errorDomain, limits });
  const dispatch = new Dispatch({
    rpc,
    fixedRoutes: combineRoutes([createHealthRoutes(checkHealth), ...(options.extraRoutes ?? [])]),
    web: createWeb({ routes: options.webRoutes ?? [], errorDomain, spans, onInternalError }),
    gateway: options.gateway,
    hosts: createHostCheck(limits.validatedHosts),
    errorDomain,
    proxies: options.proxies,
    observers,
    cors: createCors(options.corsOrigins ?? [], { headers: options.corsHeaders ?? [], ownPath: options.ownPath }),
  });

  const budgets = createBudgets(limits);
  const listener = createListener({
    handle: (request) => dispatch.handle(request),
    refuse: (request, reason) => dispatch.refuse(request, reason),
    errorBody: (status) => dispatch.errorBody(status),
    records: dispatch.records,
    connections: new Connections({
      ...{ limits, admission, budgets, behindProxy, logger },
      proxies: options.proxies,
      hasTls: options.tls !== undefined,
      takesStream: (path) => rpc.takesStream(path),
    }),
    port: options.port,
    tls: options.tls,
    limits,
    logger,
    onAcceptError: options.onAcceptError,
    admission,
  });

  return {
    methodNames: dispatch.methodNames,
    start: listener.start,
    replaceTls: listener.replaceTls,
    openWork: listener.openWork,
    countConnections: listener.countConnections,
    countBufferedBytes: () => ({ requests: budgets.requests.bytes, answers: budgets.responses.bytes }),
    countWaiting: () => admission.countWaiting(),
    rejected: admission.counts,
    leave() {
      draining = true;
      listener.closeAfterResponses();
    },
    stop(graceMs) {
      draining = true;
      return listener.stop(graceMs).finally(() => log?.flush());
    },
  };
}

async function alwaysReady(): Promise<void> {}
