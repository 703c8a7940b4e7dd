import type { Socket } from "node:net";

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/** What to do with a socket once its protocol is known. */
export interface SniffTargets {
  readonly http1: (socket: Socket) => void;
  readonly http2: (socket: Socket) => void;
}

/**
 * Tells HTTP/2 with prior knowledge from HTTP/1.1 on a cleartext socket by the connection preface
 * (RFC 9113 section 3.4), which no HTTP/1.1 request can begin with. All of it is compared: `P` alone
 * could be a POST. A peer that has not decided after `timeoutMs` is cut.
 *
 * Bytes are collected from `data` events and put back in one piece: reading and putting back while
 * undecided would make the socket spin.
 */
export function sniff(socket: Socket, timeoutMs: number, targets: SniffTargets): void {
  let got: Buffer | undefined;
  const timer = setTimeout(() => socket.destroy(), timeoutMs);
  const onError = () => socket.destroy();
  const onClose = () => clearTimeout(timer);

  const onData = (chunk: Buffer) => {
    got = got === undefined ? chunk : Buffer.concat([got, chunk]);
    const compared = Math.min(got.length, PREFACE.length);
    const same = got.compare(PREFACE, 0, compared, 0, compared) === 0;
    if (same && compared < PREFACE.length) return;
    clearTimeout(timer);
    socket.pause();
    socket.off("data", onData);
    socket.off("close", onClose);
    socket.unshift(got);
    if (same) targets.http2(socket);
    else targets.http1(socket);
    // The server has its own handler by now; between the two there must be no moment without one.
    socket.off("error", onError);
    if (!same) socket.resume();
  };

  socket.on("error", onError);
  socket.on("close", onClose);
  socket.on("data", onData);
}
