// gRPC-Web (gRPC, PROTOCOL-WEB): as gRPC, but its trailers are the last frame of the body, and the body may be base64.
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import type { Message } from "@bufbuild/protobuf";
import { unimplemented } from "../../kernel/errors.js";
import type { CallContext } from "../../pipeline/call.js";
import type { MethodEntry } from "../../pipeline/method-table.js";
import { readGrpcTimeout } from "../http/grpc-fields.js";
import type { Request } from "../http/request.js";
import { sendComplete } from "../http/response-writer.js";
import { sealWhole } from "./envelope.js";
import { Enveloped } from "./enveloped.js";
import type { Failure } from "./failure.js";
import { trailersOf } from "./grpc.js";
import { encodeWebText, findWebText } from "./web-text.js";

const TRAILER_FLAG = 0x80;

/** gRPC-Web with one codec of messages. */
export class GrpcWeb extends Enveloped {
  readonly name = "grpc-web";
  // Errors are binary, whatever the codec of messages.
  readonly fieldSpelling = "proto";
  protected readonly encodingField = "grpc-encoding";
  protected readonly acceptField = "grpc-accept-encoding";
  protected readonly afterHead = "pieces";

  timeoutOf(fields: IncomingHttpHeaders): number | undefined {
    return readGrpcTimeout(fields["grpc-timeout"]);
  }

  protected typeOf({ fields }: Request): string {
    const text = findWebText(fields)?.answer === true ? "-text" : "";
    return `application/grpc-web${text}+${this.codec.isJson ? "json" : "proto"}`;
  }

  protected override isText({ fields }: Request): boolean {
    return findWebText(fields)?.request === true;
  }

  override readStream(request: Request, entry: MethodEntry): AsyncGenerator<Message> {
    // Clients of gRPC-Web do not stream requests, and base64 of unknown length cannot be charged at once.
    if (this.isText(request))
      throw unimplemented(`method: ${entry.desc.name} takes a stream, which gRPC-Web as text cannot send`);
    return super.readStream(request, entry);
  }

  protected override async writeFrame(request: Request, frame: Buffer): Promise<void> {
    if (findWebText(request.fields)?.answer !== true) return request.writeCharged(frame);
    for (const piece of encodeWebText([frame])) {
      request.chargeResponse(piece.length);
      await request.writeCharged(piece);
    }
    request.releaseResponse(frame.length);
  }

  protected sendOne(request: Request, call: CallContext, fields: OutgoingHttpHeaders, frame: Buffer): void {
    this.#sendFrames(request, fields, [frame], [encodeTrailers(call, undefined)]);
  }

  protected async finish(request: Request, call: CallContext | undefined, failure?: Failure): Promise<void> {
    const frame = encodeTrailers(call, failure);
    request.chargeResponse(frame.length);
    await this.writeFrame(request, frame);
    request.end();
  }

  fail(request: Request, call: CallContext | undefined, failure: Failure): void | Promise<void> {
    if (request.headersSent) {
      request.discardBody();
      return this.finish(request, call, failure);
    }
    const fields = { ...failure.fields, ...this.headOf(request, call, false) };
    // Before its request was read a call has no trailers but its status, which may stand in the head (Trailers-Only).
    if (call === undefined)
      sendComplete(request, 200, { ...fields, "content-length": 0, ...trailersOf(call, failure) });
    else this.#sendFrames(request, fields, [encodeTrailers(call, failure)]);
  }

  #sendFrames(request: Request, fields: OutgoingHttpHeaders, ...frames: readonly (readonly Buffer[])[]): void {
    const isText = findWebText(request.fields)?.answer === true;
    const pieces = frames.flatMap((frame) => (isText ? [...encodeWebText(frame)] : frame));
    const body = Buffer.concat(pieces);
    fields["content-length"] = body.length;
    sendComplete(request, 200, fields, body);
  }
}

function encodeTrailers(call: CallContext | undefined, failure: Failure | undefined): Buffer {
  const lines = Object.entries(trailersOf(call, failure)).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((one) => `${name}: ${one}\r\n`),
  );
  return sealWhole(TRAILER_FLAG, Buffer.from(lines.join(""), "latin1"));
}
