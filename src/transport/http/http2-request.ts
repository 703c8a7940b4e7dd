// A request of HTTP/2: a stream, without Node's compatibility layer.
import {
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
  sensitiveHeaders,
} from "node:http2";
import { Duplex } from "node:stream";
import type { HttpVersion } from "../../telemetry/request-record.js";
import { resetStream, resetUnreadRequest } from "./http2-end.js";
import { findCallersTimeout } from "./limits/admission.js";
import type { Connection } from "./limits/connection.js";
import { type AfterHead, CHUNK_BYTES, Request, type RequestHandlers, type RequestHost } from "./request.js";

/** Fields that differ in every response: in the dynamic table of HPACK they would evict others. */
const NEVER_INDEXED = ["x-request-id"];

/**
 * How a head is sent, by what follows it. With nothing, one frame ends the stream, such as gRPC's Trailers-Only. Pieces may
 * break off: a stream that does not wait for trailers would be ended before it is reset, and look complete.
 */
const AFTER_HEAD = {
  whole: { sendDate: true, waitForTrailers: false },
  pieces: { sendDate: true, waitForTrailers: true },
  trailers: { sendDate: true, waitForTrailers: true },
  nothing: { sendDate: true, endStream: true },
};
// gRPC has no use for a date.
const AFTER_HEAD_OF_GRPC = {
  whole: { ...AFTER_HEAD.whole, sendDate: false },
  pieces: { ...AFTER_HEAD.pieces, sendDate: false },
  trailers: { ...AFTER_HEAD.trailers, sendDate: false },
  nothing: { ...AFTER_HEAD.nothing, sendDate: false },
};

// Node calls `push` with a piece and nothing else. One function for all streams: a function of its own on each would make V8
// keep a map for each, and every stream with it.
const counted = Symbol("counted");
type CountedStream = ServerHttp2Stream & { [counted]?: Http2Request };

function pushCounted(this: CountedStream, chunk: Buffer | null, encoding?: BufferEncoding): boolean {
  if (chunk !== null && this[counted]?.takePiece(chunk) === false) return false;
  return Duplex.prototype.push.call(this, chunk, encoding);
}

/** A request of HTTP/2. */
export class Http2Request extends Request {
  readonly method: string;
  readonly url: string;
  readonly body: ServerHttp2Stream;
  protected readonly sink: ServerHttp2Stream;
  readonly fields: IncomingHttpHeaders;
  readonly rawFields: readonly string[];
  readonly socketAddress: string | undefined;
  /** After which turn of the admission it arrived. */
  readonly turnsBefore: number;
  readonly #onClosed: ((request: Http2Request) => void) | undefined;
  #trailers: OutgoingHttpHeaders | undefined;

  /**
   * @param rawFields name, value, name, value, …, as received
   * @param socketAddress of the peer; a closed stream has no session to read it from
   * @param onClosed called when it has ended
   */
  constructor(
    stream: ServerHttp2Stream,
    fields: IncomingHttpHeaders,
    rawFields: readonly string[],
    socketAddress: string | undefined,
    key: string,
    connection: Connection,
    host: RequestHost & RequestHandlers,
    turnsBefore = 0,
    onClosed?: (request: Http2Request) => void,
  ) {
    super(key, findCallersTimeout(fields), connection, host);
    this.method = fields[":method"] ?? "";
    this.url = fields[":path"] ?? "";
    this.body = stream;
    this.sink = stream;
    this.fields = fields;
    this.rawFields = rawFields;
    this.socketAddress = socketAddress;
    this.turnsBefore = turnsBefore;
    this.#onClosed = onClosed;
    this.#trailers = undefined;
    // Counts the pieces of a body as they arrive, before any of them is read.
    if (!stream.endAfterHeaders) {
      (stream as CountedStream)[counted] = this;
      stream.push = pushCounted;
    }
    if (fields.expect !== undefined) this.onContinueExpected = () => this.#sendContinue();
    stream.on("error", ignore);
    stream.on("close", () => this.#noteClosed());
  }

  #sendContinue(): void {
    const isExpected = this.fields.expect?.toLowerCase() === "100-continue";
    if (isExpected && !this.isGone && !this.headersSent) this.body.additionalHeaders({ ":status": 100 });
  }

  get httpVersion(): HttpVersion {
    return "2";
  }

  get mayHaveBody(): boolean {
    return !this.body.endAfterHeaders && this.fields["content-length"] !== "0";
  }

  protected get isBodyComplete(): boolean {
    const { body } = this;
    return !(body.aborted || body.closed || body.destroyed);
  }

  discardBody(): void {
    const { body } = this;
    if (body.closed || body.destroyed) {
      // A stream that was reset closes only when its data were read.
      body.resume();
    } else if (!body.readableEnded) {
      resetUnreadRequest(body);
      // Whoever began to read it and waits for more would keep it from being read to its end. Node changes how a stream is read
      // a tick after its last such listener has gone.
      if (body.listenerCount("readable") > 0) {
        body.removeAllListeners("readable");
        setImmediate(() => body.resume());
      }
    }
  }

  protected sendHead(status: number, fields: OutgoingHttpHeaders, after: AfterHead): void {
    fields[":status"] = status;
    (fields as Record<symbol, unknown>)[sensitiveHeaders] = NEVER_INDEXED;
    const options = this.record.protocol === "grpc" ? AFTER_HEAD_OF_GRPC[after] : AFTER_HEAD[after];
    if (after === "pieces" || after === "trailers") this.body.on("wantTrailers", () => this.#sendTrailers());
    this.body.respond(fields, options);
  }

  sendWhole(
    status: number,
    fields: OutgoingHttpHeaders,
    body: string | Uint8Array,
    trailers: OutgoingHttpHeaders | undefined,
  ): void {
    const isBodiless = body.length === 0 || this.isHead;
    if (isBodiless && trailers === undefined) {
      this.writeHead(status, fields, "nothing");
      return;
    }
    this.#trailers = trailers;
    const isLong = body.length > CHUNK_BYTES;
    this.writeHead(status, fields, trailers !== undefined ? "trailers" : isLong ? "pieces" : "whole");
    if (isLong) {
      void this.sendLong(body);
      return;
    }
    this.countBytes(Buffer.byteLength(body));
    this.body.end(body);
  }

  endWithTrailers(trailers: OutgoingHttpHeaders): void {
    this.#trailers = trailers;
    this.end();
  }

  #sendTrailers(): void {
    if (!this.isGone) this.body.sendTrailers(this.#trailers ?? {});
  }

  // Without an error code a stream would look complete (RFC 9113, section 8.1).
  abort(): void {
    resetStream(this.body, constants.NGHTTP2_INTERNAL_ERROR);
  }

  cutOff(): void {
    resetStream(this.body, constants.NGHTTP2_CANCEL);
  }

  // A stream that is reset or destroyed before this side has ended it is `aborted`, also without an error code: Node ends it
  // then. All codes but these two mean that the rest of the response was dropped (RFC 9113, section 7).
  #noteClosed(): void {
    const { body } = this;
    const status = body.headersSent ? Number(body.sentHeaders[":status"]) : undefined;
    const isWhole = !body.aborted && (body.rstCode === 0 || body.rstCode === undefined);
    this.close(status, body.writableEnded && isWhole);
    this.#onClosed?.(this);
  }
}

function ignore(): void {}
