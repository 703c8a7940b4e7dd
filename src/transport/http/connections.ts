// Accepts connections within the limits of their address and of the process, and opens their requests. A connection beyond
// a limit is served from a small reserve, where health checks are answered and everything else is rejected.
import type { IncomingHttpHeaders } from "node:http";
import type { Socket } from "node:net";
import { addressKey, unmapAddress } from "../../kernel/ip-address.js";
import type { Logger } from "../../telemetry/logger.js";
import { type Admission, type ConnectionReason, createRejectionLog, findCallersTimeout } from "./admission.js";
import { Connection } from "./connection.js";
import type { Limits } from "./limits.js";
import { type Budgets, OpenRequest, type RequestHost } from "./open-request.js";
import { findForwardedAddress, isTrustedProxy, type TrustedProxies } from "./peer-address.js";
import { AHEAD_US, IGNORED_US, ReadThrottle } from "./read-throttle.js";
import { createSessionPacer } from "./session-pacer.js";

const SECOND_MS = 1_000;

export interface ConnectionsOptions {
  readonly limits: Limits;
  readonly admission: Admission;
  readonly budgets: Budgets;
  /** Trusted proxies, whose requests count for the addresses that they name. */
  readonly proxies?: TrustedProxies | undefined;
  /** Whether every connection is that of a proxy, so that there is no limit per address. */
  readonly behindProxy?: boolean | undefined;
  /** Whether the method under a path takes a stream of messages. */
  readonly takesStream: (path: string) => boolean;
  /** Whether each connection begins with a handshake. */
  readonly hasTls: boolean;
  readonly logger?: Logger | undefined;
}

/** The connections of a server. */
export type Connections = ReturnType<typeof createConnections>;

