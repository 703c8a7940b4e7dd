// Chooses the front end of a request by its path and content type, after the checks that all protocols share.
import { httpStatusOf, retryAfterOf } from "../codec/error-json.js";
import {
  type ApiError,
  connectErrorFrom,
  deadlineExceeded,
  invalidRequest,
  overloaded,
  resourceExhausted,
  unavailable,
  unimplemented,
} from "../kernel/errors.js";
import {
  type RequestObserver,
  type RequestProtocol,
  type RequestRecord,
  requestProtocols,
} from "../telemetry/request-record.js";
import type { RefusalReason } from "./http/admission.js";
import type { Cors } from "./http/cors.js";
import { simplifyGrpcType } from "./http/grpc-fields.js";
import type { RouteGroup } from "./http/health-routes.js";
import { combineField, countFields, type FieldCounts, type HostCheck } from "./http/host.js";
import type { TrustedProxies } from "./http/peer-address.js";
import { createRecords } from "./http/records.js";
import type { Request } from "./http/request.js";
import { formatStatusJson, sendJson } from "./http/send.js";
import { formatRouteName, type Web } from "./http/web-routes.js";
import type { Rpc } from "./rpc.js";

/** Answers requests that are neither RPC nor for the routes of the server itself. */
export interface RestHandler {
  /** Answers. Must not throw. */
  handle(request: Request): void;

  /** Answers with an error, before anything of a request is read. Must not throw. */
  refuse(request: Request, cause: ApiError): void;

  /** The methods that a path is served for, as in an Allow header; undefined when there are none. */
  methodsAt(path: string): string | undefined;

  /** Whether a path is served for the method of a request. */
  serves(request: Request, path: string): boolean;
}

export interface DispatchOptions {
  readonly rpc: Rpc;
  readonly fixedRoutes: RouteGroup;
  /** Pages, redirects and the endpoints of OAuth. */
  readonly web: Web;
  readonly gateway: RestHandler;
  readonly hosts: HostCheck;
  readonly errorDomain: string;
  readonly proxies: TrustedProxies | undefined;
  /** Called with the record of each request when its response has closed. */
  readonly observers: readonly RequestObserver[];
  /** Lets scripts of other origins read responses; without it they cannot. */
  readonly cors?: Cors | undefined;
}

/**
 * One protocol, or several that share their paths: which requests are its own, and how they are answered. Its functions
 * must not throw.
 */
interface FrontEnd {
  /**
   * Whether a request is its own. This is asked of rejected requests too, so it must cost little.
   *
   * @param path empty if the request is not well formed
   */
  accepts(path: string, contentType: string | undefined): boolean;

  /** The protocol of a request that it accepts. */
  protocolOf(contentType: string | undefined): RequestProtocol;

  /** The name that logs and metrics have for the method or route at a path, if it can be found as cheaply. */
  nameOf(path: string): string | undefined;

  /** The HTTP methods that a path is served for, as in an Allow header; undefined when there are none. */
  methodsOf(path: string): string | undefined;

  /** Answers a request that it accepts. */
  handle(request: Request, path: string): void;

  /** Answers with an error, in the form of the protocol, a request of which nothing was read. */
  refuse(request: Request, path: string, cause: ApiError): void;
}

