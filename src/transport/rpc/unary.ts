// Unary calls of Connect and gRPC-Web. Their messages, errors and lists are those of `rpc/grpc`; what differs is how they
// stand in a request and a response of HTTP.
import type { OutgoingHttpHeaders } from "node:http";
import { base64Decode } from "@bufbuild/protobuf/wire";
import { codeToHttpStatus } from "@connectrpc/connect/protocol-connect";
import { PREFIX_BYTES } from "../../codec/frame-scratch.js";
import { deadlineExceeded, invalidRequest, isCallerGone } from "../../kernel/errors.js";
import type { Clock } from "../../kernel/time.js";
import type { AuthenticateCaller } from "../../pipeline/auth/authenticate.js";
import { UnaryCall } from "../../pipeline/call.js";
import type { Invoke } from "../../pipeline/invoke.js";
import { readChunks } from "../../pipeline/list-chunks.js";
import type { UnaryEntry } from "../../pipeline/method-table.js";
import type { RequestRecord } from "../../telemetry/request-record.js";
import { discardRest, mayHaveBody, readRaw } from "../http/body-reader.js";
import {
  addFields,
  BAD_GRPC_TIMEOUT,
  buildErrorTrailers,
  type GrpcTrailers,
  parseConnectTimeout,
  parseGrpcTimeout,
} from "../http/grpc-fields.js";
import { abort, type HttpRequest, type HttpResponse, isGone } from "../http/http-message.js";
import { findTimeLeft, joinField, RequestInbound } from "../http/inbound.js";
import { tooLarge } from "../http/inflate.js";
import type { Limits } from "../http/limits.js";
import { collectList } from "../http/list-pieces.js";
import { openRequestOf } from "../http/open-request.js";
import { noteCaller } from "../http/request-record.js";
import { chargeResponse, endWithPieces, sendComplete, writeHead } from "../http/response-writer.js";
import { formatConnectJson, sendGrpcStatus, sendJson } from "../http/send.js";
import type { ServerSpans } from "../http/server-span.js";
import { createCallErrors } from "./call-error.js";
import type { Compressor } from "./compression.js";
import { COMPRESSED_FLAG, isGzip, sealEnvelope, sealWhole } from "./envelope.js";
import { binaryCodec, type MessageCodec } from "./message-codec.js";
import { inflateMessage, readOnlyMessage } from "./request-body.js";
import { encodeWebText, findWebText, type WebText } from "./web-text.js";

export interface UnaryOptions {
  readonly invoke: Invoke;
  readonly authenticateCaller: AuthenticateCaller;
  readonly clock: Clock;
  readonly errorDomain: string;
  readonly limits: Limits;
  readonly jsonCodec: MessageCodec;
  readonly compressor: Compressor;
  /** Begins the spans of calls, where traces are on. */
  readonly spans?: ServerSpans | undefined;
  readonly onInternalError: (error: unknown, requestId: string) => void;
}

/** A request as far as its method, its path and its content type say what it is. */
interface Request {
  readonly req: HttpRequest;
  readonly res: HttpResponse;
  readonly entry: UnaryEntry;
  readonly record: RequestRecord;
  readonly codec: MessageCodec;
  /** The parameters of a Connect GET. */
  readonly query: URLSearchParams | undefined;
  /** Set for gRPC-Web. */
  readonly web: WebText | undefined;
}

/** A call whose request is complete. */
interface OpenCall extends Request {
  readonly call: UnaryCall;
}

/** Serves unary calls of Connect and gRPC-Web. */
export interface Unary {
  /** Answers, unless the content type is none of the method's. Never throws. */
  handle(req: HttpRequest, res: HttpResponse, entry: UnaryEntry, record: RequestRecord): boolean;
}

const CONNECT_TYPE = /^application\/(?:(json)(?:; ?charset=utf-?8)?|proto)$/i;
const WEB_TYPE = /^application\/grpc-web(?:-text)?(?:\+(?:(json)|proto))?$/;
const TRAILER_FLAG = 0x80;