/** Creates the connections of a server. */
export function createConnections(options: ConnectionsOptions) {
  const { limits, admission, proxies, behindProxy = false, logger } = options;
  // By both ends, because TLS hands over another socket than the one that was accepted.
  const byEnds = new Map<string, Connection>();
  const perAddress = new Map<string, number>();
  /** The idle ones, those that have been idle longest first. */
  const idle = new Set<Connection>();
  const sockets = new Set<Socket>();
  const reserve = new Set<Socket>();
  const reserved = Math.min(limits.reservedConnections, Math.floor(limits.connections / 20));
  const room = limits.connections - reserved;
  const logAddress = createRejectionLog(() => admission.counts.address_connections);
  const logPieces = createRejectionLog(() => admission.counts.pieces);
  const logProcess = createRejectionLog(() => admission.counts.connections);
  let accepted = 0;
  let served = 0;
  let openRequests = 0;
  let handshakes = 0;
  let secondMs = 0;
  let onEmpty: (() => void) | undefined;

  const throttle = new ReadThrottle({
    limits,
    charge: admission.charge,
    onResume: (key) => pacer.beginOne(key),
    onCut(connection) {
      admission.count("pieces");
      const text = "connections were cut, because they sent bodies in too many pieces";
      logPieces((rejected) => logger?.warn({ remoteAddress: connection.address, rejected }, text));
    },
  });
  const pacer = createSessionPacer({
    pauseMs: limits.readPauseMs,
    maxWaitMs: limits.sessionWaitMs,
    isPaused: (key) => throttle.isPaused(key),
  });

  const host: RequestHost = {
    budgets: options.budgets,
    maxWaitMs: limits.maxWaitMs,
    waitAgain: admission.waitAgain,
    limits,
    takesStream: options.takesStream,
    chargeRead: (connection, costUs, isRefused) => throttle.charge(connection, costUs, isRefused),
    onClose({ key, connection }) {
      openRequests--;
      admission.close(key);
      if (--connection.open === 0 && !connection.isClosed) idle.add(connection);
    },
  };

  const isProxy = (address: string) => behindProxy || (proxies !== undefined && isTrustedProxy(address, proxies));

  function findRejection(address: string): ConnectionReason | undefined {
    if (!behindProxy && (perAddress.get(address) ?? 0) >= limits.connectionsPerAddress) return "address_connections";
    if (served < room) return undefined;
    const [idlest] = idle;
    if (idlest === undefined) return "connections";
    // A session of HTTP/2 takes a moment to end, so it is counted as closed before.
    release(idlest);
    idlest.end();
    return undefined;
  }

  function serve(socket: Socket, remoteAddress: string, address: string): Connection {
    const isOfProxy = isProxy(remoteAddress);
    const key = isOfProxy ? `connection ${++accepted}` : address;
    const connection = new Connection(socket, { key, address, isProxy: isOfProxy, rejection: undefined });
    throttle.add(connection);
    served++;
    perAddress.set(address, (perAddress.get(address) ?? 0) + 1);
    idle.add(connection);
    sockets.add(socket);
    socket.once("close", () => {
      release(connection);
      throttle.remove(connection);
      sockets.delete(socket);
      if (sockets.size === 0) onEmpty?.();
    });
    return connection;
  }

  function release(connection: Connection): void {
    if (connection.isClosed) return;
    connection.isClosed = true;
    served--;
    idle.delete(connection);
    const count = perAddress.get(connection.address) ?? 0;
    if (count > 1) perAddress.set(connection.address, count - 1);
    else perAddress.delete(connection.address);
  }

  function reject(socket: Socket, reason: ConnectionReason, address: string): Connection | undefined {
    countRejection(reason, socket.remoteAddress);
    if (reserve.size >= limits.reservedConnections || (options.hasTls && !mayShakeHands())) {
      socket.destroy();
      return undefined;
    }
    reserve.add(socket);
    const timer = setTimeout(() => socket.destroy(), limits.reservedConnectionMs);
    socket.once("close", () => {
      clearTimeout(timer);
      reserve.delete(socket);
    });
    const connection = new Connection(socket, { key: address, address, isProxy: false, rejection: reason });
    connection.isClosed = true;
    return connection;
  }

  // A handshake costs a millisecond, so few are made for connections that are too many.
  function mayShakeHands(): boolean {
    const nowMs = performance.now();
    if (nowMs - secondMs >= SECOND_MS) {
      secondMs = nowMs;
      handshakes = 0;
    }
    return handshakes++ < limits.rejectedHandshakes;
  }

  function countRejection(reason: ConnectionReason, address: string | undefined): void {
    admission.count(reason);
    if (reason === "connections") {
      const text = "connections were rejected: as many are open as the process may have";
      logProcess((rejected) => logger?.warn({ limit: limits.connections, rejected }, text));
      return;
    }
    const remoteAddress = address && unmapAddress(address);
    const text = "connections of an address were rejected";
    logAddress((rejected) => logger?.warn({ remoteAddress, limit: limits.connectionsPerAddress, rejected }, text));
  }

  return {
    /**
     * Accepts a connection; undefined if it was cut, because it is one too many.
     *
     * @param isOverLimit whether its address has as many as it may have, also in other processes
     */
    accept(socket: Socket, isOverLimit = false): Connection | undefined {
      admission.noteConnection();
      const { remoteAddress } = socket;
      if (remoteAddress === undefined) {
        socket.destroy();
        return undefined;
      }
      const address = addressKey(remoteAddress);
      const rejection = isOverLimit ? "address_connections" : findRejection(address);
      const connection =
        rejection === undefined ? serve(socket, remoteAddress, address) : reject(socket, rejection, address);
      if (connection === undefined) return undefined;
      const ends = endsOf(socket);
      byEnds.set(ends, connection);
      socket.once("close", () => byEnds.get(ends) === connection && byEnds.delete(ends));
      return connection;
    },
    /** Finds the connection of a socket. */
    of: (socket: Ends): Connection | undefined => byEnds.get(endsOf(socket)),
    /**
     * Begins to read a connection, as soon as its address may be read. Its socket must not be read until then.
     */
    beginReading(socket: Socket, begin: () => void): void {
      const key = byEnds.get(endsOf(socket))?.key;
      if (key !== undefined && (pacer.isBusy(key) || throttle.isPaused(key))) pacer.begin(key, socket, begin);
      else begin();
    },
    /** Charges a connection for a request that is sent ahead of the response before it. */
    chargeAhead: (connection: Connection) => throttle.charge(connection, AHEAD_US),
    /** Charges a connection for a request that is not answered. */
    chargeIgnored: (connection: Connection) => throttle.charge(connection, IGNORED_US),
    /** Charges a connection for a stream that is refused. */
    chargeRefused: (connection: Connection) => throttle.charge(connection, AHEAD_US, true),
    /** Notes a connection that was cut because the process has as many as it may have. */
    noteCut: () => countRejection("connections", undefined),
    /** Opens a request for a target. */
    begin(
      connection: Connection,
      target: string,
      headers: IncomingHttpHeaders,
      remoteAddress: string | undefined,
    ): OpenRequest {
      const named = connection.isProxy ? findForwardedAddress(remoteAddress, headers, proxies) : undefined;
      const key = named === undefined ? connection.key : addressKey(named);
      openRequests++;
      admission.open(key);
      if (connection.open++ === 0) idle.delete(connection);
      return new OpenRequest(key, target, findCallersTimeout(headers), connection, host);
    },
    /** How many requests are open. */
    countRequests: () => openRequests,
    /** How many connections are open, without those of the reserve. */
    count: () => sockets.size,
    /** Cuts the connections of the reserve. */
    closeReserve(): void {
      for (const socket of reserve) socket.destroy();
    },
    /** Resolves when all connections have closed, at the latest after `graceMs`. */
    async awaitEnd(graceMs: number): Promise<void> {
      if (sockets.size === 0) return;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, graceMs);
        onEmpty = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    },
    /** Cuts all connections. */
    cut(): void {
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Both ends of a connection. */
export type Ends = Pick<Socket, "remoteAddress" | "remotePort" | "localAddress">;

function endsOf({ remoteAddress, remotePort, localAddress }: Ends): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`;
}
