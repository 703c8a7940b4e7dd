// Accepts connections within the limits of their address and of the process, and opens their requests. A connection beyond
// a limit is served from a small reserve, where health checks are answered and everything else is rejected.
import type { IncomingHttpHeaders } from "node:http";
import type { Socket } from "node:net";
import { addressKey, unmapAddress } from "../../../kernel/ip-address.js";
import type { Logger } from "../../../telemetry/logger.js";
import { findForwardedAddress, isTrustedProxy, type TrustedProxies } from "../peer-address.js";
import type { Request, RequestHost } from "../request.js";
import { type Admission, type ConnectionReason, createRejectionLog } from "./admission.js";
import type { Budgets } from "./budgets.js";
import { Connection } from "./connection.js";
import type { Limits } from "./limits.js";
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

/**
 * The connections of a server. Each is in one of these states:
 *
 * - idle: it has no open request. At the limit of the process, the one that is idle longest is released to make room.
 * - in use: from the beginning of a request until no request is open, when it is idle again.
 * - released: it is being ended, and counts for no limit any more. An HTTP/2 session takes a moment to end.
 * - reserve: it is beyond a limit, and told so. It is cut after a while; when the reserve is full, it is cut at once.
 * - closed: its socket has closed, which may happen in every state. It is forgotten.
 *
 * `Connection.isClosed` is false only for those that are idle or in use.
 */
export class Connections {
  readonly #limits: Limits;
  readonly #admission: Admission;
  readonly #proxies: TrustedProxies | undefined;
  readonly #behindProxy: boolean;
  readonly #hasTls: boolean;
  readonly #logger: Logger | undefined;
  readonly #throttle: ReadThrottle;
  readonly #pacer: ReturnType<typeof createSessionPacer>;
  /** What its requests are given. */
  readonly host: RequestHost;
  /** How many may be served: all but those of the reserve. */
  readonly #room: number;
  // By both ends, because TLS hands over another socket than the one that was accepted.
  readonly #byEnds = new Map<string, Connection>();
  /** How many are idle or in use, by their addresses. */
  readonly #perAddress = new Map<string, number>();
  /** The idle ones, those that have been idle longest first. */
  readonly #idle = new Set<Connection>();
  /** The sockets of those that are idle, in use or released. */
  readonly #sockets = new Set<Socket>();
  readonly #reserve = new Set<Socket>();
  readonly #logAddress: RejectionLog;
  readonly #logPieces: RejectionLog;
  readonly #logProcess: RejectionLog;
  /** How many connections of proxies were accepted, each of which has a key of its own. */
  #proxyConnections = 0;
  /** How many are idle or in use. */
  #served = 0;
  #openRequests = 0;
  /** How many rejected connections have asked for a handshake in the second that began at `#secondMs`. */
  #handshakes = 0;
  #secondMs = 0;
  /** Called when the last of `#sockets` has closed; undefined until `awaitEnd` waits for that. */
  #onEmpty: (() => void) | undefined;

