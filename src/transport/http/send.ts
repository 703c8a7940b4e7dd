// Sends complete responses: those of calls, and of requests that are rejected before a method is called.
import type { OutgoingHttpHeaders } from "node:http";
import type { ConnectError } from "@connectrpc/connect";
import { formatError } from "../../codec/error-json.js";
import { createJsonWriters } from "../../codec/json-writer.js";
import { createTypeRegistry } from "../../codec/type-registry.js";
import type { CallContext } from "../../pipeline/call.js";
import { HOP_BY_HOP_FIELDS } from "./http-message.js";
import type { Request } from "./request.js";
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
  request: Request,
  status: number,
  headers: ResponseHeaders,
  contentType: string | undefined,
  body: string | Uint8Array,
): void {
  if (contentType !== undefined) headers["content-type"] = contentType;
  headers["content-length"] = typeof body === "string" ? Buffer.byteLength(body) : body.length;
  headers["x-content-type-options"] = "nosniff";
  sendComplete(request, status, headers, body);
}

/** Sends a response that has no body by definition. */
export function sendNoContent(request: Request, headers: ResponseHeaders): void {
  sendComplete(request, 204, headers);
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

/** Answers with a JSON document that must not be cached, unless the peer has disconnected. */
export function sendJson(request: Request, status: number, json: string, headers: OutgoingHttpHeaders = {}): void {
  sendBody(request, status, "application/json", json, { ...headers, "cache-control": "no-store" });
}

/** Answers with a body, unless the peer has disconnected. */
export function sendBody(
  request: Request,
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
  sendOrAbort(request, status, fields, body);
}

/** Answers without a body, unless the peer has disconnected. */
export function sendEmpty(request: Request, status: number, headers: OutgoingHttpHeaders): void {
  sendOrAbort(request, status, headers);
}

// When there is no room even for this response, the connection is cut.
function sendOrAbort(request: Request, status: number, headers: OutgoingHttpHeaders, body?: string | Buffer): void {
  try {
    sendComplete(request, status, headers, body);
  } catch {
    request.abort();
  }
}

/** Formats an error as google.rpc.Status in JSON, the body of every REST error. */
export function formatStatusJson(error: ConnectError): string {
  return formatError(error, writers);
}
