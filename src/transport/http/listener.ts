// One port for HTTP/1.1 and HTTP/2, with and without TLS. Only a net server listens: it accepts and counts connections,
// and passes them to the servers of the protocols.
import { type AddressInfo, createServer, type Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { ListenAddress } from "../../kernel/ip-address.js";
import type { Logger } from "../../telemetry/logger.js";
import { Http1 } from "./http1.js";
import { createHttp2 } from "./http2.js";
import type { Admission } from "./limits/admission.js";
import type { Connections } from "./limits/connections.js";
import type { Limits } from "./limits/limits.js";
import { type ConnectionHandlers, createTlsListener, detectProtocol, type TlsIdentity } from "./protocol-detection.js";
import type { RequestRecords } from "./records.js";
import type { RequestHandlers } from "./request.js";

/**
 * How many connections may wait to be accepted. What the kernel has no room for asks again after a second; of this number it
 * takes what `net.core.somaxconn` allows.
 */
const BACKLOG = 4_096;

/** For how long a port that is to be closed accepts at most, in milliseconds. */
const MAX_ACCEPT_MS = 5_000;
/** How long the last turn of the event loop before that may take, in milliseconds, or as a share of the time that passed. */
const SHORT_TURN_MS = 0.25;
const MAX_TURN_SHARE = 1 / 200;
/**
 * How long a stop waits for the first bytes of connections that were accepted before, in milliseconds: a proxy does not
 * repeat every request that it has sent on one.
 */
const FIRST_BYTES_MS = 1_000;

/** Callbacks of a port. */
export interface AcceptEvents {
  onError(error: Error): void;
  onDrop(): void;
}

/** Gets a connection, and whether whoever accepted it has found more of its address than there may be. */
export type OnConnection = (socket: Socket, isOverLimit?: boolean) => void;

/** A bound port. Connections wait until {@link BoundPort.accept}. */
export interface BoundPort {
  readonly address: ListenAddress;
  /**
   * Passes on the waiting connections and all later ones. `onError` gets errors of accepting them, and `onDrop` is
   * called for each connection beyond `maxConnections`, which is closed.
   */
  accept(onConnection: OnConnection, events: AcceptEvents, maxConnections: number): void;
  /**
   * Resolves when hardly a connection can wait in the system to be accepted. It resets those that wait when the port is
   * closed, and a proxy does not repeat every request that it has sent on one.
   */
  acceptWaiting(): Promise<void>;
  /** Accepts no more connections, and destroys the waiting ones. May be called again. */
  close(): void;
}

/**
 * Binds a port.
 *
 * @param pauseOnConnect whether nothing is read of connections, because another process will read them
 * @throws Error of the system, such as EADDRINUSE, when the address cannot be used
 */
export function bindPort(listen: ListenAddress, pauseOnConnect = false): Promise<BoundPort> {
  const waiting = new Set<Socket>();
  const hold = (socket: Socket) => {
    waiting.add(socket);
    socket.on("error", () => socket.destroy());
    socket.once("close", () => waiting.delete(socket));
  };
  const server = createServer({ noDelay: true, pauseOnConnect }, hold);
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ port: listen.port, host: listen.host, backlog: BACKLOG }, () => {
      server.off("error", reject);
      const { address, port } = server.address() as AddressInfo;
      resolve({
        address: { host: address, port },
        accept(onConnection, { onError, onDrop }, maxConnections) {
          server.maxConnections = maxConnections;
          server.on("error", onError);
          server.on("drop", onDrop);
          server.off("connection", hold);
          server.on("connection", (socket) => onConnection(socket));
          for (const socket of waiting) onConnection(socket);
          waiting.clear();
        },
        async acceptWaiting() {
          let accepted = 0;
          const count = () => void accepted++;
          server.on("connection", count).on("drop", count);
          const beginMs = performance.now();
          // The turn that goes on may have accepted already.
          await nextTurn();
          for (let waitedMs = 0; waitedMs < MAX_ACCEPT_MS; ) {
            const before = accepted;
            const startMs = performance.now();
            await nextTurn();
            const nowMs = performance.now();
            waitedMs = nowMs - beginMs;
            // libuv accepts one connection, if there is one, at the begin of each turn. So none can wait but those that came
            // within the turn, and it should be short.
            const isShort = nowMs - startMs < Math.max(SHORT_TURN_MS, waitedMs * MAX_TURN_SHARE);
            if (accepted === before && isShort) break;
          }
          server.off("connection", count).off("drop", count);
        },
        close() {
          server.close();
          for (const socket of waiting) socket.destroy();
        },
      });
    });
  });
}

