import type { ServerHttp2Stream } from "node:http2";
import { PREFIX_BYTES } from "../../codec/frame-scratch.js";
import type { ApiError } from "../../kernel/errors.js";
import { invalidRequest, protocolError, resourceExhausted, unimplemented } from "../../kernel/errors.js";
import { collectBody } from "../http/body-collector.js";

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
  let expected = -1;

  const readAnnouncedLength = (arrived: Buffer) =>
    arrived.length < PREFIX_BYTES ? undefined : PREFIX_BYTES + arrived.readUInt32BE(1);

  function check(arrived: Buffer): ApiError | undefined {
    if (expected < 0 && arrived.length >= PREFIX_BYTES) {
      const flag = arrived[0];
      const length = arrived.readUInt32BE(1);
      expected = PREFIX_BYTES + length;
      if (flag !== 0) return flag === 1 ? protocolError(COMPRESSED) : invalidRequest(UNKNOWN_FLAG);
      if (length > maxBytes) return resourceExhausted(`message: ${length} bytes are more than ${maxBytes}`);
    }
    return expected >= 0 && arrived.length > expected ? unimplemented(NOT_ONE) : undefined;
  }

  collectBody(
    stream,
    { maxBytes: maxBytes + PREFIX_BYTES, timeoutMs, readAnnouncedLength, check },
    {
      onBody(body) {
        if (body.length === 0) receiver.onFault(unimplemented(NOT_ONE));
        else if (body.length !== expected) receiver.onFault(invalidRequest("the message is incomplete"));
        else receiver.onMessage(body.subarray(PREFIX_BYTES));
      },
      // More bytes arrived than the limit allows, or than the prefix announced.
      onTooLarge: () => receiver.onFault(tooLarge(expected, maxBytes)),
      onFault: receiver.onFault,
      onGone() {},
    },
  );
}

function tooLarge(expected: number, maxBytes: number): ApiError {
  const length = expected - PREFIX_BYTES;
  return length > maxBytes
    ? resourceExhausted(`message: ${length} bytes are more than ${maxBytes}`)
    : unimplemented(NOT_ONE);
}

const NOT_ONE = "message: a unary call takes exactly one";
const COMPRESSED = "a message is marked as compressed, but grpc-encoding is not set";
const UNKNOWN_FLAG = "a message has an unknown flag";
