// Throttles addresses whose connections cost the parsers of HTTP much more than their bytes: a body in pieces of one byte,
// or requests sent ahead of responses. Node reads up to 2 MiB of a socket in one turn of the event loop and calls
// JavaScript for each piece, before admission can refuse anything, so what the parsers do is counted where they call.
import type { Connection } from "./connection.js";
import type { Limits } from "./limits.js";

/** What one more small piece of a body costs, in microseconds. */
export const PIECE_US = 1;
/** What a piece costs of a body that has too many, which is dropped: more than it takes, so that its peer is stopped. */
export const DROPPED_PIECE_US = 8;
/** What a request costs that is sent ahead of the response before it, and a stream that is refused, in microseconds. */
export const AHEAD_US = 10;
/** What a request costs that is read after the last one that is answered: Node creates an error for each when it closes. */
export const IGNORED_US = 50;

/** The connections of one key, and what they cost. */
interface Peer {
  readonly connections: Set<Connection>;
  /** What they cost in this turn of the event loop, in microseconds, and how much of it was refused. */
  costUs: number;
  refusedUs: number;
  /** Its connections are not read, and new ones wait. */
  isPaused: boolean;
}

export interface ReadThrottleOptions {
  readonly limits: Pick<Limits, "readTurnUs" | "readCutUs" | "sessionCutUs" | "readPauseFactor" | "maxReadPauseMs">;
  /** Charges a key for time of the event loop, in milliseconds. */
  readonly charge: (key: string, costMs: number) => void;
  /** Called when the pause of a key has ended. */
  readonly onResume?: (key: string) => void;
  /** Called for each connection that is cut. */
  readonly onCut: (connection: Connection) => void;
}

/** See the head of this file. */
export class ReadThrottle {
  readonly #options: ReadThrottleOptions;
  readonly #peers = new Map<string, Peer>();
  /** Those that cost something in this turn, by key. */
  readonly #charged = new Map<string, Peer>();
  #paused = 0;
  #turn = 1;

  constructor(options: ReadThrottleOptions) {
    this.#options = options;
  }

  /** Adds a new connection. */
  add(connection: Connection): void {
    const peer = this.#peers.get(connection.key);
    if (peer === undefined)
      this.#peers.set(connection.key, { connections: new Set([connection]), costUs: 0, refusedUs: 0, isPaused: false });
    else peer.connections.add(connection);
  }

  /** Removes a connection that has closed. */
  remove(connection: Connection): void {
    const peer = this.#peers.get(connection.key);
    if (!peer?.connections.delete(connection)) return;
    // One that is paused is forgotten when its pause is over, so that a new connection does not end it.
    if (peer.connections.size === 0 && !peer.isPaused) this.#peers.delete(connection.key);
  }

  /** Whether new connections of a key are to wait. */
  isPaused(key: string): boolean {
    return this.#peers.get(key)?.isPaused === true;
  }

  /**
   * Charges the peer of a connection for what was read of it. A peer that has cost too much in this turn is paused. A
   * session of HTTP/2 cannot be paused, so one that costs far too much is cut. If that was refused besides, all sessions
   * of its peer are cut on which no caller has proven who it is, before they are read as well.
   *
   * @param isRefused whether no honest peer sends it
   */
  charge(connection: Connection, costUs: number, isRefused = false): void {
    const peer = this.#peers.get(connection.key);
    if (peer === undefined) return;
    if (peer.costUs === 0) {
      if (this.#charged.size === 0) setImmediate(() => this.#endTurn());
      this.#charged.set(connection.key, peer);
    }
    const { readTurnUs, readCutUs, sessionCutUs } = this.#options.limits;
    peer.costUs += costUs;
    if (isRefused) peer.refusedUs += costUs;
    if (connection.readTurn !== this.#turn) {
      connection.readTurn = this.#turn;
      connection.readCostUs = 0;
    }
    connection.readCostUs += costUs;
    if (peer.costUs > readTurnUs && !peer.isPaused) {
      peer.isPaused = true;
      this.#paused++;
      for (const { reader } of peer.connections) reader?.hold("throttled");
    }
    // Not a connection of a proxy: others use it too.
    if (!connection.isHttp2 || connection.isProxy) return;
    if (peer.refusedUs > readCutUs) {
      for (const other of peer.connections) if (other === connection || isUnknownSession(other)) this.#cut(other);
    } else if (connection.readCostUs > sessionCutUs) this.#cut(connection);
  }

  #cut(connection: Connection): void {
    if (connection.isClosed) return;
    this.#options.onCut(connection);
    connection.cut();
  }

  #endTurn(): void {
    this.#turn++;
    const { readTurnUs, readPauseFactor, maxReadPauseMs } = this.#options.limits;
    for (const [key, peer] of this.#charged) {
      const costMs = peer.costUs / 1_000;
      this.#options.charge(key, costMs);
      // The share of the time is for all that are paused together.
      const pauseMs = Math.min(Math.ceil(costMs * readPauseFactor * this.#paused), maxReadPauseMs);
      if (peer.costUs > readTurnUs) setTimeout(() => this.#resume(key, peer), pauseMs).unref();
      peer.costUs = 0;
      peer.refusedUs = 0;
    }
    this.#charged.clear();
  }

  #resume(key: string, peer: Peer): void {
    peer.isPaused = false;
    this.#paused--;
    for (const { reader } of peer.connections) reader?.release("throttled");
    this.#options.onResume?.(key);
    if (peer.connections.size === 0 && this.#peers.get(key) === peer) this.#peers.delete(key);
  }
}

function isUnknownSession({ isHttp2, isProven }: Connection): boolean {
  return isHttp2 && !isProven;
}
