// Writes whole responses, on HTTP/1.1 and HTTP/2 alike: of calls, and of requests
// that are rejected before a method is called.
import type { OutgoingHttpHeaders } from "node:http";
import type { ConnectError } from "@connectrpc/connect";
import { errorToJson } from "@connectrpc/connect/protocol-connect";
import { formatError } from "../../codec/error-json.js";
import { createJsonWriters } from "../../codec/json-writer.js";
import { createTypeRegistry } from "../../codec/type-registry.js";
import type { CallContext } from "../../pipeline/call.js";
import { sendComplete } from "./answer-writer.js";
import { errorTrailers } from "./grpc-fields.js";
import { abort, HOP_BY_HOP_FIELDS, type HttpResponse, isGone } from "./http-message.js";
import { recordOf } from "./request-record.js";

/** Response headers by lower-case name. */
export type ResponseHeaders = Record<string, string | number | string[]>;

// The gateway sets these fields; handlers and remote errors cannot.
const OWN: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP_FIELDS,
  "content-encoding",
  "content-length",
  "content-type",
  "date",
  "x-content-type-options",
  "x-request-id",
]);

/** Sends a response whole, unless the caller is gone. */
export function send(
  res: HttpResponse,
  status: number,
  headers: ResponseHeaders,
  contentType: string | undefined,
  body: string | Uint8Array,
): void {
  if (res.headersSent || isGone(res)) return;
  if (contentType !== undefined) headers["content-type"] = contentType;
  headers["content-length"] = typeof body === "string" ? Buffer.byteLength(body) : body.length;
  headers["x-content-type-options"] = "nosniff";
  sendComplete(res, status, headers, body);
}

/** Sends a response that has no body by definition. */
export function sendNoContent(res: HttpResponse, headers: ResponseHeaders): void {
  if (res.headersSent || isGone(res)) return;
  sendComplete(res, 204, headers);
}

/** The headers and trailers a handler set; trailers as headers prefixed with `trailer-`, as Connect does. */
export function headersOf(call: CallContext): ResponseHeaders {
  const headers: ResponseHeaders = {};
  const { responseHeaderIfSet, responseTrailerIfSet } = call;
  if (responseHeaderIfSet !== undefined) copyHeaders(responseHeaderIfSet, headers);
  if (responseTrailerIfSet !== undefined) copyHeaders(responseTrailerIfSet, headers, "trailer-");
  return headers;
}

/** Copies all headers that the gateway does not decide itself. */
export function copyHeaders(from: Headers, to: ResponseHeaders, prefix = ""): void {
  for (const [name, value] of from) {
    if (OWN.has(name) || name === "set-cookie") continue;
    to[prefix + name] = value;
  }
  const cookies = from.getSetCookie();
  if (cookies.length > 0) to[`${prefix}set-cookie`] = cookies;
}

// For errors that come up before any method is known: the details of google.rpc are all they have.
const writers = createJsonWriters(createTypeRegistry([])).details;

/** Ends `res` with a JSON document that must not be cached; a peer that has gone gets nothing. */
export function sendJson(res: HttpResponse, status: number, json: string, headers: OutgoingHttpHeaders = {}): void {
  sendBody(res, status, "application/json", json, { ...headers, "cache-control": "no-store" });
}

/** Ends `res` with a body; a peer that has gone gets nothing. */
export function sendBody(
  res: HttpResponse,
  status: number,
  contentType: string,
  body: string | Buffer,
  headers: OutgoingHttpHeaders = {},
): void {
  const fields = {
    ...headers,
    "content-type": contentType,
    "content-length": Buffer.byteLength(body),
    "x-content-type-options": "nosniff",
  };
  sendOrAbort(res, status, fields, body);
}

/** Ends `res` without a body; a peer that has gone gets nothing. */
export function sendEmpty(res: HttpResponse, status: number, headers: OutgoingHttpHeaders): void {
  sendOrAbort(res, status, headers);
}

/**
 * Ends `res` with a gRPC status alone, in the headers: what gRPC and gRPC-Web clients understand
 * even when nothing else about their request was in order.
 */
export function sendGrpcStatus(res: HttpResponse, contentType: string, error: ConnectError): void {
  recordOf(res)?.setFailure(error.code, undefined);
  sendOrAbort(res, 200, { "content-type": contentType, "content-length": 0, ...errorTrailers(error) });
}

/** Ends a stream of the Connect protocol with an error and nothing before it ("Error End Stream Message"). */
export function sendEndStream(res: HttpResponse, contentType: string, error: ConnectError): void {
  recordOf(res)?.setFailure(error.code, undefined);
  const body = encodeEndStream(error);
  sendOrAbort(res, 200, { "content-type": contentType, "content-length": body.length }, body);
}

/** The last message of a stream of the Connect protocol, in its envelope. */
export function encodeEndStream(error: ConnectError): Buffer {
  const json = Buffer.from(JSON.stringify({ error: errorToJson(error, undefined) }));
  const envelope = Buffer.alloc(5);
  envelope[0] = END_STREAM_FLAG;
  envelope.writeUInt32BE(json.length, 1);
  return Buffer.concat([envelope, json]);
}

const END_STREAM_FLAG = 2;

// There is no other answer to fall back to: where even this one is too much, the connection is ended.
function sendOrAbort(res: HttpResponse, status: number, headers: OutgoingHttpHeaders, body?: string | Buffer): void {
  try {
    sendComplete(res, status, headers, body);
  } catch {
    abort(res);
  }
}

/** An error as google.rpc.Status in JSON, the body of every REST error. */
export function statusJson(error: ConnectError): string {
  return formatError(error, writers);
}

/** An error in the form of the Connect protocol ("Error JSON"). */
export function connectJson(error: ConnectError): string {
  return JSON.stringify(errorToJson(error, undefined));
}
