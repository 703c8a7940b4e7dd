// What the forms of RPC have in common: the codec of their messages, compression, and lists as one message.
import type { IncomingHttpHeaders } from "node:http";
import type { CallContext, UnaryCall } from "../../pipeline/call.js";
import type { UnaryEntry } from "../../pipeline/method-table.js";
import { toWebHeaders } from "../http/http-message.js";
import { collectList, type Pieces } from "../http/list-pieces.js";
import type { Request } from "../http/request.js";
import type { Compressor } from "./compression.js";
import type { MessageCodec } from "./message-codec.js";

/** What the forms of RPC are given. */
export interface RpcOptions {
  /** ErrorInfo's domain. */
  readonly errorDomain: string;
  readonly compressor: Compressor;
  /** The most bytes of a list that is sent as one message. */
  readonly responseBytes: number;
}

/** A form of RPC, with one codec of messages. */
export abstract class RpcForm {
  /** The field that says which compression a caller accepts. */
  protected abstract readonly acceptField: string;
  protected readonly codec: MessageCodec;
  protected readonly options: RpcOptions;

  constructor(codec: MessageCodec, options: RpcOptions) {
    this.codec = codec;
    this.options = options;
  }

  /** Sends the pieces of a message, whose bytes were charged. */
  protected abstract sendPieces(
    request: Request,
    call: CallContext,
    message: Pieces,
    isCompressed: boolean,
  ): Promise<void>;

  metadataOf(fields: IncomingHttpHeaders): Headers {
    return toWebHeaders(fields);
  }

  // A caller learns how a list failed, so nothing is sent before it is complete.
  async answerList(
    request: Request,
    call: UnaryCall,
    { desc, list }: UnaryEntry,
    chunks: AsyncGenerator<object, void, void>,
  ): Promise<void> {
    if (list === undefined) throw new TypeError(`${desc.name} has no list`);
    const encoder = this.codec.createListEncoder(desc.output, list);
    const message = await collectList({ chunks, encoder, maxBytes: this.options.responseBytes, request });
    if (!request.isGone) await this.sendCharged(request, call, message);
  }

  /** Sends a message whose bytes were charged, compressed if that is worth it. */
  protected async sendCharged(request: Request, call: CallContext, plain: Pieces): Promise<void> {
    const isCompressed = this.compresses(request, plain.bytes);
    const message = isCompressed ? await this.options.compressor.compress(request, plain) : plain;
    if (!request.isGone) await this.sendPieces(request, call, message, isCompressed);
  }

  /** Whether a message of a size is compressed for a caller. */
  protected compresses(request: Request, bytes: number): boolean {
    return this.options.compressor.takes(bytes, request.header(this.acceptField));
  }
}
