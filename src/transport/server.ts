import { encodeFrame } from "../codec/frame-writer.js";
import type { Clock } from "../kernel/time.js";
import type { WebRoutes } from "../kernel/web.js";
import type { AuthenticateCaller } from "../pipeline/auth/authenticate.js";
import type { Invoke } from "../pipeline/invoke.js";
import type { InvokeStream } from "../pipeline/invoke-stream.js";
import type { MethodTable } from "../pipeline/method-table.js";
import type { Logger } from "../telemetry/logger.js";
import { createDispatch, type Gateway } from "./dispatch.js";
import { createAccessLog } from "./http/access-log.js";
import { createCors } from "./http/cors.js";
import { createHostCheck } from "./http/host.js";
import type { TrustedProxies } from "./http/http-message.js";
import { defaultLimits, type Limits } from "./http/limits.js";
import { type BoundPort, createListener, type TlsIdentity } from "./http/listener.js";
import { createOps, firstOf, type Ops } from "./http/ops.js";
import { Buffers, createConnections } from "./http/request-buffers.js";
import { createWeb } from "./http/web-routes.js";
import { createConnect } from "./rpc/connect.js";
import type { ExtraService } from "./rpc/connect-handlers.js";
import { createGrpcUnary } from "./rpc/grpc.js";
import { createListFrames } from "./rpc/list-frame.js";

/** What a server is made of. */
export interface ServerOptions {
  readonly methods: MethodTable;
  readonly invoke: Invoke;
  /** Is called before a body is read. */
  readonly authenticateCaller: AuthenticateCaller;
  /** Runs the methods that stream; without it the table must hold none. */
  readonly invokeStream?: InvokeStream | undefined;
  /** Answers everything that is neither RPC nor `/healthz` and `/readyz`. */
  readonly gateway: Gateway;
  readonly clock: Clock;
  /** ErrorInfo's domain. */
  readonly errorDomain: string;
  readonly port: BoundPort;
  readonly logger: Logger;
  /** Cleartext without it. */
  readonly tls?: TlsIdentity | undefined;
  readonly limits?: Limits | undefined;
  /** Do not count connections per address: they are all of the proxy's. */
  readonly behindProxy?: boolean | undefined;
  /** Whose `x-forwarded-for` counts; nobody's unless given. */
  readonly proxies?: TrustedProxies | undefined;
  /** Rejects while the service cannot serve; asked by `/readyz`. */
  readonly ready?: (() => Promise<void>) | undefined;
  /** One log line per request. */
  readonly accessLog?: boolean | undefined;
  /** The origins whose scripts may call from browsers, or `*` alone; none unless given. */
  readonly corsOrigins?: readonly string[] | undefined;
  /** Routes beside the operators' own, such as documentation; asked in their order, before the gateway. */
  readonly extraRoutes?: readonly Ops[] | undefined;
  /** Pages, redirects and the endpoints of OAuth; asked after those, before the gateway. */
  readonly webRoutes?: WebRoutes | undefined;
  /** Services beside the method table, such as health and reflection. */
  readonly extraServices?: readonly ExtraService[] | undefined;
}

/** All protocols on one port. */
export interface Server {
  /** Begins to serve the connections of its port. */
  start(): void;

  /** Drains: `/readyz` fails, calls in flight get up to `graceMs` (10 s unless given), nothing new begins. */
  stop(graceMs?: number): Promise<void>;
}

/** Creates a server that does not serve yet. */
export function createServer(options: ServerOptions): Server {
  const { logger, errorDomain, methods, invoke, authenticateCaller, clock } = options;
  const limits = options.limits ?? defaultLimits;
  const behindProxy = options.behindProxy ?? false;
  let draining = false;

  const onInternalError = (error: unknown) => logger.error({ err: error }, "an answer could not be made");
  const shared = {
    methods,
    invoke,
    authenticateCaller,
    invokeStream: options.invokeStream,
    clock,
    errorDomain,
    limits,
    listFrames: createListFrames(limits, encodeFrame),
    proxies: options.proxies,
    onInternalError,
  };

  const dispatch = createDispatch({
    grpc: createGrpcUnary(shared),
    connect: createConnect({ ...shared, behindProxy, extraServices: options.extraServices ?? [] }),
    ops: firstOf([createOps(options.ready ?? alwaysReady, () => draining), ...(options.extraRoutes ?? [])]),
    web: createWeb({ ...shared, routes: options.webRoutes ?? [] }),
    gateway: options.gateway,
    hosts: createHostCheck(limits.validatedHosts),
    errorDomain,
    proxies: options.proxies,
    requestMs: limits.requestMs,
    accessLog: options.accessLog ? createAccessLog(logger) : undefined,
    cors: createCors(options.corsOrigins ?? []),
  });

  const listener = createListener({
    ...dispatch,
    connections: createConnections(new Buffers(limits), options.proxies, behindProxy),
    port: options.port,
    tls: options.tls,
    limits,
    behindProxy,
    logger,
  });

  return {
    start: listener.start,
    stop(graceMs) {
      draining = true;
      return listener.stop(graceMs);
    },
  };
}

async function alwaysReady(): Promise<void> {}
