// gRPC over HTTP/2 (gRPC, PROTOCOL-HTTP2): the status comes in trailers, or in the head when there is no message.
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import { type CallContext, StreamCall } from "../../pipeline/call.js";
import { addFields, buildErrorTrailers, readGrpcTimeout } from "../http/grpc-fields.js";
import type { Request } from "../http/request.js";
import { sendComplete } from "../http/response-writer.js";
import { Enveloped } from "./enveloped.js";
import type { Failure } from "./failure.js";

/** gRPC with one codec of messages. */
export class Grpc extends Enveloped {
  readonly name = "grpc";
  // Errors are binary, whatever the codec of messages.
  readonly fieldSpelling = "proto";
  protected readonly encodingField = "grpc-encoding";
  protected readonly acceptField = "grpc-accept-encoding";
  protected readonly afterHead = "trailers";

  timeoutOf(fields: IncomingHttpHeaders): number | undefined {
    return readGrpcTimeout(fields["grpc-timeout"]);
  }

  protected typeOf(): string {
    return this.codec.isJson ? "application/grpc+json" : "application/grpc+proto";
  }

  protected sendOne(request: Request, call: CallContext, fields: OutgoingHttpHeaders, frame: Buffer): void {
    sendComplete(request, 200, fields, frame, trailersOf(call, undefined));
  }

  protected finish(request: Request, call: CallContext | undefined, failure?: Failure): void {
    request.endWithTrailers(trailersOf(call, failure));
  }

  fail(request: Request, call: CallContext | undefined, failure: Failure): void {
    if (request.headersSent) {
      request.discardBody();
      this.finish(request, call, failure);
      return;
    }
    const trailers = trailersOf(call, failure);
    const fields = { ...failure.fields, ...this.headOf(request, call, false) };
    // A stream that was opened has a head, also where it ends at once. Else one frame is enough without fields of the handler
    // (Trailers-Only).
    const hasHead = call !== undefined && (call.responseHeaderIfSet !== undefined || call instanceof StreamCall);
    if (hasHead) sendComplete(request, 200, fields, "", trailers);
    else sendComplete(request, 200, { ...trailers, ...fields });
  }
}

/** The trailers of a call: what its handler set, and its status. */
export function trailersOf(call: CallContext | undefined, failure: Failure | undefined): OutgoingHttpHeaders {
  const status = failure === undefined ? { "grpc-status": "0" } : buildErrorTrailers(failure.error);
  const trailer = call?.responseTrailerIfSet;
  return trailer === undefined ? status : { ...addFields({}, trailer), ...status };
}
