// Unary gRPC calls, read from and written to HTTP/2 streams directly, because they are most of the traffic.
import {
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
  sensitiveHeaders,
} from "node:http2";
import { PREFIX_BYTES } from "../../codec/frame-scratch.js";
import { answerError, deadlineExceeded, invalidRequest, isCallerGone, rejectReasonOf } from "../../kernel/errors.js";
import type { Principal } from "../../kernel/principal.js";
import type { Clock } from "../../kernel/time.js";
import type { AuthenticateCaller } from "../../pipeline/auth/authenticate.js";
import { UnaryCall } from "../../pipeline/call.js";
import type { Invoke } from "../../pipeline/invoke.js";
import { readChunks } from "../../pipeline/list-chunks.js";
import type { MethodTable, UnaryEntry } from "../../pipeline/method-table.js";
import type { RequestRecord } from "../../telemetry/request-record.js";
import { createDeferral } from "../http/deferral.js";
import { addFields, BAD_GRPC_TIMEOUT, buildErrorTrailers, parseGrpcTimeout } from "../http/grpc-fields.js";
import { HttpError } from "../http/http-message.js";
import { resetStream, resetUnreadRequest } from "../http/http2-end.js";
import { findTimeLeft, StreamInbound } from "../http/inbound.js";
import { inflate } from "../http/inflate.js";
import type { Limits } from "../http/limits.js";
import { collectList, type Pieces } from "../http/list-pieces.js";
import { openRequestOf } from "../http/open-request.js";
import { chargeResponse, endWithBackpressure, writeCharged } from "../http/response-writer.js";
import type { ServerSpans } from "../http/server-span.js";
import type { Compressor } from "./compression.js";
import { COMPRESSED_FLAG, isGzip, type SentMessage, sealEnvelope } from "./envelope.js";
import { readMessage } from "./grpc-body.js";
import { binaryCodec, type MessageCodec } from "./message-codec.js";

export interface GrpcUnaryOptions {
  readonly methods: MethodTable;
  readonly invoke: Invoke;
  readonly authenticateCaller: AuthenticateCaller;
  readonly clock: Clock;
  readonly errorDomain: string;
  readonly limits: Limits;
  readonly jsonCodec: MessageCodec;
  readonly compressor: Compressor;
  /** Begins the spans of calls, where traces are on. */
  readonly spans?: ServerSpans | undefined;
  /** Called when a response cannot be encoded, which is a bug in its handler. */
  readonly onInternalError: (error: unknown, requestId: string) => void;
}

/** Serves unary gRPC calls on raw HTTP/2 streams. */
export interface GrpcUnary {
  /** The unary method under an RPC path, if there is one. */
  entryOf(path: string): UnaryEntry | undefined;

  /** Reads the request, calls the method and answers. Never throws; does nothing if the peer has closed the stream. */
  handle(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, entry: UnaryEntry, record: RequestRecord): void;

  /** Answers without reading the request, with the content type of the request. */
  reject(stream: ServerHttp2Stream, error: unknown, record: RequestRecord, contentType?: string): void;
}

interface Answer {
  readonly reject: GrpcUnary["reject"];
  readonly onInternalError: (error: unknown, requestId: string) => void;
  readonly stream: ServerHttp2Stream;
  readonly call: UnaryCall;
  readonly codec: MessageCodec;
  readonly frame: Buffer | readonly Buffer[];
  readonly isCompressed: boolean;
  readonly record: RequestRecord;
}

const BINARY_TYPE = "application/grpc+proto";
const TYPE_OF_JSON = "application/grpc+json";
const OK_TRAILERS: OutgoingHttpHeaders = { "grpc-status": "0" };
/** Fields that differ in every response: in the dynamic table of HPACK they would evict others. */
const NEVER_INDEXED = ["x-request-id"];
const TRAILERS_FOLLOW = { waitForTrailers: true, sendDate: false };
const TRAILERS_ONLY = { endStream: true, sendDate: false };

