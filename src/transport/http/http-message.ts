// What HTTP/1.1 and HTTP/2 have in common, for the gateway and for whatever else
// answers requests on the same port.
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { Http2ServerRequest, Http2ServerResponse, type ServerHttp2Stream } from "node:http2";
import { type BlockList, isIP } from "node:net";
import { abortResponse } from "./http2-end.js";

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
