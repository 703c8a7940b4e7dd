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
import type { Cors } from "./http/cors.js";
import { simplifyGrpcType } from "./http/grpc-fields.js";
import type { RouteGroup } from "./http/health-routes.js";
import { combineField, countFields, type FieldCounts, type HostCheck } from "./http/host.js";
import type { RefusalReason } from "./http/limits/admission.js";
import type { TrustedProxies } from "./http/peer-address.js";
import { createRecords, type RequestRecords } from "./http/records.js";
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
 * One protocol, or several that share their paths: how requests are answered that are its own. Its functions must not throw.
 */
interface FrontEnd {
  /** The protocol of a request that is its own. */
  protocolOf(contentType: string | undefined): RequestProtocol;

  /** The name that logs and metrics have for the method or route at a path, if it can be found as cheaply. */
  nameOf(path: string): string | undefined;

  /** The HTTP methods that a path is served for, as in an Allow header; undefined when there are none. */
  methodsOf(path: string): string | undefined;

  handle(request: Request, path: string): void;

  /** Answers with an error, in the form of the protocol, a request of which nothing was read. */
  refuse(request: Request, path: string, cause: ApiError): void;
}

/** The name that logs and metrics have for responses to CORS preflights. */
const PREFLIGHT = "preflight";

/** Chooses who answers a request. */
export class Dispatch {
  /** Records what is rejected before it gets here. */
  readonly records: RequestRecords;
  /** Every value of `method` that the record of a request may have. */
  readonly methodNames: readonly string[];
  readonly #options: DispatchOptions;
  readonly #routeNames: RouteNames;
  // One object for all requests: it is filled and read synchronously.
  readonly #counts: FieldCounts = { host: 0, authorization: 0 };

