// Unary gRPC calls, read from and written to HTTP/2 streams directly, because they are most of the traffic.
import {
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
  sensitiveHeaders,
} from "node:http2";
import { PREFIX_BYTES } from "../../codec/frame-scratch.js";
import { type ApiError, deadlineExceeded, invalidRequest, isCallerGone } from "../../kernel/errors.js";
import type { Principal } from "../../kernel/principal.js";
import type { Clock } from "../../kernel/time.js";
import type { AuthenticateCaller } from "../../pipeline/auth/authenticate.js";
import { UnaryCall } from "../../pipeline/call.js";
import type { Invoke } from "../../pipeline/invoke.js";
import { readChunks } from "../../pipeline/list-chunks.js";
import type { MethodTable, UnaryEntry } from "../../pipeline/method-table.js";
import type { RequestRecord } from "../../telemetry/request-record.js";
import { collectBody } from "../http/body-collector.js";
import { createDeferral } from "../http/deferral.js";
import { addFields, BAD_GRPC_TIMEOUT, buildErrorTrailers, parseGrpcTimeout } from "../http/grpc-fields.js";
import { isGone } from "../http/http-message.js";
import { resetStream, resetUnreadRequest } from "../http/http2-end.js";
import { findTimeLeft, RequestInbound } from "../http/inbound.js";
import { inflate } from "../http/inflate.js";
import type { Limits } from "../http/limits.js";
import { collectList, type Pieces } from "../http/list-pieces.js";
import { openRequestOf } from "../http/open-request.js";
import { noteCaller } from "../http/request-record.js";
import { chargeResponse, endWithBackpressure, endWithPieces } from "../http/response-writer.js";
import type { ServerSpans } from "../http/server-span.js";
import { createCallErrors } from "./call-error.js";
import type { Compressor } from "./compression.js";
import {
  COMPRESSED_FLAG,
  type EnvelopeRules,
  findEnvelopeFault,
  isGzip,
  notOne,
  openEnvelope,
  readEnvelopeLength,
  sealEnvelope,
} from "./envelope.js";
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

  const errorOf = createCallErrors(options);

  function reject(stream: ServerHttp2Stream, cause: unknown, record: RequestRecord, requestType = ""): void {
    const { error, headers: more } = errorOf(cause, record);
    const headers = {
      ":status": 200,
      "content-type": requestType === TYPE_OF_JSON ? TYPE_OF_JSON : BINARY_TYPE,
      "x-request-id": record.requestId,
      ...more,
      ...buildErrorTrailers(error),
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
    const status = buildErrorTrailers(errorOf(error, record).error);
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
    sent: Buffer,
    rules: EnvelopeRules,
    record: RequestRecord,
  ): Promise<void> {
    try {
      const opened = openEnvelope(sent, rules);
      const bytes = opened.isCompressed
        ? await inflate("message", "gzip", opened.bytes, rules.maxBytes, (most) =>
            openRequestOf(stream)?.chargeBody(most),
          )
        : opened.bytes;
      const { input, output } = entry.desc;
      const decode = () => codec.decode(input, bytes);
      if (entry.list !== undefined) {
        const message = await collectList({
          chunks: readChunks(invoke, clock, { entry, call, principal, request: decode }),
          encoder: codec.createListEncoder(output, entry.list),
          maxBytes: limits.responseBytes,
          isGone: () => isGone(stream),
          request: openRequestOf(stream),
          cutOff: () => resetStream(stream, constants.NGHTTP2_CANCEL),
        });
        if (!isGone(stream)) await answerPieces(stream, call, codec, message, record);
        return;
      }
      const response = await invoke(entry, call, principal, decode);
      if (isGone(stream)) return;
      const frame = codec.encodeFrame(output, response);
      const { length } = frame;
      chargeResponse(stream, length);
      if (compressor.takes(length, call.inbound.header("grpc-accept-encoding"))) {
        const pieces = [frame.subarray(PREFIX_BYTES)];
        await answerPieces(stream, call, codec, { pieces, bytes: length - PREFIX_BYTES }, record);
      } else {
        record.bytes = length;
        sendResponse({ reject, onInternalError, stream, call, codec, frame, isCompressed: false, record });
      }
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
    if (isGone(stream)) return;
    chargeResponse(stream, PREFIX_BYTES);
    const frame = sealEnvelope(isCompressed ? COMPRESSED_FLAG : 0, message);
    sendResponse({ reject, onInternalError, stream, call, codec, frame, isCompressed, record });
  }

  function read(
    stream: ServerHttp2Stream,
    entry: UnaryEntry,
    call: UnaryCall,
    codec: MessageCodec,
    principal: Principal | undefined,
    record: RequestRecord,
  ): void {
    noteCaller(record, openRequestOf(stream), principal);
    const isEncoded = isGzip("grpc-encoding", call.inbound.header("grpc-encoding"));
    const rules = { maxBytes: entry.maxRequestBytes, isEncoded };
    const onFault = (error: ApiError) => reject(stream, error, record, typeOf(codec));
    // A message that breaks the rules is rejected when its prefix arrives. Nothing is answered when the peer resets the
    // stream first.
    collectBody(stream, {
      maxBytes: PREFIX_BYTES + rules.maxBytes,
      timeoutMs: limits.requestMs,
      readAnnouncedLength: readEnvelopeLength,
      check: (arrived) => findEnvelopeFault(arrived, rules),
      onBody(body) {
        record.bytesIn = body.length;
        void run(stream, entry, call, codec, principal, body, rules, record);
      },
      // The prefix was checked, so more bytes arrived than it announced.
      onTooLarge: () => onFault(notOne()),
      onFault,
    });
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
      const inbound = new RequestInbound(stream, record, {
        ...{ protocol: "grpc", fieldSpelling: "proto", method: "POST", url: headers[":path"] ?? "", headers },
        timeoutMs: findTimeLeft(timeoutMs, record),
      });
      const call = new UnaryCall(inbound, entry.desc, clock());
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

interface GrpcRejection {
  readonly stream: ServerHttp2Stream;
  readonly headers: OutgoingHttpHeaders;
  /** Unless given, they are in the headers (Trailers-Only). */
  readonly trailers: OutgoingHttpHeaders | undefined;
}

const sendRejection = createDeferral<GrpcRejection>(
  ({ stream, headers, trailers }) => {
    if (isGone(stream) || stream.headersSent) return;
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
    if (isGone(stream)) return;
    const header = call.responseHeaderIfSet;
    const trailer = call.responseTrailerIfSet;
    if (trailer === undefined) stream.on("wantTrailers", sendOkTrailers);
    else stream.on("wantTrailers", () => sendTrailers(stream, addFields({ ...OK_TRAILERS }, trailer)));
    const headers = okHeaders(record, codec);
    if (isCompressed) headers["grpc-encoding"] = "gzip";
    stream.respond(header === undefined ? headers : addFields(headers, header), TRAILERS_FOLLOW);
    if (Buffer.isBuffer(frame)) endWithBackpressure(stream, frame);
    else void endWithPieces(stream, frame);
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

function sendOkTrailers(this: ServerHttp2Stream): void {
  sendTrailers(this, OK_TRAILERS);
}

function sendTrailers(stream: ServerHttp2Stream, trailers: OutgoingHttpHeaders): void {
  if (!isGone(stream)) stream.sendTrailers(trailers);
}
