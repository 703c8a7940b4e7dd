import { createServer, IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { RejectReason } from "../../kernel/reject-reason.js";
import { type Admission, isHealthPath, type LateReason, type RefusalReason, type WaitingRequest } from "./admission.js";
import type { Connections } from "./connections.js";
import type { Limits } from "./limits.js";
import { attachOpenRequest, type OpenRequest, openRequestOf } from "./open-request.js";
import { type RejectedRequest, recordOf } from "./request-record.js";
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

/** Answers that the service has no time for a request. */
export type RefuseHttp1 = (req: IncomingMessage, res: ServerResponse, reason: RefusalReason) => void;

type Handle = (req: IncomingMessage, res: ServerResponse) => void;

export interface Http1Options {
  readonly limits: Limits;
  readonly onRequest: Handle;
  readonly refuse: RefuseHttp1;
  /** Called with an error that the handling of a request did not catch. Only that request ends. */
  readonly onError: (error: unknown, requestId?: string) => void;
  readonly connections: Connections;
  readonly admission: Admission;
  /** The body of the error for a request that is rejected before it is parsed, by HTTP status. */
  readonly errorBody: (status: number) => string;
  /** Records a request that is rejected before it is dispatched. Returns its id, for the response. */
  readonly recordRejected: (rejected: RejectedRequest) => string;
}

class Http1Request implements WaitingRequest {
  readonly key: string;
  readonly startByMs: number;
  readonly lateReason: LateReason;
  readonly #open: OpenRequest;
  readonly #req: IncomingMessage;
  readonly #res: ServerResponse;
  readonly #handle: Handle;
  readonly #options: Http1Options;

  constructor(open: OpenRequest, req: IncomingMessage, res: ServerResponse, handle: Handle, options: Http1Options) {
    this.key = open.key;
    this.startByMs = open.startByMs;
    this.lateReason = open.lateReason;
    this.#open = open;
    this.#req = req;
    this.#res = res;
    this.#handle = handle;
    this.#options = options;
  }

  // A request whose client has disconnected meanwhile is not handled.
  run(): void {
    if (this.#res.destroyed) return;
    this.#open.begin();
    this.#handle(this.#req, this.#res);
  }

  refuse(reason: RefusalReason): void {
    if (!this.#res.destroyed) this.#options.refuse(this.#req, this.#res, reason);
  }

  onError(error: unknown): void {
    this.#options.onError(error, recordOf(this.#res)?.requestId);
    this.#res.destroy();
  }

  countUnread(): number {
    return this.#open.countUnread(this.#req.readableLength);
  }
}

// A request that counts the pieces of its body as the parser finds them.
class CountedRequest extends IncomingMessage {
  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    if (openRequestOf(this)?.takePiece(chunk) === false) return false;
    return super.push(chunk, encoding);
  }
}

/**
 * Creates the HTTP/1.1 server (RFC 9112), with every timeout set. It never listens; it serves the sockets that it is
 * given.
 */
export function createHttp1(options: Http1Options) {
  const { limits, admission, connections } = options;
  // The open responses of each connection, in their order. Not a Set of responses: its old tables refer to newer ones and
  // would keep every response until the next major garbage collection.
  const open = new Map<Socket, ServerResponse[]>();
  // Connections that close after the current response, and how many requests were ignored on each since: the peer may
  // have meant other requests than the parser reads. The parser keeps each of them until the response before it has
  // ended.
  const ending = new WeakMap<Socket, number>();
  // Every response is the last one of its connection.
  let isLastResponse = false;
  // Idle connections are closed as well.
  let draining = false;

  const server = createServer({
    IncomingMessage: CountedRequest,
    maxHeaderSize: limits.headerBytes,
    headersTimeout: Math.min(limits.headersMs, limits.requestMs),
    requestTimeout: limits.requestMs,
    keepAliveTimeout: limits.keepAliveMs,
    connectionsCheckingInterval: limits.timeoutCheckMs,
    insecureHTTPParser: false,
    // The dispatcher rejects a request without Host, with a body.
    requireHostHeader: false,
    noDelay: true,
    ...(READS_BODIES && { shouldUpgradeCallback: (req: IncomingMessage) => !hasBody(req) }),
  });
  // Node drops further fields silently, so a request with one too many is rejected. Without a limit it copies all fields
  // for each few of them.
  server.maxHeadersCount = limits.headerPairs + 1;
  server.maxRequestsPerSocket = 0;
  server.timeout = limits.idleSocketMs;

  // When a connection closes, Node closes the response that is being sent, but not the pipelined ones after it.
  // Returns how many responses are open now.
  function track(socket: Socket, res: ServerResponse): number {
    const responses = open.get(socket);
    if (responses !== undefined) return responses.push(res);
    const first = [res];
    open.set(socket, first);
    socket.once("close", () => {
      open.delete(socket);
      setImmediate(closeAll, first);
    });
    return 1;
  }

  function onClose(this: ServerResponse): void {
    const responses = open.get(this.req.socket);
    const index = responses?.indexOf(this) ?? -1;
    if (index >= 0) responses?.splice(index, 1);
    const request = openRequestOf(this);
    if (responses?.length === 1) request?.connection.reader?.release("pipelined");
    request?.close();
    if (draining) setImmediate(closeIdle);
  }

  function closeIdle(): void {
    server.closeIdleConnections();
  }

  // The peer gets its response, and what it still sends is not read. The response does not say that the connection ends, as
  // Node would then close it at once: with unread bytes that is a reset, which takes sent bytes from the peer.
  function endUnread(socket: Socket, reader: SocketReader): void {
    reader.hold("refused");
    endWith(socket, open.get(socket)?.at(-1));
  }

  // Handles every request, so that an error ends that request only.
  const entry = (handle: Handle): Handle => {
    return (req, res) => {
      const ignored = ending.get(req.socket);
      const connection = connections.of(req.socket);
      if (ignored !== undefined) {
        if (connection !== undefined) connections.chargeIgnored(connection);
        if (ignored >= MAX_IGNORED) req.socket.destroy();
        ending.set(req.socket, ignored + 1);
        return;
      }
      if (connection === undefined) {
        req.socket.destroy();
        return;
      }
      const pending = track(req.socket, res);
      const request = connections.begin(connection, req.url ?? "", req.headers, req.socket.remoteAddress);
      attachOpenRequest(request, req, res);
      res.on("close", onClose);
      res.on("error", ignore);
      if (pending > 1) {
        connection.reader?.hold("pipelined");
        connections.chargeAhead(connection);
      }
      if (pending === limits.pipelinedRequests) {
        if (connection.reader) endUnread(req.socket, connection.reader);
        // No more is read, so however many were read with this one, they are few.
        ending.set(req.socket, Number.NEGATIVE_INFINITY);
      }
      if (isLastResponse || connection.rejection !== undefined) res.shouldKeepAlive = false;
      // The parser also accepts HTTP/0.9 and HTTP/2.0 (RFC 9110, section 15.6.6).
      if (req.httpVersionMajor !== 1) {
        rejectRequest(res, 505, "malformed");
        return;
      }
      if (req.rawHeaders.length > 2 * limits.headerPairs) {
        rejectRequest(res, 431, "headers_too_large");
        return;
      }
      if (hasUnsupportedCoding(req)) {
        rejectRequest(res, 501, "malformed");
        return;
      }
      // The parser stops after such a request and drops the bytes after it, so the connection must close.
      if (req.headers.upgrade !== undefined && hasBody(req)) {
        res.shouldKeepAlive = false;
        ending.set(req.socket, 0);
      }
      const isHealth = isHealthPath(req.url ?? "");
      if (!admission.mayServe(request.key, isHealth)) {
        admission.count("address_requests");
        rejectRequest(res, 429, "address_requests");
        return;
      }
      if (connection.rejection !== undefined && !isHealth) {
        rejectRequest(res, 503, connection.rejection);
        return;
      }
      admission.enter(new Http1Request(request, req, res, handle, options), isHealth);
    };
  };

  function rejectRequest(res: ServerResponse, status: 429 | 431 | 501 | 503 | 505, reason: RejectReason): void {
    ending.set(res.req.socket, 0);
    const body = options.errorBody(status);
    const { req } = res;
    const requestId = options.recordRejected({
      status,
      reason,
      code: status === 503 ? UNAVAILABLE : undefined,
      bytes: req.method === "HEAD" ? 0 : Buffer.byteLength(body),
      headers: req.headers,
      url: req.url,
      httpMethod: req.method,
      socketAddress: req.socket.remoteAddress,
      httpVersion: req.httpVersionMinor === 0 ? "1.0" : "1.1",
    });
    res.writeHead(status, {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
      "x-request-id": requestId,
      ...(RETRIED.has(status) && { "retry-after": "1" }),
      connection: "close",
    });
    res.end(body);
  }

  server.on("request", entry(options.onRequest));

  // An unknown expectation is ignored (RFC 9110, section 10.1.1); Node would answer it itself.
  server.on("checkExpectation", entry(options.onRequest));

  // A rejected client gets no 100 Continue. The connection is closed, because either the body or another request may
  // follow.
  server.on(
    "checkContinue",
    entry((req, res) => {
      const { shouldKeepAlive } = res;
      res.shouldKeepAlive = false;
      const open = openRequestOf(req);
      if (open)
        open.onContinueExpected = () => {
          if (res.headersSent) return;
          res.shouldKeepAlive = shouldKeepAlive && !isLastResponse;
          res.writeContinue();
        };
      options.onRequest(req, res);
    }),
  );

  // Upgrade is ignored (RFC 9110, section 7.8).
  server.on("upgrade", (req, duplex, head) => {
    const socket = duplex as Socket;
    // The bytes behind are read again, with as many more, so that a peer that sends ever more would have all of them kept.
    if (head.length + socket.readableLength > MAX_BEHIND_BYTES && !ending.has(socket)) {
      ending.set(socket, 0);
      endWith(socket, open.get(socket)?.at(-1));
    }
    // The connection ends with the response that is awaited.
    if (ending.has(socket)) {
      socket.on("error", ignore);
      socket.resume();
      return;
    }
    serveWithoutUpgrade({
      ...{ req, socket, head },
      lastResponse: () => open.get(socket)?.at(-1),
      serve: () => server.emit("connection", socket),
    });
  });

  server.on("clientError", (error: ClientError, socket: Duplex) => {
    const pending = open.get(socket as Socket)?.at(-1);
    if (pending?.req.complete && socket.writable && error.code !== "ECONNRESET") {
      // The request before the invalid bytes was complete and may have been handled, so its response is sent first.
      pending.shouldKeepAlive = false;
      pending.once("close", () => socket.end());
      return;
    }
    if (error.code === "ECONNRESET" || !socket.writable || pending?.headersSent) {
      socket.destroy();
      return;
    }
    const status = statusOfParserError(error);
    const body = options.errorBody(status);
    const { remoteAddress } = socket as Socket;
    const reason = status === 431 ? "headers_too_large" : status === 408 ? "request_timeout" : "malformed";
    // A client that sent HEAD would read a body as the next response (RFC 9110, section 9.3.2).
    const isHead = error.rawPacket?.subarray(0, 5).toString("latin1") === "HEAD ";
    const bytes = isHead ? 0 : Buffer.byteLength(body);
    const record = pending && recordOf(pending);
    if (record !== undefined) {
      record.reason ??= reason;
      record.bytes = bytes;
      record.end(status, true);
    }
    const rejected = { status, reason, bytes, socketAddress: remoteAddress, httpVersion: "1.1" } as const;
    const requestId = record?.requestId ?? options.recordRejected(rejected);
    socket.end(
      `HTTP/1.1 ${status} ${reasons[status]}\r\nConnection: close\r\nContent-Type: application/json\r\n` +
        `X-Request-Id: ${requestId}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${isHead ? "" : body}`,
      () => socket.destroy(),
    );
  });

  /** Closes each connection after its current response, or its next one if it is idle. */
  function closeAfterResponses(): void {
    isLastResponse = true;
    for (const responses of open.values()) {
      const last = responses.at(-1);
      if (last?.headersSent === false) last.shouldKeepAlive = false;
    }
  }

  // This event starts the timers of headersTimeout and requestTimeout.
  server.emit("listening");

  return {
    /** Serves a socket with HTTP/1.x. */
    serve(socket: Socket): void {
      const connection = connections.of(socket);
      if (connection !== undefined) {
        const reader = new SocketReader(socket);
        connection.reader = reader;
        connection.onBodyRefused = () => endUnread(socket, reader);
      }
      connections.beginReading(socket, () => {
        server.emit("connection", socket);
        if (connection?.reader) connection.reader.begin();
        else socket.resume();
      });
    },
    closeAfterResponses,
    /** Closes idle connections now, and others after their current response. */
    drain(): void {
      closeAfterResponses();
      draining = true;
      closeIdle();
    },
    /** Stops the timers. All connections must be closed. */
    close(): void {
      server.close(ignore);
    },
  };
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

function closeAll(responses: readonly ServerResponse[]): void {
  for (const res of [...responses]) {
    res.destroy();
    res.emit("close");
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
