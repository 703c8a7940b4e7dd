import type { ContextValues } from "@connectrpc/connect";
import type { UniversalServerRequest } from "@connectrpc/connect/protocol";
import { grpcTimeoutMs } from "../../pipeline/grpc-timeout.js";
import { goneSignal } from "../http/gone-signal.js";
import type { HttpRequest, HttpResponse } from "../http/http-message.js";
import { webHeaders } from "../http/inbound.js";

// Timers hold 31 bits of milliseconds and fire at once beyond them.
const LONGEST_TIMEOUT_MS = 2_147_483_647;

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

function limitTimeout(header: Headers): void {
  const grpc = header.get("grpc-timeout");
  if (grpc !== null && grpcTimeoutMs(grpc) > LONGEST_TIMEOUT_MS) header.set("grpc-timeout", "500H");
  const connect = header.get("connect-timeout-ms");
  if (connect !== null && Number(connect) > LONGEST_TIMEOUT_MS)
    header.set("connect-timeout-ms", String(LONGEST_TIMEOUT_MS));
}
