// One port for HTTP/1.1 and HTTP/2. TLS connections are told apart by ALPN,
// cleartext connections by the HTTP/2 connection preface. Neither HTTP server
// listens: a net server accepts and counts connections and hands them over.
import type { IncomingMessage, ServerResponse } from "node:http";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { createServer as createTlsServer, type TLSSocket } from "node:tls";
import { addressKey } from "../../kernel/ip-address.js";
import type { Logger } from "../../telemetry/logger.js";
import { createHttp1 } from "./http1.js";
import { createHttp2, type OnHttp2Stream } from "./http2.js";
import type { Limits } from "./limits.js";
import type { ConnectionHolders, Connections } from "./request-buffers.js";

/** Where to listen; port 0 takes a free one. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** A certificate chain and its private key, both PEM. */
export interface TlsIdentity {
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
}

/** A bound port. Connections made before {@link BoundPort.accept} wait. */
export interface BoundPort {
  readonly address: ListenAddress;
  /** Hands over the connections that wait and all later ones; `onError` gets what accepting them throws. */
  accept(onConnection: (socket: Socket) => void, onError: (error: Error) => void, maxConnections: number): void;
  /** Accepts no more and destroys the connections that wait. May be called again. */
  close(): void;
}

/**
 * Binds a port.
 *
 * @throws Error of the system, such as EADDRINUSE, when the address cannot be used
 */
export function bindPort(listen: ListenAddress): Promise<BoundPort> {
  const waiting = new Set<Socket>();
  const hold = (socket: Socket) => {
    waiting.add(socket);
    socket.on("error", () => socket.destroy());
    socket.once("close", () => waiting.delete(socket));
  };
  const server = createServer({ noDelay: true }, hold);
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(listen.port, listen.host, () => {
      server.off("error", reject);
      const { address, port } = server.address() as AddressInfo;
      resolve({
        address: { host: address, port },
        accept(onConnection, onError, maxConnections) {
          server.maxConnections = maxConnections;
          server.on("error", onError);
          server.off("connection", hold);
          server.on("connection", onConnection);
          for (const socket of waiting) onConnection(socket);
          waiting.clear();
        },
        close() {
          server.close();
          for (const socket of waiting) socket.destroy();
        },
      });
    });
  });
}

/** What {@link createListener} is made of. */
export interface ListenerOptions {
  readonly port: BoundPort;
  readonly tls?: TlsIdentity | undefined;
  readonly limits: Limits;
  /** Behind a proxy all peers share its address, so the cap per address is off. An IPv6 network of 64 bits is one. */
  readonly behindProxy?: boolean | undefined;
  readonly onHttp1: (req: IncomingMessage, res: ServerResponse) => void;
  /** Who the bytes of requests and answers are held for. */
  readonly connections: Connections;
  readonly onHttp2Stream: OnHttp2Stream;
  /** The body of the answer to what is refused before anybody looks at it, by HTTP status. */
  readonly errorBody: (status: number) => string;
  readonly logger?: Logger | undefined;
}

/** Serves the connections of a port. */
export type Listener = ReturnType<typeof createListener>;