/** Creates the server of unary gRPC calls. */
export function createGrpcUnary(options: GrpcUnaryOptions): GrpcUnary {
  const { invoke, authenticateCaller, clock, limits, jsonCodec, compressor, onInternalError, spans } = options;
  const unary = new Map<string, UnaryEntry>();
  // Mounted methods go through connect, which handles unknown fields and encoding errors as their authors expect.
  for (const [path, entry] of options.methods) if (entry.kind === "unary" && !entry.mounted) unary.set(path, entry);

  function trailersOf(error: unknown, record: RequestRecord): OutgoingHttpHeaders {
    const { requestId } = record;
    const answer = answerError(error, options.errorDomain, ({ cause }) => onInternalError(cause ?? error, requestId));
    record.setFailure(answer.code, rejectReasonOf(error));
    return buildErrorTrailers(answer);
  }

  function reject(stream: ServerHttp2Stream, cause: unknown, record: RequestRecord, requestType = ""): void {
    const fault = cause instanceof HttpError ? cause : undefined;
    const headers = {
      ":status": 200,
      "content-type": requestType === TYPE_OF_JSON ? TYPE_OF_JSON : BINARY_TYPE,
      "x-request-id": record.requestId,
      ...fault?.headers,
      ...trailersOf(fault?.error ?? cause, record),
    };
    sendRejection({ stream, headers, trailers: undefined });
  }

  // Sends the headers and trailers that the handler set before it failed. Without headers, one frame is enough.
  function fail(
    stream: ServerHttp2Stream,
    call: UnaryCall,
    codec: MessageCodec,
    error: unknown,
    record: RequestRecord,
  ): void {
    const { responseHeaderIfSet: header, responseTrailerIfSet: trailer } = call;
    const status = trailersOf(error, record);
    const headers = okHeaders(record, codec);
    const trailers = trailer === undefined ? status : { ...addFields({}, trailer), ...status };
    sendRejection(
      header === undefined
        ? { stream, headers: { ...trailers, ...headers }, trailers: undefined }
        : { stream, headers: addFields(headers, header), trailers },
    );
  }

  async function run(
    stream: ServerHttp2Stream,
    entry: UnaryEntry,
    call: UnaryCall,
    codec: MessageCodec,
    principal: Principal | undefined,
    sent: SentMessage,
    record: RequestRecord,
  ): Promise<void> {
    try {
      const bytes = sent.isCompressed
        ? await inflate("message", "gzip", sent.bytes, entry.maxRequestBytes, (most) =>
            openRequestOf(stream)?.chargeBody(most),
          )
        : sent.bytes;
      const { input, output } = entry.desc;
      const decode = () => codec.decode(input, bytes);
      if (entry.list !== undefined) {
        const message = await collectList({
          chunks: readChunks(invoke, clock, { entry, call, principal, request: decode }),
          encoder: codec.createListEncoder(output, entry.list),
          maxBytes: limits.responseBytes,
          isGone: () => isStreamGone(stream),
          request: openRequestOf(stream),
          cutOff: () => resetStream(stream, constants.NGHTTP2_CANCEL),
        });
        if (!isStreamGone(stream)) await answerPieces(stream, call, codec, message, record);
        return;
      }
      const response = await invoke(entry, call, principal, decode);
      if (isStreamGone(stream)) return;
      const frame = codec.encodeFrame(output, response);
      const { length } = frame;
      chargeResponse(stream, length);
      if (compressor.takes(length, call.inbound.header("grpc-accept-encoding"))) {
        const pieces = [frame.subarray(PREFIX_BYTES)];
        await answerPieces(stream, call, codec, { pieces, bytes: length - PREFIX_BYTES }, record);
      } else answer({ reject, onInternalError, stream, call, codec, frame, isCompressed: false, record }, length);
    } catch (error) {
      if (isCallerGone(error)) return;
      fail(stream, call, codec, error, record);
    }
  }

  // Answers with a message whose bytes were charged.
  async function answerPieces(
    stream: ServerHttp2Stream,
    call: UnaryCall,
    codec: MessageCodec,
    plain: Pieces,
    record: RequestRecord,
  ): Promise<void> {
    const isCompressed = compressor.takes(plain.bytes, call.inbound.header("grpc-accept-encoding"));
    const message = isCompressed ? await compressor.compress(stream, plain) : plain;
    if (isStreamGone(stream)) return;
    chargeResponse(stream, PREFIX_BYTES);
    const frame = sealEnvelope(isCompressed ? COMPRESSED_FLAG : 0, message);
    answer({ reject, onInternalError, stream, call, codec, frame, isCompressed, record }, PREFIX_BYTES + message.bytes);
  }

  function read(
    stream: ServerHttp2Stream,
    entry: UnaryEntry,
    call: UnaryCall,
    codec: MessageCodec,
    principal: Principal | undefined,
    record: RequestRecord,
  ): void {
    if (principal !== undefined) {
      record.setCaller(principal.identityUid);
      const request = openRequestOf(stream);
      if (request !== undefined) request.callerUid = principal.identityUid;
    }
    const isEncoded = isGzip("grpc-encoding", call.inbound.header("grpc-encoding"));
    readMessage(stream, { maxBytes: entry.maxRequestBytes, isEncoded }, limits.requestMs, {
      onMessage: (message) => {
        record.bytesIn = PREFIX_BYTES + message.bytes.length;
        void run(stream, entry, call, codec, principal, message, record);
      },
      onFault: (error) => reject(stream, error, record, typeOf(codec)),
    });
  }

  function answer(made: Answer, bytes: number): void {
    made.record.bytes = bytes;
    sendResponse(made);
  }

  return {
    entryOf: (path) => unary.get(path),
    reject,
    handle(stream, headers, entry, record) {
      const type = headers["content-type"];
      const timeout = headers["grpc-timeout"];
      const timeoutMs = timeout === undefined ? undefined : parseGrpcTimeout(String(timeout));
      if (timeoutMs !== undefined && !(timeoutMs > 0)) {
        reject(stream, timeoutMs === 0 ? deadlineExceeded() : invalidRequest(BAD_GRPC_TIMEOUT), record, type);
        return;
      }
      const codec = type === TYPE_OF_JSON ? jsonCodec : binaryCodec;
      const call = new UnaryCall(
        new StreamInbound(stream, headers, findTimeLeft(timeoutMs, record), record),
        entry.desc,
        clock(),
      );
      spans?.beginCall(record, headers);
      const proceed = (principal: Principal | undefined) => read(stream, entry, call, codec, principal, record);
      try {
        const authenticated = authenticateCaller(entry, headers.authorization, record.trace);
        if (authenticated instanceof Promise)
          authenticated.then(proceed).catch((error) => reject(stream, error, record, type));
        else proceed(authenticated);
      } catch (error) {
        reject(stream, error, record, type);
      }
    },
  };
}

