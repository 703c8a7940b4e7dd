import type { AssertedBearer } from "../kernel/asserted-bearer.js";
import type { RejectReason } from "../kernel/reject-reason.js";
import type { TraceSpan } from "../kernel/trace.js";

/** What logs, metrics and traces must know of a protocol. */
interface ProtocolTraits {
  /** What it serves: all methods, those with an HTTP rule, or routes that are no methods. */
  readonly serves: "methods" | "rules" | "routes";
  /** Whether the access log has the HTTP method and the path of each request, which do not follow from its method. */
  readonly isPathLogged: boolean;
  /** The `rpc.system` of its spans, which also have the code of the response as this system writes it. */
  readonly rpcSystem: "grpc" | "connect_rpc" | undefined;
}

/** The protocols of requests. Each row is complete, so that no log, metric or span leaves a protocol out. */
export const requestProtocols = {
  rest: { serves: "rules", isPathLogged: true, rpcSystem: undefined },
  grpc: { serves: "methods", isPathLogged: false, rpcSystem: "grpc" },
  "grpc-web": { serves: "methods", isPathLogged: false, rpcSystem: "grpc" },
  connect: { serves: "methods", isPathLogged: false, rpcSystem: "connect_rpc" },
  // Neither RPC nor REST, such as pages and health checks.
  http: { serves: "routes", isPathLogged: true, rpcSystem: undefined },
} as const satisfies Readonly<Record<string, ProtocolTraits>>;

/** The protocol of a request. */
export type RequestProtocol = keyof typeof requestProtocols;

/** The names of the protocols. */
export const protocolNames = Object.keys(requestProtocols) as readonly RequestProtocol[];

export type HttpVersion = "1.0" | "1.1" | "2";

/** Called once for each request, when its response has closed. It must not throw. */
export type RequestObserver = (record: RequestRecord) => void;

/** The names of gRPC's codes, by their numbers. */
export const codeNames = [
  "OK",
  "CANCELLED",
  "UNKNOWN",
  "INVALID_ARGUMENT",
  "DEADLINE_EXCEEDED",
  "NOT_FOUND",
  "ALREADY_EXISTS",
  "PERMISSION_DENIED",
  "RESOURCE_EXHAUSTED",
  "FAILED_PRECONDITION",
  "ABORTED",
  "OUT_OF_RANGE",
  "UNIMPLEMENTED",
  "INTERNAL",
  "UNAVAILABLE",
  "DATA_LOSS",
  "UNAUTHENTICATED",
] as const;

/** The properties of a request that are known from its headers. */
export interface RequestStart {
  readonly requestId: string;
  readonly protocol: RequestProtocol;
  readonly httpVersion: HttpVersion;
  readonly httpMethod: string;
  readonly path: string;
  readonly remoteAddress: string | undefined;
  readonly traceId: string | undefined;
  readonly bytesIn: number | undefined;
  /** When the request arrived, by `performance.now()`; now unless given. */
  readonly startMs?: number | undefined;
}

const CANCELLED = 1;
const UNAUTHENTICATED = 16;

/**
 * The record of one request. Each layer that handles the request sets its fields. It contains no header, query or
 * token.
 */
