// Tells the protocols of one port apart: TLS connections by ALPN, cleartext connections by
// the HTTP/2 connection preface.
import type { Socket } from "node:net";
import { createServer as createTlsServer, type TLSSocket } from "node:tls";
import type { Limits } from "./limits.js";

/** A certificate chain and its private key, both PEM. */
export interface TlsIdentity {
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
}

/** Who serves the connections of each protocol. */
export interface Protocols {
  readonly http1: (socket: Socket) => void;
  readonly http2: (socket: Socket) => void;
}

const OLDEST_TLS = "TLSv1.2";

/** Creates the TLS side, which never listens; sockets are handed to it. */
export function createSecure(tls: TlsIdentity, limits: Limits, targets: Protocols) {
  const server = createTlsServer({
    cert: tls.cert,
    key: tls.key,
    minVersion: OLDEST_TLS,
    ALPNProtocols: ["h2", "http/1.1"],
    handshakeTimeout: limits.protocolDetectionMs,
  });
  server.on("secureConnection", (socket: TLSSocket) => {
    if (socket.alpnProtocol === "h2") targets.http2(socket);
    else targets.http1(socket);
  });
  server.on("tlsClientError", (_error, socket) => socket.destroy());
  return {
    /** Serves a socket that has just connected. */
    serve(socket: Socket): void {
      server.emit("connection", socket);
    },
    /** Connections from now on get another certificate; open ones stay. @throws Error when the key is not its own */
    replace({ cert, key }: TlsIdentity): void {
      server.setSecureContext({ cert, key, minVersion: OLDEST_TLS });
    },
  };
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