function typeOf({ isJson }: MessageCodec): string {
  return isJson ? TYPE_OF_JSON : BINARY_TYPE;
}

function okHeaders({ requestId }: RequestRecord, codec: MessageCodec): OutgoingHttpHeaders {
  return {
    ":status": 200,
    "content-type": typeOf(codec),
    "x-request-id": requestId,
    [sensitiveHeaders]: NEVER_INDEXED,
  };
}

function isStreamGone(stream: ServerHttp2Stream): boolean {
  return stream.destroyed || stream.closed;
}

interface GrpcRejection {
  readonly stream: ServerHttp2Stream;
  readonly headers: OutgoingHttpHeaders;
  /** Unless given, they are in the headers (Trailers-Only). */
  readonly trailers: OutgoingHttpHeaders | undefined;
}

const sendRejection = createDeferral<GrpcRejection>(
  ({ stream, headers, trailers }) => {
    if (isStreamGone(stream) || stream.headersSent) return;
    if (trailers !== undefined) {
      stream.on("wantTrailers", () => sendTrailers(stream, trailers));
      stream.respond(headers, TRAILERS_FOLLOW);
      stream.end();
      return;
    }
    stream.respond(headers, TRAILERS_ONLY);
    // The rest of the request is not read.
    if (!stream.readableEnded) resetUnreadRequest(stream);
  },
  (_error, { stream }) => resetStream(stream, constants.NGHTTP2_INTERNAL_ERROR),
);

const sendResponse = createDeferral<Answer>(
  ({ stream, call, codec, frame, isCompressed, record }) => {
    if (isStreamGone(stream)) return;
    const header = call.responseHeaderIfSet;
    const trailer = call.responseTrailerIfSet;
    if (trailer === undefined) stream.on("wantTrailers", sendOkTrailers);
    else stream.on("wantTrailers", () => sendTrailers(stream, addFields({ ...OK_TRAILERS }, trailer)));
    const headers = okHeaders(record, codec);
    if (isCompressed) headers["grpc-encoding"] = "gzip";
    stream.respond(header === undefined ? headers : addFields(headers, header), TRAILERS_FOLLOW);
    if (Buffer.isBuffer(frame)) endWithBackpressure(stream, frame);
    else void writePieces(stream, frame);
  },
  (error, { stream, codec, reject, onInternalError, record }) => {
    if (!stream.headersSent) {
      reject(stream, error, record, typeOf(codec));
      return;
    }
    onInternalError(error, record.requestId);
    resetStream(stream, constants.NGHTTP2_INTERNAL_ERROR);
  },
);

async function writePieces(stream: ServerHttp2Stream, pieces: readonly Buffer[]): Promise<void> {
  for (const piece of pieces) await writeCharged(stream, piece);
  if (!isStreamGone(stream)) stream.end();
}

function sendOkTrailers(this: ServerHttp2Stream): void {
  sendTrailers(this, OK_TRAILERS);
}

function sendTrailers(stream: ServerHttp2Stream, trailers: OutgoingHttpHeaders): void {
  if (!isStreamGone(stream)) stream.sendTrailers(trailers);
}
