// What requests and responses of HTTP/1.1 and HTTP/2 have in common.
import type { IncomingMessage, ServerResponse } from "node:http";
import { Http2ServerRequest, Http2ServerResponse, type ServerHttp2Stream } from "node:http2";
import { type ApiError, callerGone } from "../../kernel/errors.js";
import { createDeferral } from "./deferral.js";
import { abortResponse } from "./http2-end.js";

/** A request of node:http or of node:http2's compatibility layer. */
export type HttpRequest = IncomingMessage | Http2ServerRequest;
/** A response of node:http or of node:http2's compatibility layer. */
export type HttpResponse = ServerResponse | Http2ServerResponse;

/** Whether a request came by node:http2's compatibility layer. */
export function isHttp2(req: HttpRequest): req is Http2ServerRequest {
  // By class, not by version: the parser of HTTP/1 passes on the version that the peer wrote, also 2.0.
  return req instanceof Http2ServerRequest;
}

/** Aborts an incomplete response, so that it does not look complete. */
export function abort(res: HttpResponse): void {
  if (res instanceof Http2ServerResponse) abortResponse(res);
  else res.destroy();
}

/** What a response is written to: a response, or a stream of HTTP/2 without the compatibility layer. */
export type ResponseWriter = HttpResponse | ServerHttp2Stream;

/** Whether the peer has disconnected, so that a response cannot be read. */
export function isGone(out: ResponseWriter): boolean {
  const to = "stream" in out ? out.stream : out;
  return to === undefined || to.destroyed || to.closed;
}

/**
 * The method of a request over REST. A POST may stand for another one, in `X-HTTP-Method-Override`: some networks let only
 * GET and POST through, and some queries are too long for a URL.
 */
export function restMethodOf({ method = "", headers }: HttpRequest): string {
  const override = method === "POST" ? headers["x-http-method-override"] : undefined;
  return override === undefined ? method : String(override).toUpperCase();
}

/** The address at the other end of the socket. */
export function socketAddressOf(req: HttpRequest): string | undefined {
  return isHttp2(req) ? req.stream.session?.socket?.remoteAddress : req.socket.remoteAddress;
}

/**
 * Returns the path and query of a request target. A target in absolute form, as clients send to proxies, loses its
 * origin (RFC 9112, section 3.2.2). `new URL` would rewrite dots and backslashes.
 */
export function toOriginForm(target: string): string {
  const code = target.charCodeAt(0);
  if (code === 47) return target;
  const authority = /^https?:\/\/[^/?#]+/i.exec(target.slice(0, 300))?.[0];
  if (authority === undefined) return target;
  const rest = target.slice(authority.length);
  return rest.startsWith("/") ? rest : `/${rest}`;
}

/**
 * An error with an HTTP status that does not follow from its code, such as 413 for RESOURCE_EXHAUSTED, or with headers
 * of its own.
 */
export class HttpError extends Error {
  readonly error: ApiError;
  /** The HTTP status to answer with. */
  readonly status: number;
  /** Headers for the response, by lower-case name. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, error: ApiError, headers: Readonly<Record<string, string>> = {}) {
    super(error.message);
    this.name = "HttpError";
    this.status = status;
    this.error = error;
    this.headers = headers;
  }
}

/**
 * A connection that closes ends hundreds of calls in one event. To abort one takes a tenth of a millisecond, for which
 * other callers wait.
 */
const CALLS_PER_TURN = 16;

const giveUp = createDeferral<AbortController>((call) => call.abort(callerGone()), rethrow, CALLS_PER_TURN);

/** Creates a signal that aborts with {@link callerGone} soon after the caller disconnected before it had its response. */
export function createDisconnectSignal(response: ResponseWriter): AbortSignal {
  const controller = new AbortController();
  if (isGone(response)) controller.abort(callerGone());
  // `writableEnded` is true as well for a stream that was reset.
  else response.once("close", () => (!response.writableEnded || "rstCode" in response) && giveUp(controller));
  return controller.signal;
}

function rethrow(error: unknown): void {
  throw error;
}

/** Hop-by-hop fields, which are not forwarded (RFC 9110, section 7.6.1). */
export const HOP_BY_HOP_FIELDS: readonly string[] = [
  "connection",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];
