// The spans of requests, by OpenTelemetry's conventions for RPC and HTTP. A span is created when its method is known,
// starts at the time when the request arrived, and ends when the response closes.
import type { IncomingHttpHeaders } from "node:http";
import type { TraceAttributes, TraceSpan } from "../../kernel/trace.js";
import { codeNames, type RequestRecord, requestProtocols } from "../../telemetry/request-record.js";
import type { TraceFields, Tracing } from "../../telemetry/spans.js";

/** Begins the spans of requests, which become the spans of their records. */
export interface ServerSpans {
  /**
   * Begins the span of a call, whose method the record names.
   *
   * @param template the path template of a call over REST
   */
  beginCall(record: RequestRecord, fields: IncomingHttpHeaders, template?: string): void;

  /**
   * Begins the span of a request for a page or an endpoint of OAuth.
   *
   * @param template of the path
   */
  beginRoute(record: RequestRecord, fields: IncomingHttpHeaders, template: string): void;
}

/** Creates the spans; undefined when traces are off. */
export function createServerSpans(tracing: Tracing | undefined): ServerSpans | undefined {
  if (tracing === undefined) return undefined;
  const begin = (record: RequestRecord, fields: IncomingHttpHeaders, name: string, describe: () => TraceAttributes) => {
    record.trace = tracing.startServer(name, selectTraceFields(fields), record.startMs, describe);
    record.traceId = record.trace.traceId;
  };
  return {
    beginCall(record, fields, template) {
      begin(record, fields, record.method ?? "", () => ({
        ...describeMethod(record),
        ...(template !== undefined && { "http.request.method": record.httpMethod, "http.route": template }),
      }));
    },
    beginRoute(record, fields, template) {
      // A HEAD is served as a GET.
      const method = record.httpMethod === "POST" ? "POST" : "GET";
      begin(record, fields, `${method} ${template}`, () => ({
        "arbor.protocol": record.protocol,
        "http.request.method": record.httpMethod,
        "http.route": template,
      }));
    },
  };
}

function describeMethod({ method = "", protocol }: RequestRecord): TraceAttributes {
  const slash = method.lastIndexOf("/");
  const { rpcSystem } = requestProtocols[protocol];
  return {
    "arbor.protocol": protocol,
    "rpc.service": method.slice(0, slash),
    "rpc.method": method.slice(slash + 1),
    ...(rpcSystem !== undefined && { "rpc.system": rpcSystem }),
  };
}

// Node joins repeated fields, which makes a traceparent malformed; tracestate may be repeated.
function selectTraceFields({ traceparent, tracestate }: IncomingHttpHeaders): TraceFields {
  return {
    traceparent: typeof traceparent === "string" ? traceparent : undefined,
    tracestate: typeof tracestate === "string" ? tracestate : undefined,
  };
}

/** Ends the span of a request whose response has closed, if it has one. */
export function endServerSpan(record: RequestRecord): void {
  const { trace } = record;
  if (trace?.isRecording) describeResult(trace, record);
  trace?.end();
}

function describeResult(
  trace: TraceSpan,
  { requestId, remoteAddress, protocol, code, reason, status, httpVersion }: RequestRecord,
): void {
  const { rpcSystem } = requestProtocols[protocol];
  const isGrpc = rpcSystem === "grpc";
  trace.setAttributes({
    "arbor.request_id": requestId,
    "network.protocol.version": httpVersion,
    ...(remoteAddress !== undefined && { "client.address": remoteAddress }),
    ...(reason !== undefined && { "arbor.reason": reason }),
    ...(isGrpc && code !== undefined && { "rpc.grpc.status_code": code }),
    ...(!isGrpc && status !== undefined && { "http.response.status_code": status }),
  });
  if (rpcSystem === "connect_rpc" && code !== undefined && code !== 0) {
    trace.setAttributes({ "rpc.connect_rpc.error_code": codeNames[code]?.toLowerCase() ?? "unknown" });
  }
  if (code !== undefined && code !== 0) trace.noteError({ code });
  else if (status !== undefined && status >= 500) trace.noteError({ code: String(status) });
}
