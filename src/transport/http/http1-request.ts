// A request of HTTP/1.x: Node's request and response.
import {
  type IncomingHttpHeaders,
  IncomingMessage,
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
  type ServerResponse,
} from "node:http";
import type { HttpVersion } from "../../telemetry/request-record.js";
import { toOriginForm } from "./http-message.js";
import { findCallersTimeout } from "./limits/admission.js";
import type { Connection } from "./limits/connection.js";
import { type AfterHead, CHUNK_BYTES, Request, type RequestHandlers, type RequestHost } from "./request.js";

/**
 * How many bytes of an unneeded body are read before its connection is cut, so that callers that send the whole body
 * before they read still get the error.
 */
const MAX_DISCARDED = 8 * 1024 * 1024;

/** Node's request, which counts the pieces of its body as the parser finds them. */
export class CountedMessage extends IncomingMessage {
  request: Http1Request | undefined;

  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    if (chunk !== null && this.request?.takePiece(chunk) === false) return false;
    return super.push(chunk, encoding);
  }
}

/** A request of HTTP/1.x. */
export class Http1Request extends Request {
  readonly method: string;
  readonly url: string;
  readonly fields: IncomingHttpHeaders;
  readonly body: IncomingMessage;
  readonly response: ServerResponse;
  protected readonly sink: ServerResponse;
  readonly #onClosed: ((request: Http1Request) => void) | undefined;
  #isSent = false;

  /** @param onClosed called when it has ended */
  constructor(
    message: IncomingMessage,
    response: ServerResponse,
    key: string,
    connection: Connection,
    host: RequestHost & RequestHandlers,
    onClosed?: (request: Http1Request) => void,
  ) {
    super(key, findCallersTimeout(message.headers), connection, host);
    this.method = message.method ?? "";
    this.url = toOriginForm(message.url ?? "");
    this.fields = message.headers;
    this.body = message;
    this.response = response;
    this.sink = response;
    this.#onClosed = onClosed;
    if (message instanceof CountedMessage) message.request = this;
    response.on("error", ignore);
    response.on("close", () => this.#noteClosed());
    // Before Node's own listener, which may end the connection. Node emits this also for the response on a connection that
    // was cut before the peer could have all of it.
    response.prependListener("finish", () => {
      this.#isSent = !message.socket.destroyed;
    });
  }

  get rawFields(): readonly string[] {
    return this.body.rawHeaders;
  }

  get httpVersion(): HttpVersion {
    return this.body.httpVersionMinor === 0 ? "1.0" : "1.1";
  }

  get socketAddress(): string | undefined {
    return this.body.socket.remoteAddress;
  }

  get mayHaveBody(): boolean {
    const length = this.fields["content-length"];
    return length === undefined ? this.fields["transfer-encoding"] !== undefined : length !== "0";
  }

  protected get isBodyComplete(): boolean {
    return this.body.complete;
  }

  discardBody(): void {
    const { body } = this;
    if (body.complete || !this.mayHaveBody) return;
    let left = MAX_DISCARDED;
    body.on("error", ignore);
    // Whoever began to read it and waits for more would keep it from being read to its end.
    if (body.listenerCount("readable") > 0) {
      body.removeAllListeners("readable");
      setImmediate(() => body.resume());
    }
    body.on("data", (chunk: Buffer) => {
      left -= chunk.length;
      if (left < 0) body.destroy();
    });
  }

  protected sendHead(status: number, fields: OutgoingHttpHeaders, after: AfterHead): void {
    this.response.writeHead(status, toList(fields));
    if (after === "nothing") this.response.end();
  }

  sendWhole(status: number, fields: OutgoingHttpHeaders, body: string | Uint8Array): void {
    const { response } = this;
    const bytes = body.length === 0 ? 0 : Number(fields["content-length"] ?? Buffer.byteLength(body));
    if (bytes === 0) {
      this.writeHead(status, fields, "nothing");
      return;
    }
    this.writeHead(status, fields, "whole");
    if (this.isHead) {
      response.end();
      return;
    }
    if (body.length > CHUNK_BYTES) {
      void this.sendLong(body);
      return;
    }
    this.countBytes(bytes);
    if (typeof body !== "string") {
      response.end(body);
      return;
    }
    // Head and body in one write, which `end` with a body does not do. For ASCII, Latin-1 is the same.
    const { socket } = response;
    socket?.cork();
    response.write(body, bytes === body.length ? "latin1" : "utf8");
    socket?.uncork();
    response.end();
  }

  // gRPC is not served over HTTP/1.x, and no other protocol has trailers.
  endWithTrailers(): void {
    throw new TypeError("trailers need HTTP/2");
  }

  abort(): void {
    this.response.destroy();
  }

  cutOff(): void {
    this.response.destroy();
  }

  #noteClosed(): void {
    const { response } = this;
    const status = response.headersSent ? response.statusCode : undefined;
    this.close(status, response.writableEnded && this.#isSent);
    this.#onClosed?.(this);
  }
}

// A list is written without another copy of the fields.
function toList(fields: OutgoingHttpHeaders): OutgoingHttpHeader[] {
  const list: OutgoingHttpHeader[] = [];
  for (const name in fields) {
    const value = fields[name];
    if (value !== undefined) list.push(name, value);
  }
  return list;
}

function ignore(): void {}
