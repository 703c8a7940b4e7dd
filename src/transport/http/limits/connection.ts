import type { Socket } from "node:net";
import type { SocketReader } from "../socket-reader.js";
import type { ConnectionReason } from "./admission.js";

/** What is known of a connection when it is accepted. */
export interface Accepted {
  /** The queue in which its requests wait, unless a proxy names the address of another. */
  readonly key: string;
  /** The address at its other end. */
  readonly address: string;
  /** Whether the requests of many addresses come by it. */
  readonly isProxy: boolean;
  /** Which limit it exceeds; then it is one of the reserve. */
  readonly rejection: ConnectionReason | undefined;
}

/** A connection that was accepted. */
export class Connection implements Accepted {
  readonly key: string;
  readonly address: string;
  readonly isProxy: boolean;
  readonly rejection: ConnectionReason | undefined;
  /** How many of its requests are open. */
  open = 0;
  isClosed = false;
  /** Whether a caller has proven on it who it is. */
  isProven = false;
  /** Whether it is a session of HTTP/2. */
  isHttp2 = false;
  /** What was read of it in a turn of the event loop has cost, in microseconds, and which turn that is. */
  readCostUs = 0;
  readTurn = 0;
  /** Stops its reading; undefined where Node has no way to do so, as for HTTP/2. */
  reader: SocketReader | undefined;
  /** Called when a body has too many pieces, of which no more are read; HTTP/2 resets the stream alone. */
  onBodyRefused: (() => void) | undefined;
  /** Ends it while it is idle; an HTTP/2 session replaces it. */
  end: () => void = () => this.cut();
  readonly #socket: Socket;

  constructor(socket: Socket, { key, address, isProxy, rejection }: Accepted) {
    this.#socket = socket;
    this.key = key;
    this.address = address;
    this.isProxy = isProxy;
    this.rejection = rejection;
    this.reader = undefined;
    this.onBodyRefused = undefined;
  }

  /** Ends it at once. May be called while it is being read: the socket as it was accepted belongs to no session. */
  cut(): void {
    this.#socket.destroy();
  }
}
