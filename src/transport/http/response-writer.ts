// Writes all bytes of responses: they are charged before they are buffered, written with backpressure, and cut off when
// the peer stops reading.
import type { OutgoingHttpHeader, OutgoingHttpHeaders, ServerResponse } from "node:http";
import { constants, Http2ServerResponse, type ServerHttp2Stream } from "node:http2";
import { discardRest } from "./body-reader.js";
import { createDeferral } from "./deferral.js";
import { abort, type HttpResponse, isGone, type ResponseWriter } from "./http-message.js";
import { resetStream } from "./http2-end.js";
import { openRequestOf } from "./open-request.js";
import { recordOf } from "./request-record.js";

/** The size of one write, in bytes. */
const CHUNK_BYTES = 64 * 1024;

/**
 * Charges bytes of a response before they are buffered.
 *
 * @throws ApiError RESOURCE_EXHAUSTED when too many bytes are buffered for this caller, or for all
 */
export function chargeResponse(out: ResponseWriter, bytes: number): void {
  openRequestOf(out)?.chargeResponse(bytes, () => cutOff(out));
}

interface CompleteResponse {
  readonly res: HttpResponse;
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  readonly body: string | Uint8Array;
}

const write = createDeferral<CompleteResponse>(
  ({ res, status, headers, body }) => {
    if (res.headersSent || isGone(res)) return;
    const bytes = body.length === 0 ? 0 : Number(headers["content-length"] ?? Buffer.byteLength(body));
    if (bytes > 0 && res.req.method !== "HEAD") countBytes(res, bytes);
    completeHeaders(res, headers);
    if (body.length === 0 && res instanceof Http2ServerResponse) {
      // Not by writeHead, which sends the headers at once, so that the end of the stream needs another frame: gRPC's
      // Trailers-Only is one HEADERS frame that ends the stream.
      res.statusCode = status;
      for (const [name, value] of Object.entries(headers)) if (value !== undefined) res.setHeader(name, value);
      res.end();
      return;
    }
    if (!(res instanceof Http2ServerResponse)) {
      sendHttp1(res, status, headers, body, bytes);
      return;
    }
    res.writeHead(status, headers);
    endWithBackpressure(res, body);
  },
  (_error, { res }) => abort(res),
);

/**
 * Sends a complete response together with the others of this turn of the event loop, unless the peer has disconnected.
 * What is left of the request is discarded.
 *
 * @param headers all fields but those of the connection; content-length is the caller's to set
 * @throws ApiError RESOURCE_EXHAUSTED when too many bytes are buffered already
 */
export function sendComplete(
  res: HttpResponse,
  status: number,
  headers: OutgoingHttpHeaders,
  body: string | Uint8Array = "",
): void {
  // Here, so that no refusal can forget it: a stream whose request is not read to its end would stay open.
  discardRest(res.req);
  if (res.headersSent || isGone(res)) return;
  // This response replaces one that was charged but not sent.
  openRequestOf(res)?.dropResponse();
  chargeResponse(res, body.length);
  write({ res, status, headers, body });
}

/**
 * Writes status and headers with the id of the request. Headers that another layer set before stay, and its `vary` is
 * joined with that of `headers`.
 */
export function writeHead(res: HttpResponse, status: number, headers: OutgoingHttpHeaders): void {
  completeHeaders(res, headers);
  // The two response classes differ only in their overloads.
  (res as ServerResponse).writeHead(status, headers);
}

function sendHttp1(
  res: ServerResponse,
  status: number,
  headers: OutgoingHttpHeaders,
  body: string | Uint8Array,
  bytes: number,
): void {
  const fields: OutgoingHttpHeader[] = [];
  for (const name in headers) {
    const value = headers[name];
    if (value !== undefined) fields.push(name, value);
  }
  res.writeHead(status, fields);
  if (body.length > CHUNK_BYTES) {
    void endInChunks(res, body);
    return;
  }
  // For ASCII, Latin-1 is the same.
  if (typeof body === "string" && body.length > 0) endByOneWrite(res, body, bytes === body.length ? "latin1" : "utf8");
  else res.end(body);
}

// Head and body in one write, which `end` with a body does not do.
function endByOneWrite(res: ServerResponse, body: string, encoding: BufferEncoding): void {
  const { socket } = res;
  socket?.cork();
  res.write(body, encoding);
  socket?.uncork();
  res.end();
}

function completeHeaders(res: HttpResponse, headers: OutgoingHttpHeaders): void {
  const record = recordOf(res);
  if (record !== undefined) headers["x-request-id"] = record.requestId;
  const before = headers.vary === undefined ? undefined : res.getHeader("vary");
  if (before !== undefined) headers.vary = `${before}, ${headers.vary}`;
}

function countBytes(out: ResponseWriter, bytes: number): void {
  const record = recordOf(out);
  if (record !== undefined) record.bytes += bytes;
}

/** Ends a response with charged bytes, unless the peer has disconnected. */
export function endWithBackpressure(out: ResponseWriter, bytes: string | Uint8Array): void {
  if (bytes.length > CHUNK_BYTES) void endInChunks(out, bytes);
  else if (!isGone(out)) (out as ServerResponse).end(bytes);
}

async function endInChunks(out: ResponseWriter, bytes: string | Uint8Array): Promise<void> {
  await writeCharged(out, typeof bytes === "string" ? Buffer.from(bytes) : bytes);
  if (!isGone(out)) (out as ServerResponse).end();
}

/**
 * Charges bytes and writes them with backpressure. Resolves when they are written or the peer has disconnected. A peer
 * that stops reading is cut off.
 */
export async function writeWithBackpressure(out: ResponseWriter, bytes: Uint8Array): Promise<void> {
  if (isGone(out)) return;
  chargeResponse(out, bytes.length);
  countBytes(out, bytes.length);
  await writeCharged(out, bytes);
}

/** Writes charged and counted bytes as {@link writeWithBackpressure} does. */
export async function writeCharged(out: ResponseWriter, bytes: Uint8Array): Promise<void> {
  const request = openRequestOf(out);
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
    if (isGone(out)) return;
    const chunk = bytes.subarray(at, at + CHUNK_BYTES);
    if (!(out as ServerResponse).write(chunk)) await waitForDrain(out);
    request?.releaseResponse(chunk.length);
  }
}

/** Writes charged pieces as {@link writeCharged} does, counts them, and ends the response. */
export async function endWithPieces(out: ResponseWriter, pieces: Iterable<Uint8Array>): Promise<void> {
  for (const piece of pieces) {
    countBytes(out, piece.length);
    await writeCharged(out, piece);
  }
  if (!isGone(out)) (out as ServerResponse).end();
}

/** Resolves when more may be written, or when the peer has disconnected. */
function waitForDrain(out: ResponseWriter): Promise<void> {
  if (isGone(out)) return Promise.resolve();
  return new Promise((resolve) => {
    const go = () => {
      out.off("drain", go);
      out.off("close", go);
      resolve();
    };
    out.on("drain", go);
    out.on("close", go);
  });
}

// With an error code: without one a stream would look complete (RFC 9113, section 8.1).
function cutOff(out: ResponseWriter): void {
  const stream = "stream" in out ? (out.stream as ServerHttp2Stream | undefined) : out;
  if (stream !== undefined && "rstCode" in stream) resetStream(stream, constants.NGHTTP2_CANCEL);
  else out.destroy();
}
