import { Code, ConnectError, type ContextValues, createContextKey } from "@connectrpc/connect";
import type { UniversalServerRequest } from "@connectrpc/connect/protocol";
import { grpcTimeoutMs } from "../rpc/grpc-timeout.js";
import { type HttpRequest, type HttpResponse, isHttp2, socketAddressOf } from "../transport/http/http-message.js";
import { webHeaders } from "./inbound.js";

// Timers hold 31 bits of milliseconds and fire at once beyond them.
const LONGEST_TIMEOUT_MS = 2_147_483_647;

/** The connection that a call came by. */
export interface CallConnection {
  /** The session of HTTP/2 or the socket of HTTP/1.1; undefined when it is gone. */
  readonly connection: object | undefined;
  readonly socketAddress: string | undefined;
}

/** Where handlers find the connection of their call among its context values. */
export const connectionKey = createContextKey<CallConnection>({ connection: undefined, socketAddress: undefined });

/**
 * A request as connect's handlers take it. The authority must have been validated.
 *
 * Against what connect-node builds, this one limits timeouts to what timers can hold.
 */
export function universalRequest(
  req: HttpRequest,
  res: HttpResponse,
  contextValues: ContextValues,
  body: AsyncIterable<Uint8Array>,
): UniversalServerRequest {
  contextValues.set(connectionKey, {
    connection: isHttp2(req) ? req.stream.session : req.socket,
    socketAddress: socketAddressOf(req),
  });
  const header = webHeaders(req.headers);
  limitTimeout(header);
  const scheme = "encrypted" in req.socket && req.socket.encrypted ? "https" : "http";
  const authority = req.headers[":authority"] ?? req.headers.host;
  return {
    httpVersion: req.httpVersion,
    method: req.method ?? "",
    url: `${scheme}://${authority}${req.url}`,
    header,
    body,
    signal: goneSignal(res),
    contextValues,
  };
}

// Fires only when the peer goes before it has its answer; to fire at every end would build an error
// with a stack each time.
function goneSignal(res: HttpResponse): AbortSignal {
  const controller = new AbortController();
  res.once("close", () => {
    if (!res.writableEnded) controller.abort(new ConnectError("the caller has gone", Code.Canceled));
  });
  return controller.signal;
}

function limitTimeout(header: Headers): void {
  const grpc = header.get("grpc-timeout");
  if (grpc !== null && grpcTimeoutMs(grpc) > LONGEST_TIMEOUT_MS) header.set("grpc-timeout", "500H");
  const connect = header.get("connect-timeout-ms");
  if (connect !== null && Number(connect) > LONGEST_TIMEOUT_MS)
    header.set("connect-timeout-ms", String(LONGEST_TIMEOUT_MS));
}