  constructor(options: DispatchOptions) {
    const { rpc, fixedRoutes, web, proxies, observers } = options;
    this.#options = options;
    this.#routeNames = new RouteNames([...fixedRoutes.paths, ...web.paths]);
    this.methodNames = [...new Set([...rpc.names, ...this.#routeNames.all, PREFLIGHT])];
    this.records = createRecords({
      ...{ proxies, observers },
      identify: (record, path, contentType) => this.#identify(record, path, contentType),
    });
  }

  /** Answers a request. */
  handle(request: Request): void {
    const { fields } = request;
    const counts = this.#counts;
    simplifyGrpcType(fields);
    if (fields.host !== undefined || fields.authorization !== undefined) {
      countFields(request.rawFields, counts);
      if (counts.authorization > 1) fields.authorization = combineField(request.rawFields, "authorization");
    } else counts.host = 0;
    const record = this.records.begin(request);
    const fault = this.#findHostFault(request) ?? findTargetFault(request);
    if (fault !== undefined) {
      // The path is not used, because it may be that of another host.
      record.reason = "malformed";
      this.#identify(record, "", fields["content-type"]).refuse(request, "", invalidRequest(fault));
      return;
    }
    const { path } = record;
    if (this.#answersScript(request, () => this.#methodsAt(path))) record.method = PREFLIGHT;
    else this.#identify(record, path, fields["content-type"]).handle(request, path);
  }

  /** Answers a request whose turn has not come, in the form of its protocol. */
  refuse(request: Request, reason: RefusalReason): void {
    simplifyGrpcType(request.fields);
    const cause = refusalOf(reason);
    const record = this.records.begin(request);
    const { path } = record;
    const frontEnd = this.#identify(record, path, request.fields["content-type"]);
    record.isEarly = true;
    record.reason = cause.rejection;
    // The methods of REST take longer to find than a rejection may.
    const isRpc = requestProtocols[record.protocol].serves === "methods";
    if (this.#answersScript(request, () => (isRpc ? frontEnd.methodsOf(path) : undefined))) return;
    frontEnd.refuse(request, path, cause);
  }

  /** The body of the error for a request that is rejected before it is parsed, by HTTP status. */
  errorBody(status: number): string {
    return formatStatusJson(connectErrorFrom((EARLY_ERRORS[status] ?? notHttp)(), this.#options.errorDomain));
  }

  #findHostFault({ httpVersion, fields }: Request): string | undefined {
    const { hosts } = this.#options;
    const { host: count } = this.#counts;
    return httpVersion === "2"
      ? hosts.http2(fields[":authority"], fields.host, count)
      : hosts.http1(fields.host, count, httpVersion === "1.0" ? 0 : 1);
  }

  // Scripts do not speak gRPC.
  #answersScript(request: Request, methods: () => string | undefined): boolean {
    const { cors } = this.#options;
    if (cors === undefined || grpcProtocolOf(request.fields["content-type"]) === "grpc") return false;
    return cors.answer(request, methods);
  }

  #methodsAt(path: string): string | undefined {
    for (const { methodsOf } of [this.#methods, this.#pages, this.#rest]) {
      const methods = methodsOf(path);
      if (methods !== undefined) return methods;
    }
    return undefined;
  }

  // Finds the front end of a request, and records its protocol and the name of its method. This is asked of rejected
  // requests too, so it must cost little.
  #identify(record: RequestRecord, path: string, contentType: string | undefined): FrontEnd {
    const frontEnd = this.#frontEndOf(path, contentType);
    record.protocol = frontEnd.protocolOf(contentType);
    record.method = frontEnd.nameOf(path);
    return frontEnd;
  }

  // Templates of REST may match any path, so it comes last.
  #frontEndOf(path: string, contentType: string | undefined): FrontEnd {
    // A call over gRPC of a method that is not served is answered as one.
    if (this.#options.rpc.serves(path) || grpcProtocolOf(contentType) !== undefined) return this.#methods;
    // Without a path, protocols that differ in their paths are not told apart.
    return path === "" || this.#routeNames.find(path) !== undefined ? this.#pages : this.#rest;
  }

  readonly #methods: FrontEnd = {
    protocolOf: (contentType) => grpcProtocolOf(contentType) ?? "connect",
    nameOf: (path) => this.#options.rpc.nameOf(path),
    methodsOf: (path) => this.#options.rpc.methodsOf(path),
    handle: (request, path) => this.#options.rpc.handle(request, path),
    refuse: (request, path, cause) => this.#options.rpc.refuse(request, path, cause),
  };

  readonly #pages: FrontEnd = {
    protocolOf: () => "http",
    nameOf: (path) => this.#routeNames.find(path),
    methodsOf: (path) => this.#options.web.allowed(path),
    handle: (request, path) => {
      const { fixedRoutes, web } = this.#options;
      if (fixedRoutes.handle(request, path) || web.handle(request, path)) return;
      // Not every path below one that ends in `/*` has a page.
      request.record.protocol = "rest";
      request.record.method = undefined;
      this.#rest.handle(request, path);
    },
    refuse: (request, _path, cause) => {
      const error = connectErrorFrom(cause, this.#options.errorDomain);
      const retryAfter = retryAfterOf(error);
      const headers = retryAfter === undefined ? {} : { "retry-after": String(retryAfter) };
      sendJson(request, httpStatusOf(error.code), formatStatusJson(error), headers);
    },
  };

  readonly #rest: FrontEnd = {
    protocolOf: () => "rest",
    // To match templates takes longer than a rejection may.
    nameOf: () => undefined,
    methodsOf: (path) => this.#options.gateway.methodsAt(path),
    handle: (request, path) => {
      const { gateway, rpc } = this.#options;
      // A call of an unknown method over Connect has no other mark than its path.
      if (request.method === "POST" && isRpcPath(path) && !gateway.serves(request, path)) {
        request.record.protocol = "connect";
        rpc.rejectUnknown(request, path);
      } else gateway.handle(request);
    },
    refuse: (request, _path, cause) => this.#options.gateway.refuse(request, cause),
  };
}

/**
 * The names of routes by the paths of requests. A path that ends in `/*` is that of all paths below it. A lookup is part of
 * each rejection under overload, so the names are collected before.
 */
class RouteNames {
  readonly all: readonly string[];
  readonly #exact: ReadonlyMap<string, string>;
  readonly #below: readonly { readonly prefix: string; readonly name: string }[];

  constructor(paths: readonly string[]) {
    this.#exact = new Map(paths.map((path) => [path, formatRouteName(path)]));
    this.#below = paths
      .filter((path) => path.endsWith("/*"))
      .map((path) => ({ prefix: path.slice(0, -1), name: formatRouteName(path) }));
    this.all = [...new Set(this.#exact.values())];
  }

  find(path: string): string | undefined {
    const exact = this.#exact.get(path);
    if (exact !== undefined) return exact;
    for (const { prefix, name } of this.#below) if (path.startsWith(prefix)) return name;
    return undefined;
  }
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
