import type { AssertedBearer } from "../../kernel/asserted-bearer.js";
import { createLineWriter, type Logger } from "../../telemetry/logger.js";
import {
  codeNames,
  isSuccess,
  type RequestObserver,
  type RequestRecord,
  requestProtocols,
} from "../../telemetry/request-record.js";

/** Which requests the access log has a line for: all, those that did not succeed, or none. */
export type AccessLogMode = "errors" | "all" | "off";

/** Probes call these every few seconds; only failures are logged. */
const PROBES: ReadonlySet<string | undefined> = new Set(["healthz", "readyz", "grpc.health.v1.Health/Check"]);

/** The longest logged path, in characters. */
const MAX_PATH = 512;

/** The longest logged claim of a token that is not verified, in characters. */
const MAX_CLAIM = 256;

/** Logs requests. */
export interface AccessLog {
  readonly observe: RequestObserver;
  /** Writes the lines that wait. */
  flush(): void;
}

/** Creates an access log of one line per request at level info; undefined if that level is not logged. */
export function createAccessLog(logger: Logger, mode: "errors" | "all"): AccessLog | undefined {
  const { worker } = logger.bindings();
  const more = worker === undefined ? "" : `,"worker":${worker}`;
  const lines = createLineWriter<RequestRecord>(logger, (record) => formatLine(record, more));
  if (lines === undefined) return undefined;
  return {
    observe(record) {
      if (!isSuccess(record) || (mode === "all" && !PROBES.has(record.method))) lines.write(record);
    },
    flush: lines.flush,
  };
}

let second = Number.NaN;
let secondText = "";

// The date is formatted once a second.
function formatTime(timeMs: number): string {
  const ms = timeMs % 1_000;
  if (timeMs - ms !== second) {
    second = timeMs - ms;
    secondText = new Date(second).toISOString().slice(0, -"000Z".length);
  }
  return `${secondText}${ms < 10 ? "00" : ms < 100 ? "0" : ""}${ms}Z`;
}

// Written by hand, because the logger copies and inspects all fields first, and as few templates as possible, because
// each takes time. Only values that callers or proxies choose need to be escaped.
function formatLine(record: RequestRecord, more: string): string {
  const { protocol, method, traceId, callerUid, rootUid, bearer, code, reason, status, bytesIn, remoteAddress } =
    record;
  const { isPathLogged } = requestProtocols[protocol];
  const caller =
    `${traceId === undefined ? "" : `,"traceId":"${traceId}"`}` +
    `${callerUid === undefined ? "" : `,"callerUid":"${callerUid}"`}` +
    `${rootUid === undefined ? "" : `,"organisation":"${rootUid}"`}` +
    `${method === undefined ? "" : `,"method":"${method}"`}`;
  const target =
    `${isPathLogged ? `,"httpMethod":${quote(record.httpMethod)}` : ""}` +
    `${isPathLogged || method === undefined ? `,"path":${quote(record.path.slice(0, MAX_PATH))}` : ""}`;
  const result =
    `${code === undefined ? "" : `,"code":"${codeNames[code] ?? code}"`}` +
    `${reason === undefined ? "" : `,"reason":"${reason}"`}${status === undefined ? "" : `,"status":${status}`}` +
    `${bearer === undefined || (reason === undefined && isSuccess(record)) ? "" : formatBearer(bearer)}` +
    `${record.isCanceled ? `,"canceled":true` : ""}${bytesIn === undefined ? "" : `,"bytesIn":${bytesIn}`}`;
  return (
    `{"level":"info","time":"${formatTime(record.endMs)}","requestId":"${record.requestId}"${caller},"protocol":"${protocol}"` +
    `,"httpVersion":"${record.httpVersion}"${target}${result},"bytes":${record.bytes}` +
    `,"durationMs":${formatMs(record.durationMs)}` +
    `${remoteAddress === undefined ? "" : `,"remoteAddress":${quote(remoteAddress)}`}${more},"msg":"request"}\n`
  );
}

function formatBearer(bearer: AssertedBearer): string {
  const { identity, identityProvider, issuer, subject, audiences, claim, condition } = bearer;
  const fields = {
    identity: identity || undefined,
    identityProvider: identityProvider || undefined,
    tokenIssuer: issuer,
    tokenSubject: subject,
    tokenAudience: audiences?.join(", "),
    claim,
    condition: condition?.condition,
    wantedType: condition?.wanted,
    foundType: condition?.found,
  };
  return Object.entries(fields)
    .map(([name, value]) => (value === undefined ? "" : `,"${name}":${quote(value.slice(0, MAX_CLAIM))}`))
    .join("");
}

const PLAIN = /^[ !#-[\]-~]*$/;
const NOT_ASCII = /[\u007f-\uffff]/g;

// As ASCII, so that lines need no encoding.
function quote(text: string): string {
  if (PLAIN.test(text)) return `"${text}"`;
  return JSON.stringify(text).replace(NOT_ASCII, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

// With three decimals, from integers: numbers with decimals take longer to format.
function formatMs(ms: number): string {
  const microseconds = Math.round(ms * 1_000);
  const fraction = microseconds % 1_000;
  return `${(microseconds - fraction) / 1_000}.${fraction < 10 ? "00" : fraction < 100 ? "0" : ""}${fraction}`;
}
