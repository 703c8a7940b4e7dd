import type { LineWriter } from "../../telemetry/logger.js";
import { codeNames, isSuccess, type RequestObserver, type RequestRecord } from "../../telemetry/request-record.js";

/** Which requests the access log has a line for: all, those that did not succeed, or none. */
export type AccessLogMode = "errors" | "all" | "off";

/** Probes call these every few seconds; only failures are logged. */
const PROBES: ReadonlySet<string | undefined> = new Set(["healthz", "readyz", "grpc.health.v1.Health/Check"]);

/** The longest logged path, in characters. */
const MAX_PATH = 512;

/** Creates an access log of one line per request at level info. */
export function createAccessLog(lines: LineWriter, mode: "errors" | "all"): RequestObserver {
  return (record) => {
    if (isSuccess(record) && (mode === "errors" || PROBES.has(record.method))) return;
    lines.write(formatLine(record));
  };
}

let second = Number.NaN;
let secondText = "";

// The date is formatted once a second: for each line it would take a tenth of the time of a line.
function formatNow(): string {
  const nowMs = Date.now();
  const ms = nowMs % 1_000;
  if (nowMs - ms !== second) {
    second = nowMs - ms;
    secondText = new Date(second).toISOString().slice(0, -"000Z".length);
  }
  return `${secondText}${ms < 10 ? "00" : ms < 100 ? "0" : ""}${ms}Z`;
}

// Written field by field, because the logger copies and inspects all fields first. Only values that callers or proxies
// choose need to be escaped.
function formatLine(record: RequestRecord): string {
  const { protocol, method, traceId, callerUid, rootUid, code, reason, status, bytesIn, remoteAddress } = record;
  const isHttp = protocol === "rest" || protocol === "http";
  let line = `{"level":"info","time":"${formatNow()}","requestId":"${record.requestId}"`;
  if (traceId !== undefined) line += `,"traceId":"${traceId}"`;
  if (callerUid !== undefined) line += `,"callerUid":"${callerUid}"`;
  if (rootUid !== undefined) line += `,"organisation":"${rootUid}"`;
  if (method !== undefined) line += `,"method":"${method}"`;
  line += `,"protocol":"${protocol}","httpVersion":"${record.httpVersion}"`;
  // In the other protocols the path follows from the method.
  if (isHttp) line += `,"httpMethod":${JSON.stringify(record.httpMethod)}`;
  if (isHttp || method === undefined) line += `,"path":${JSON.stringify(record.path.slice(0, MAX_PATH))}`;
  if (code !== undefined) line += `,"code":"${codeNames[code] ?? code}"`;
  if (reason !== undefined) line += `,"reason":"${reason}"`;
  if (status !== undefined) line += `,"status":${status}`;
  if (record.isCanceled) line += `,"canceled":true`;
  if (bytesIn !== undefined) line += `,"bytesIn":${bytesIn}`;
  line += `,"bytes":${record.bytes},"durationMs":${Math.round(record.durationMs * 1000) / 1000}`;
  if (remoteAddress !== undefined) line += `,"remoteAddress":${JSON.stringify(remoteAddress)}`;
  return `${line},"msg":"request"}\n`;
}
