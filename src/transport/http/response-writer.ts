// Sends complete responses, those of one turn of the event loop together.
import type { OutgoingHttpHeaders } from "node:http";
import { createDeferral } from "./deferral.js";
import type { Request } from "./request.js";

interface CompleteResponse {
  readonly request: Request;
  readonly status: number;
  readonly fields: OutgoingHttpHeaders;
  readonly body: string | Uint8Array;
  readonly trailers: OutgoingHttpHeaders | undefined;
}

const write = createDeferral<CompleteResponse>(
  ({ request, status, fields, body, trailers }) => {
    if (!request.headersSent && !request.isGone) request.sendWhole(status, fields, body, trailers);
  },
  (error, { request }) => request.onError(error),
);

/**
 * Sends a complete response together with the others of this turn of the event loop, unless the peer has disconnected.
 * What is left of the request is discarded.
 *
 * @param fields all fields but those of the connection; content-length is the caller's to set
 * @param trailers of gRPC
 * @throws ApiError RESOURCE_EXHAUSTED when too many bytes are buffered already
 */
export function sendComplete(
  request: Request,
  status: number,
  fields: OutgoingHttpHeaders,
  body: string | Uint8Array = "",
  trailers?: OutgoingHttpHeaders,
): void {
  // Here, so that no refusal can forget it: a stream whose request is not read to its end would stay open.
  request.discardBody();
  if (request.headersSent || request.isGone) return;
  // This response replaces one that was charged but not sent.
  request.dropResponse();
  request.chargeResponse(body.length === 0 ? 0 : Number(fields["content-length"] ?? Buffer.byteLength(body)));
  write({ request, status, fields, body, trailers });
}
