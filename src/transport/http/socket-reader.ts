import type { Socket } from "node:net";

/** Why a connection of HTTP/1.1 is not read. */
export type HoldReason =
  /** Its address has cost the parser too much. */
  | "throttled"
  /** A request waits for the response before it. */
  | "pipelined"
  /** The rest of a body is not wanted, and the connection ends with its response. */
  | "refused";

/**
 * Stops the reading of a connection of HTTP/1.1 for as long as there is a reason, whatever else resumes its socket. Before it
 * has begun it only notes the reasons: a socket that is resumed before it has a parser loses its first bytes.
 */
export class SocketReader {
  readonly #socket: Socket;
  readonly #reasons = new Set<HoldReason>();
  #hasBegun = false;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** Begins to read, when the socket has its parser. */
  begin(): void {
    this.#hasBegun = true;
    if (this.#reasons.size > 0) this.#stop();
    else this.#socket.resume();
  }

  /** Stops the reading. What Node has read already is still parsed. */
  hold(reason: HoldReason): void {
    const wasHeld = this.#reasons.size > 0;
    this.#reasons.add(reason);
    if (!wasHeld && this.#hasBegun) this.#stop();
  }

  /** Ends a reason, and reads on if it was the last one. */
  release(reason: HoldReason): void {
    if (!this.#reasons.delete(reason) || this.#reasons.size > 0 || !this.#hasBegun) return;
    this.#socket.off("resume", pauseAgain);
    // Node's own listener keeps a socket paused whose peer takes no responses.
    this.#socket.resume();
  }

  #stop(): void {
    this.#socket.on("resume", pauseAgain);
    this.#socket.pause();
  }
}

// Node resumes the socket for each body that is read. This listener runs after Node's own, before anything is read. If the
// socket was paused while its resumption was scheduled, it counts as paused already, and only the event stops the reading.
function pauseAgain(this: Socket): void {
  if (this.isPaused()) this.emit("pause");
  else this.pause();
}
