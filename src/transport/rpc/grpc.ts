// Unary gRPC calls with binary, uncompressed messages, read from and written to HTTP/2 streams directly, because they
// are most of the traffic. Connect answers all other RPC calls.
import {
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
  sensitiveHeaders,
} from "node:http2";
import { type DescMessage, fromBinary, type Message } from "@bufbuild/protobuf";
import { PREFIX_BYTES } from "../../codec/frame-scratch.js";
import { encodeFrame } from "../../codec/frame-writer.js";
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
import { buildErrorTrailers, isProtocolField, parseGrpcTimeout } from "../http/grpc-fields.js";
import { resetStream, resetUnreadRequest } from "../http/http2-end.js";
import { findTimeLeft, StreamInbound } from "../http/inbound.js";
import type { Limits } from "../http/limits.js";
import { openRequestOf } from "../http/open-request.js";
import { chargeResponse, endWithBackpressure, writeCharged } from "../http/response-writer.js";
import type { ServerSpans } from "../http/server-span.js";
import { createFrameCompressor } from "./compression.js";
import { readMessage } from "./grpc-body.js";
import type { ListFrame, ListFrames } from "./list-frame.js";

export interface GrpcUnaryOptions {
  readonly methods: MethodTable;
  readonly invoke: Invoke;
  readonly authenticateCaller: AuthenticateCaller;
  readonly clock: Clock;
  readonly errorDomain: string;
  readonly limits: Limits;
  readonly listFrames: ListFrames;
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
  readonly frame: Buffer | ListFrame;
  readonly isCompressed: boolean;
  readonly record: RequestRecord;
}

const CONTENT_TYPE = "application/grpc+proto";
const OK_TRAILERS: OutgoingHttpHeaders = { "grpc-status": "0" };
const JSON_TYPE = /^application\/grpc\+json(?:;|$)/i;
/** Fields that differ in every response: in the dynamic table of HPACK they would evict others. */
const NEVER_INDEXED = ["x-request-id"];
const TRAILERS_FOLLOW = { waitForTrailers: true, sendDate: false };
const TRAILERS_ONLY = { endStream: true, sendDate: false };

/** Creates the server of unary gRPC calls. */
export function createGrpcUnary(options: GrpcUnaryOptions): GrpcUnary {
  const { invoke, authenticateCaller, clock, limits, listFrames, onInternalError, spans } = options;
  const compressor = createFrameCompressor(limits);
  const unary = new Map<string, UnaryEntry>();
  // Mounted methods go through connect, which handles unknown fields and encoding errors as their authors expect.
  for (const [path, entry] of options.methods) if (entry.kind === "unary" && !entry.mounted) unary.set(path, entry);

  function trailersOf(error: unknown, record: RequestRecord): OutgoingHttpHeaders {
    const { requestId } = record;
    const answer = answerError(error, options.errorDomain, ({ cause }) => onInternalError(cause ?? error, requestId));
    record.setFailure(answer.code, rejectReasonOf(error));
    return buildErrorTrailers(answer);
  }

  function reject(stream: ServerHttp2Stream, error: unknown, record: RequestRecord, requestType = ""): void {
    const contentType = JSON_TYPE.test(requestType) ? "application/grpc+json" : CONTENT_TYPE;
    const headers = {
      ":status": 200,
      "content-type": contentType,
      "x-request-id": record.requestId,
      ...trailersOf(error, record),
    };
    sendRejection({ stream, headers, trailers: undefined });
  }

  // Sends the headers and trailers that the handler set before it failed. Without headers, one frame is enough.
  function fail(stream: ServerHttp2Stream, call: UnaryCall, error: unknown, record: RequestRecord): void {
    const { responseHeaderIfSet: header, responseTrailerIfSet: trailer } = call;
    const status = trailersOf(error, record);
    const headers = okHeaders(record);
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
    principal: Principal | undefined,
    bytes: Uint8Array,
    record: RequestRecord,
  ): Promise<void> {
    try {
      const decode = () => requestOf(entry.desc.input, bytes);
      if (entry.list !== undefined) {
        const chunks = readChunks(invoke, clock, { entry, call, principal, request: decode });
        const isGone = () => isStreamGone(stream);
        const cutOff = () => resetStream(stream, constants.NGHTTP2_CANCEL);
        const list = { output: entry.desc.output, chunks, isGone, request: openRequestOf(stream), cutOff };
        const frame = await listFrames(list);
        if (isStreamGone(stream)) return;
        if (compressor.takes(frame.bytes, call.inbound)) await answerCompressed(stream, call, frame, record);
        else answer(stream, call, frame, frame.bytes, record);
        return;
      }
      const response = await invoke(entry, call, principal, decode);
      if (isStreamGone(stream)) return;
      const frame = encodeFrame(entry.desc.output, response);
      const { length } = frame;
      chargeResponse(stream, length);
      if (compressor.takes(length, call.inbound))
        await answerCompressed(stream, call, { pieces: [frame], bytes: length }, record);
      else answer(stream, call, frame, length, record);
    } catch (error) {
      if (isCallerGone(error)) return;
      fail(stream, call, error, record);
    }
  }

  async function answerCompressed(
    stream: ServerHttp2Stream,
    call: UnaryCall,
    plain: ListFrame,
    record: RequestRecord,
  ): Promise<void> {
    const frame = await compressor.compress(stream, plain);
    if (!isStreamGone(stream)) answer(stream, call, frame, frame.bytes, record, true);
  }

  function read(
    stream: ServerHttp2Stream,
    entry: UnaryEntry,
    call: UnaryCall,
    principal: Principal | undefined,
    record: RequestRecord,
  ): void {
    if (principal !== undefined) {
      record.setCaller(principal.identityUid);
      const request = openRequestOf(stream);
      if (request !== undefined) request.callerUid = principal.identityUid;
    }
    readMessage(stream, entry.maxRequestBytes, limits.requestMs, {
      onMessage: (bytes) => {
        record.bytesIn = PREFIX_BYTES + bytes.length;
        void run(stream, entry, call, principal, bytes, record);
      },
      onFault: (error) => reject(stream, error, record),
    });
  }

  function answer(
    stream: ServerHttp2Stream,
    call: UnaryCall,
    frame: Buffer | ListFrame,
    bytes: number,
    record: RequestRecord,
    isCompressed = false,
  ): void {
    record.bytes = bytes;
    sendResponse({ reject, onInternalError, stream, call, frame, isCompressed, record });
  }

  return {
    entryOf: (path) => unary.get(path),
    reject,
    handle(stream, headers, entry, record) {
      const timeout = headers["grpc-timeout"];
      const timeoutMs = timeout === undefined ? undefined : parseGrpcTimeout(String(timeout));
      if (timeoutMs !== undefined && !(timeoutMs > 0)) {
        reject(stream, timeoutMs === 0 ? deadlineExceeded() : invalidRequest(BAD_TIMEOUT), record);
        return;
      }
      const inbound = new StreamInbound(stream, headers, findTimeLeft(timeoutMs, record), record);
      const call = new UnaryCall(inbound, entry.desc, clock());
      spans?.beginCall(record, headers);
      try {
        const authenticated = authenticateCaller(entry, headers.authorization, record.trace);
        if (authenticated instanceof Promise)
          authenticated.then(
            (principal) => read(stream, entry, call, principal, record),
            (error) => reject(stream, error, record),
          );
        else read(stream, entry, call, authenticated, record);
      } catch (error) {
        reject(stream, error, record);
      }
    },
  };
}

