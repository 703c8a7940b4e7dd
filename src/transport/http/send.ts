// Sends complete responses: those of calls, and of requests that are rejected before a method is called.
import type { OutgoingHttpHeaders } from "node:http";
import type { ConnectError } from "@connectrpc/connect";
import { errorToJson } from "@connectrpc/connect/protocol-connect";
import { formatError } from "../../codec/error-json.js";
import { createJsonWriters } from "../../codec/json-writer.js";
import { createTypeRegistry } from "../../codec/type-registry.js";
import type { CallContext } from "../../pipeline/call.js";
import { buildErrorTrailers } from "./grpc-fields.js";
import { abort, HOP_BY_HOP_FIELDS, type HttpResponse } from "./http-message.js";
import { recordOf } from "./request-record.js";
import { sendComplete } from "./response-writer.js";

/** Response headers by lower-case name. */
export type ResponseHeaders = Record<string, string | number | string[]>;

// Header fields that only the gateway sets, not handlers and remote errors.
const OWN: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP_FIELDS,
  "content-encoding",
  "content-length",
  "content-type",
  "date",
  "x-content-type-options",
  "x-request-id",
]);

/** Sends a complete response, unless the caller has disconnected. */
export function send(
  res: HttpResponse,
  status: number,
  headers: ResponseHeaders,
  contentType: string | undefined,
  body: string | Uint8Array,
): void {
  if (contentType !== undefined) headers["content-type"] = contentType;
  headers["content-length"] = typeof body === "string" ? Buffer.byteLength(body) : body.length;
  headers["x-content-type-options"] = "nosniff";
  sendComplete(res, status, headers, body);
}

/** Sends a response that has no body by definition. */
export function sendNoContent(res: HttpResponse, headers: ResponseHeaders): void {
  sendComplete(res, 204, headers);
}

/** The headers and trailers that a handler set; trailers have the prefix `trailer-`, as in Connect. */
export function headersOf(call: CallContext): ResponseHeaders {
  const headers: ResponseHeaders = {};
  const { responseHeaderIfSet, responseTrailerIfSet } = call;
  if (responseHeaderIfSet !== undefined) copyHeaders(responseHeaderIfSet, headers);
  if (responseTrailerIfSet !== undefined) copyHeaders(responseTrailerIfSet, headers, "trailer-");
  return headers;
}

/** Copies all headers but those that only the gateway sets. */
export function copyHeaders(from: Headers, to: ResponseHeaders, prefix = ""): void {
  for (const [name, value] of from) {
    if (OWN.has(name) || name === "set-cookie") continue;
    to[prefix + name] = value;
  }
  const cookies = from.getSetCookie();
  if (cookies.length > 0) to[`${prefix}set-cookie`] = cookies;
}

// Writers for errors before the method is known, which only have details of google.rpc.
const writers = createJsonWriters(createTypeRegistry([])).details;

/** Ends `res` with a JSON document that must not be cached, unless the peer has disconnected. */
export function sendJson(res: HttpResponse, status: number, json: string, headers: OutgoingHttpHeaders = {}): void {
  sendBody(res, status, "application/json", json, { ...headers, "cache-control": "no-store" });
}

/** Ends `res` with a body, unless the peer has disconnected. */
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

/** Ends `res` without a body, unless the peer has disconnected. */
export function sendEmpty(res: HttpResponse, status: number, headers: OutgoingHttpHeaders): void {
  sendOrAbort(res, status, headers);
}

/**
 * Ends `res` with a gRPC status in the headers (Trailers-Only), which clients of gRPC and gRPC-Web read after any
 * request.
 */
export function sendGrpcStatus(
  res: HttpResponse,
  contentType: string,
  error: ConnectError,
  headers: OutgoingHttpHeaders = {},
): void {
  recordOf(res)?.setFailure(error.code, undefined);
  const fields = { ...headers, "content-type": contentType, "content-length": 0, ...buildErrorTrailers(error) };
  sendOrAbort(res, 200, fields);
}

// When there is no room even for this response, the connection is cut.
function sendOrAbort(res: HttpResponse, status: number, headers: OutgoingHttpHeaders, body?: string | Buffer): void {
  try {
    sendComplete(res, status, headers, body);
  } catch {
    abort(res);
  }
}

/** Formats an error as google.rpc.Status in JSON, the body of every REST error. */
export function formatStatusJson(error: ConnectError): string {
  return formatError(error, writers);
}

/** Formats an error for the Connect protocol ("Error JSON"). */
export function formatConnectJson(error: ConnectError): string {
  return JSON.stringify(errorToJson(error, undefined));
}
