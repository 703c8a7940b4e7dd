// What gRPC, gRPC-Web and streams of Connect have in common: each message is in an envelope, and the status comes after the
// last of them. One response is the shortest of streams.
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import type { DescMessage, Message } from "@bufbuild/protobuf";
import { PREFIX_BYTES } from "../../codec/frame-scratch.js";
import { connectErrorFrom, isCallerGone, rejectReasonOf } from "../../kernel/errors.js";
import type { CallContext } from "../../pipeline/call.js";
import type { FieldSpelling } from "../../pipeline/field-names.js";
import type { MethodEntry, UnaryEntry } from "../../pipeline/method-table.js";
import { addFields } from "../http/grpc-fields.js";
import { joinField } from "../http/http-message.js";
import type { Pieces } from "../http/list-pieces.js";
import { type AfterHead, CHUNK_BYTES, type Request } from "../http/request.js";
import { COMPRESSED_FLAG, type EnvelopeRules, isGzip, readEnvelope, readEnvelopes, sealEnvelope } from "./envelope.js";
import type { Failure } from "./failure.js";
import type { Decode, Protocol } from "./protocol.js";
import { RpcForm } from "./rpc-form.js";

/** The fields that say how messages are compressed. */
type EncodingField = "grpc-encoding" | "connect-content-encoding";

/** A protocol of envelopes, with one codec of messages. */
export abstract class Enveloped extends RpcForm implements Protocol {
  abstract readonly name: Protocol["name"];
  abstract readonly fieldSpelling: FieldSpelling;
  protected abstract readonly encodingField: EncodingField;
  /** What follows the head of a response. */
  protected abstract readonly afterHead: AfterHead;

  abstract timeoutOf(fields: IncomingHttpHeaders): number | undefined;

  abstract fail(request: Request, call: CallContext | undefined, failure: Failure): void | Promise<void>;

  /** The content type of a response. */
  protected abstract typeOf(request: Request): string;

  /** Sends a response with one message, in one envelope. */
  protected abstract sendOne(request: Request, call: CallContext, fields: OutgoingHttpHeaders, frame: Buffer): void;

  /** Ends a response that has begun, with the status of its call. */
  protected abstract finish(request: Request, call: CallContext | undefined, failure?: Failure): void | Promise<void>;

  /** Writes a part of an envelope, whose bytes were charged. */
  protected writeFrame(request: Request, frame: Buffer): Promise<void> {
    return request.writeCharged(frame);
  }

  /** Whether the body of a request is base64. */
  protected isText(_request: Request): boolean {
    return false;
  }

  async read(request: Request, { desc, maxRequestBytes }: MethodEntry): Promise<Decode> {
    const bytes = await readEnvelope(request, this.#rulesOf(request, maxRequestBytes), this.isText(request));
    return () => this.codec.decode(desc.input, bytes);
  }

  readStream(request: Request, { desc, maxRequestBytes }: MethodEntry): AsyncGenerator<Message> {
    return this.#readMessages(request, desc.input, this.#rulesOf(request, maxRequestBytes));
  }

  async *#readMessages(request: Request, input: DescMessage, rules: EnvelopeRules): AsyncGenerator<Message> {
    try {
      for await (const bytes of readEnvelopes(request, rules)) yield this.codec.decode(input, bytes);
    } catch (error) {
      if (isCallerGone(error)) throw error;
      // The handler gets it, who may know connect's errors alone, and no reasons.
      request.record.reason ??= rejectReasonOf(error);
      throw connectErrorFrom(error, this.options.errorDomain);
    }
  }

  answer(request: Request, call: CallContext, { desc }: UnaryEntry, response: object): void | Promise<void> {
    const frame = this.codec.encodeFrame(desc.output, response);
    const bytes = frame.length - PREFIX_BYTES;
    if (this.compresses(request, bytes)) {
      request.chargeResponse(bytes);
      return this.sendCharged(request, call, { pieces: [frame.subarray(PREFIX_BYTES)], bytes });
    }
    this.sendOne(request, call, this.headOf(request, call, false), frame);
  }

  protected async sendPieces(
    request: Request,
    call: CallContext,
    message: Pieces,
    isCompressed: boolean,
  ): Promise<void> {
    const frame = sealEnvelope(isCompressed ? COMPRESSED_FLAG : 0, message);
    const [whole] = frame;
    const fields = this.headOf(request, call, isCompressed);
    if (frame.length === 1 && whole !== undefined && whole.length <= CHUNK_BYTES) {
      this.sendOne(request, call, fields, whole);
      return;
    }
    request.chargeResponse(PREFIX_BYTES);
    request.writeHead(200, fields, this.afterHead);
    for (const piece of frame) await this.writeFrame(request, piece);
    await this.finish(request, call);
  }

  async answerStream(
    request: Request,
    call: CallContext,
    { desc }: MethodEntry,
    messages: AsyncIterable<object>,
  ): Promise<void> {
    const isCompressed = this.options.compressor.accepts(request.header(this.acceptField));
    for await (const message of messages) {
      if (request.isGone) return;
      const frame = await this.#encode(request, desc, message);
      // Headers are sent with the first message, so that its handler may set them until then.
      if (!request.headersSent) request.writeHead(200, this.headOf(request, call, isCompressed), this.afterHead);
      for (const piece of frame) await this.writeFrame(request, piece);
    }
    if (request.isGone) return;
    if (!request.headersSent) request.writeHead(200, this.headOf(request, call, isCompressed), this.afterHead);
    request.discardBody();
    await this.finish(request, call);
  }

  // Encodes one of several messages, and charges it.
  async #encode(request: Request, { output }: MethodEntry["desc"], message: object): Promise<Buffer[]> {
    const frame = this.codec.encodeFrame(output, message);
    request.chargeResponse(frame.length);
    if (!this.compresses(request, frame.length - PREFIX_BYTES)) return [frame];
    const plain = { pieces: [frame.subarray(PREFIX_BYTES)], bytes: frame.length - PREFIX_BYTES };
    return sealEnvelope(COMPRESSED_FLAG, await this.options.compressor.compress(request, plain));
  }

  /** The head of a response, with the fields that its handler set. */
  protected headOf(request: Request, call: CallContext | undefined, isCompressed: boolean): OutgoingHttpHeaders {
    const fields: OutgoingHttpHeaders = { "content-type": this.typeOf(request) };
    if (isCompressed) fields[this.encodingField] = "gzip";
    return addFields(fields, call?.responseHeaderIfSet);
  }

  #rulesOf({ fields }: Request, maxBytes: number): EnvelopeRules {
    return { maxBytes, isEncoded: isGzip(this.encodingField, joinField(fields[this.encodingField])) };
  }
}
