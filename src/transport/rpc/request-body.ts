// Bodies of calls that connect's handlers answer. Requests in JSON are read as bodies of REST are: the library reads them
// with protobuf-es, which changes or loses some values instead of rejecting them (docs/transcoding.md#json).
import type { DescMethod, Message, Registry } from "@bufbuild/protobuf";
import { hasCustomJsonRepresentation } from "@bufbuild/protobuf/wkt";
import { PREFIX_BYTES } from "../../codec/frame-scratch.js";
import { orInvalidArgument } from "../../codec/json-read-value.js";
import { readMessage } from "../../codec/json-reader.js";
import { callerGone, unimplemented } from "../../kernel/errors.js";
import { parseStrictJson } from "../../kernel/strict-json.js";
import { isComplete } from "../http/body-collector.js";
import { decodeJsonText, mayHaveBody, readBase64, readRaw } from "../http/body-reader.js";
import type { HttpRequest } from "../http/http-message.js";
import { buffersOf } from "../http/request-buffers.js";

/** A request as the library gets it. */
export interface RequestBody {
  /** As it was sent, or that of an empty message where the message has been read here. */
  readonly body: AsyncIterable<Uint8Array>;
  readonly message: Message | undefined;
}

/**
 * Reads the body of a call. One message is read whole, and charged, before the library sees it. Of streams the library
 * holds one message.
 *
 * @param maxBytes how large a message may be.
 * @param registry the types that may stand in an Any; without it the library reads JSON too.
 * @param isText whether the body is base64, as gRPC-Web may send it.
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
    // No client of gRPC-Web streams requests, and base64 of unknown length cannot be charged at once.
    if (isText) throw unimplemented(`method: ${method.name} takes a stream, which gRPC-Web as text cannot send`);
    const buffers = buffersOf(req);
    buffers?.openRequest(() => req.destroy());
    buffers?.chargeRequest(maxBytes);
    return { body: streamOf(req), message: undefined };
  }
  const read = isText ? readBase64 : readRaw;
  // The request of a GET is in its query, by which caches know the answer: a body must not replace it.
  const bytes = req.method === "POST" && mayHaveBody(req) ? await read(req, maxBytes + PREFIX_BYTES) : new Uint8Array();
  return (registry && readJson(method, req, bytes, maxBytes, registry)) ?? { body: once(bytes), message: undefined };
}

/** What Node calls the end of a connection within a body. */
const CUT_OFF: ReadonlySet<unknown> = new Set(["ERR_STREAM_PREMATURE_CLOSE", "ECONNRESET"]);

// A handler must not take a stream that its caller broke off for a whole one.
async function* streamOf(req: HttpRequest): AsyncGenerator<Uint8Array> {
  try {
    yield* req.iterator({ destroyOnReturn: false });
  } catch (error) {
    throw CUT_OFF.has((error as { readonly code?: unknown }).code) ? callerGone() : error;
  }
  if (!isComplete(req)) throw callerGone();
}

/** A body of one piece, or of none where it is empty. */
export async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  if (bytes.length > 0) yield bytes;
}

const ENVELOPED = /^application\/(?:connect|grpc|grpc-web|grpc-web-text)\+json$/;
const EMPTY = Buffer.from("{}");
const EMPTY_ENVELOPE = Buffer.from([0, 0, 0, 0, EMPTY.length, ...EMPTY]);

// Undefined for what is not JSON, is compressed, is too large, or is not framed as it should be. These are the library's.
function readJson(
  { input }: DescMethod,
  req: HttpRequest,
  bytes: Uint8Array,
  maxBytes: number,
  registry: Registry,
): RequestBody | undefined {
  const [given = ""] = (req.headers["content-type"] ?? "").toLowerCase().split(";");
  const type = given.trim();
  const isEnveloped = ENVELOPED.test(type);
  if (!isEnveloped && type !== "application/json") return undefined;
  const isCompressed = (req.headers["content-encoding"] ?? "identity") !== "identity";
  const text = isEnveloped ? unwrap(bytes) : isCompressed ? undefined : bytes;
  // An empty message of such a type is not `{}`.
  if (text === undefined || text.length === 0 || text.length > maxBytes || hasCustomJsonRepresentation(input))
    return undefined;
  const json = parseStrictJson(decodeJsonText(text, undefined), "body");
  const message = orInvalidArgument(() => readMessage(input, json, "", { registry, ignoreUnknown: true }));
  return { body: once(isEnveloped ? EMPTY_ENVELOPE : EMPTY), message };
}

function unwrap(bytes: Uint8Array): Uint8Array | undefined {
  const { buffer, byteOffset, length } = bytes;
  if (length < PREFIX_BYTES || bytes[0] !== 0) return undefined;
  const size = new DataView(buffer, byteOffset, length).getUint32(1);
  return size === length - PREFIX_BYTES ? bytes.subarray(PREFIX_BYTES) : undefined;
}
