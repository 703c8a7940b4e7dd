import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type Admission, isHealthPath } from "./admission.js";
import { createEarlyRejection } from "./early-rejection.js";
import { enqueue, type Peer } from "./fair-queue.js";
import type { Limits } from "./limits.js";
import type { Rejection } from "./rejection.js";
import { attachBuffers, buffersOf, type RequestBuffers } from "./request-buffers.js";
import { type RejectedRequest, recordOf } from "./request-record.js";
import { flushPerTick } from "./tick.js";
import { serveWithoutUpgrade } from "./upgrade.js";

/** After how many ignored requests a closing connection is cut. */
const MAX_IGNORED = 100;
/** Whether Node reads the body of a request with Upgrade, so that the request cannot be read again; see `upgrade.ts`. */
const READS_BODIES = Number.parseInt(process.versions.node, 10) >= 25;

export interface Http1Options {
  readonly limits: Limits;
  readonly onRequest: (req: IncomingMessage, res: ServerResponse) => void;
  /** Called with an error that the handling of a request did not catch. Only that request ends. */
  readonly onError: (error: unknown, requestId?: string) => void;
  /** Opens the buffers of a request. */
  readonly beginRequest: (req: IncomingMessage) => RequestBuffers;
  /** The peer in whose queue a request waits. */
  readonly peerOf: (req: IncomingMessage) => Peer;
  /** The body of the error for a request that is rejected before it is parsed, by HTTP status. */
  readonly errorBody: (status: number) => string;
  readonly admission: Admission;
  /** Answers requests that are not admitted. */
  readonly overload: Rejection;
  /** Records a request that is rejected before it is dispatched. Returns its id, for the response. */
  readonly recordRejected: (rejected: RejectedRequest) => string;
}

/**
 * Creates the HTTP/1.1 server (RFC 9112), with every timeout set. It never listens; it serves the sockets that it is
 * given.
 */
export function createHttp1(options: Http1Options) {
  const { limits, admission, overload } = options;
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
  // Node would drop further fields silently; their size is limited instead.
  server.maxHeadersCount = 0;
  server.maxRequestsPerSocket = 0;
  server.timeout = limits.idleSocketMs;

  // When a connection closes, Node closes the response that is being sent, but not the pipelined ones after it.
  function track(socket: Socket, res: ServerResponse): void {
    const responses = open.get(socket);
    if (responses !== undefined) {
      responses.push(res);
      return;
    }
    const first = [res];
    open.set(socket, first);
    socket.once("close", () => {
      open.delete(socket);
      setImmediate(closeAll, first);
    });
  }

  function onClose(this: ServerResponse): void {
    const responses = open.get(this.req.socket);
    const index = responses?.indexOf(this) ?? -1;
    if (index >= 0) responses?.splice(index, 1);
    buffersOf(this)?.release();
    if (draining) setImmediate(closeIdle);
  }

  function closeIdle(): void {
    server.closeIdleConnections();
  }

  type Handle = (req: IncomingMessage, res: ServerResponse) => void;

  // Handles every request, so that an error ends that request only.
  const entry = (handle: Handle): Handle => {
    return (req, res) => {
      const ignored = ending.get(req.socket);
      if (ignored !== undefined) {
        if (ignored >= MAX_IGNORED) req.socket.destroy();
        ending.set(req.socket, ignored + 1);
        return;
      }
      if (isRejectedAtOnce(req, res)) return;
      track(req.socket, res);
      const buffers = options.beginRequest(req);
      attachBuffers(buffers, req, res);
      res.on("close", onClose);
      res.on("error", ignore);
      if (isLastResponse) res.shouldKeepAlive = false;
      // The parser also accepts HTTP/0.9 and HTTP/2.0 (RFC 9110, section 15.6.6).
      if (req.httpVersionMajor !== 1) {
        rejectRequest(res, 505);
        return;
      }
      if (hasUnsupportedCoding(req)) {
        rejectRequest(res, 501);
        return;
      }
      // The parser stops after such a request and drops the bytes after it, so the connection must close.
      if (req.headers.upgrade !== undefined && hasBody(req)) {
        res.shouldKeepAlive = false;
        ending.set(req.socket, 0);
      }
      const { peer } = buffers;
      const isHealth = isHealthPath(req.url ?? "");
      if (peer.open > limits.requestsPerAddress && !(isHealth && peer.open <= 2 * limits.requestsPerAddress)) {
        admission.count("address_requests");
        rejectRequest(res, 429);
        return;
      }
      const reject = () => {
        admission.count("overload");
        overload.http1(req, res);
      };
      // A pipelined request: the one before it has no response yet.
      if (!isHealth && res.socket === null && !admission.admits(peer)) {
        reject();
        return;
      }
      const task = {
        // A request whose client has disconnected meanwhile is not handled.
        run() {
          if (!res.destroyed) handle(req, res);
        },
        onError(error: unknown) {
          options.onError(error, recordOf(res)?.requestId);
          res.destroy();
        },
        reject,
      };
      enqueue(peer, task, isHealth ? undefined : admission.maxWaitMs);
    };
  };

  // Together with the other responses of a tick: a write of its own wakes the reader up, which costs as much as the rest.
  const answerRejected = flushPerTick<ServerResponse>(
    "rejections",
    (res) => {
      if (isLastResponse) res.shouldKeepAlive = false;
      overload.http1(res.req, res);
    },
    (error, res) => {
      options.onError(error);
      res.destroy();
    },
  );

  // A request that was admitted in place of another one, which was rejected for it: to ask again could reject a second.
  let admitted: IncomingMessage | undefined;

  function hasNoTime(req: IncomingMessage): boolean {
    if (req === admitted || admission.admitsAll() || isHealthPath(req.url ?? "")) return false;
    if (!admission.admits(options.peerOf(req))) return true;
    admitted = req;
    return false;
  }

  const early = createEarlyRejection({
    isRejected: (req) => !isLastResponse && !ending.has(req.socket) && hasNoTime(req),
    format(req) {
      const response = overload.formatHttp1(req, server.keepAliveTimeout);
      if (response !== undefined) admission.count("overload");
      return response;
    },
    onError: options.onError,
  });

  // Before any state is created for the request, because under overload this is most of the work. Requests that must
  // close their connection or wait for a pipelined response are rejected below.
  function isRejectedAtOnce(req: IncomingMessage, res: ServerResponse): boolean {
    const isRejected = res.socket !== null && req.httpVersionMajor === 1 && hasNoTime(req);
    admitted = undefined;
    if (!isRejected) return false;
    if (req.headers.upgrade !== undefined || hasUnsupportedCoding(req)) return false;
    track(req.socket, res);
    res.on("close", onClose);
    admission.count("overload");
    answerRejected(res);
    return true;
  }

  function rejectRequest(res: ServerResponse, status: 429 | 501 | 505): void {
    ending.set(res.req.socket, 0);
    const body = options.errorBody(status);
    const { req } = res;
    const requestId = options.recordRejected({
      status,
      reason: status === 429 ? "address_requests" : "malformed",
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
      ...(status === 429 && { "retry-after": "1" }),
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
      const buffers = buffersOf(req);
      if (buffers)
        buffers.onContinueExpected = () => {
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
    early.flush();
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
      server.emit("connection", socket);
      early.watch(socket);
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

function ignore(): void {}
