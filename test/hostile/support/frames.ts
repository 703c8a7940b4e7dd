// HTTP/2 frames by hand (RFC 9113): what a peer may send and no client library
// does, in packets of the test's own choosing.
import { connect, type Socket } from "node:net";

/** The types of frames that are sent or looked at here. */
export const FRAME = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, goaway: 7, windowUpdate: 8 } as const;
const END_STREAM = 1;
const ACK = 1;
const END_HEADERS = 4;
const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const SETTING_INITIAL_WINDOW = 4;

/** A frame as it was received. */
export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

/** A frame's bytes. */
export function frameBytes(
  type: number,
  flags: number,
  stream: number,
  payload: Uint8Array = new Uint8Array(),
): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** A HEADERS frame with these fields, written literally (RFC 7541, section 6.2.2). */
export function headersFrame(stream: number, fields: Readonly<Record<string, string>>, endStream = false): Buffer {
  const parts = Object.entries(fields).flatMap(([name, value]) => [Buffer.from([0]), textOf(name), textOf(value)]);
  return frameBytes(FRAME.headers, END_HEADERS | (endStream ? END_STREAM : 0), stream, Buffer.concat(parts));
}

/**
 * HEADERS frames of requests that are all alike, each with its reset: the first names the fields, the others refer to them
 * (RFC 7541, section 6.1), so that each request and its reset are a few dozen bytes.
 */
export function resetBurst(fields: Readonly<Record<string, string>>, count: number, first = 1): Buffer {
  const entries = Object.entries(fields);
  const named = entries.flatMap(([name, value]) => [Buffer.from([0x40]), textOf(name), textOf(value)]);
  const indexed = Buffer.from(entries.map((_, i) => 0x80 | (61 + entries.length - i)));
  const frames: Buffer[] = [];
  for (let i = 0; i < count; i++) {
    const id = first + 2 * i;
    const block = i === 0 ? Buffer.concat(named) : indexed;
    frames.push(frameBytes(FRAME.headers, END_HEADERS | END_STREAM, id, block), resetFrame(id));
  }
  return Buffer.concat(frames);
}

/** A DATA frame. */
export function dataFrame(stream: number, payload: Uint8Array, endStream = false): Buffer {
  return frameBytes(FRAME.data, endStream ? END_STREAM : 0, stream, payload);
}

/** A RST_STREAM frame. @param code CANCEL unless given */
export function resetFrame(stream: number, code = 8): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(code);
  return frameBytes(FRAME.reset, 0, stream, payload);
}

// A length of seven bits with its continuation (RFC 7541, section 5.1), then the text without Huffman.
function textOf(text: string): Buffer {
  const bytes = Buffer.from(text);
  if (bytes.length < 127) return Buffer.concat([Buffer.from([bytes.length]), bytes]);
  const length = [127];
  let rest = bytes.length - 127;
  for (; rest >= 128; rest = Math.floor(rest / 128)) length.push((rest % 128) + 128);
  return Buffer.concat([Buffer.from([...length, rest]), bytes]);
}

/** A connection that speaks frames. */
export interface FrameConnection {
  /** Rejects when the connection cannot be made. */
  readonly ready: Promise<void>;
  /** Frames received so far by type. */
  readonly received: Readonly<Record<number, number>>;
  /** The error code of the GOAWAY that came; undefined before it did. */
  readonly goaway: number | undefined;
  readonly isClosed: boolean;
  /** Called with every frame; answers to PING and SETTINGS are sent already. */
  onFrame: ((frame: Frame) => void) | undefined;
  /** Sends all of these at once. */
  send(...frames: readonly Uint8Array[]): void;
  /** Stops reading what comes. */
  pause(): void;
  close(): void;
}

/** Opens one. @param windowBytes the window of every stream, as SETTINGS say it; the default unless given */
export function openFrames(url: string, localAddress: string, windowBytes?: number): FrameConnection {
  const socket: Socket = connect({ host: "127.0.0.1", port: Number(new URL(url).port), localAddress, noDelay: true });
  const received: Record<number, number> = {};
  let goaway: number | undefined;
  let isClosed = false;
  let buffered = Buffer.alloc(0);
  const settings = Buffer.alloc(windowBytes === undefined ? 0 : 6);
  if (windowBytes !== undefined) {
    settings.writeUInt16BE(SETTING_INITIAL_WINDOW, 0);
    settings.writeUInt32BE(windowBytes, 2);
  }
  socket.write(Buffer.concat([PREFACE, frameBytes(FRAME.settings, 0, 0, settings)]));
  socket.on("error", () => {});
  socket.on("close", () => {
    isClosed = true;
  });
  const connection: FrameConnection = {
    ready: new Promise((resolve, reject) => {
      socket.once("connect", resolve);
      socket.once("close", () => reject(new Error("the connection was closed")));
    }),
    received,
    get goaway() {
      return goaway;
    },
    get isClosed() {
      return isClosed;
    },
    onFrame: undefined,
    send(...frames) {
      if (!isClosed) socket.write(Buffer.concat(frames));
    },
    pause: () => void socket.pause(),
    close: () => void socket.destroy(),
  };
  connection.ready.catch(() => {});
  socket.on("data", (chunk) => {
    buffered = buffered.length === 0 ? chunk : Buffer.concat([buffered, chunk]);
    let at = 0;
    for (; buffered.length - at >= 9; ) {
      const length = buffered.readUIntBE(at, 3);
      if (buffered.length - at < 9 + length) break;
      const type = buffered[at + 3] ?? 0;
      const flags = buffered[at + 4] ?? 0;
      const stream = buffered.readUInt32BE(at + 5) & 0x7fffffff;
      const payload = buffered.subarray(at + 9, at + 9 + length);
      at += 9 + length;
      received[type] = (received[type] ?? 0) + 1;
      if (type === FRAME.goaway) goaway = payload.readUInt32BE(4);
      if (type === FRAME.settings && !(flags & ACK)) connection.send(frameBytes(FRAME.settings, ACK, 0));
      if (type === FRAME.ping && !(flags & ACK)) connection.send(frameBytes(FRAME.ping, ACK, 0, payload));
      connection.onFrame?.({ type, flags, stream, payload });
    }
    buffered = buffered.subarray(at);
  });
  return connection;
}

/** The header fields of a gRPC call. */
export function grpcFields(url: string, path: string, token?: string): Record<string, string> {
  return {
    ":method": "POST",
    ":scheme": "http",
    ":authority": new URL(url).host,
    ":path": path,
    "content-type": "application/grpc",
    te: "trailers",
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  };
}
