// Chooses the protocol of a request by its path and content type, after the checks that all protocols share.
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
import type { RequestObserver, RequestRecord } from "../telemetry/request-record.js";
import type { RefusalReason } from "./http/admission.js";
import { discardRest, mayHaveBody } from "./http/body-reader.js";
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
import { attachRecord, createRecords, pathOf, protocolOf } from "./http/request-record.js";
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

/** A protocol: which requests are its own, and how they are answered. */
interface Protocol {
  /** Whether a request may be of this protocol, by what is cheap to read. */
  accepts(path: string, method: string, contentType: string | undefined): boolean;
  /** Answers unless the path is not served, and returns whether it did. Must not throw. */
  handle(req: HttpRequest, res: HttpResponse, path: string, record: RequestRecord): boolean;
}

// The protocols in their order; the last one accepts every request. gRPC on HTTP/2 is not among them: it needs no
// request and response objects (see onHttp2Stream).
function listProtocols(options: DispatchOptions, routeAt: (path: string) => string | undefined): readonly Protocol[] {
  const { connect, fixedRoutes, web, gateway, errorDomain } = options;
  const rpc: Protocol = {
    accepts: (path) => isRpcPath(path) && connect.serves(path),
    handle(req, res, path, record) {
      record.method = connect.nameOf(path);
      record.protocol = rpcProtocolOf(req.headers["content-type"]);
      connect.handle(req, res, path, record);
      return true;
    },
  };
  const unknownGrpc: Protocol = {
    accepts: (_path, _method, contentType) => isGrpcFamily(contentType),
    handle(req, res, path, record) {
      const contentType = req.headers["content-type"];
      record.protocol = rpcProtocolOf(contentType);
      sendGrpcStatus(res, contentType ?? "", connectErrorFrom(noSuchMethod(path), errorDomain));
      return true;
    },
  };
  const unknownConnect: Protocol = {
    accepts: (path, method) => method === "POST" && isRpcPath(path),
    handle(req, res, path, record) {
      if (gateway.serves?.(restMethodOf(req), path) === true) return false;
      record.protocol = "connect";
      connect.rejectUnknown(res, path, record);
      return true;
    },
  };
  const operators: Protocol = {
    accepts: () => true,
    handle(req, res, path, record) {
      if (!fixedRoutes.handle(req.method ?? "", path, res)) return false;
      record.method = routeAt(path);
      return true;
    },
  };
  const pages: Protocol = { accepts: () => true, handle: web.handle };
  const rest: Protocol = {
    accepts: () => true,
    handle(req, res, _path, record) {
      record.protocol = "rest";
      gateway.handle(req, res, record);
      return true;
    },
  };
  return [rpc, unknownGrpc, unknownConnect, operators, pages, rest];
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
  const { grpc, connect, fixedRoutes, web, gateway, hosts, proxies, observers, cors } = options;
  const routes = createRouteNames(fixedRoutes.paths);
  const names = {
    rpcAt: connect.nameOf,
    routeAt: (path: string) => routes.find(path) ?? web.nameOf(path),
  };
  const records = createRecords({ proxies, observers, names });
  const protocols = listProtocols(options, routes.find);
  // One object for all requests: it is filled and read synchronously.
  const counts: FieldCounts = { host: 0, authorization: 0 };

  const bodyOf = (error: unknown) => formatStatusJson(connectErrorFrom(error, options.errorDomain));

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
    if (isGrpc(headers["content-type"])) {
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
    if ((flags & END_STREAM) === 0 && !connect.takesStream(headers[":path"] ?? "")) {
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
    if (isGrpc(headers["content-type"])) {
      const record = records.stream(request);
      records.reject(record, headers["content-type"]);
      grpc.reject(stream, error, record, headers["content-type"]);
      return;
    }
    const { req, res } = createCompat(request);
    refuse(req, res, error, records.http(req, res, request.socketAddress));
  }

  // Answers a request whose turn has not come, in the form of its protocol.
  function refuse(req: HttpRequest, res: HttpResponse, cause: ApiError, record: RequestRecord): void {
    const contentType = req.headers["content-type"];
    const path = pathOf(toOriginForm(req.url ?? ""));
    records.reject(record, contentType);
    record.reason = cause.rejection;
    if (cors?.answer(req, res, () => connect.methodsOf(path))) return;
    if (connect.serves(path)) {
      connect.refuse(req, res, path, cause, record);
      return;
    }
    const error = connectErrorFrom(cause, options.errorDomain);
    if (mayHaveBody(req)) discardRest(req);
    if (isGrpcFamily(contentType)) {
      sendGrpcStatus(res, contentType, error);
      return;
    }
    if (record.protocol !== "http") record.setFailure(error.code, cause.rejection);
    const retryAfter = retryAfterOf(error);
    const headers = retryAfter === undefined ? {} : { "retry-after": String(retryAfter) };
    sendJson(res, httpStatusOf(error.code), formatStatusJson(error), headers);
  }

  function rejectMalformed(req: HttpRequest, res: HttpResponse, fault: string, record: RequestRecord): void {
    const contentType = req.headers["content-type"];
    record.protocol = protocolOf(contentType);
    record.reason = "malformed";
    const error = connectErrorFrom(invalidRequest(fault), options.errorDomain);
    if (isGrpcFamily(contentType)) sendGrpcStatus(res, contentType, error);
    else sendJson(res, 400, formatStatusJson(error));
  }

  function route(req: HttpRequest, res: HttpResponse, record: RequestRecord): void {
    const path = pathOf(req.url ?? "");
    const method = req.method ?? "";
    const contentType = req.headers["content-type"];
    if (cors?.answer(req, res, () => connect.methodsOf(path) ?? web.allowed(path) ?? gateway.methodsAt?.(path))) {
      record.method = PREFLIGHT;
      return;
    }
    for (const protocol of protocols) {
      if (protocol.accepts(path, method, contentType) && protocol.handle(req, res, path, record)) return;
    }
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

const END_STREAM = 0x1;
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

// gRPC with any codec, but not gRPC-Web, whose types begin in the same way.
function isGrpc(contentType: string | undefined): boolean {
  return isGrpcFamily(contentType) && contentType.charCodeAt(16) !== 45;
}

function isUnaryGrpc(headers: IncomingHttpHeaders): boolean {
  return headers[":method"] === "POST" && GRPC_TYPES.has(headers["content-type"] ?? "");
}

const GRPC_TYPES: ReadonlySet<string> = new Set([
  "application/grpc",
  "application/grpc+proto",
  "application/grpc+json",
]);

// `/package.Service/Method`: two segments, a dot within the first. A REST template may look so too; then an RPC method of
// that path comes first.
function isRpcPath(path: string): boolean {
  const slash = path.indexOf("/", 1);
  if (slash < 0 || slash === path.length - 1 || path.indexOf("/", slash + 1) >= 0) return false;
  const dot = path.indexOf(".");
  return dot > 1 && dot < slash;
}

function isGrpcFamily(contentType: string | undefined): contentType is string {
  return contentType?.startsWith("application/grpc") ?? false;
}

function rpcProtocolOf(contentType: string | undefined): "grpc" | "grpc-web" | "connect" {
  const protocol = protocolOf(contentType);
  return protocol === "http" ? "connect" : protocol;
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