/** Creates the server of these calls. */
export function createUnary(options: UnaryOptions): Unary {
  const { invoke, authenticateCaller, clock, limits, jsonCodec, compressor, spans } = options;
  const errorOf = createCallErrors(options);

  function open(req: HttpRequest, res: HttpResponse, entry: UnaryEntry, record: RequestRecord): Request | undefined {
    const codecOf = (json: string | undefined) => (json === undefined ? binaryCodec : jsonCodec);
    if (req.method === "GET") {
      const query = new URLSearchParams(req.url?.slice(req.url.indexOf("?") + 1));
      const encoding = query.get("encoding");
      if (encoding !== "json" && encoding !== "proto") return undefined;
      const codec = encoding === "json" ? jsonCodec : binaryCodec;
      return { req, res, entry, record, codec, query, web: undefined };
    }
    const type = req.headers["content-type"] ?? "";
    const connect = CONNECT_TYPE.exec(type);
    if (connect !== null)
      return { req, res, entry, record, codec: codecOf(connect[1]), query: undefined, web: undefined };
    const web = WEB_TYPE.exec(type);
    if (web === null) return undefined;
    return { req, res, entry, record, codec: codecOf(web[1]), query: undefined, web: findWebText(req.headers) };
  }

  async function answer(request: Request): Promise<void> {
    const { req, res, entry, record } = request;
    let call: UnaryCall | undefined;
    try {
      spans?.beginCall(record, req.headers);
      const { method = "", url = "", headers } = req;
      const inbound = new RequestInbound(res, record, {
        ...{ method, url, headers, timeoutMs: findTimeLeft(timeoutOf(request), record) },
        protocol: request.web === undefined ? "connect" : "grpc-web",
        // Errors of gRPC-Web are binary, whatever the codec of messages.
        fieldSpelling: request.web === undefined && request.codec.isJson ? "json" : "proto",
      });
      const opened = new UnaryCall(inbound, entry.desc, clock());
      const authenticated = authenticateCaller(entry, req.headers.authorization, record.trace);
      const principal = authenticated instanceof Promise ? await authenticated : authenticated;
      noteCaller(record, openRequestOf(req), principal);
      const bytes = await readMessage(request);
      call = opened;
      const open = { ...request, call };
      const decode = () => request.codec.decode(entry.desc.input, bytes);
      if (entry.list !== undefined) {
        const chunks = readChunks(invoke, clock, { entry, call, principal, request: decode });
        await answerList(open, chunks);
        return;
      }
      const response = await invoke(entry, call, principal, decode);
      if (isGone(res)) return;
      await (request.web === undefined ? answerConnect(open, response) : answerWeb(open, response));
    } catch (error) {
      fail(request, call, error);
    }
  }

  // Reads the message of a request, decompressed.
  async function readMessage({ req, entry, query, web, record }: Request): Promise<Uint8Array> {
    const { maxRequestBytes: maxBytes } = entry;
    if (query !== undefined) {
      const isEncoded = isGzip("content-encoding", query.get("compression") ?? undefined);
      const bytes = readQueryMessage(query);
      if (bytes.length > maxBytes) throw tooLarge("message", maxBytes);
      return isEncoded ? inflateMessage(req, bytes, maxBytes) : bytes;
    }
    const { headers } = req;
    if (web === undefined) {
      const isEncoded = isGzip("content-encoding", headers["content-encoding"]);
      const bytes = mayHaveBody(req) ? await readRaw(req, maxBytes) : NO_BYTES;
      record.bytesIn ??= bytes.length;
      return isEncoded ? inflateMessage(req, bytes, maxBytes) : bytes;
    }
    return readOnlyMessage(req, maxBytes, "grpc-encoding", web.request, record);
  }

  async function answerConnect({ req, res, entry, call, codec }: OpenCall, response: object): Promise<void> {
    const body = codec.encode(entry.desc.output, response);
    const length = Buffer.byteLength(body);
    const isCompressed = compressor.takes(length, fieldOf(req, "accept-encoding"));
    const headers = connectHeaders(call, codec, isCompressed);
    if (!isCompressed) {
      headers["content-length"] = length;
      sendComplete(res, 200, headers, body);
      return;
    }
    chargeResponse(res, length);
    const message = await compressor.compress(res, { pieces: [Buffer.from(body)], bytes: length });
    headers["content-length"] = message.bytes;
    sendComplete(res, 200, headers, Buffer.concat(message.pieces));
  }

  async function answerWeb(open: OpenCall, response: object): Promise<void> {
    const { req, res, entry, codec } = open;
    const frame = codec.encodeFrame(entry.desc.output, response);
    if (!compressor.takes(frame.length, fieldOf(req, "grpc-accept-encoding"))) {
      sendWeb(open, [frame]);
      return;
    }
    const bytes = frame.length - PREFIX_BYTES;
    chargeResponse(res, bytes);
    const message = await compressor.compress(res, { pieces: [frame.subarray(PREFIX_BYTES)], bytes });
    sendWeb(open, sealEnvelope(COMPRESSED_FLAG, message), true);
  }

  function sendWeb(open: OpenCall, frame: readonly Buffer[], isCompressed = false): void {
    const headers = webHeaders(open, isCompressed);
    const body = Buffer.concat([...encodeFor(open, frame, [encodeTrailers(okTrailers(open))])]);
    headers["content-length"] = body.length;
    sendComplete(open.res, 200, headers, body);
  }

  // A caller of RPC learns how a list failed, so nothing is sent before it is complete.
  async function answerList(open: OpenCall, chunks: AsyncIterable<object>): Promise<void> {
    const { req, res, entry, call, codec, web } = open;
    if (entry.list === undefined) return;
    const plain = await collectList({
      chunks,
      encoder: codec.createListEncoder(entry.desc.output, entry.list),
      maxBytes: limits.responseBytes,
      isGone: () => isGone(res),
      request: openRequestOf(res),
      cutOff: () => abort(res),
    });
    if (isGone(res)) return;
    const accepted = fieldOf(req, web === undefined ? "accept-encoding" : "grpc-accept-encoding");
    const isCompressed = compressor.takes(plain.bytes, accepted);
    const message = isCompressed ? await compressor.compress(res, plain) : plain;
    if (isGone(res)) return;
    if (web === undefined) {
      const headers = connectHeaders(call, codec, isCompressed);
      writeHead(res, 200, { ...headers, "content-length": message.bytes });
      await endWithPieces(res, message.pieces);
    } else {
      const trailers = encodeTrailers(okTrailers(open));
      // The prefix, the trailers, and what base64 adds.
      const added = PREFIX_BYTES + trailers.length;
      chargeResponse(res, added + (web.answer ? Math.ceil((message.bytes + added) / 2) : 0));
      writeHead(res, 200, webHeaders(open, isCompressed));
      const frame = sealEnvelope(isCompressed ? COMPRESSED_FLAG : 0, message);
      await endWithPieces(res, encodeFor(open, frame, [trailers]));
    }
  }

  function fail(request: Request, call: UnaryCall | undefined, cause: unknown): void {
    if (isCallerGone(cause)) return;
    const { req, res, record, web } = request;
    if (isGone(res)) {
      // A stream that was reset closes only when its data were read.
      discardRest(req);
      return;
    }
    if (res.headersSent) {
      // The response cannot be completed.
      errorOf(cause, record);
      abort(res);
      return;
    }
    const { error, headers: more } = errorOf(cause, record);
    const headers: OutgoingHttpHeaders = { ...more };
    if (web === undefined) {
      addFields(headers, error.metadata);
      addConnectFields(headers, call);
      sendJson(res, codeToHttpStatus(error.code), formatConnectJson(error), headers);
    } else if (call === undefined) {
      sendGrpcStatus(res, webType(request), error, headers);
    } else {
      const trailers = { ...addFields({}, call.responseTrailerIfSet), ...buildErrorTrailers(error) };
      const body = Buffer.concat([...encodeFor(request, [encodeTrailers(trailers)])]);
      const fields = { ...webHeaders({ ...request, call }, false), "content-length": body.length };
      sendComplete(res, 200, fields, body);
    }
  }

  return {
    handle(req, res, entry, record) {
      const request = open(req, res, entry, record);
      if (request === undefined) return false;
      void answer(request);
      return true;
    },
  };
}

