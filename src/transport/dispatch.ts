// Chooses the front end of a request by its path and content type, after the checks that all protocols share.
import type { IncomingMessage, ServerResponse } from "node:http";
import {
  constants,
  Http2ServerRequest,
  Http2ServerResponse,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from "node:http2";
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
import {
  type HttpRequest,
  type HttpResponse,
  restMethodOf,
  socketAddressOf,
  toOriginForm,
} from "./http/http-message.js";
import type { StreamRequest } from "./http/http2.js";
import { resetStream } from "./http/http2-end.js";
import type { TrustedProxies } from "./http/peer-address.js";
import { attachRecord, createRecords, pathOf } from "./http/request-record.js";
import { formatStatusJson, sendGrpcStatus, sendJson } from "./http/send.js";
import { formatRouteName, type Web } from "./http/web-routes.js";
import { type Connect, noSuchMethod } from "./rpc/connect.js";
import type { GrpcUnary } from "./rpc/grpc.js";

/** Answers requests that are neither RPC nor for the routes of the server itself. */
export interface RestHandler {
  /** Answers. Must not throw. */
  handle(req: HttpRequest, res: HttpResponse, record?: RequestRecord): void;

  /** The methods that a path is served for, as in an Allow header; undefined when there are none. */
  methodsAt?(path: string): string | undefined;

  /** Whether a path is served for a method. */
  serves?(method: string, path: string): boolean;
}

export interface DispatchOptions {
  readonly grpc: GrpcUnary;
  readonly connect: Connect;
  readonly fixedRoutes: RouteGroup;
  /** Pages, redirects and the endpoints of OAuth. */
  readonly web: Web;
  readonly gateway: RestHandler;
  readonly hosts: HostCheck;
  readonly errorDomain: string;
  readonly proxies: TrustedProxies | undefined;
  /** How long the body of a request may take, in milliseconds. */
  readonly requestMs: number;
  /** How long a request may wait for its turn, in milliseconds. */
  readonly maxWaitMs: number;
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
  handle(req: HttpRequest, res: HttpResponse, path: string, record: RequestRecord): void;

  /** Answers with an error, in the form of the protocol, a request of which nothing was read. */
  refuse(req: HttpRequest, res: HttpResponse, path: string, cause: ApiError, record: RequestRecord): void;
}

// The front ends in their order: the first that accepts a request answers it, and the last one accepts all. Templates of
// REST may match any path, so it comes last. gRPC on HTTP/2 begins in routeGrpc, because its unary calls need no
// request and response objects.
function listFrontEnds(
  { connect, fixedRoutes, web, gateway, errorDomain }: DispatchOptions,
  routeAt: (path: string) => string | undefined,
): readonly FrontEnd[] {
  const refuseByStatus: FrontEnd["refuse"] = (_req, res, _path, cause, record) => {
    const error = connectErrorFrom(cause, errorDomain);
    if (record.protocol !== "http") record.setFailure(error.code, cause.rejection);
    const retryAfter = retryAfterOf(error);
    const headers = retryAfter === undefined ? {} : { "retry-after": String(retryAfter) };
    sendJson(res, httpStatusOf(error.code), formatStatusJson(error), headers);
  };
  const rpc: FrontEnd = {
    accepts: connect.serves,
    protocolOf: (contentType) => grpcProtocolOf(contentType) ?? "connect",
    nameOf: connect.nameOf,
    methodsOf: connect.methodsOf,
    handle: connect.handle,
    refuse: connect.refuse,
  };
  const unknownGrpc: FrontEnd = {
    accepts: (_path, contentType) => grpcProtocolOf(contentType) !== undefined,
    protocolOf: rpc.protocolOf,
    nameOf: () => undefined,
    methodsOf: () => undefined,
    handle: (req, res, path, record) => unknownGrpc.refuse(req, res, path, noSuchMethod(path), record),
    refuse(req, res, _path, cause) {
      sendGrpcStatus(res, req.headers["content-type"] ?? "", connectErrorFrom(cause, errorDomain));
    },
  };
  const pages: FrontEnd = {
    // Without a path, protocols that differ in their paths are not told apart.
    accepts: (path) => path === "" || routeAt(path) !== undefined,
    protocolOf: () => "http",
    nameOf: routeAt,
    methodsOf: web.allowed,
    handle(req, res, path, record) {
      if (fixedRoutes.handle(req.method ?? "", path, res) || web.handle(req, res, path, record)) return;
      // Not every path below one that ends in `/*` has a page.
      record.protocol = "rest";
      record.method = undefined;
      rest.handle(req, res, path, record);
    },
    refuse: refuseByStatus,
  };
  const rest: FrontEnd = {
    accepts: () => true,
    protocolOf: () => "rest",
    // To match templates takes longer than a rejection may.
    nameOf: () => undefined,
    methodsOf: (path) => gateway.methodsAt?.(path),
    handle(req, res, path, record) {
      // A call of an unknown method over Connect has no other mark than its path.
      if (req.method === "POST" && isRpcPath(path) && gateway.serves?.(restMethodOf(req), path) !== true) {
        record.protocol = "connect";
        connect.rejectUnknown(res, path, record);
      } else gateway.handle(req, res, record);
    },
    refuse: refuseByStatus,
  };
  return [rpc, unknownGrpc, pages, rest];
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
  const { grpc, connect, fixedRoutes, web, hosts, proxies, observers, cors } = options;
  const routes = createRouteNames(fixedRoutes.paths);
  const frontEnds = listFrontEnds(options, (path) => routes.find(path) ?? web.nameOf(path));
  const records = createRecords({ proxies, observers, identify });
  // One object for all requests: it is filled and read synchronously.
  const counts: FieldCounts = { host: 0, authorization: 0 };

  const bodyOf = (error: unknown) => formatStatusJson(connectErrorFrom(error, options.errorDomain));

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

  function onHttp1(req: IncomingMessage, res: ServerResponse): void {
    const { rawHeaders, headers } = req;
    countFields(rawHeaders, counts);
    if (counts.authorization > 1) headers.authorization = combineField(rawHeaders, "authorization");
    simplifyGrpcType(headers);
    if (req.url?.charCodeAt(0) !== 47) req.url = toOriginForm(req.url ?? "");
    const record = records.http(req, res, socketAddressOf(req));
    const fault = hosts.http1(headers.host, counts.host, req.httpVersionMinor) ?? findTargetFault(req.url, req.method);
    if (fault === undefined) route(req, res, record);
    else rejectMalformed(req, res, fault, record);
  }

  function onHttp2Stream(request: StreamRequest): void {
    const { headers, rawHeaders } = request;
    const { host } = headers;
    simplifyGrpcType(headers);
    if (host !== undefined || headers.authorization !== undefined) {
      countFields(rawHeaders, counts);
      if (counts.authorization > 1) headers.authorization = combineField(rawHeaders, "authorization");
    }
    const fault =
      hosts.http2(headers[":authority"], host, counts.host) ?? findTargetFault(headers[":path"], headers[":method"]);
    if (grpcProtocolOf(headers["content-type"]) === "grpc") {
      routeGrpc(request, fault);
      return;
    }
    const { req, res } = createCompat(request);
    const record = records.http(req, res, request.socketAddress);
    if (fault === undefined) route(req, res, record);
    else rejectMalformed(req, res, fault, record);
  }

  function routeGrpc(request: StreamRequest, fault: string | undefined): void {
    const { stream, headers } = request;
    const path = headers[":path"] ?? "";
    const record = records.stream(request);
    if (fault !== undefined) {
      grpc.reject(stream, invalidRequest(fault), record, headers["content-type"]);
      return;
    }
    record.method = connect.nameOf(path);
    const entry = isUnaryGrpc(headers) ? grpc.entryOf(path) : undefined;
    if (entry !== undefined) {
      grpc.handle(stream, headers, entry, record);
    } else if (connect.serves(path)) {
      const { req, res } = createCompat(request);
      attachRecord(res, record);
      connect.handle(req, res, path, record);
    } else {
      grpc.reject(stream, noSuchMethod(path), record, headers["content-type"]);
    }
  }

  // Creates the request and response objects that Node's compatibility layer would create.
  function createCompat({ stream, headers, rawHeaders, flags }: StreamRequest) {
    const req = new Http2ServerRequest(stream, headers, {}, rawHeaders);
    const res = new Http2ServerResponse(stream);
    // The end of an empty body comes with the headers, before there is a listener.
    if (stream.readableEnded) req.push(null);
    if ((flags & constants.NGHTTP2_FLAG_END_STREAM) === 0 && !connect.takesStream(headers[":path"] ?? "")) {
      limitBody(stream, req, options.requestMs);
    }
    return { req, res };
  }

  function refuseHttp1(req: IncomingMessage, res: ServerResponse, reason: RefusalReason): void {
    simplifyGrpcType(req.headers);
    const record = records.http(req, res, socketAddressOf(req));
    refuse(req, res, refusalOf(reason), record);
  }

  function refuseStream(request: StreamRequest, reason: RefusalReason): void {
    const { stream, headers } = request;
    simplifyGrpcType(headers);
    const error = refusalOf(reason);
    if (grpcProtocolOf(headers["content-type"]) === "grpc") {
      const record = records.stream(request);
      identify(record, record.path, headers["content-type"]);
      record.isEarly = true;
      grpc.reject(stream, error, record, headers["content-type"]);
      return;
    }
    const { req, res } = createCompat(request);
    refuse(req, res, error, records.http(req, res, request.socketAddress));
  }

  // Answers a request whose turn has not come, in the form of its protocol.
  function refuse(req: HttpRequest, res: HttpResponse, cause: ApiError, record: RequestRecord): void {
    const path = pathOf(toOriginForm(req.url ?? ""));
    const frontEnd = identify(record, path, req.headers["content-type"]);
    record.isEarly = true;
    record.reason = cause.rejection;
    // The methods of REST take longer to find than a rejection may.
    const isRpc = requestProtocols[record.protocol].serves === "methods";
    if (cors?.answer(req, res, () => (isRpc ? frontEnd.methodsOf(path) : undefined))) return;
    frontEnd.refuse(req, res, path, cause, record);
  }

  // The path is not used, because it may be that of another host.
  function rejectMalformed(req: HttpRequest, res: HttpResponse, fault: string, record: RequestRecord): void {
    record.reason = "malformed";
    identify(record, "", req.headers["content-type"]).refuse(req, res, "", invalidRequest(fault), record);
  }

  function route(req: HttpRequest, res: HttpResponse, record: RequestRecord): void {
    const path = pathOf(req.url ?? "");
    if (cors?.answer(req, res, () => methodsAt(path))) record.method = PREFLIGHT;
    else identify(record, path, req.headers["content-type"]).handle(req, res, path, record);
  }

  return {
    onHttp1,
    refuseHttp1,
    onHttp2Stream,
    refuseStream,
    /** Records what is rejected before it gets here. */
    records,
    /** Every value of `method` that the record of a request may have. */
    methodNames: [...new Set([...connect.names, ...routes.all, ...web.names, PREFLIGHT])],
    /** The body of the error for a request that is rejected before it is parsed, by HTTP status. */
    errorBody: (status: number): string => bodyOf((EARLY_ERRORS[status] ?? notHttp)()),
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

function isUnaryGrpc(headers: IncomingHttpHeaders): boolean {
  return headers[":method"] === "POST" && GRPC_TYPES.has(headers["content-type"] ?? "");
}

const GRPC_TYPES: ReadonlySet<string> = new Set([
  "application/grpc",
  "application/grpc+proto",
  "application/grpc+json",
]);

// `/package.Service/Method`: two segments, a dot within the first. A REST template may look so too.
function isRpcPath(path: string): boolean {
  const slash = path.indexOf("/", 1);
  if (slash < 0 || slash === path.length - 1 || path.indexOf("/", slash + 1) >= 0) return false;
  const dot = path.indexOf(".");
  return dot > 1 && dot < slash;
}

// A target must be a path, or `*` for OPTIONS: this service is no proxy.
function findTargetFault(target: string | undefined, method: string | undefined): string | undefined {
  if (target?.charCodeAt(0) === 47 || (target === "*" && method === "OPTIONS")) return undefined;
  return "the request target must be a path";
}

function limitBody(stream: ServerHttp2Stream, req: Http2ServerRequest, requestMs: number): void {
  const timer = setTimeout(() => resetStream(stream, constants.NGHTTP2_NO_ERROR), requestMs);
  const clear = () => clearTimeout(timer);
  req.once("end", clear);
  stream.once("close", clear);
}

// A caller whose own timeout is over is told so.
function refusalOf(reason: RefusalReason): ApiError {
  return reason === "timeout" ? deadlineExceeded() : overloaded(reason);
}