export interface ListenerOptions {
  readonly port: BoundPort;
  readonly tls?: TlsIdentity | undefined;
  readonly limits: Limits;
  readonly handle: RequestHandlers["handle"];
  readonly refuse: RequestHandlers["refuse"];
  readonly connections: Connections;
  /** The body of the error for a request that is rejected before it is parsed, by HTTP status. */
  readonly errorBody: (status: number) => string;
  readonly admission: Admission;
  /** Called with errors of accepting connections, such as EMFILE; they are logged unless given. */
  readonly onAcceptError?: ((error: Error) => void) | undefined;
  /** Records requests that are rejected before they are dispatched. */
  readonly records: RequestRecords;
  readonly logger?: Logger | undefined;
}

/** The open work of a listener. */
export interface OpenWork {
  /** Requests that are not answered yet, streams included. */
  readonly calls: number;
  readonly connections: number;
}

/** How many connections are open; those in `detecting` have no protocol yet. */
export type OpenConnections = Readonly<Record<"http1" | "http2" | "detecting", number>>;

/** Creates a listener that does not serve yet. */
export function createListener(options: ListenerOptions) {
  const { limits, logger, connections } = options;
  const onError = (err: unknown, requestId?: string) =>
    logger?.error({ err, requestId }, "a request failed outside of its handler");
  const handlers = { handle: options.handle, refuse: options.refuse, onError };
  const shared = { ...options, handlers, recordRejected: options.records.recordRejected };
  const http1 = new Http1(shared);
  const http2 = createHttp2(shared);
  const sniffed = new Set<Socket>();
  let http1Connections = 0;

  const targets: ConnectionHandlers = {
    http1(socket: Socket) {
      sniffed.delete(socket);
      http1Connections++;
      socket.once("close", () => http1Connections--);
      http1.serve(socket);
    },
    http2(socket: Socket) {
      sniffed.delete(socket);
      http2.serve(socket);
    },
  };
  const secure = options.tls && createTlsListener(options.tls, limits, targets);

  function onConnection(socket: Socket, isOverLimit = false): void {
    const connection = connections.accept(socket, isOverLimit);
    if (connection === undefined) return;
    if (secure) {
      secure.serve(socket);
      return;
    }
    sniffed.add(socket);
    socket.once("close", () => sniffed.delete(socket));
    detectProtocol(socket, limits, targets);
  }

  return {
    /** Begins to serve. */
    start(): void {
      // Running out of file descriptors is reported here and must not end the process.
      const { onAcceptError = (err: Error) => logger?.error({ err }, "accepting a connection failed") } = options;
      options.port.accept(
        onConnection,
        { onError: onAcceptError, onDrop: () => connections.noteCut() },
        limits.connections,
      );
    },

    /**
     * Serves new connections with another certificate.
     *
     * @throws Error when the key does not belong to it
     */
    replaceTls(identity: TlsIdentity): void {
      secure?.replace(identity);
    },

    /** How many connections are open, by protocol. */
    countConnections(): OpenConnections {
      const http2Connections = http2.openSessions();
      const detecting = Math.max(0, connections.count() - http1Connections - http2Connections);
      return { http1: http1Connections, http2: http2Connections, detecting };
    },

    /** Counts the open calls and connections. */
    openWork: (): OpenWork => ({ calls: connections.countRequests(), connections: connections.count() }),

    /**
     * Makes clients of HTTP/1.1 open new connections, which a balancer may send elsewhere: each response is the last one
     * of its connection. Everything is still served, also on new connections.
     */
    closeAfterResponses: () => http1.closeAfterResponses(),

    /**
     * Accepts no more connections, closes the open ones gracefully (GOAWAY, `Connection: close`), waits up to `graceMs`
     * for calls in flight, and then cuts the rest, also long streams. May be called again.
     */
    async stop(graceMs = limits.drainMs): Promise<void> {
      http1.closeAfterResponses();
      await options.port.acceptWaiting();
      options.port.close();
      connections.closeReserve();
      const cutSilent = () => {
        for (const socket of sniffed) socket.destroy();
      };
      // Sockets are read once more first, in case the process has stood still meanwhile.
      const timer = setTimeout(() => setImmediate(cutSilent), FIRST_BYTES_MS);
      http1.drain();
      http2.drain();
      await connections.awaitEnd(graceMs);
      clearTimeout(timer);
      if (connections.count() > 0)
        logger?.warn(this.openWork(), "the drain time is over: calls and connections are cut");
      connections.cut();
      http1.close();
    },
  };
}
