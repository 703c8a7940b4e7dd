// What HTTP/1.1 and HTTP/2 have in common, for the gateway and for whatever else
// answers requests on the same port.
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { Http2ServerRequest, Http2ServerResponse, type ServerHttp2Stream } from "node:http2";
import { type BlockList, isIP } from "node:net";
import { type ApiError, callerGone } from "../../kernel/errors.js";
import { abortResponse } from "./http2-end.js";
import { flushPerTick } from "./tick.js";

/** A request of node:http or of node:http2's compatibility layer. */
export type HttpRequest = IncomingMessage | Http2ServerRequest;
/** A response of node:http or of node:http2's compatibility layer. */
export type HttpResponse = ServerResponse | Http2ServerResponse;

/** Whether a request came by node:http2's compatibility layer. */
export function isHttp2(req: HttpRequest): req is Http2ServerRequest {
  // By class: the version is what the peer wrote, and a parser of HTTP/1 passes on a 2.0 that it reads.
  return req instanceof Http2ServerRequest;
}

/** Cuts off an answer that cannot be completed, so that it does not look complete. */
export function abort(res: HttpResponse): void {
  if (res instanceof Http2ServerResponse) abortResponse(res);
  else res.destroy();
}

/** What an answer is written to: a response, or a stream of HTTP/2 without its compatibility layer. */
export type ResponseWriter = HttpResponse | ServerHttp2Stream;

/** Whether there is nobody left to read an answer; HTTP/2's responses do not say so themselves. */
export function isGone(out: ResponseWriter): boolean {
  const to = "stream" in out ? out.stream : out;
  return to === undefined || to.destroyed || to.closed;
}

/** The address at the other end of the socket. */
export function socketAddressOf(req: HttpRequest): string | undefined {
  return isHttp2(req) ? req.stream.session?.socket?.remoteAddress : req.socket.remoteAddress;
}

/** The proxies whose word counts. */
export type TrustedProxies = Pick<BlockList, "check">;

/**
 * The address a call comes from: that of the socket, or where that is a trusted proxy the last entry of
 * `x-forwarded-for` that is none. What stands before that entry is the caller's word.
 */
export function peerAddress(
  socketAddress: string | undefined,
  headers: IncomingHttpHeaders,
  proxies: TrustedProxies | undefined,
): string | undefined {
  if (proxies === undefined || !isTrustedProxy(socketAddress, proxies)) return socketAddress;
  const forwarded = headers["x-forwarded-for"];
  const list = (typeof forwarded === "object" ? forwarded.join(",") : (forwarded ?? "")).split(",");
  let address = socketAddress;
  while (isTrustedProxy(address, proxies)) {
    const before = list.pop()?.trim();
    if (!before) break;
    address = before.slice(0, 64);
  }
  return address;
}

/** Whether an address is that of a proxy whose word counts. */
export function isTrustedProxy(address: string | undefined, proxies: TrustedProxies): boolean {
  const family = isIP(address ?? "");
  // An IPv4 peer of a socket that listens on IPv6 is checked as what it is.
  return family !== 0 && proxies.check(address ?? "", family === 4 ? "ipv4" : "ipv6");
}

/**
 * The path and query of a request target: one in absolute form, as clients send to proxies, loses its
 * origin (RFC 9112, section 3.2.2). Not by `new URL`: it would quietly rewrite dots and backslashes.
 */
export function originForm(target: string): string {
  const code = target.charCodeAt(0);
  if (code === 47) return target;
  const authority = /^https?:\/\/[^/?#]+/i.exec(target.slice(0, 300))?.[0];
  if (authority === undefined) return target;
  const rest = target.slice(authority.length);
  return rest.startsWith("/") ? rest : `/${rest}`;
}

/**
 * An error whose HTTP status says more than its code does, such as 413 for RESOURCE_EXHAUSTED that
 * is about one body, or that comes with headers of its own.
 */
export class HttpError extends Error {
  readonly error: ApiError;
  /** The HTTP status to answer with. */
  readonly status: number;
  /** Headers for the answer, by lower-case name. */
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
 * A connection that closes ends hundreds of calls in one event. What each of them gives up takes a tenth of a
 * millisecond, for which other callers wait.
 */
const CALLS_PER_TICK = 16;

const giveUp = flushPerTick<AbortController>("answers", (call) => call.abort(callerGone()), rethrow, CALLS_PER_TICK);

/** Fires with {@link callerGone} soon after the caller went away before it had its answer. */
export function disconnectSignal(answer: ResponseWriter): AbortSignal {
  const controller = new AbortController();
  if (isGone(answer)) controller.abort(callerGone());
  // A stream that was reset counts as ended by its writer.
  else answer.once("close", () => (!answer.writableEnded || "rstCode" in answer) && giveUp(controller));
  return controller.signal;
}

function rethrow(error: unknown): void {
  throw error;
}

/** The fields of one connection, which are not passed on (RFC 9110, section 7.6.1). */
export const HOP_BY_HOP_FIELDS: readonly string[] = [
  "connection",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];