const NO_BYTES = new Uint8Array();

/**
 * The timeout of a call in milliseconds.
 *
 * @throws ApiError INVALID_ARGUMENT when it is malformed, DEADLINE_EXCEEDED when it is 0
 */
function timeoutOf({ req, web }: Request): number | undefined {
  const name = web === undefined ? "connect-timeout-ms" : "grpc-timeout";
  const text = fieldOf(req, name);
  if (text === undefined) return undefined;
  const isConnect = web === undefined;
  const ms = isConnect ? parseConnectTimeout(text) : parseGrpcTimeout(text);
  if (Number.isNaN(ms)) throw invalidRequest(isConnect ? BAD_CONNECT_TIMEOUT : BAD_GRPC_TIMEOUT);
  if (ms === 0) throw deadlineExceeded();
  return ms;
}

const BAD_CONNECT_TIMEOUT = "connect-timeout-ms must be a whole number of at most ten digits";

function readQueryMessage(query: URLSearchParams): Uint8Array {
  const message = query.get("message") ?? "";
  if (query.get("base64") !== "1") return Buffer.from(message);
  try {
    return base64Decode(message);
  } catch {
    throw invalidRequest("message must be base64");
  }
}

function fieldOf({ headers }: HttpRequest, name: string): string | undefined {
  return joinField(headers[name]);
}