// The front ends in their order: the first that accepts a request answers it, and the last one accepts all. Templates of
// REST may match any path, so it comes last.
function listFrontEnds(
  { rpc, fixedRoutes, web, gateway, errorDomain }: DispatchOptions,
  routeAt: (path: string) => string | undefined,
): readonly FrontEnd[] {
  const methods: FrontEnd = {
    accepts: (path) => rpc.serves(path),
    protocolOf: (contentType) => grpcProtocolOf(contentType) ?? "connect",
    nameOf: (path) => rpc.nameOf(path),
    methodsOf: (path) => rpc.methodsOf(path),
    handle: (request, path) => rpc.handle(request, path),
    refuse: (request, path, cause) => rpc.refuse(request, path, cause),
  };
  const unknownGrpc: FrontEnd = {
    ...methods,
    accepts: (_path, contentType) => grpcProtocolOf(contentType) !== undefined,
    nameOf: () => undefined,
    methodsOf: () => undefined,
  };
  const pages: FrontEnd = {
    // Without a path, protocols that differ in their paths are not told apart.
    accepts: (path) => path === "" || routeAt(path) !== undefined,
    protocolOf: () => "http",
    nameOf: routeAt,
    methodsOf: (path) => web.allowed(path),
    handle(request, path) {
      if (fixedRoutes.handle(request, path) || web.handle(request, path)) return;
      // Not every path below one that ends in `/*` has a page.
      request.record.protocol = "rest";
      request.record.method = undefined;
      rest.handle(request, path);
    },
    refuse(request, _path, cause) {
      const error = connectErrorFrom(cause, errorDomain);
      const retryAfter = retryAfterOf(error);
      const headers = retryAfter === undefined ? {} : { "retry-after": String(retryAfter) };
      sendJson(request, httpStatusOf(error.code), formatStatusJson(error), headers);
    },
  };
  const rest: FrontEnd = {
    accepts: () => true,
    protocolOf: () => "rest",
    // To match templates takes longer than a rejection may.
    nameOf: () => undefined,
    methodsOf: (path) => gateway.methodsAt(path),
    handle(request, path) {
      // A call of an unknown method over Connect has no other mark than its path.
      if (request.method === "POST" && isRpcPath(path) && !gateway.serves(request, path)) {
        request.record.protocol = "connect";
        rpc.rejectUnknown(request, path);
      } else gateway.handle(request);
    },
    refuse: (request, _path, cause) => gateway.refuse(request, cause),
  };
  return [methods, unknownGrpc, pages, rest];
}

// Finds the name of a route by the path of a request. A path that ends in `/*` is that of all paths below it. The lookup is
// part of each rejection under overload, so these are collected before.
function createRouteNames(paths: readonly string[]) {
  const names = new Map(paths.map((path) => [path, formatRouteName(path)]));
  const below = paths
    .filter((path) => path.endsWith("/*"))
    .map((path) => ({ prefix: path.slice(0, -1), name: formatRouteName(path) }));
  return {
    all: [...names.values()],
    find: (path: string): string | undefined =>
      names.get(path) ?? below.find(({ prefix }) => path.startsWith(prefix))?.name,
  };
}

/** The name that logs and metrics have for responses to CORS preflights. */
const PREFLIGHT = "preflight";

