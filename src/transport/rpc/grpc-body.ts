import type { ServerHttp2Stream } from "node:http2";
import { PREFIX_BYTES } from "../../codec/frame-scratch.js";
import type { ApiError } from "../../kernel/errors.js";
import { invalidRequest, protocolError, resourceExhausted, unimplemented } from "../../kernel/errors.js";
import { type BodyOptions, type BodyReceiver, collectBody } from "../http/body-collector.js";

/** Receives the message of a request, or an error; one method is called at most once. */
export interface MessageReceiver {
  onMessage(bytes: Uint8Array): void;
  onFault(error: ApiError): void;
}

/**
 * Reads the body of a unary gRPC request: exactly one message with its prefix of a flag and a length (gRPC over HTTP/2,
 * "Length-Prefixed-Message"). A message above `maxBytes` is rejected when its prefix arrives, and one that is still
 * incomplete `timeoutMs` after its first byte as well.
 *
 * Nothing is reported when the peer resets the stream first.
 */
export function readMessage(
  stream: ServerHttp2Stream,
  maxBytes: number,
  timeoutMs: number,
  receiver: MessageReceiver,
): void {
  const body = new MessageBody(maxBytes, timeoutMs, receiver);
  collectBody(stream, body, body);
}

class MessageBody implements BodyOptions, BodyReceiver {
  readonly maxBytes: number;
  readonly timeoutMs: number;
  readonly #maxMessageBytes: number;
  readonly #receiver: MessageReceiver;
  #expected = -1;

  constructor(maxMessageBytes: number, timeoutMs: number, receiver: MessageReceiver) {
    this.maxBytes = maxMessageBytes + PREFIX_BYTES;
    this.timeoutMs = timeoutMs;
    this.#maxMessageBytes = maxMessageBytes;
    this.#receiver = receiver;
  }

  readAnnouncedLength(arrived: Buffer): number | undefined {
    return arrived.length < PREFIX_BYTES ? undefined : PREFIX_BYTES + arrived.readUInt32BE(1);
  }

  check(arrived: Buffer): ApiError | undefined {
    if (this.#expected < 0 && arrived.length >= PREFIX_BYTES) {
      const flag = arrived[0];
      const length = arrived.readUInt32BE(1);
      this.#expected = PREFIX_BYTES + length;
      if (flag !== 0) return flag === 1 ? protocolError(COMPRESSED) : invalidRequest(UNKNOWN_FLAG);
      if (length > this.#maxMessageBytes) return tooLarge(length, this.#maxMessageBytes);
    }
    return this.#expected >= 0 && arrived.length > this.#expected ? unimplemented(NOT_ONE) : undefined;
  }

  onBody(body: Buffer): void {
    if (body.length === 0) this.#receiver.onFault(unimplemented(NOT_ONE));
    else if (body.length !== this.#expected) this.#receiver.onFault(invalidRequest("the message is incomplete"));
    else this.#receiver.onMessage(body.subarray(PREFIX_BYTES));
  }

  // More bytes arrived than the limit allows, or than the prefix announced.
  onTooLarge(): void {
    const length = this.#expected - PREFIX_BYTES;
    const limit = this.#maxMessageBytes;
    this.#receiver.onFault(length > limit ? tooLarge(length, limit) : unimplemented(NOT_ONE));
  }

  onFault(error: ApiError): void {
    this.#receiver.onFault(error);
  }

  onGone(): void {}
}

function tooLarge(length: number, maxBytes: number): ApiError {
  return resourceExhausted(`message: ${length} bytes are more than ${maxBytes}`);
}

const NOT_ONE = "message: a unary call takes exactly one";
const COMPRESSED = "a message is marked as compressed, but grpc-encoding is not set";
const UNKNOWN_FLAG = "a message has an unknown flag";
