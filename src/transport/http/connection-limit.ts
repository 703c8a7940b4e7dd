// Limits the connections of an address. A few connections above this limit, or that of the process, are answered at a
// time, without an HTTP server; the others are cut. Health checks over HTTP/1.1 get their response, so that balancers do
// not take the service for dead.
import { STATUS_CODES } from "node:http";
import { constants } from "node:http2";
import type { Socket } from "node:net";
import { unmapAddress } from "../../kernel/ip-address.js";
import type { Logger } from "../../telemetry/logger.js";
import { type Admission, createRejectionLog, isHealthPath, type RejectionReason } from "./admission.js";
import type { CheckHealth, HealthResponse } from "./health-routes.js";
import type { Limits } from "./limits.js";
import { createTlsListener, detectProtocol, type Protocols, type TlsIdentity } from "./protocols.js";
import { pathOf, type RejectedRequest, type RequestRecords } from "./request-record.js";

const SECOND_MS = 1_000;

/** Why a connection is rejected. */
export type ConnectionReason = Extract<RejectionReason, "address_connections" | "connections">;

export interface ConnectionLimitOptions {
  readonly limits: Limits;
  readonly tls?: TlsIdentity | undefined;
  /** Behind a proxy all peers share its address, so there is no limit. */
  readonly behindProxy?: boolean | undefined;
  /** The body of a response, by HTTP status. */
  readonly errorBody: (status: number) => string;
  readonly checkHealth: CheckHealth;
  readonly admission: Admission;
  /** Records the requests that are answered. */
  readonly records: Pick<RequestRecords, "recordRejected">;
  readonly logger?: Logger | undefined;
}

/** Creates the limit. */
export function createConnectionLimit(options: ConnectionLimitOptions) {
  const { limits, admission, logger } = options;
  const perAddress = new Map<string, number>();
  const rejected = new Set<Socket>();
  let handshakes = 0;
  let secondMs = 0;
  const logAddress = createRejectionLog(() => admission.counts.address_connections);
  const logProcess = createRejectionLog(() => admission.counts.connections);
  // By reason, because TLS hands over another socket than the one that was rejected.
  const answerers = {
    address_connections: createAnswerer("address_connections"),
    connections: createAnswerer("connections"),
  };

  function createAnswerer(reason: ConnectionReason) {
    const answers: Protocols = {
      http1: (socket) => void responseHttp1(socket, reason),
      http2: (socket) => finish(socket, HTTP2_RESPONSE),
    };
    return { answers, secure: options.tls && createTlsListener(options.tls, limits, answers) };
  }

  async function responseHttp1(socket: Socket, reason: ConnectionReason): Promise<void> {
    const received = await readFirst(socket);
    if (socket.destroyed) return;
    const head = parseHead(received);
    const { httpMethod, url = "" } = head;
    const { remoteAddress: socketAddress } = socket;
    const isCheck = (httpMethod === "GET" || httpMethod === "HEAD") && isHealthPath(url);
    const check = isCheck ? await options.checkHealth(pathOf(url)) : undefined;
    const response = check ?? { status: 503, body: options.errorBody(503) };
    const requestId = options.records.recordRejected({
      ...head,
      reason: check === undefined ? reason : undefined,
      code: check === undefined ? UNAVAILABLE : undefined,
      status: response.status,
      bytes: httpMethod === "HEAD" ? 0 : Buffer.byteLength(response.body),
      socketAddress,
    });
    finish(socket, formatHttp1(response, requestId, httpMethod === "HEAD"));
  }

  // Reads and drops what arrives: unread bytes would make the kernel reset the connection, and the response would be
  // lost.
  function finish(socket: Socket, response: string | Buffer): void {
    socket.on("error", () => socket.destroy());
    socket.end(response);
    socket.resume();
  }

  function countRejection(reason: ConnectionReason, address: string | undefined): void {
    admission.count(reason);
    if (reason === "connections") {
      logProcess((rejected) =>
        logger?.warn(
          { limit: limits.connections, rejected },
          "connections were closed: as many are open as the process may have",
        ),
      );
    } else {
      logAddress((rejected) =>
        logger?.warn(
          { remoteAddress: address && unmapAddress(address), limit: limits.connectionsPerAddress, rejected },
          "connections of an address were rejected",
        ),
      );
    }
  }

  function mayShakeHands(): boolean {
    const nowMs = performance.now();
    if (nowMs - secondMs >= SECOND_MS) {
      secondMs = nowMs;
      handshakes = 0;
    }
    return handshakes++ < limits.rejectedHandshakes;
  }

  return {
    /** Counts a connection, or returns the reason to reject it: its address has too many. */
    take(address: string): ConnectionReason | undefined {
      if (options.behindProxy) return undefined;
      const count = perAddress.get(address) ?? 0;
      if (count >= limits.connectionsPerAddress) return "address_connections";
      perAddress.set(address, count + 1);
      return undefined;
    },

    /** Uncounts a connection. */
    release(address: string): void {
      const count = perAddress.get(address) ?? 0;
      if (count > 1) perAddress.set(address, count - 1);
      else perAddress.delete(address);
    },

    /** Answers a connection that was not counted, or cuts it when many are being answered. */
    reject(socket: Socket, reason: ConnectionReason): void {
      countRejection(reason, socket.remoteAddress);
      const { answers, secure } = answerers[reason];
      if (rejected.size >= limits.rejectedConnections || (secure !== undefined && !mayShakeHands())) {
        socket.destroy();
        return;
      }
      rejected.add(socket);
      const timer = setTimeout(() => socket.destroy(), limits.rejectedConnectionMs);
      socket.on("error", () => socket.destroy());
      socket.once("close", () => {
        clearTimeout(timer);
        rejected.delete(socket);
      });
      if (secure) secure.serve(socket);
      else detectProtocol(socket, limits.rejectedConnectionMs, answers);
    },

    /** Counts a connection that was closed because the process has as many as it may have. */
    drop(): void {
      countRejection("connections", undefined);
    },

    /** Uses another certificate for responses over TLS. */
    replaceTls(identity: TlsIdentity): void {
      for (const { secure } of Object.values(answerers)) secure?.replace(identity);
    },

    /** Cuts the connections that are being answered. */
    close(): void {
      for (const socket of rejected) socket.destroy();
    },
  };
}

