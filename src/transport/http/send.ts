// Writing responses, on HTTP/1.1 and HTTP/2 alike: neither connection headers
// nor a reason phrase is ever set, since HTTP/2 knows neither.
import type { CallContext } from "../../pipeline/call.js";
import { sendWhole } from "./answer-writer.js";
import { type HttpResponse, isGone } from "./http-message.js";

/** Response headers by lower-case name. */
export type ResponseHeaders = Record<string, string | number | string[]>;

// What the gateway itself decides; a handler or an error that came over the wire has no say in it.
const OWN: ReadonlySet<string> = new Set([
  "connection",
  "content-encoding",
  "content-length",
  "content-type",
  "date",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "x-content-type-options",
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
  sendWhole(res, status, headers, body);
}

/** Sends a response that has no body by definition. */
export function sendNoContent(res: HttpResponse, headers: ResponseHeaders): void {
  if (res.headersSent || isGone(res)) return;
  sendWhole(res, 204, headers);
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
