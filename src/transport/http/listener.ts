// One port for HTTP/1.1 and HTTP/2: by ALPN under TLS, by the connection
// preface in cleartext. Neither HTTP server listens; a plain net server accepts,
// counts and hands sockets over.
import type { IncomingMessage, ServerResponse } from "node:http";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { createServer as createTlsServer, type TLSSocket } from "node:tls";
import { addressKey } from "../../kernel/ip-address.js";
import type { Logger } from "../../telemetry/logger.js";
import type { Connections } from "./connections.js";
import { createHttp1 } from "./http1.js";
import { createHttp2, type OnHttp2Stream } from "./http2.js";
import type { Limits } from "./limits.js";
import type { ConnectionHolders } from "./request-buffers.js";
import { sniff } from "./sniff.js";

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

/** What {@link createListener} is made of. */
export interface ListenerOptions {
  readonly listen: ListenAddress;
  readonly tls?: TlsIdentity | undefined;
  readonly limits: Limits;
  /** Behind a proxy all peers share its address, so the cap per address is off. An IPv6 network of 64 bits is one. */
  readonly behindProxy?: boolean | undefined;
  readonly onHttp1: (req: IncomingMessage, res: ServerResponse) => void;
  /** Who the bytes of requests and answers are held for. */
  readonly connections: Connections;
  readonly onHttp2Stream: OnHttp2Stream;
  /** The body of the answer to what is refused before anybody looks at it, by HTTP status. */
  readonly refusalBody: (status: number) => string;
  readonly logger?: Logger | undefined;
}

/** The open port. */
export interface Listener {
  /** Begins to accept; throws what the system says when the address cannot be used. */
  start(): Promise<ListenAddress>;

  /**
   * Accepts no more, asks every peer to go (GOAWAY, `Connection: close`), waits up to `graceMs` for
   * calls in flight and then cuts what is left, long streams included. May be called again.
   */
  stop(graceMs?: number): Promise<void>;
}

/** Creates a listener that is not yet open. */
export function createListener(options: ListenerOptions): Listener {
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
  const undecided = new Set<Socket>();
  const sockets = new Set<Socket>();
  const perAddress = new Map<string, number>();
  let onEmpty: (() => void) | undefined;

  const targets = {
    http1(socket: Socket) {
      undecided.delete(socket);
      http1.serve(socket);
    },
    http2(socket: Socket) {
      undecided.delete(socket);
      http2.serve(socket);
    },
  };
  const secure = options.tls && createSecure(options.tls, limits, targets);

  const server = createServer({ noDelay: true }, (socket) => {
    const address = addressKey(socket.remoteAddress);
    if (socket.remoteAddress === undefined || !admit(address)) {
      socket.destroy();
      return;
    }
    sockets.add(socket);
    socket.once("close", () => {
      sockets.delete(socket);
      undecided.delete(socket);
      release(address);
      if (sockets.size === 0) onEmpty?.();
    });
    if (secure) {
      secure.emit("connection", socket);
      return;
    }
    undecided.add(socket);
    sniff(socket, limits.protocolDetectionMs, targets);
  });
  server.maxConnections = limits.connections;

  function admit(address: string): boolean {
    if (options.behindProxy) return true;
    const count = perAddress.get(address) ?? 0;
    if (count >= limits.connectionsPerAddress) return false;
    perAddress.set(address, count + 1);
    return true;
  }

  function release(address: string): void {
    const count = perAddress.get(address) ?? 0;
    if (count > 1) perAddress.set(address, count - 1);
    else perAddress.delete(address);
  }

  return {
    start: () =>
      new Promise((resolve, reject) => {
        server.once("error", reject);
        server.listen(options.listen.port, options.listen.host, () => {
          server.off("error", reject);
          // Running out of file descriptors shows up here and must not end the process.
          server.on("error", (error) => logger?.error({ err: error }, "accepting a connection failed"));
          const { address, port } = server.address() as AddressInfo;
          resolve({ host: address, port });
        });
      }),

    async stop(graceMs = limits.drainMs) {
      server.close();
      for (const socket of undecided) socket.destroy();
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

function createSecure(tls: TlsIdentity, limits: Limits, targets: { http1(s: Socket): void; http2(s: Socket): void }) {
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
