// Writing responses, on HTTP/1.1 and HTTP/2 alike: neither connection headers
// nor a reason phrase is ever set, since HTTP/2 knows neither.
import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { Call } from "../rpc/call.js";
import { flushPerTick } from "../transport/http/tick.js";
import { abort, type HttpResponse, isGone } from "./http-message.js";

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
  answer({ res, status, headers, body });
}

interface Answer {
  readonly res: HttpResponse;
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly body: string | Uint8Array;
}

const answer = flushPerTick<Answer>(
  "answers",
  ({ res, status, headers, body }) => {
    if (res.headersSent || isGone(res)) return;
    writeHead(res, status, headers);
    (res as ServerResponse).end(body);
  },
  (_error, { res }) => abort(res),
);

/**
 * Writes status and headers. What another layer has put on the response before stays, and its `vary`
 * is joined with that of `headers`.
 */
export function writeHead(res: HttpResponse, status: number, headers: OutgoingHttpHeaders): void {
  if (headers.vary !== undefined) {
    const before = res.getHeader("vary");
    if (before !== undefined) headers.vary = `${before}, ${headers.vary}`;
  }
  // The two response classes agree in what is used here; their overloads alone do not.
  (res as ServerResponse).writeHead(status, headers);
}

/** Sends a response that has no body by definition. */
export function sendNoContent(res: HttpResponse, headers: ResponseHeaders): void {
  if (res.headersSent || isGone(res)) return;
  writeHead(res, 204, headers);
  (res as ServerResponse).end();
}

/** The headers and trailers a handler set; trailers as headers prefixed with `trailer-`, as Connect does. */
export function headersOf(call: Call): ResponseHeaders {
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
