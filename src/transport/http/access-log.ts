import type { Logger } from "../../telemetry/logger.js";
import {
  type HttpRequest,
  type HttpResponse,
  peerAddress,
  socketAddressOf,
  type TrustedProxies,
} from "./http-message.js";
import type { StreamRequest } from "./http2.js";

/** What is known of a request when it has been answered. No headers, no query, no tokens. */
export interface AccessRecord {
  readonly startMs: number;
  readonly protocol: string;
  readonly method: string;
  /** The path without the query. */
  readonly path: string;
  readonly remoteAddress: string | undefined;
  /** The HTTP status; of gRPC calls the gRPC code says more. */
  status?: number;
  grpcCode?: number;
  /** Bytes of the response body, where known. */
  bytes?: number;
  requestId?: string | undefined;
}

/** Writes one line for an answered request. */
export type AccessLog = (record: AccessRecord) => void;

/** Creates an access log of one line per request at level info. */
export function createAccessLog(logger: Logger): AccessLog {
  return ({ startMs, ...fields }) => {
    const durationMs = Math.round((performance.now() - startMs) * 1000) / 1000;
    logger.info({ ...fields, durationMs }, "request");
  };
}

/** A path without its query, which may hold names and tokens. */
export function pathOf(url: string): string {
  const query = url.indexOf("?");
  return query < 0 ? url : url.slice(0, query);
}

/** Begins the record of an HTTP request and logs it when its response closes. */
export function recordHttp(
  req: HttpRequest,
  res: HttpResponse,
  proxies: TrustedProxies | undefined,
  log: AccessLog,
): AccessRecord {
  const id = req.headers["x-request-id"];
  const record: AccessRecord = {
    startMs: performance.now(),
    protocol: req.httpVersionMajor === 2 ? "h2" : "http/1.1",
    method: req.method ?? "",
    path: pathOf(req.url ?? ""),
    remoteAddress: peerAddress(socketAddressOf(req), req.headers, proxies),
    requestId: typeof id === "string" ? id.slice(0, 64) : undefined,
  };
  res.once("close", () => {
    record.status = res.statusCode;
    const length = res.getHeader("content-length");
    if (record.bytes === undefined && length !== undefined) record.bytes = Number(length);
    log(record);
  });
  return record;
}

/** Begins the record of a gRPC call and logs it when its stream closes. */
export function recordStream(
  request: StreamRequest,
  proxies: TrustedProxies | undefined,
  log: AccessLog,
): AccessRecord {
  const { stream, headers } = request;
  const record: AccessRecord = {
    startMs: performance.now(),
    protocol: "grpc",
    method: headers[":method"] ?? "",
    path: pathOf(headers[":path"] ?? ""),
    remoteAddress: peerAddress(request.socketAddress, headers, proxies),
  };
  stream.once("close", () => log(record));
  return record;
}
