// Creates the record of each request. The request ends it when its response has closed.
import type { IncomingHttpHeaders } from "node:http";
import { newRequestId } from "../../kernel/ids.js";
import type { RejectReason } from "../../kernel/reject-reason.js";
import { parseTraceparent } from "../../kernel/trace.js";
import { type HttpVersion, type RequestObserver, RequestRecord } from "../../telemetry/request-record.js";
import { pathOf } from "./http-message.js";
import { findPeerAddress, type TrustedProxies } from "./peer-address.js";
import type { Request } from "./request.js";

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

/** Creates the records of requests. */
export type RequestRecords = ReturnType<typeof createRecords>;

/** Creates the factory of records. */
export function createRecords({ proxies, observers, identify }: RecordsOptions) {
  return {
    /** Begins the record of a request. */
    begin(request: Request): RequestRecord {
      const { fields } = request;
      const length = fields["content-length"];
      const record = new RequestRecord(
        {
          requestId: parseRequestId(fields["x-request-id"]),
          protocol: "http",
          httpVersion: request.httpVersion,
          httpMethod: request.method,
          path: pathOf(request.url),
          remoteAddress: findPeerAddress(request.socketAddress, fields, proxies),
          traceId: parseTraceId(fields.traceparent),
          bytesIn: length === undefined ? undefined : Number(length) || 0,
          startMs: request.arrivedMs,
        },
        observers,
      );
      request.record = record;
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

const UNAVAILABLE = 14;

const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** Parses the id of a request: its `x-request-id` if that is one well-formed field, otherwise a new id. */
function parseRequestId(given: string | readonly string[] | undefined): string {
  // Node joins several fields with a comma, which no id has.
  return typeof given === "string" && REQUEST_ID.test(given) ? given : newRequestId();
}

function parseTraceId(traceparent: string | readonly string[] | undefined): string | undefined {
  return typeof traceparent === "string" ? parseTraceparent(traceparent)?.traceId : undefined;
}