  constructor(options: ConnectionsOptions) {
    const { limits, admission, proxies, behindProxy = false, hasTls, logger } = options;
    this.#limits = limits;
    this.#admission = admission;
    this.#proxies = proxies;
    this.#behindProxy = behindProxy;
    this.#hasTls = hasTls;
    this.#logger = logger;
    this.#room = limits.connections - Math.min(limits.reservedConnections, Math.floor(limits.connections / 20));
    this.#logAddress = createRejectionLog(() => admission.counts.address_connections);
    this.#logPieces = createRejectionLog(() => admission.counts.pieces);
    this.#logProcess = createRejectionLog(() => admission.counts.connections);
    this.#throttle = new ReadThrottle({
      limits,
      charge: (key, costMs) => admission.charge(key, costMs),
      onResume: (key) => this.#pacer.beginOne(key),
      onCut: (connection) => this.#countPieces(connection),
    });
    this.#pacer = createSessionPacer({
      pauseMs: limits.readPauseMs,
      maxWaitMs: limits.sessionWaitMs,
      isPaused: (key) => this.#throttle.isPaused(key),
    });
    this.host = {
      budgets: options.budgets,
      maxWaitMs: limits.maxWaitMs,
      waitAgain: (request, run) => admission.waitAgain(request, run),
      limits,
      takesStream: options.takesStream,
      chargeRead: (connection, costUs, isRefused) => this.#throttle.charge(connection, costUs, isRefused),
      onClose: (request) => this.#endRequest(request),
    };
  }

  /**
   * Accepts a connection; undefined if it was cut, because it is one too many.
   *
   * @param isOverLimit whether its address has as many as it may have, also in other processes
   */
  accept(socket: Socket, isOverLimit = false): Connection | undefined {
    this.#admission.noteConnection();
    const { remoteAddress } = socket;
    if (remoteAddress === undefined) {
      socket.destroy();
      return undefined;
    }
    const address = addressKey(remoteAddress);
    const rejection = isOverLimit ? "address_connections" : this.#findRejection(address);
    const connection =
      rejection === undefined ? this.#serve(socket, remoteAddress, address) : this.#reject(socket, rejection, address);
    if (connection === undefined) return undefined;
    const ends = endsOf(socket);
    this.#byEnds.set(ends, connection);
    socket.once("close", () => this.#byEnds.get(ends) === connection && this.#byEnds.delete(ends));
    return connection;
  }

  /** Finds the connection of a socket. */
  of(socket: Ends): Connection | undefined {
    return this.#byEnds.get(endsOf(socket));
  }

  /**
   * Begins to read a connection, as soon as its address may be read. Its socket must not be read until then.
   */
  beginReading(socket: Socket, begin: () => void): void {
    const key = this.of(socket)?.key;
    if (key !== undefined && (this.#pacer.isBusy(key) || this.#throttle.isPaused(key)))
      this.#pacer.begin(key, socket, begin);
    else begin();
  }

  /** Charges a connection for a request that is sent ahead of the response before it. */
  chargeAhead(connection: Connection): void {
    this.#throttle.charge(connection, AHEAD_US);
  }

  /** Charges a connection for a request that is not answered. */
  chargeIgnored(connection: Connection): void {
    this.#throttle.charge(connection, IGNORED_US);
  }

  /** Charges a connection for a stream that is refused. */
  chargeRefused(connection: Connection): void {
    this.#throttle.charge(connection, AHEAD_US, true);
  }

  /** Notes a connection that was cut because the process has as many as it may have. */
  noteCut(): void {
    this.#countRejection("connections", undefined);
  }

  /** Counts a request of a connection as open, until its `onClose`. Returns the key of the queue in which it waits. */
  begin(connection: Connection, headers: IncomingHttpHeaders, remoteAddress: string | undefined): string {
    const named = connection.isProxy ? findForwardedAddress(remoteAddress, headers, this.#proxies) : undefined;
    const key = named === undefined ? connection.key : addressKey(named);
    this.#openRequests++;
    this.#admission.open(key);
    if (connection.open++ === 0) this.#idle.delete(connection);
    return key;
  }

  /** How many requests are open. */
  countRequests(): number {
    return this.#openRequests;
  }

  /** How many connections are open, without those of the reserve. */
  count(): number {
    return this.#sockets.size;
  }

  /** Cuts the connections of the reserve. */
  closeReserve(): void {
    for (const socket of this.#reserve) socket.destroy();
  }

  /** Resolves when all connections have closed, at the latest after `graceMs`. */
  async awaitEnd(graceMs: number): Promise<void> {
    if (this.#sockets.size === 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, graceMs);
      this.#onEmpty = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Cuts all connections. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  #findRejection(address: string): ConnectionReason | undefined {
    if (!this.#behindProxy && (this.#perAddress.get(address) ?? 0) >= this.#limits.connectionsPerAddress)
      return "address_connections";
    if (this.#served < this.#room) return undefined;
    const [idlest] = this.#idle;
    if (idlest === undefined) return "connections";
    // A session of HTTP/2 takes a moment to end, so it is counted as closed before.
    this.#release(idlest);
    idlest.end();
    return undefined;
  }

  #serve(socket: Socket, remoteAddress: string, address: string): Connection {
    const isProxy = this.#isProxy(remoteAddress);
    const key = isProxy ? `connection ${++this.#proxyConnections}` : address;
    const connection = new Connection(socket, { key, address, isProxy, rejection: undefined });
    this.#throttle.add(connection);
    this.#served++;
    this.#perAddress.set(address, (this.#perAddress.get(address) ?? 0) + 1);
    this.#idle.add(connection);
    this.#sockets.add(socket);
    socket.once("close", () => {
      this.#release(connection);
      this.#throttle.remove(connection);
      this.#sockets.delete(socket);
      if (this.#sockets.size === 0) this.#onEmpty?.();
    });
    return connection;
  }

  #isProxy(address: string): boolean {
    return this.#behindProxy || (this.#proxies !== undefined && isTrustedProxy(address, this.#proxies));
  }

  #endRequest({ key, connection }: Request): void {
    this.#openRequests--;
    this.#admission.close(key);
    if (--connection.open === 0 && !connection.isClosed) this.#idle.add(connection);
  }

  #release(connection: Connection): void {
    if (connection.isClosed) return;
    connection.isClosed = true;
    this.#served--;
    this.#idle.delete(connection);
    const count = this.#perAddress.get(connection.address) ?? 0;
    if (count > 1) this.#perAddress.set(connection.address, count - 1);
    else this.#perAddress.delete(connection.address);
  }

  #reject(socket: Socket, reason: ConnectionReason, address: string): Connection | undefined {
    this.#countRejection(reason, socket.remoteAddress);
    if (this.#reserve.size >= this.#limits.reservedConnections || (this.#hasTls && !this.#mayShakeHands())) {
      socket.destroy();
      return undefined;
    }
    this.#reserve.add(socket);
    const timer = setTimeout(() => socket.destroy(), this.#limits.reservedConnectionMs);
    socket.once("close", () => {
      clearTimeout(timer);
      this.#reserve.delete(socket);
    });
    const connection = new Connection(socket, { key: address, address, isProxy: false, rejection: reason });
    connection.isClosed = true;
    return connection;
  }

  // A handshake costs a millisecond, so few are made for connections that are too many.
  #mayShakeHands(): boolean {
    const nowMs = performance.now();
    if (nowMs - this.#secondMs >= SECOND_MS) {
      this.#secondMs = nowMs;
      this.#handshakes = 0;
    }
    return this.#handshakes++ < this.#limits.rejectedHandshakes;
  }

  #countRejection(reason: ConnectionReason, address: string | undefined): void {
    this.#admission.count(reason);
    if (reason === "connections") {
      const { connections: limit } = this.#limits;
      const text = "connections were rejected: as many are open as the process may have";
      this.#logProcess((rejected) => this.#logger?.warn({ limit, rejected }, text));
      return;
    }
    const { connectionsPerAddress: limit } = this.#limits;
    const remoteAddress = address && unmapAddress(address);
    const text = "connections of an address were rejected";
    this.#logAddress((rejected) => this.#logger?.warn({ remoteAddress, limit, rejected }, text));
  }

  #countPieces({ address: remoteAddress }: Connection): void {
    this.#admission.count("pieces");
    const text = "connections were cut, because they sent bodies in too many pieces";
    this.#logPieces((rejected) => this.#logger?.warn({ remoteAddress, rejected }, text));
  }
}

type RejectionLog = ReturnType<typeof createRejectionLog>;

/** Both ends of a connection. */
export type Ends = Pick<Socket, "remoteAddress" | "remotePort" | "localAddress">;

function endsOf({ remoteAddress, remotePort, localAddress }: Ends): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`;
}
