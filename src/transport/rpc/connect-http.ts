// Converts Node's requests to those of connect's handlers, and writes their responses. Errors of the library itself get
// the details that all errors have.
import type { OutgoingHttpHeaders } from "node:http";
import type { JsonValue } from "@bufbuild/protobuf";
import { Code, ConnectError, type ContextValues } from "@connectrpc/connect";
import type { UniversalServerRequest, UniversalServerResponse } from "@connectrpc/connect/protocol";
import {
  codeToHttpStatus,
  endStreamFlag,
  errorFromJson,
  errorFromJsonBytes,
  errorToJson,
} from "@connectrpc/connect/protocol-connect";
import { findTrailerError } from "@connectrpc/connect/protocol-grpc";
import { trailerFlag, trailerParse, trailerSerialize } from "@connectrpc/connect/protocol-grpc-web";
import { PREFIX_BYTES } from "../../codec/frame-scratch.js";
import { connectErrorFrom, deadlineExceeded } from "../../kernel/errors.js";
import type { RequestRecord } from "../../telemetry/request-record.js";
import { buildErrorTrailers, encodeGrpcMessage, parseConnectTimeout, parseGrpcTimeout } from "../http/grpc-fields.js";
import { createDisconnectSignal, type HttpRequest, type HttpResponse, isGone } from "../http/http-message.js";
import { findTimeLeft, toWebHeaders } from "../http/inbound.js";
import { chargeResponse, writeCharged, writeHead } from "../http/response-writer.js";
import { formatConnectJson } from "../http/send.js";
import { sealWhole } from "./envelope.js";
import { toAsyncIterable } from "./request-body.js";
import { encodeWebText, toBinaryType, toTextType } from "./web-text.js";

/**
 * Writes a response of connect's handlers with backpressure. Resolves when all is written or the peer has disconnected;
 * the rest of a stream is then cancelled.
 *
 * @param errorDomain the domain of ErrorInfo; without it errors stay as the library wrote them
 * @param isText whether its frames are sent as base64 (gRPC-Web)
 */
export async function writeResponse(
  response: UniversalServerResponse,
  res: HttpResponse,
  errorDomain: string | undefined,
  record: RequestRecord,
  isText = false,
): Promise<void> {
  if (isGone(res)) return;
  const repair = createRepair(errorDomain, record);
  const contentType = response.header?.get("content-type") ?? "";
  const isUnaryError = response.status >= 400 && contentType === "application/json";
  const { status, header, body } = isUnaryError ? await repairUnaryError(response, repair) : response;
  if (isGone(res)) return;
  const web = contentType.startsWith("application/grpc-web");
  const stream = contentType.startsWith("application/connect+");
  const base64 = web && isText;
  if (base64) header?.set("content-type", toTextType(contentType));
  let bytes = 0;
  for await (const chunk of body ?? []) {
    if (isGone(res)) return;
    const frame = web ? repairWebTrailer(chunk, repair) : stream ? repairEndOfStream(chunk, repair) : chunk;
    for (const piece of base64 ? encodeWebText([frame]) : [frame]) {
      bytes += piece.length;
      // When there is no room for the response, there may be for an error.
      chargeResponse(res, piece.length);
      if (!res.headersSent) writeHead(res, status, toNodeHeaders(header));
      await writeCharged(res, piece);
    }
  }
  if (!res.headersSent) writeHead(res, status, toNodeHeaders(header));
  if (response.trailer) {
    repairTrailer(response.trailer, repair);
    res.addTrailers(toNodeHeaders(response.trailer));
  }
  record.bytes = bytes;
  res.end();
}

/** Completes an error that the library wrote; undefined where it stays. */
type Repair = (error: ConnectError) => ConnectError | undefined;

// Errors of the pipeline have ErrorInfo and stay. The others are errors of framing, size and encoding that the library
// found before a handler ran. The forms of the protocols below only read and write the error.
function createRepair(errorDomain: string | undefined, record: RequestRecord): Repair {
  return (error) => {
    record.setFailure(error.code, undefined);
    if (errorDomain === undefined || error.details.length > 0) return undefined;
    const isBug = error.code === Code.Internal && !PROTOCOL_FAULT.test(error.rawMessage);
    const isCallers = isBug && CALLERS_FAULT.test(error.rawMessage);
    const cause = !isBug
      ? error
      : isCallers
        ? new ConnectError(error.rawMessage, Code.InvalidArgument)
        : new Error(error.rawMessage);
    const repaired = connectErrorFrom(cause, errorDomain);
    record.setFailure(repaired.code, undefined);
    return repaired;
  };
}

// INTERNAL is what gRPC and Connect prescribe for these (gRPC compression, "Compression Method Asymmetry").
const PROTOCOL_FAULT = /^received compressed envelope/;

// The library reports these as INTERNAL although they are errors of the caller.
const CALLERS_FAULT = /^parse binary/;