export class RequestRecord {
  /** The caller's `x-request-id` if it was well formed, otherwise random. */
  readonly requestId: string;
  /** When the request arrived, by `performance.now()`. */
  readonly startMs: number;
  readonly httpVersion: HttpVersion;
  readonly httpMethod: string;
  /** The path without its query. Only for the log, because callers choose it. */
  readonly path: string;
  /** The address of the caller, or the one that a trusted proxy names. */
  readonly remoteAddress: string | undefined;
  protocol: RequestProtocol;
  /**
   * `package.Service/Method` of an RPC, also over REST, or the name of a route such as `healthz`. One of a list that is
   * fixed at start; undefined for paths that are not served.
   */
  method: string | undefined;
  /** The trace that the caller's `traceparent` names, or that of the request's own span. */
  traceId: string | undefined;
  /** The span of the request, if traces are on; not for the log. */
  trace: TraceSpan | undefined;
  /** The identity of a verified token. */
  callerUid: string | undefined;
  /** The organisation that the call concerns, or else that of its caller. */
  rootUid: string | undefined;
  /** What the token of an exchange says, not verified; only for the log. */
  bearer: AssertedBearer | undefined;
  /** The gRPC code, 0 for OK. Undefined for protocol `http`, whose result is the status. */
  code: number | undefined;
  /** The HTTP status; undefined when no response was begun. */
  status: number | undefined;
  /** Bytes of the request body, if known. */
  bytesIn: number | undefined;
  /** Bytes of the response body that were written. */
  bytes = 0;
  /** Why the request was rejected, if it was. */
  reason: RejectReason | undefined;
  /** Whether the caller disconnected or was cut off before the response was complete. */
  isCanceled = false;
  /** Whether it was rejected before it was dispatched, so that its duration is not that of its method. */
  isEarly = false;
  /** How long the request took, in milliseconds; set when the response has closed. */
  durationMs = 0;
  /** When the response closed, in milliseconds since 1970. */
  endMs = 0;
  readonly #observers: readonly RequestObserver[];
  #isOver = false;

  constructor(start: RequestStart, observers: readonly RequestObserver[]) {
    this.requestId = start.requestId;
    this.startMs = start.startMs ?? performance.now();
    this.httpVersion = start.httpVersion;
    this.httpMethod = start.httpMethod;
    this.path = start.path;
    this.remoteAddress = start.remoteAddress;
    this.protocol = start.protocol;
    this.method = undefined;
    this.traceId = start.traceId;
    this.trace = undefined;
    this.callerUid = undefined;
    this.rootUid = undefined;
    this.bearer = undefined;
    this.code = undefined;
    this.status = undefined;
    this.bytesIn = start.bytesIn;
    this.reason = undefined;
    this.#observers = observers;
  }

  /** Sets the authenticated caller. The organisation is that of the identity, unless the call concerns another. */
  setCaller(identityUid: string): void {
    this.callerUid = identityUid;
    const slash = identityUid.indexOf("/");
    // People belong to no organisation.
    if (slash > 0) this.rootUid = identityUid.slice(0, slash);
  }

  /** Sets how the call failed. The first reason stays, because it is the most specific. */
  setFailure(code: number, reason: RejectReason | undefined): void {
    this.code = code;
    this.reason ??= reason;
  }

  /**
   * Calls the observers, once.
   *
   * @param status the HTTP status; undefined when no response was begun
   */
  end(status: number | undefined, isComplete: boolean): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.durationMs = performance.now() - this.startMs;
    this.endMs = Date.now();
    this.status = status;
    if (!isComplete) {
      this.isCanceled = true;
      if (this.protocol !== "http") this.code ||= CANCELLED;
    } else if (this.protocol !== "http") this.code ??= status === undefined ? CANCELLED : codeOfStatus(status);
    // Each 401 in the log has a reason, also that of a mounted service, which sets none.
    if (this.code === UNAUTHENTICATED || status === 401) this.reason ??= "credential";
    for (const observe of this.#observers) observe(this);
  }
}

export function isSuccess({ code, status, isCanceled }: RequestRecord): boolean {
  if (isCanceled) return false;
  return code === undefined ? status !== undefined && status < 400 : code === 0;
}

/** The gRPC code of an HTTP status, for responses without one, as google/rpc/code.proto maps them. */
export function codeOfStatus(status: number): number {
  if (status < 400) return 0;
  const code = STATUS_CODES.get(status);
  return code ?? (status < 500 ? 3 : 13);
}

const STATUS_CODES: ReadonlyMap<number, number> = new Map([
  [401, UNAUTHENTICATED],
  [403, 7],
  [404, 5],
  // The path has no such method.
  [405, 12],
  [408, 4],
  [409, 10],
  [429, 8],
  [499, CANCELLED],
  [501, 12],
  [503, 14],
  [504, 4],
]);
