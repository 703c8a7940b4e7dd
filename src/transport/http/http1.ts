import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { RejectReason } from "../../kernel/reject-reason.js";
import { CountedMessage, Http1Request } from "./http1-request.js";
import { type Admission, isHealthPath } from "./limits/admission.js";
import type { Connection } from "./limits/connection.js";
import type { Connections } from "./limits/connections.js";
import type { Limits } from "./limits/limits.js";
import type { RejectedRequest } from "./records.js";
import type { RequestHandlers, RequestHost } from "./request.js";
import { SocketReader } from "./socket-reader.js";
import { serveWithoutUpgrade } from "./upgrade.js";

/** After how many ignored requests a closing connection is cut. */
const MAX_IGNORED = 100;
/** How long a peer has to read the last response of a connection of which no more is read, in milliseconds. */
const LINGER_MS = 500;
/** How many bytes may have arrived behind the head of a request with Upgrade: two reads. */
const MAX_BEHIND_BYTES = 128 * 1024;
/** Whether Node reads the body of a request with Upgrade, so that the request cannot be read again; see `upgrade.ts`. */
const READS_BODIES = Number.parseInt(process.versions.node, 10) >= 25;

export interface Http1Options {
  readonly limits: Limits;
  readonly handlers: RequestHandlers;
  readonly connections: Connections;
  readonly admission: Admission;
  /** The body of the error for a request that is rejected before it is parsed, by HTTP status. */
  readonly errorBody: (status: number) => string;
  /** Records a request that is rejected before it is dispatched. Returns its id, for the response. */
  readonly recordRejected: (rejected: RejectedRequest) => string;
}

/** A socket that is served. */
interface Served {
  readonly connection: Connection;
  readonly reader: SocketReader;
  /**
   * Its open requests, in their order. Not a Set: its old tables refer to newer ones and would keep every request until
   * the next major garbage collection.
   */
  readonly requests: Http1Request[];
  /**
   * Set when it closes after the response that is awaited: how many requests were ignored since. The peer may have meant
   * other requests than the parser reads, which keeps each of them until the response before it has ended.
   */
  ignored: number | undefined;
}

/**
 * The HTTP/1.1 server (RFC 9112), with every timeout set. It never listens; it serves the sockets that it is given. Each of
 * its connections is in one of these states:
 *
 *   read ──> ending ──> closed
 *
 * While it is read, each request is answered in its turn. While it is ending, it is closed by the response that is awaited,
 * and further requests are ignored.
 */
export class Http1 {
  readonly #options: Http1Options;
  readonly #server: Server;
  readonly #host: RequestHost & RequestHandlers;
  readonly #served = new Map<Socket, Served>();
  /** Whether every response is the last one of its connection. */
  #isLastResponse = false;
  /** Whether idle connections are closed as well. */
  #isDraining = false;

