// The envelopes of messages in gRPC and gRPC-Web: a flag, a length, and the message, which may be compressed (gRPC over
// HTTP/2, "Length-Prefixed-Message").
import { PREFIX_BYTES } from "../../codec/frame-scratch.js";
import { type ApiError, invalidRequest, protocolError, resourceExhausted, unimplemented } from "../../kernel/errors.js";
import { HttpError } from "../http/http-message.js";
import type { Pieces } from "../http/list-pieces.js";

/** The flag of a compressed message. */
export const COMPRESSED_FLAG = 1;

/** Short messages are joined to one chunk, in bytes. */
const JOINED_BYTES = 64 * 1024;

/** Reads how long the envelope is that begins with these bytes; undefined while its prefix is incomplete. */
export function readEnvelopeLength(arrived: Buffer): number | undefined {
  return arrived.length < PREFIX_BYTES ? undefined : PREFIX_BYTES + arrived.readUInt32BE(1);
}

/** The message of a unary request as it was sent. */
export interface SentMessage {
  readonly bytes: Uint8Array;
  readonly isCompressed: boolean;
}

/** The rules of the envelope of a unary request. */
export interface EnvelopeRules {
  /** The largest message as it is sent. */
  readonly maxBytes: number;
  /** Whether the request says that its message may be compressed. */
  readonly isEncoded: boolean;
}

/** Checks the envelope of a unary request, of which the first bytes have arrived; undefined while nothing is wrong. */
export function findEnvelopeFault(arrived: Buffer, { maxBytes, isEncoded }: EnvelopeRules): ApiError | undefined {
  if (arrived.length < PREFIX_BYTES) return undefined;
  const flag = arrived[0];
  const length = arrived.readUInt32BE(1);
  if (flag !== 0 && flag !== COMPRESSED_FLAG) return invalidRequest("a message has an unknown flag");
  if (flag === COMPRESSED_FLAG && !isEncoded)
    return protocolError("a message is marked as compressed, but the request names no encoding");
  if (length > maxBytes) return resourceExhausted(`message: ${length} bytes are more than ${maxBytes}`);
  return arrived.length > PREFIX_BYTES + length ? notOne() : undefined;
}

/**
 * Opens the envelope of a unary request.
 *
 * @throws ApiError as {@link findEnvelopeFault} finds it; UNIMPLEMENTED for no message, INVALID_ARGUMENT for a part of one
 */
export function openEnvelope(body: Buffer, rules: EnvelopeRules): SentMessage {
  if (body.length === 0) throw notOne();
  const fault = findEnvelopeFault(body, rules);
  if (fault !== undefined) throw fault;
  if (body.length < PREFIX_BYTES || body.length < PREFIX_BYTES + body.readUInt32BE(1))
    throw invalidRequest("the message is incomplete");
  return { bytes: body.subarray(PREFIX_BYTES), isCompressed: body[0] === COMPRESSED_FLAG };
}

/** UNIMPLEMENTED: a call that sends no stream must have one message (gRPC, status codes). */
export function notOne(): ApiError {
  return unimplemented("message: this method takes exactly one");
}

/** Puts a message into an envelope. */
export function sealEnvelope(flag: number, { pieces, bytes }: Pieces): Buffer[] {
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix[0] = flag;
  prefix.writeUInt32BE(bytes, 1);
  const all = [prefix, ...pieces];
  return bytes <= JOINED_BYTES ? [Buffer.concat(all)] : all;
}

/** Puts a message into an envelope of one piece. */
export function sealWhole(flag: number, message: Buffer): Buffer {
  return Buffer.concat(sealEnvelope(flag, { pieces: [message], bytes: message.length }));
}

/**
 * Whether the messages of a request are compressed, by the header that says so.
 *
 * @throws HttpError UNIMPLEMENTED with the encodings that are known, for any other than gzip
 */
export function isGzip(header: keyof typeof ACCEPTED, encoding: string | undefined): boolean {
  if (encoding === undefined || encoding === "" || encoding === "identity") return false;
  if (encoding === "gzip") return true;
  throw new HttpError(501, unimplemented(`${header}: must be gzip`), { [ACCEPTED[header]]: "gzip" });
}

/** The fields that name the compression of requests, and those of responses that say which are accepted. */
const ACCEPTED = {
  "grpc-encoding": "grpc-accept-encoding",
  "content-encoding": "accept-encoding",
  "connect-content-encoding": "connect-accept-encoding",
} as const;
