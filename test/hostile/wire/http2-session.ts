// An HTTP/2 session (RFC 9113) by hand: it sends any bytes, and understands what comes back.
import { connect } from "node:net";
import { createDecoder, type Field } from "./hpack.js";

/** Types of frames. */
export const FRAME = {
  DATA: 0,
  HEADERS: 1,
  PRIORITY: 2,
  RST_STREAM: 3,
  SETTINGS: 4,
  PUSH_PROMISE: 5,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const;

/** Flags of frames. */
export const FLAG = { END_STREAM: 1, ACK: 1, END_HEADERS: 4, PADDED: 8, PRIORITY: 0x20 } as const;

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");
const HEAD_BYTES = 9;

/** A frame. @param length what its head says; the true length unless given */
export function frame(type: number, flags: number, stream: number, payload: Buffer, length = payload.length): Buffer {
  const head = Buffer.allocUnsafe(HEAD_BYTES);
  head.writeUIntBE(length % 2 ** 24, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream >>> 0, 5);
  return Buffer.concat([head, payload]);
}

/** A SETTINGS frame of these pairs. */
export function settingsFrame(pairs: readonly (readonly [id: number, value: number])[]): Buffer {
  const payload = Buffer.allocUnsafe(pairs.length * 6);
  for (const [i, [id, value]] of pairs.entries()) {
    payload.writeUInt16BE(id, i * 6);
    payload.writeUInt32BE(value >>> 0, i * 6 + 2);
  }
  return frame(FRAME.SETTINGS, 0, 0, payload);
}

/** Four bytes in network order. */
export function uint32(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes;
}

/** What a session is made of. */
export interface SessionOptions {
  /** The address that the connection comes from; the system's choice unless given. */
  readonly localAddress?: string;
  /** The pairs of the first SETTINGS frame. */
  readonly settings?: readonly (readonly [id: number, value: number])[];
  /** Whether the value of a header of this name is of interest; all are unless given. */
  readonly reads?: (name: string) => boolean;
  /** Told of headers and trailers. */
  readonly onFields?: (stream: number, fields: readonly Field[]) => void;
  /** Told of the bytes of responses. */
  readonly onData?: (stream: number, bytes: Buffer) => void;
  /** Told of the end of a stream; `code` is there when it was reset. */
  readonly onEnd?: (stream: number, code: number | undefined) => void;
  readonly onGoAway?: (code: number) => void;
  /** Told of bytes that may be sent besides those that were allowed at first; stream 0 is the session. */
  readonly onWindow?: (stream: number, bytes: number) => void;
  /** Told of responses to PING. */
  readonly onPong?: (payload: Buffer) => void;
  /** Whether SETTINGS and PING are answered, and what was read is given back as window; yes unless given. */
  readonly polite?: boolean;
}

/** A session. */
export interface RawSession {
  send(...frames: readonly Buffer[]): void;
  /** Sends a block in one HEADERS frame. */
  headers(stream: number, block: Buffer, options?: { readonly endStream?: boolean }): void;
  data(stream: number, bytes: Buffer, options?: { readonly endStream?: boolean }): void;
  /** Resolves when something arrives, when the session is closed, or after `withinMs`; true for the first. */
  next(withinMs?: number): Promise<boolean>;
  /** Sends FIN. */
  end(): void;
  /** Ends the connection by RST. */
  reset(): void;
  destroy(): void;
  isClosed(): boolean;
  /** Whether anything has come. */
  isGreeted(): boolean;
  readonly closed: Promise<void>;
}

/** Opens a session on 127.0.0.1. The preface goes out with the first frames. */
export function openSession(port: number, options: SessionOptions = {}): RawSession {
  const { settings = [], onFields, onData, onEnd, onGoAway, onPong, onWindow, reads, polite = true } = options;
  const from = options.localAddress === undefined ? {} : { localAddress: options.localAddress };
  const socket = connect({ port, host: "127.0.0.1", noDelay: true, ...from });
  const decoder = createDecoder(reads);
  let rest: Buffer = Buffer.alloc(0);
  let block: Buffer[] = [];
  let wake: (() => void) | undefined;
  let isClosed = false;
  let isGreeted = false;
  const closed = new Promise<void>((resolve) => {
    socket.once("close", () => {
      isClosed = true;
      wake?.();
      resolve();
    });
  });
  socket.on("error", () => {});
  socket.write(Buffer.concat([PREFACE, settingsFrame(settings)]));

  function onFrame(type: number, flags: number, stream: number, payload: Buffer): void {
    switch (type) {
      case FRAME.SETTINGS:
        if (polite && (flags & FLAG.ACK) === 0) send(frame(FRAME.SETTINGS, FLAG.ACK, 0, Buffer.alloc(0)));
        break;
      case FRAME.PING:
        if ((flags & FLAG.ACK) !== 0) onPong?.(payload);
        else if (polite) send(frame(FRAME.PING, FLAG.ACK, 0, payload));
        break;
      case FRAME.DATA:
        if (polite && payload.length > 0) {
          const window = uint32(payload.length);
          send(frame(FRAME.WINDOW_UPDATE, 0, 0, window), frame(FRAME.WINDOW_UPDATE, 0, stream, window));
        }
        onData?.(stream, payload);
        break;
      case FRAME.HEADERS:
      case FRAME.CONTINUATION:
        block.push(payload);
        if ((flags & FLAG.END_HEADERS) !== 0) {
          onFields?.(stream, decoder.decode(Buffer.concat(block)));
          block = [];
        }
        break;
      case FRAME.RST_STREAM:
        onEnd?.(stream, payload.readUInt32BE(0));
        break;
      case FRAME.WINDOW_UPDATE:
        onWindow?.(stream, payload.readUInt32BE(0));
        break;
      case FRAME.GOAWAY:
        onGoAway?.(payload.readUInt32BE(4));
        break;
    }
    if ((type === FRAME.DATA || type === FRAME.HEADERS) && (flags & FLAG.END_STREAM) !== 0) onEnd?.(stream, undefined);
  }

  socket.on("data", (chunk: Buffer) => {
    isGreeted = true;
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let at = 0;
    while (rest.length - at >= HEAD_BYTES) {
      const length = rest.readUIntBE(at, 3);
      const end = at + HEAD_BYTES + length;
      if (rest.length < end) break;
      onFrame(
        rest[at + 3] ?? 0,
        rest[at + 4] ?? 0,
        rest.readUInt32BE(at + 5) & 0x7fffffff,
        rest.subarray(at + HEAD_BYTES, end),
      );
      at = end;
    }
    rest = rest.subarray(at);
    wake?.();
  });

  function send(...frames: readonly Buffer[]): void {
    if (!socket.destroyed && socket.writable)
      socket.write(frames.length === 1 ? (frames[0] as Buffer) : Buffer.concat(frames));
  }

  return {
    send,
    headers: (stream, bytes, { endStream = false } = {}) =>
      send(frame(FRAME.HEADERS, FLAG.END_HEADERS | (endStream ? FLAG.END_STREAM : 0), stream, bytes)),
    data: (stream, bytes, { endStream = false } = {}) =>
      send(frame(FRAME.DATA, endStream ? FLAG.END_STREAM : 0, stream, bytes)),
    next(withinMs = 10_000) {
      if (isClosed) return Promise.resolve(false);
      return new Promise((resolve) => {
        const timer = setTimeout(() => finish(false), withinMs);
        const finish = (arrived: boolean) => {
          clearTimeout(timer);
          wake = undefined;
          resolve(arrived);
        };
        wake = () => finish(!isClosed);
      });
    },
    end: () => void socket.end(),
    reset: () => void socket.resetAndDestroy(),
    destroy: () => void socket.destroy(),
    isClosed: () => isClosed,
    isGreeted: () => isGreeted,
    closed,
  };
}
