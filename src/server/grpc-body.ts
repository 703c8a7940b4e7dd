import type { ServerHttp2Stream } from "node:http2";
import type { ApiError } from "../kernel/errors.js";
import { malformedRequest, resourceExhausted, unimplemented } from "../kernel/errors.js";

const PREFIX_BYTES = 5;

// What arrives in one piece and is no larger is not worth a timer while its end is outstanding.
const SMALL_BYTES = 65_536;

/** Told of the one message of a request, or of what is wrong with it; never both, at most once. */
export interface MessageReceiver {
  onMessage(bytes: Uint8Array): void;
  onFault(error: ApiError): void;
}

/**
 * Reads the body of a unary gRPC request: exactly one message behind its prefix of a flag and a
 * length (gRPC over HTTP/2, "Length-Prefixed-Message"). A message above `maxBytes` is refused when
 * its prefix arrives; one that is still incomplete `timeoutMs` after its first byte is refused too.
 *
 * Nothing is reported when the peer resets the stream first.
 */
export function readMessage(
  stream: ServerHttp2Stream,
  maxBytes: number,
  timeoutMs: number,
  receiver: MessageReceiver,
): void {
  // The first `size` bytes of `body` are what arrived so far.
  let body: Buffer | undefined;
  let size = 0;
  let expected = -1;
  let timer: NodeJS.Timeout | undefined;
  let settled = false;

  function fail(error: ApiError): void {
    settled = true;
    body = undefined;
    clearTimeout(timer);
    receiver.onFault(error);
  }

  stream.on("data", (chunk: Buffer) => {
    if (settled) return;
    if (body === undefined) {
      body = chunk;
      size = chunk.length;
    } else {
      body = append(body, size, chunk, expected);
      size += chunk.length;
    }
    if (expected < 0 && size >= PREFIX_BYTES) {
      const flag = body[0];
      const length = body.readUInt32BE(1);
      expected = PREFIX_BYTES + length;
      if (flag !== 0) fail(malformedRequest(flag === 1 ? COMPRESSED : UNKNOWN_FLAG));
      else if (length > maxBytes) fail(resourceExhausted(`message: ${length} bytes are more than ${maxBytes}`));
    }
    if (settled) return;
    if (expected >= 0 && size > expected) fail(unimplemented(NOT_ONE));
    else if ((size !== expected || size > SMALL_BYTES) && timer === undefined) {
      timer = setTimeout(() => fail(malformedRequest("the message did not arrive in time")), timeoutMs);
      stream.once("close", () => clearTimeout(timer));
    }
  });

  const onEnd = () => {
    // A reset ends the readable side as well; such a call must not run.
    if (settled || stream.closed || stream.destroyed) return;
    settled = true;
    if (timer !== undefined) clearTimeout(timer);
    if (body === undefined) receiver.onFault(unimplemented(NOT_ONE));
    else if (size !== expected) receiver.onFault(malformedRequest("the message is incomplete"));
    else receiver.onMessage(body.subarray(PREFIX_BYTES, expected));
  };
  // The end of an empty body comes with the headers, before anybody listens.
  if (stream.readableEnded) onEnd();
  else stream.on("end", onEnd);
}

const NOT_ONE = "message: a unary call takes exactly one";
const COMPRESSED = "a message is marked as compressed, but grpc-encoding is not set";
const UNKNOWN_FLAG = "a message has an unknown flag";

// Doubles the room instead of keeping chunks: a peer may send a byte per frame. The announced length
// is only an upper bound, since nothing of it need ever arrive.
function append(body: Buffer, size: number, chunk: Buffer, expected: number): Buffer {
  const needed = size + chunk.length;
  if (needed <= body.length) {
    chunk.copy(body, size);
    return body;
  }
  const room = Math.max(needed, Math.min(Math.max(body.length * 2, SMALL_BYTES), Math.max(expected, needed)));
  const grown = Buffer.allocUnsafeSlow(room);
  body.copy(grown, 0, 0, size);
  chunk.copy(grown, size);
  return grown;
}