  constructor(options: Http1Options) {
    const { limits } = options;
    this.#options = options;
    this.#host = { ...options.connections.host, ...options.handlers };
    this.#server = createServer({
      IncomingMessage: CountedMessage,
      maxHeaderSize: limits.headerBytes,
      headersTimeout: Math.min(limits.headersMs, limits.requestMs),
      requestTimeout: limits.requestMs,
      keepAliveTimeout: limits.keepAliveMs,
      connectionsCheckingInterval: limits.timeoutCheckMs,
      insecureHTTPParser: false,
      // The dispatcher rejects a request without Host, with a body.
      requireHostHeader: false,
      noDelay: true,
      ...(READS_BODIES && { shouldUpgradeCallback: (message: IncomingMessage) => !hasBody(message) }),
    });
    // Node drops further fields silently, so a request with one too many is rejected. Without a limit it copies all fields
    // for each few of them.
    this.#server.maxHeadersCount = limits.headerPairs + 1;
    this.#server.maxRequestsPerSocket = 0;
    this.#server.timeout = limits.idleSocketMs;
    this.#listen();
  }

  #listen(): void {
    const server = this.#server;
    const enter = (message: IncomingMessage, response: ServerResponse) => this.#enter(message, response, false);
    server.on("request", enter);
    // An unknown expectation is ignored (RFC 9110, section 10.1.1); Node would answer it itself.
    server.on("checkExpectation", enter);
    server.on("checkContinue", (message, response) => this.#enter(message, response, true));
    server.on("upgrade", (message, socket, head) => this.#ignoreUpgrade(message, socket as Socket, head));
    server.on("clientError", (error, socket) => this.#answerParserError(error, socket));
    // This event starts the timers of headersTimeout and requestTimeout.
    server.emit("listening");
  }

  /** Serves a socket with HTTP/1.x. */
  serve(socket: Socket): void {
    const { connections } = this.#options;
    const connection = connections.of(socket);
    if (connection === undefined) {
      socket.destroy();
      return;
    }
    const reader = new SocketReader(socket);
    const served: Served = { connection, reader, requests: [], ignored: undefined };
    connection.reader = reader;
    connection.onBodyRefused = () => this.#endUnread(socket, served);
    this.#served.set(socket, served);
    socket.once("close", () => {
      this.#served.delete(socket);
      setImmediate(closeAll, served.requests);
    });
    connections.beginReading(socket, () => {
      this.#server.emit("connection", socket);
      reader.begin();
    });
  }

  /** Closes each connection after its current response, or its next one if it is idle. */
  closeAfterResponses(): void {
    this.#isLastResponse = true;
    for (const { requests } of this.#served.values()) {
      const last = requests.at(-1);
      if (last?.headersSent === false) last.response.shouldKeepAlive = false;
    }
  }

  /** Closes idle connections now, and others after their current response. */
  drain(): void {
    this.closeAfterResponses();
    this.#isDraining = true;
    this.#closeIdle();
  }

  /** Stops the timers. All connections must be closed. */
  close(): void {
    this.#server.close(ignore);
  }

  readonly #closeIdle = () => this.#server.closeIdleConnections();

  /** @param asksFirst whether the peer sends the body only after 100 Continue */
  #enter(message: IncomingMessage, response: ServerResponse, asksFirst: boolean): void {
    const { socket } = message;
    const { limits, admission, connections } = this.#options;
    const served = this.#served.get(socket);
    if (served === undefined) {
      socket.destroy();
      return;
    }
    const { connection, requests } = served;
    if (served.ignored !== undefined) {
      connections.chargeIgnored(connection);
      if (served.ignored >= MAX_IGNORED) socket.destroy();
      served.ignored++;
      return;
    }
    const key = connections.begin(connection, message.headers, socket.remoteAddress);
    const request = new Http1Request(message, response, key, connection, this.#host, this.#forget);
    const pending = requests.push(request);
    if (pending > 1) {
      served.reader.hold("pipelined");
      connections.chargeAhead(connection);
    }
    if (pending === limits.pipelinedRequests) {
      this.#endUnread(socket, served);
      // No more is read, so however many were read with this one, they are few.
      served.ignored = Number.NEGATIVE_INFINITY;
    }
    if (this.#isLastResponse || connection.rejection !== undefined) response.shouldKeepAlive = false;
    // The parser also accepts HTTP/0.9 and HTTP/2.0 (RFC 9110, section 15.6.6).
    if (message.httpVersionMajor !== 1) {
      this.#reject(request, served, 505, "malformed");
      return;
    }
    if (message.rawHeaders.length > 2 * limits.headerPairs) {
      this.#reject(request, served, 431, "headers_too_large");
      return;
    }
    if (hasUnsupportedCoding(message)) {
      this.#reject(request, served, 501, "malformed");
      return;
    }
    // The parser stops after such a request and drops the bytes after it, so the connection must close.
    if (message.headers.upgrade !== undefined && hasBody(message)) {
      response.shouldKeepAlive = false;
      served.ignored = 0;
    }
    const isHealth = isHealthPath(message.url ?? "");
    if (!admission.mayServe(key, isHealth)) {
      admission.count("address_requests");
      this.#reject(request, served, 429, "address_requests");
      return;
    }
    if (connection.rejection !== undefined && !isHealth) {
      this.#reject(request, served, 503, connection.rejection);
      return;
    }
    if (asksFirst) this.#holdContinue(response, request);
    admission.enter(request, isHealth);
  }

  // A rejected client gets no 100 Continue. The connection is closed, because either the body or another request may
  // follow.
  #holdContinue(response: ServerResponse, request: Http1Request): void {
    const { shouldKeepAlive } = response;
    response.shouldKeepAlive = false;
    request.onContinueExpected = () => {
      if (response.headersSent) return;
      response.shouldKeepAlive = shouldKeepAlive && !this.#isLastResponse;
      response.writeContinue();
    };
  }

  readonly #forget = (request: Http1Request) => {
    const served = this.#served.get(request.body.socket);
    const index = served?.requests.indexOf(request) ?? -1;
    if (index >= 0) served?.requests.splice(index, 1);
    if (served?.requests.length === 1) served.reader.release("pipelined");
    if (this.#isDraining) setImmediate(this.#closeIdle);
  };

  // The peer gets its response, and what it still sends is not read. The response does not say that the connection ends, as
  // Node would then close it at once: with unread bytes that is a reset, which takes sent bytes from the peer.
  #endUnread(socket: Socket, { reader, requests }: Served): void {
    reader.hold("refused");
    endWith(socket, requests.at(-1)?.response);
  }

  #reject(
    { body: message, response }: Http1Request,
    served: Served,
    status: 429 | 431 | 501 | 503 | 505,
    reason: RejectReason,
  ): void {
    served.ignored = 0;
    const body = this.#options.errorBody(status);
    const requestId = this.#options.recordRejected({
      status,
      reason,
      code: status === 503 ? UNAVAILABLE : undefined,
      bytes: message.method === "HEAD" ? 0 : Buffer.byteLength(body),
      headers: message.headers,
      url: message.url,
      httpMethod: message.method,
      socketAddress: message.socket.remoteAddress,
      httpVersion: message.httpVersionMinor === 0 ? "1.0" : "1.1",
    });
    response.writeHead(status, {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
      "x-request-id": requestId,
      ...(RETRIED.has(status) && { "retry-after": "1" }),
      connection: "close",
    });
    response.end(body);
  }

  // Upgrade is ignored (RFC 9110, section 7.8).
  #ignoreUpgrade(message: IncomingMessage, socket: Socket, head: Buffer): void {
    const served = this.#served.get(socket);
    const lastResponse = () => served?.requests.at(-1)?.response;
    // The bytes behind are read again, with as many more, so that a peer that sends ever more would have all of them kept.
    if (
      served !== undefined &&
      served.ignored === undefined &&
      head.length + socket.readableLength > MAX_BEHIND_BYTES
    ) {
      served.ignored = 0;
      endWith(socket, lastResponse());
    }
    // The connection ends with the response that is awaited.
    if (served?.ignored !== undefined) {
      socket.on("error", ignore);
      socket.resume();
      return;
    }
    serveWithoutUpgrade({
      ...{ req: message, socket, head },
      lastResponse,
      serve: () => this.#server.emit("connection", socket),
    });
  }

  #answerParserError(error: ClientError, duplex: Duplex): void {
    const socket = duplex as Socket;
    const pending = this.#served.get(socket)?.requests.at(-1);
    if (pending?.body.complete && socket.writable && error.code !== "ECONNRESET") {
      // The request before the invalid bytes was complete and may have been handled, so its response is sent first.
      pending.response.shouldKeepAlive = false;
      pending.response.once("close", () => socket.end());
      return;
    }
    if (error.code === "ECONNRESET" || !socket.writable || pending?.headersSent) {
      socket.destroy();
      return;
    }
    const status = statusOfParserError(error);
    const body = this.#options.errorBody(status);
    const reason = status === 431 ? "headers_too_large" : status === 408 ? "request_timeout" : "malformed";
    // A client that sent HEAD would read a body as the next response (RFC 9110, section 9.3.2).
    const isHead = error.rawPacket?.subarray(0, 5).toString("latin1") === "HEAD ";
    const bytes = isHead ? 0 : Buffer.byteLength(body);
    const record = pending?.findRecord();
    if (record !== undefined) {
      record.reason ??= reason;
      record.bytes = bytes;
      record.end(status, true);
    }
    const { remoteAddress } = socket;
    const rejected = { status, reason, bytes, socketAddress: remoteAddress, httpVersion: "1.1" } as const;
    const requestId = record?.requestId ?? this.#options.recordRejected(rejected);
    socket.end(
      `HTTP/1.1 ${status} ${reasons[status]}\r\nConnection: close\r\nContent-Type: application/json\r\n` +
        `X-Request-Id: ${requestId}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${isHead ? "" : body}`,
      () => socket.destroy(),
    );
  }
}