async function repairUnaryError(response: UniversalServerResponse, repair: Repair): Promise<UniversalServerResponse> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of response.body ?? []) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  const same = { ...response, body: toAsyncIterable(bytes) };
  if (response.header?.has("content-encoding")) return same;
  const error = repair(errorFromJsonBytes(bytes, undefined, new ConnectError("", Code.Unknown)));
  if (error === undefined) return same;
  const json = Buffer.from(formatConnectJson(error));
  const header = new Headers(response.header);
  header.set("content-length", String(json.length));
  return { status: codeToHttpStatus(error.code), header, body: toAsyncIterable(json) };
}

// The trailers of gRPC-Web are the last frame of the body. Its clients decode all percent-encoding, so the message may
// stay as the library wrote it.
function repairWebTrailer(frame: Uint8Array, repair: Repair): Uint8Array {
  if (frame[0] !== trailerFlag) return frame;
  const trailer = trailerParse(frame.subarray(PREFIX_BYTES));
  return repairFields(trailer, repair) ? sealWhole(trailerFlag, Buffer.from(trailerSerialize(trailer))) : frame;
}

// The last message of a Connect stream is JSON with the error that ended the stream. A compressed one has details, so
// it is no error of the library itself.
function repairEndOfStream(frame: Uint8Array, repair: Repair): Uint8Array {
  if (frame[0] !== endStreamFlag) return frame;
  const end = JSON.parse(Buffer.from(frame.subarray(PREFIX_BYTES)).toString("utf8")) as { readonly error?: JsonValue };
  if (end.error === undefined) return frame;
  const error = repair(errorFromJson(end.error, undefined, new ConnectError("", Code.Unknown)));
  if (error === undefined) return frame;
  return encodeEndStream(error, end);
}

/** Encodes the last message of a stream of the Connect protocol ("Error End Stream Message"). */
export function encodeEndStream(error: ConnectError, end: object = {}): Buffer {
  return sealWhole(endStreamFlag, Buffer.from(JSON.stringify({ ...end, error: errorToJson(error, undefined) })));
}

// The library escapes more characters than gRPC does; gRPC clients do not decode `:` and `,`.
function repairTrailer(trailer: Headers, repair: Repair): void {
  if (repairFields(trailer, repair)) return;
  const message = trailer.get("grpc-message");
  if (message) trailer.set("grpc-message", encodeGrpcMessage(decodeURIComponent(message)));
}

function repairFields(trailer: Headers, repair: Repair): boolean {
  const found = findTrailerError(trailer);
  const error = found && repair(found);
  if (error === undefined) return false;
  for (const [name, value] of Object.entries(buildErrorTrailers(error))) trailer.set(name, value);
  return true;
}

function toNodeHeaders(header: Headers | undefined): OutgoingHttpHeaders {
  const fields: OutgoingHttpHeaders = {};
  header?.forEach((value, name) => {
    fields[name] = name === "set-cookie" ? header.getSetCookie() : value;
  });
  return fields;
}

const LONGEST_TIMEOUT_MS = 2_147_483_647;
/** What fits into the eight digits of `grpc-timeout`. */
const LONGEST_GRPC_MS = 99_999_999;

/**
 * Converts a request for connect's handlers. Its authority must have been validated.
 *
 * Unlike that of connect-node, it counts timeouts from the arrival of the request and limits them to the maximum of timers,
 * and decodes the text format of gRPC-Web.
 *
 * @throws ApiError DEADLINE_EXCEEDED
 */
export function toUniversalRequest(
  req: HttpRequest,
  res: HttpResponse,
  contextValues: ContextValues,
  body: AsyncIterable<Uint8Array>,
  record: RequestRecord,
): UniversalServerRequest {
  const header = toWebHeaders(req.headers);
  const contentType = header.get("content-type");
  countTimeout(header, contentType?.startsWith("application/grpc") ? "grpc-timeout" : "connect-timeout-ms", record);
  if (contentType !== null) header.set("content-type", toBinaryType(contentType));
  const scheme = "encrypted" in req.socket && req.socket.encrypted ? "https" : "http";
  // A request of HTTP/1.0 may have no Host.
  const authority = req.headers[":authority"] ?? req.headers.host ?? "localhost";
  return {
    httpVersion: req.httpVersion,
    method: req.method ?? "",
    url: `${scheme}://${authority}${req.url}`,
    header,
    body,
    signal: createDisconnectSignal(res),
    contextValues,
  };
}

// The library counts from now on, and reports malformed timeouts.
function countTimeout(header: Headers, name: "grpc-timeout" | "connect-timeout-ms", record: RequestRecord): void {
  const text = header.get(name);
  if (text === null) return;
  const leftMs = findTimeLeft(name === "grpc-timeout" ? parseGrpcTimeout(text) : parseConnectTimeout(text), record);
  if (leftMs === undefined || Number.isNaN(leftMs)) return;
  if (leftMs === 0) throw deadlineExceeded();
  const wholeMs = Math.min(Math.ceil(leftMs), LONGEST_TIMEOUT_MS);
  if (name === "connect-timeout-ms") header.set(name, `${wholeMs}`);
  else header.set(name, wholeMs > LONGEST_GRPC_MS ? `${Math.floor(wholeMs / 1_000)}S` : `${wholeMs}m`);
}
