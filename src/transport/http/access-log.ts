import type { Logger } from "../../telemetry/logger.js";
import { codeNames, isSuccess, type RequestObserver } from "../../telemetry/request-record.js";

/** Which requests the access log has a line for: all, those that did not succeed, or none. */
export type AccessLogMode = "errors" | "all" | "off";

/** What probes call, every few seconds; they are logged when they fail. */
const PROBES: ReadonlySet<string | undefined> = new Set(["healthz", "readyz", "grpc.health.v1.Health/Check"]);

/** Paths are cut there, so that a line fits into one write to a pipe. */
const MAX_PATH = 512;

/** Creates an access log of one line per request at level info. */
export function createAccessLog(logger: Logger, mode: "errors" | "all"): RequestObserver {
  return (record) => {
    if (isSuccess(record) && (mode === "errors" || PROBES.has(record.method))) return;
    const { protocol, code, path } = record;
    logger.info(
      {
        requestId: record.requestId,
        traceId: record.traceId,
        callerUid: record.callerUid,
        organisation: record.rootUid,
        method: record.method,
        protocol,
        httpVersion: record.httpVersion,
        // Over the other protocols the path is that of the method.
        httpMethod: protocol === "rest" || protocol === "http" ? record.httpMethod : undefined,
        path: isPathLogged(record.method, protocol) ? path.slice(0, MAX_PATH) : undefined,
        code: code === undefined ? undefined : codeNames[code],
        reason: record.reason,
        status: record.status,
        canceled: record.isCanceled || undefined,
        bytesIn: record.bytesIn,
        bytes: record.bytes,
        durationMs: Math.round(record.durationMs * 1000) / 1000,
        remoteAddress: record.remoteAddress,
      },
      "request",
    );
  };
}

function isPathLogged(method: string | undefined, protocol: string): boolean {
  return method === undefined || protocol === "rest" || protocol === "http";
}
