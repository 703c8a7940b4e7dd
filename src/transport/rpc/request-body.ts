// Reads the bodies of calls: one message in an envelope, or a stream that connect's handlers read.
import type { DescMethod, Message } from "@bufbuild/protobuf";
import { PREFIX_BYTES } from "../../codec/frame-scratch.js";
import { callerGone, unimplemented } from "../../kernel/errors.js";
import type { RequestRecord } from "../../telemetry/request-record.js";
import { isComplete } from "../http/body-collector.js";
import { mayHaveBody, readBase64, readRaw } from "../http/body-reader.js";
import type { HttpRequest } from "../http/http-message.js";
import { joinField } from "../http/inbound.js";
import { inflate } from "../http/inflate.js";
import { openRequestOf } from "../http/open-request.js";
import { isGzip, openEnvelope } from "./envelope.js";
import { binaryCodec, type MessageCodec } from "./message-codec.js";

/** Decompresses the message of a request, and charges it. */
export function inflateMessage(req: HttpRequest, bytes: Uint8Array, maxBytes: number): Promise<Uint8Array> {
  return inflate("message", "gzip", bytes, maxBytes, (most) => openRequestOf(req)?.chargeBody(most));
}

/**
 * Reads the only message of a request, which is in an envelope and may be compressed.
 *
 * @param encoding the header field that says how messages are compressed
 * @param isText whether the body is base64 (gRPC-Web)
 * @throws HttpError 413, 501; ApiError as {@link openEnvelope} does, RESOURCE_EXHAUSTED; the error of {@link callerGone}
 */
export async function readOnlyMessage(
  req: HttpRequest,
  maxBytes: number,
  encoding: "grpc-encoding" | "connect-content-encoding",
  isText: boolean,
  record: RequestRecord,
): Promise<Uint8Array> {
  const isEncoded = isGzip(encoding, joinField(req.headers[encoding]));
  const read = isText ? readBase64 : readRaw;
  const body = mayHaveBody(req) ? await read(req, maxBytes + PREFIX_BYTES) : new Uint8Array();
  record.bytesIn ??= body.length;
  const buffer = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const { bytes, isCompressed } = openEnvelope(buffer, { maxBytes, isEncoded });
  return isCompressed ? inflateMessage(req, bytes, maxBytes) : bytes;
}

/** A request for the library. */
export interface RequestBody {
  /** As it was sent, or that of an empty message if the message was decoded here. */
  readonly body: AsyncIterable<Uint8Array>;
  readonly message: Message | undefined;
}

/**
 * Reads the body of a call. A single message is read and charged before the library gets it, and decoded here if it is
 * not for a mounted method. For streams, the library buffers one message at a time.
 *
 * @param maxBytes the largest message
 * @param jsonCodec decodes messages in JSON; without it the library decodes all messages
 * @param isText whether the body is base64 (gRPC-Web)
 * @throws as {@link readOnlyMessage} does; ApiError INVALID_ARGUMENT naming the field that is wrong, UNIMPLEMENTED
 */
export async function readRequest(
  method: DescMethod,
  maxBytes: number,
  req: HttpRequest,
  jsonCodec: MessageCodec | undefined,
  record: RequestRecord,
  isText = false,
): Promise<RequestBody> {
  if (method.methodKind === "client_streaming" || method.methodKind === "bidi_streaming") {
    // Clients of gRPC-Web do not stream requests, and base64 of unknown length cannot be charged at once.
    if (isText) throw unimplemented(`method: ${method.name} takes a stream, which gRPC-Web as text cannot send`);
    const open = openRequestOf(req);
    // Not within an event of the connection: Node may still be reading it.
    open?.openBody(() => setImmediate(() => req.destroy()), true);
    open?.chargeBody(maxBytes);
    return { body: streamOf(req), message: undefined };
  }
  const form = jsonCodec && ENVELOPED.exec(req.headers["content-type"] ?? "");
  if (form && req.method === "POST") {
    const codec = form[2]?.toLowerCase() === "json" ? jsonCodec : binaryCodec;
    const encoding = form[1]?.toLowerCase() === "connect" ? "connect-content-encoding" : "grpc-encoding";
    const bytes = await readOnlyMessage(req, maxBytes, encoding, isText, record);
    return { body: toAsyncIterable(codec.isJson ? EMPTY_JSON : EMPTY), message: codec.decode(method.input, bytes) };
  }
  const read = isText ? readBase64 : readRaw;
  // The request of a GET is in its query, the key of caches, so a body must not replace it.
  const bytes = req.method === "POST" && mayHaveBody(req) ? await read(req, maxBytes + PREFIX_BYTES) : new Uint8Array();
  return { body: toAsyncIterable(bytes), message: undefined };
}

const ENVELOPED = /^application\/(connect(?=\+)|grpc|grpc-web|grpc-web-text)(?:\+(json|proto))?(?: *;|$)/i;
/** The envelopes of empty messages. */
const EMPTY = Buffer.alloc(PREFIX_BYTES);
const EMPTY_JSON = Buffer.from([0, 0, 0, 0, 2, ...Buffer.from("{}")]);

/** Node's error codes for a connection that closed within a body. */
const CUT_OFF: ReadonlySet<unknown> = new Set(["ERR_STREAM_PREMATURE_CLOSE", "ECONNRESET"]);

// A handler must not take an aborted stream for a complete one.
async function* streamOf(req: HttpRequest): AsyncGenerator<Uint8Array> {
  try {
    yield* req.iterator({ destroyOnReturn: false });
  } catch (error) {
    throw CUT_OFF.has((error as { readonly code?: unknown }).code) ? callerGone() : error;
  }
  if (!isComplete(req)) throw callerGone();
}

/** Converts bytes to a body of one chunk, or of none if they are empty. */
export async function* toAsyncIterable(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  if (bytes.length > 0) yield bytes;
}