/** Creates a listener that does not serve yet. */
export function createListener(options: ListenerOptions) {
  const { limits, logger, connections } = options;
  const onError = (err: unknown) => logger?.error({ err }, "a request failed outside of its handler");
  const holders = new WeakMap<Socket, ConnectionHolders>();
  const beginRequest = ({ socket, headers }: IncomingMessage) => {
    let connection = holders.get(socket);
    if (connection === undefined) {
      connection = connections.open(socket.remoteAddress);
      holders.set(socket, connection);
      socket.once("close", connection.close);
    }
    return connections.begin(connection, socket.remoteAddress, headers);
  };
  const http1 = createHttp1({ ...options, onRequest: options.onHttp1, onError, beginRequest });
  const http2 = createHttp2({ limits, onStream: options.onHttp2Stream, connections, onError });
  const sniffed = new Set<Socket>();
  const sockets = new Set<Socket>();
  const perAddress = new Map<string, number>();
  let onEmpty: (() => void) | undefined;

  const targets: Protocols = {
    http1(socket: Socket) {
      sniffed.delete(socket);
      http1.serve(socket);
    },
    http2(socket: Socket) {
      sniffed.delete(socket);
      http2.serve(socket);
    },
  };
  const secure = options.tls && createSecure(options.tls, limits, targets);

  function onConnection(socket: Socket): void {
    const address = addressKey(socket.remoteAddress);
    if (socket.remoteAddress === undefined || !takeConnection(address)) {
      socket.destroy();
      return;
    }
    sockets.add(socket);
    socket.once("close", () => {
      sockets.delete(socket);
      sniffed.delete(socket);
      releaseConnection(address);
      if (sockets.size === 0) onEmpty?.();
    });
    if (secure) {
      secure.emit("connection", socket);
      return;
    }
    sniffed.add(socket);
    detectProtocol(socket, limits.protocolDetectionMs, targets);
  }

  function takeConnection(address: string): boolean {
    if (options.behindProxy) return true;
    const count = perAddress.get(address) ?? 0;
    if (count >= limits.connectionsPerAddress) return false;
    perAddress.set(address, count + 1);
    return true;
  }

  function releaseConnection(address: string): void {
    const count = perAddress.get(address) ?? 0;
    if (count > 1) perAddress.set(address, count - 1);
    else perAddress.delete(address);
  }

  return {
    /** Begins to serve. */
    start(): void {
      // Running out of file descriptors is reported here and must not end the process.
      const onAcceptError = (err: Error) => logger?.error({ err }, "accepting a connection failed");
      options.port.accept(onConnection, onAcceptError, limits.connections);
    },

    /**
     * Accepts no more, asks every peer to go (GOAWAY, `Connection: close`), waits up to `graceMs` for
     * calls in flight and then cuts what is left, long streams included. May be called again.
     */
    async stop(graceMs = limits.drainMs): Promise<void> {
      options.port.close();
      for (const socket of sniffed) socket.destroy();
      http1.drain();
      http2.drain();
      if (sockets.size > 0) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, graceMs);
          onEmpty = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
      if (sockets.size > 0)
        logger?.warn({ connections: sockets.size }, "cutting connections at the end of the grace period");
      for (const socket of sockets) socket.destroy();
      http1.close();
    },
  };
}

interface Protocols {
  readonly http1: (socket: Socket) => void;
  readonly http2: (socket: Socket) => void;
}

function createSecure(tls: TlsIdentity, limits: Limits, targets: Protocols) {
  const server = createTlsServer({
    cert: tls.cert,
    key: tls.key,
    minVersion: "TLSv1.2",
    ALPNProtocols: ["h2", "http/1.1"],
    handshakeTimeout: limits.protocolDetectionMs,
  });
  server.on("secureConnection", (socket: TLSSocket) => {
    if (socket.alpnProtocol === "h2") targets.http2(socket);
    else targets.http1(socket);
  });
  server.on("tlsClientError", (_error, socket) => socket.destroy());
  return server;
}

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/**
 * Tells HTTP/2 with prior knowledge from HTTP/1.1 by the connection preface (RFC 9113, section 3.4), which no HTTP/1.1
 * request begins with. All of it is compared, because `P` alone could begin a POST. A peer that sends too little within
 * `timeoutMs` is cut off.
 *
 * Bytes are collected from `data` events and put back in one piece: to read and put back while the protocol is unknown
 * would make the socket spin.
 */
export function detectProtocol(socket: Socket, timeoutMs: number, targets: Protocols): void {
  let received: Buffer | undefined;
  const timer = setTimeout(() => socket.destroy(), timeoutMs);
  const onError = () => socket.destroy();
  const onClose = () => clearTimeout(timer);

  const onData = (chunk: Buffer) => {
    received = received === undefined ? chunk : Buffer.concat([received, chunk]);
    const compared = Math.min(received.length, PREFACE.length);
    const same = received.compare(PREFACE, 0, compared, 0, compared) === 0;
    if (same && compared < PREFACE.length) return;
    clearTimeout(timer);
    socket.pause();
    socket.off("data", onData);
    socket.off("close", onClose);
    socket.unshift(received);
    if (same) targets.http2(socket);
    else targets.http1(socket);
    // Only now: the server has its own handler, and without one an error would end the process.
    socket.off("error", onError);
    if (!same) socket.resume();
  };

  socket.on("error", onError);
  socket.on("close", onClose);
  socket.on("data", onData);
}