function connectHeaders(call: UnaryCall, { isJson }: MessageCodec, isCompressed: boolean): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = { "content-type": isJson ? "application/json" : "application/proto" };
  if (isCompressed) headers["content-encoding"] = "gzip";
  addConnectFields(headers, call);
  return headers;
}

// Trailers have the prefix `trailer-` (Connect protocol, "Unary-Response").
function addConnectFields(headers: OutgoingHttpHeaders, call: UnaryCall | undefined): void {
  addFields(headers, call?.responseHeaderIfSet);
  addFields(headers, call?.responseTrailerIfSet, "trailer-");
}

function webType({ codec, web }: Request): string {
  return `application/grpc-web${web?.answer === true ? "-text" : ""}+${codec.isJson ? "json" : "proto"}`;
}

function webHeaders(open: OpenCall, isCompressed: boolean): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = { "content-type": webType(open) };
  if (isCompressed) headers["grpc-encoding"] = "gzip";
  return addFields(headers, open.call.responseHeaderIfSet);
}

function okTrailers({ call }: OpenCall): OutgoingHttpHeaders {
  return addFields({ "grpc-status": "0" }, call.responseTrailerIfSet);
}

// The trailers of gRPC-Web are the last message of the body.
function encodeTrailers(trailers: OutgoingHttpHeaders | GrpcTrailers): Buffer {
  const lines = Object.entries(trailers).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((one) => `${name}: ${one}\r\n`),
  );
  const text = Buffer.from(lines.join(""), "latin1");
  return sealWhole(TRAILER_FLAG, text);
}

function* encodeFor({ web }: Request, ...frames: readonly (readonly Buffer[])[]): Iterable<Buffer> {
  for (const frame of frames) yield* web?.answer === true ? encodeWebText(frame) : frame;
}
