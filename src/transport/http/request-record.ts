// Creates the record of each request, and ends it when the response closes.
import type { ServerResponse } from "node:http";
import type { Http2ServerResponse, IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { newRequestId } from "../../kernel/ids.js";
import type { Principal } from "../../kernel/principal.js";
import type { RejectReason } from "../../kernel/reject-reason.js";
import { parseTraceparent } from "../../kernel/trace.js";
import { type HttpVersion, type RequestObserver, RequestRecord } from "../../telemetry/request-record.js";
import { type HttpRequest, type HttpResponse, isHttp2 } from "./http-message.js";
import { type OpenRequest, openRequestOf } from "./open-request.js";
import { findPeerAddress, type TrustedProxies } from "./peer-address.js";

export interface RecordsOptions {
  readonly proxies: TrustedProxies | undefined;
  /** Called with every record when the response has closed. */
  readonly observers: readonly RequestObserver[];
  /** Sets protocol and method of a request that is rejected before it is dispatched; `path` is empty if unknown. */
  readonly identify: (record: RequestRecord, path: string, contentType: string | undefined) => void;
}

/** A request that is rejected before its front end is known. */
export interface RejectedRequest {
  readonly reason: RejectReason | undefined;
  /** The HTTP status of the response; undefined where there is none. */
  readonly status: number | undefined;
  /** The gRPC code of the response, where it has one. */
  readonly code?: number | undefined;
  /** The bytes of the response's body. */
  readonly bytes?: number | undefined;
  readonly socketAddress: string | undefined;
  readonly httpVersion: HttpVersion;
  /** As received, if they could be read. */
  readonly httpMethod?: string | undefined;
  readonly url?: string | undefined;
  readonly headers?: IncomingHttpHeaders | undefined;
}

/** A stream with a new request. */
export interface StreamStart {
  readonly stream: ServerHttp2Stream;
  readonly headers: IncomingHttpHeaders;
  readonly socketAddress: string | undefined;
}

/** Creates the records of requests. */
export type RequestRecords = ReturnType<typeof createRecords>;

/** Creates the factory of records. */
export function createRecords({ proxies, observers, identify }: RecordsOptions) {
  return {
    /** Begins the record of a request, which ends when `res` closes. */
    http: (req: HttpRequest, res: HttpResponse, socketAddress: string | undefined): RequestRecord =>
      beginHttpRecord(req, res, findPeerAddress(socketAddress, req.headers, proxies), observers),

    /** Begins the record of a request on a stream without Node's response object, which ends when the stream closes. */
    stream({ stream, headers, socketAddress }: StreamStart): RequestRecord {
      const remoteAddress = findPeerAddress(socketAddress, headers, proxies);
      const record = new RequestRecord(
        {
          requestId: parseRequestId(headers["x-request-id"]),
          protocol: "grpc",
          httpVersion: "2",
          httpMethod: headers[":method"] ?? "",
          path: pathOf(headers[":path"] ?? ""),
          remoteAddress,
          traceId: parseTraceId(headers.traceparent),
          bytesIn: undefined,
          startMs: openRequestOf(stream)?.arrivedMs,
        },
        observers,
      );
      (stream as Recorded)[key] = record;
      stream.on("close", onStreamClose);
      return record;
    },

    /** Records a request that was rejected before it was dispatched. Returns the id for its response. */
    recordRejected(rejected: RejectedRequest): string {
      const { headers = {}, reason, status, url = "" } = rejected;
      const record = new RequestRecord(
        {
          requestId: parseRequestId(headers["x-request-id"]),
          protocol: "http",
          httpVersion: rejected.httpVersion,
          httpMethod: rejected.httpMethod ?? "",
          path: pathOf(url),
          remoteAddress: findPeerAddress(rejected.socketAddress, headers, proxies),
          traceId: parseTraceId(headers.traceparent),
          bytesIn: undefined,
        },
        observers,
      );
      record.isEarly = true;
      record.reason = reason;
      record.bytes = rejected.bytes ?? 0;
      identify(record, record.path, headers["content-type"]);
      // Pages have a status only.
      if (record.protocol !== "http") record.code = rejected.code;
      // gRPC maps REFUSED_STREAM, the response over HTTP/2, to UNAVAILABLE.
      if (status === undefined && record.protocol !== "http") record.code ??= UNAVAILABLE;
      record.end(status, true);
      return record.requestId;
    },
  };
}

/** Begins the record of a request, which ends when `res` closes. */
export function beginHttpRecord(
  req: HttpRequest,
  res: HttpResponse,
  remoteAddress: string | undefined,
  observers: readonly RequestObserver[] = [],
): RequestRecord {
  const { headers } = req;
  const length = headers["content-length"];
  const record = new RequestRecord(
    {
      requestId: parseRequestId(headers["x-request-id"]),
      protocol: "http",
      httpVersion: isHttp2(req) ? "2" : req.httpVersionMinor === 0 ? "1.0" : "1.1",
      httpMethod: req.method ?? "",
      path: pathOf(req.url ?? ""),
      remoteAddress,
      traceId: parseTraceId(headers.traceparent),
      bytesIn: length === undefined ? undefined : Number(length) || 0,
      startMs: openRequestOf(req)?.arrivedMs,
    },
    observers,
  );
  (res as Recorded)[key] = record;
  res.on("close", onResponseClose);
  // Before Node's own listener, which may end the connection.
  if (!isHttp2(req)) (res as ServerResponse).prependListener("finish", onFinish);
  return record;
}

/** Notes who has proven to send a request: its line in the log and its bytes are theirs. */
export function noteCaller(
  record: RequestRecord,
  request: OpenRequest | undefined,
  caller: Principal | undefined,
): void {
  if (caller === undefined) return;
  record.setCaller(caller.identityUid);
  request?.noteCaller(caller.identityUid);
}

const UNAVAILABLE = 14;

const key = Symbol("record");
const sent = Symbol("sent");
/** `sent` is for HTTP/1.1. */
type Recorded = { [key]?: RequestRecord; [sent]?: true };

/** Finds the record of the request that `out` answers. */
export function recordOf(out: HttpResponse | ServerHttp2Stream): RequestRecord | undefined {
  return (out as Recorded)[key];
}

/** Attaches the record of a stream to its response object. */
export function attachRecord(res: HttpResponse, record: RequestRecord): void {
  (res as Recorded)[key] = record;
}

function onResponseClose(this: ServerResponse | Http2ServerResponse): void {
  (this as Recorded)[key]?.end(this.headersSent ? this.statusCode : undefined, this.writableEnded && !isReset(this));
}

// Node emits this also for the response on a connection that was cut before the peer could have all of it.
function onFinish(this: ServerResponse): void {
  if (!this.req.socket.destroyed) (this as Recorded)[sent] = true;
}

function onStreamClose(this: ServerHttp2Stream): void {
  const status = this.headersSent ? Number(this.sentHeaders[":status"]) : undefined;
  (this as Recorded)[key]?.end(status, this.writableEnded && !isCut(this));
}

function isReset(res: ServerResponse | Http2ServerResponse): boolean {
  // A closed response of HTTP/2 has no stream.
  if (!("stream" in res)) return !(res as Recorded)[sent];
  const stream = res.stream as ServerHttp2Stream | undefined;
  return stream !== undefined && isCut(stream);
}

// All codes but these two mean that the rest of the response was dropped (RFC 9113, section 7).
function isCut({ rstCode }: ServerHttp2Stream): boolean {
  return rstCode !== 0 && rstCode !== undefined;
}

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** Parses the id of a request: its `x-request-id` if that is one well-formed field, otherwise a new id. */
function parseRequestId(given: string | readonly string[] | undefined): string {
  // Node joins several fields with a comma, which no id has.
  return typeof given === "string" && REQUEST_ID.test(given) ? given : newRequestId();
}

function parseTraceId(traceparent: string | readonly string[] | undefined): string | undefined {
  return typeof traceparent === "string" ? parseTraceparent(traceparent)?.traceId : undefined;
}

/** Removes the query of a path, which may contain names and tokens. */
export function pathOf(url: string): string {
  const query = url.indexOf("?");
  return query < 0 ? url : url.slice(0, query);
}