const UNAVAILABLE = 14;

// Over TLS the protocol is known before a request has arrived. Peers that send nothing are cut by the timeout.
async function readFirst(socket: Socket): Promise<string> {
  const received = socket.read() as Buffer | null;
  if (received !== null) return received.toString("latin1");
  await new Promise<void>((resolve) => {
    socket.once("readable", resolve);
    socket.once("close", () => resolve());
  });
  return (socket.read() as Buffer | null)?.toString("latin1") ?? "";
}

// Reads the request line and headers from what has arrived, without an HTTP parser, so only plain requests are
// recognised.
function parseHead(received: string): Pick<RejectedRequest, "httpVersion" | "httpMethod" | "url" | "headers"> {
  const [head = ""] = received.split("\r\n\r\n", 1);
  const [, httpMethod, url, minor] = /^([A-Z]{1,20}) (\/[!-~]*) HTTP\/1\.([01])(?:\r\n|$)/.exec(head) ?? [];
  if (url === undefined || head === received) return { httpVersion: "1.1" };
  const ids = [...head.matchAll(/\r\nx-request-id:[ \t]*([^\r\n]*?)[ \t]*(?=\r\n|$)/gi)].map(([, id]) => id);
  return { httpVersion: minor === "0" ? "1.0" : "1.1", httpMethod, url, headers: { "x-request-id": ids.join() } };
}

function formatHttp1({ status, body }: HealthResponse, requestId: string, isHead: boolean): string {
  return (
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Type: application/json\r\n` +
    `Cache-Control: no-store\r\n${status === 503 ? "Retry-After: 1\r\n" : ""}` +
    `X-Request-Id: ${requestId}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${isHead ? "" : body}`
  );
}

// An empty SETTINGS frame, which must come first, and GOAWAY with the last stream 0, so that callers may retry all of
// their requests (RFC 9113, section 6.8).
const HTTP2_RESPONSE = buildHttp2Response("too many connections are open");

function buildHttp2Response(text: string): Buffer {
  const settings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);
  const goaway = Buffer.alloc(17 + text.length);
  goaway.writeUIntBE(8 + text.length, 0, 3);
  goaway[3] = 7;
  goaway.writeUInt32BE(constants.NGHTTP2_ENHANCE_YOUR_CALM, 13);
  goaway.write(text, 17, "latin1");
  return Buffer.concat([settings, goaway]);
}