/** The statuses after which a client may send the same request again. */
const RETRIED: ReadonlySet<number> = new Set([429, 503]);
const UNAVAILABLE = 14;

interface ClientError extends NodeJS.ErrnoException {
  /** The last bytes received, of errors of the parser. */
  readonly rawPacket?: Buffer;
  /** The violated rule, of errors of the parser. */
  readonly reason?: string;
}

function statusOfParserError({ code, reason = "" }: ClientError): number {
  if (code === "HPE_HEADER_OVERFLOW") return 431;
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return 408;
  // The parser has the same code for Content-Length together with chunks, which is 400.
  return code === "HPE_INVALID_TRANSFER_ENCODING" && !reason.includes("Content-Length") ? 501 : 400;
}

const reasons: Readonly<Record<number, string>> = {
  400: "Bad Request",
  408: "Request Timeout",
  431: "Request Header Fields Too Large",
  501: "Not Implemented",
};

// Only `chunked` is decoded, and not in HTTP/1.0. A proxy that reads such a message in another way could see other
// requests in its body (RFC 9112, section 6.1).
function hasUnsupportedCoding({ headers, httpVersionMinor }: IncomingMessage): boolean {
  const coding = headers["transfer-encoding"];
  return coding !== undefined && (coding.toLowerCase() !== "chunked" || httpVersionMinor === 0);
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || (headers["content-length"] ?? "0") !== "0";
}

// When a connection closes, Node closes the response that is being sent, but not the pipelined ones after it.
function closeAll(requests: readonly Http1Request[]): void {
  for (const { response } of [...requests]) {
    response.destroy();
    response.emit("close");
  }
}

// Ends a connection with its last response; at once if there is none.
function endWith(socket: Socket, last: ServerResponse | undefined): void {
  const end = () => {
    socket.end();
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
  };
  if (last === undefined) setImmediate(end);
  else last.once("close", end);
}

function ignore(): void {}
