// Reads the bodies of calls that connect's handlers answer. Requests of streams in JSON are decoded as those of REST are:
// protobuf-es, which the library uses, changes or loses some values instead of rejecting them
// (docs/transcoding.md#json).
import type { DescMethod, Message, Registry } from "@bufbuild/protobuf";
import { hasCustomJsonRepresentation } from "@bufbuild/protobuf/wkt";
import { PREFIX_BYTES } from "../../codec/frame-scratch.js";
import { readOrReject } from "../../codec/json-read-value.js";
import { readMessage } from "../../codec/json-reader.js";
import { callerGone, unimplemented } from "../../kernel/errors.js";
import { parseStrictJson } from "../../kernel/strict-json.js";
import { isComplete } from "../http/body-collector.js";
import { decodeJsonText, mayHaveBody, readBase64, readRaw } from "../http/body-reader.js";
import type { HttpRequest } from "../http/http-message.js";
import { openRequestOf } from "../http/open-request.js";

/** A request for the library. */
export interface RequestBody {
  /** As it was sent, or that of an empty message if the message was decoded here. */
  readonly body: AsyncIterable<Uint8Array>;
  readonly message: Message | undefined;
}

/**
 * Reads the body of a call. A single message is read and charged before the library gets it. For streams, the library
 * buffers one message at a time.
 *
 * @param maxBytes the largest message
 * @param registry the types that an Any may contain; without it the library decodes JSON
 * @param isText whether the body is base64 (gRPC-Web)
 * @throws HttpError 413; ApiError INVALID_ARGUMENT naming the field that is wrong, UNIMPLEMENTED, RESOURCE_EXHAUSTED;
 * the error of {@link callerGone}.
 */
export async function readRequest(
  method: DescMethod,
  maxBytes: number,
  req: HttpRequest,
  registry: Registry | undefined,
  isText = false,
): Promise<RequestBody> {
  if (method.methodKind === "client_streaming" || method.methodKind === "bidi_streaming") {
    // Clients of gRPC-Web do not stream requests, and base64 of unknown length cannot be charged at once.
    if (isText) throw unimplemented(`method: ${method.name} takes a stream, which gRPC-Web as text cannot send`);
    const open = openRequestOf(req);
    open?.openBody(() => req.destroy(), true);
    open?.chargeBody(maxBytes);
    return { body: streamOf(req), message: undefined };
  }
  const read = isText ? readBase64 : readRaw;
  // The request of a GET is in its query, the key of caches, so a body must not replace it.
  const bytes = req.method === "POST" && mayHaveBody(req) ? await read(req, maxBytes + PREFIX_BYTES) : new Uint8Array();
  return (
    (registry && readJson(method, req, bytes, maxBytes, registry)) ?? {
      body: toAsyncIterable(bytes),
      message: undefined,
    }
  );
}

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

const JSON_STREAM = /^application\/(?:connect|grpc|grpc-web|grpc-web-text)\+json$/;
const EMPTY = Buffer.from([0, 0, 0, 0, 2, ...Buffer.from("{}")]);

// Undefined if the body is not JSON, is compressed, too large or not framed correctly. The library answers these.
function readJson(
  { input }: DescMethod,
  req: HttpRequest,
  bytes: Uint8Array,
  maxBytes: number,
  registry: Registry,
): RequestBody | undefined {
  const [type = ""] = (req.headers["content-type"] ?? "").toLowerCase().split(";");
  if (!JSON_STREAM.test(type.trim())) return undefined;
  const text = unwrap(bytes);
  // The JSON of an empty message of such a type is not `{}`.
  if (text === undefined || text.length === 0 || text.length > maxBytes || hasCustomJsonRepresentation(input))
    return undefined;
  const json = parseStrictJson(decodeJsonText(text, undefined), "body");
  const message = readOrReject(() => readMessage(input, json, "", { registry, ignoreUnknown: true }));
  return { body: toAsyncIterable(EMPTY), message };
}

function unwrap(bytes: Uint8Array): Uint8Array | undefined {
  const { buffer, byteOffset, length } = bytes;
  if (length < PREFIX_BYTES || bytes[0] !== 0) return undefined;
  const size = new DataView(buffer, byteOffset, length).getUint32(1);
  return size === length - PREFIX_BYTES ? bytes.subarray(PREFIX_BYTES) : undefined;
}