function okHeaders({ requestId }: RequestRecord): OutgoingHttpHeaders {
  return { ":status": 200, "content-type": CONTENT_TYPE, "x-request-id": requestId, [sensitiveHeaders]: NEVER_INDEXED };
}

function isStreamGone(stream: ServerHttp2Stream): boolean {
  return stream.destroyed || stream.closed;
}

function requestOf(input: DescMessage, bytes: Uint8Array): Message {
  try {
    return fromBinary(input, bytes, KNOWN_FIELDS);
  } catch {
    throw invalidRequest(`the message is no ${input.typeName}`);
  }
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
  ({ stream, call, frame, isCompressed, record }) => {
    if (isStreamGone(stream)) return;
    const header = call.responseHeaderIfSet;
    const trailer = call.responseTrailerIfSet;
    if (trailer === undefined) stream.on("wantTrailers", sendOkTrailers);
    else stream.on("wantTrailers", () => sendTrailers(stream, addFields(OK_TRAILERS, trailer)));
    const headers = okHeaders(record);
    if (isCompressed) headers["grpc-encoding"] = "gzip";
    stream.respond(header === undefined ? headers : addFields(headers, header), TRAILERS_FOLLOW);
    if ("pieces" in frame) void writeList(stream, frame);
    else endWithBackpressure(stream, frame);
  },
  (error, { stream, reject, onInternalError, record }) => {
    if (!stream.headersSent) {
      reject(stream, error, record);
      return;
    }
    onInternalError(error, record.requestId);
    resetStream(stream, constants.NGHTTP2_INTERNAL_ERROR);
  },
);

async function writeList(stream: ServerHttp2Stream, { pieces }: ListFrame): Promise<void> {
  for (const piece of pieces) await writeCharged(stream, piece);
  if (!isStreamGone(stream)) stream.end();
}

// Handlers need no unknown fields, which would take memory as long as the message lives.
const KNOWN_FIELDS = { readUnknownFields: false };

const BAD_TIMEOUT = "grpc-timeout must be one to eight digits and one of H, M, S, m, u, n";

function sendOkTrailers(this: ServerHttp2Stream): void {
  sendTrailers(this, OK_TRAILERS);
}

function sendTrailers(stream: ServerHttp2Stream, trailers: OutgoingHttpHeaders): void {
  if (!isStreamGone(stream)) stream.sendTrailers(trailers);
}

function addFields(base: OutgoingHttpHeaders, fields: Headers): OutgoingHttpHeaders {
  const merged = { ...base };
  fields.forEach((value, name) => {
    if (!isProtocolField(name) && name !== "x-request-id") merged[name] = value;
  });
  return merged;
}
