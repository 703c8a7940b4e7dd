// Detects the protocol of a connection: with TLS by ALPN, otherwise by the HTTP/2 connection preface.
import type { Socket } from "node:net";
import { createServer, type TLSSocket } from "node:tls";
import type { Limits } from "./limits/limits.js";

/** A certificate chain and its private key, both PEM. */
export interface TlsIdentity {
  readonly cert: string | Buffer;
  readonly key: string | Buffer;
}

/** Serves the connections of each protocol. */
export interface ConnectionHandlers {
  readonly http1: (socket: Socket) => void;
  readonly http2: (socket: Socket) => void;
}

const OLDEST_TLS = "TLSv1.2";

/** Creates the TLS server. It never listens; it serves the sockets that it is given. */
export function createTlsListener(tls: TlsIdentity, limits: Limits, targets: ConnectionHandlers) {
  const server = createServer({
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
    /** Serves a new connection. */
    serve(socket: Socket): void {
      server.emit("connection", socket);
    },
    /**
     * Serves new connections with another certificate; open ones stay.
     *
     * @throws Error when the key does not belong to it
     */
    replace({ cert, key }: TlsIdentity): void {
      server.setSecureContext({ cert, key, minVersion: OLDEST_TLS });
    },
  };
}

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/**
 * Detects HTTP/2 with prior knowledge by its connection preface (RFC 9113, section 3.4), with which no request of
 * HTTP/1.1 begins. The whole preface is compared, because a POST begins with `P` too. A peer is cut off that sends too
 * little within `protocolDetectionMs`, or more frames with the preface than a body may have pieces: Node parses all of them
 * before requests can be counted.
 *
 * Bytes are collected from `data` events and unshifted once: to unshift them after each read would make the socket emit
 * them again without end.
 */
export function detectProtocol(socket: Socket, limits: Limits, targets: ConnectionHandlers): void {
  let received: Buffer | undefined;
  const timer = setTimeout(() => socket.destroy(), limits.protocolDetectionMs);
  const onError = () => socket.destroy();
  const onClose = () => clearTimeout(timer);

  const onData = (chunk: Buffer) => {
    received = received === undefined ? chunk : Buffer.concat([received, chunk]);
    const compared = Math.min(received.length, PREFACE.length);
    const same = received.compare(PREFACE, 0, compared, 0, compared) === 0;
    if (same && compared < PREFACE.length) return;
    clearTimeout(timer);
    if (same && countFrames(received) > limits.bodyPieces + received.length / limits.bytesPerPiece) {
      socket.destroy();
      return;
    }
    socket.pause();
    socket.off("data", onData);
    socket.off("close", onClose);
    socket.unshift(received);
    if (same) targets.http2(socket);
    else targets.http1(socket);
    // Removed only now, when the server has its own handler: without one, an error would end the process.
    socket.off("error", onError);
  };

  socket.on("error", onError);
  socket.on("close", onClose);
  socket.on("data", onData);
}

/** The length of the head of a frame, which begins with the length of the rest (RFC 9113, section 4.1). */
const FRAME_HEAD_BYTES = 9;

function countFrames(received: Buffer): number {
  let frames = 0;
  for (let at = PREFACE.length; at + FRAME_HEAD_BYTES <= received.length; frames++)
    at += FRAME_HEAD_BYTES + received.readUIntBE(at, 3);
  return frames;
}