/** Creates the dispatcher. */
export function createDispatch(options: DispatchOptions) {
  const { rpc, fixedRoutes, web, hosts, proxies, observers, cors } = options;
  const routes = createRouteNames(fixedRoutes.paths);
  const frontEnds = listFrontEnds(options, (path) => routes.find(path) ?? web.nameOf(path));
  const records = createRecords({ proxies, observers, identify });
  // One object for all requests: it is filled and read synchronously.
  const counts: FieldCounts = { host: 0, authorization: 0 };

  // Finds the front end of a request, and records its protocol and the name of its method.
  function identify(record: RequestRecord, path: string, contentType: string | undefined): FrontEnd {
    const frontEnd = frontEnds.find(({ accepts }) => accepts(path, contentType)) as FrontEnd;
    record.protocol = frontEnd.protocolOf(contentType);
    record.method = frontEnd.nameOf(path);
    return frontEnd;
  }

  function methodsAt(path: string): string | undefined {
    for (const frontEnd of frontEnds) {
      const methods = frontEnd.methodsOf(path);
      if (methods !== undefined) return methods;
    }
    return undefined;
  }

  function handle(request: Request): void {
    const { fields } = request;
    simplifyGrpcType(fields);
    if (fields.host !== undefined || fields.authorization !== undefined) {
      countFields(request.rawFields, counts);
      if (counts.authorization > 1) fields.authorization = combineField(request.rawFields, "authorization");
    } else counts.host = 0;
    const record = records.begin(request);
    const fault = findHostFault(request) ?? findTargetFault(request);
    if (fault === undefined) route(request, record);
    else rejectMalformed(request, record, fault);
  }

  function findHostFault({ httpVersion, fields }: Request): string | undefined {
    return httpVersion === "2"
      ? hosts.http2(fields[":authority"], fields.host, counts.host)
      : hosts.http1(fields.host, counts.host, httpVersion === "1.0" ? 0 : 1);
  }

  function route(request: Request, record: RequestRecord): void {
    const { path } = record;
    if (answersScript(request, () => methodsAt(path))) record.method = PREFLIGHT;
    else identify(record, path, request.fields["content-type"]).handle(request, path);
  }

  // Scripts do not speak gRPC.
  function answersScript(request: Request, methods: () => string | undefined): boolean {
    if (cors === undefined || grpcProtocolOf(request.fields["content-type"]) === "grpc") return false;
    return cors.answer(request, methods);
  }

  // Answers a request whose turn has not come, in the form of its protocol.
  function refuse(request: Request, reason: RefusalReason): void {
    simplifyGrpcType(request.fields);
    const cause = refusalOf(reason);
    const record = records.begin(request);
    const { path } = record;
    const frontEnd = identify(record, path, request.fields["content-type"]);
    record.isEarly = true;
    record.reason = cause.rejection;
    // The methods of REST take longer to find than a rejection may.
    const isRpc = requestProtocols[record.protocol].serves === "methods";
    if (answersScript(request, () => (isRpc ? frontEnd.methodsOf(path) : undefined))) return;
    frontEnd.refuse(request, path, cause);
  }

  // The path is not used, because it may be that of another host.
  function rejectMalformed(request: Request, record: RequestRecord, fault: string): void {
    record.reason = "malformed";
    identify(record, "", request.fields["content-type"]).refuse(request, "", invalidRequest(fault));
  }

  return {
    /** Answers a request. */
    handle,
    /** Answers a request that is refused before its turn. */
    refuse,
    /** Records what is rejected before it gets here. */
    records,
    /** Every value of `method` that the record of a request may have. */
    methodNames: [...new Set([...rpc.names, ...routes.all, ...web.names, PREFLIGHT])],
    /** The body of the error for a request that is rejected before it is parsed, by HTTP status. */
    errorBody: (status: number): string =>
      formatStatusJson(connectErrorFrom((EARLY_ERRORS[status] ?? notHttp)(), options.errorDomain)),
  };
}

const RETRY_MS = 1_000;

const EARLY_ERRORS: Readonly<Record<number, () => ApiError>> = {
  408: () => invalidRequest("the request did not arrive in time"),
  429: () => resourceExhausted("too many requests of this address are open", RETRY_MS),
  431: () => invalidRequest("the headers are larger than allowed"),
  501: () => unimplemented("transfer-encoding: must be chunked, on HTTP/1.1"),
  503: () => unavailable("too many connections are open", RETRY_MS),
  505: () => invalidRequest("the HTTP version must be 1.0, 1.1 or 2"),
};
const notHttp = () => invalidRequest("the request is not valid HTTP");

// With any codec.
function grpcProtocolOf(contentType: string | undefined): "grpc" | "grpc-web" | undefined {
  if (contentType?.startsWith("application/grpc") !== true) return undefined;
  return contentType.charCodeAt(16) === 45 ? "grpc-web" : "grpc";
}

// `/package.Service/Method`: two segments, a dot within the first. A REST template may look so too.
function isRpcPath(path: string): boolean {
  const slash = path.indexOf("/", 1);
  if (slash < 0 || slash === path.length - 1 || path.indexOf("/", slash + 1) >= 0) return false;
  const dot = path.indexOf(".");
  return dot > 1 && dot < slash;
}

// A target must be a path, or `*` for OPTIONS: this service is no proxy.
function findTargetFault({ url, method }: Request): string | undefined {
  if (url.charCodeAt(0) === 47 || (url === "*" && method === "OPTIONS")) return undefined;
  return "the request target must be a path";
}

// A caller whose own timeout is over is told so.
function refusalOf(reason: RefusalReason): ApiError {
  return reason === "timeout" ? deadlineExceeded() : overloaded(reason);
}
