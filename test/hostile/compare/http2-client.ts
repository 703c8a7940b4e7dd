// HTTP/2 by hand: any fields go out, and what comes back is told frame by frame.
import type { WireResponse } from "../../support/read-response.js";
import { blockOf, type Field } from "../wire/hpack.js";
import { FLAG, FRAME, frame, openSession, type RawSession, uint32 } from "../wire/http2-session.js";
import { addressOf, QUIET_MS, RESPONSE_MS, REST_MS, type WireClient, type WireRequest } from "./exchange.js";

/** So many requests have one session. */
const REQUESTS_PER_SESSION = 200;
/** The flow-control window to begin with (RFC 9113, section 6.9.2), and the largest frame, in bytes. */
export const WINDOW_BYTES = 65_535;
const FRAME_BYTES = 16_384;
const CANCEL = uint32(8);
/** How long the reset that follows a response to an open request may take, in milliseconds. */
const RESET_MS = 2_000;

interface Session {
  readonly raw: RawSession;
  /** How many bytes may be sent. */
  window: number;
  stream: Exchange | undefined;
  nextStream: number;
  goAway: number | undefined;
}

interface Exchange {
  readonly stream: number;
  window: number;
  readonly blocks: (readonly Field[])[];
  readonly data: Buffer[];
  /** Whether the frame before was one of fields. */
  wasFields: boolean;
  end: string | undefined;
  reset: number | undefined;
}

/** Creates a client of the service at a port of 127.0.0.1. */
export function createHttp2Client(port: number): WireClient {
  let sent = 0;
  let current: Session | undefined;

  function open(): Session {
    const made: Session = {
      window: WINDOW_BYTES,
      stream: undefined,
      nextStream: 1,
      goAway: undefined,
      raw: openSession(port, {
        localAddress: addressOf(Math.floor(sent / REQUESTS_PER_SESSION)),
        onFields: (stream, fields) => {
          const exchange = find(stream);
          exchange?.blocks.push(fields);
          if (exchange) exchange.wasFields = true;
        },
        onData: (stream, bytes) => {
          const exchange = find(stream);
          exchange?.data.push(bytes);
          if (exchange) exchange.wasFields = false;
        },
        onEnd(stream, code) {
          const exchange = find(stream);
          if (exchange === undefined) return;
          if (code !== undefined) exchange.reset = code;
          const isTrailersOnly = exchange.wasFields && exchange.blocks.length === 1;
          exchange.end ??= code === undefined ? (isTrailersOnly ? "trailers-only" : "complete") : `reset ${code}`;
        },
        onGoAway: (code) => {
          made.goAway = code;
        },
        onWindow(stream, bytes) {
          if (stream === 0) made.window += bytes;
          const exchange = find(stream);
          if (exchange) exchange.window += bytes;
        },
      }),
    };
    const find = (stream: number) => (made.stream?.stream === stream ? made.stream : undefined);
    return made;
  }

  function drop(): void {
    current?.raw.destroy();
    current = undefined;
  }

  function isUnusable(): boolean {
    return current !== undefined && (current.raw.isClosed() || current.goAway !== undefined);
  }

  async function attempt(request: WireRequest, patience: number): Promise<WireResponse> {
    if (isUnusable()) drop();
    current ??= open();
    const session = current;
    const stream = session.nextStream;
    session.nextStream += 2;
    const exchange: Exchange = {
      stream,
      window: WINDOW_BYTES,
      blocks: [],
      data: [],
      wasFields: false,
      end: undefined,
      reset: undefined,
    };
    session.stream = exchange;
    const isOver = () => exchange.end !== undefined || session.raw.isClosed() || (session.goAway ?? 0) !== 0;
    // The service may wait for the rest of an open request.
    const untilMs = performance.now() + (request.open ? QUIET_MS * patience : RESPONSE_MS);
    const wait = () => session.raw.next(Math.max(1, untilMs - performance.now()));
    const body = request.body ?? Buffer.alloc(0);
    const endsWithHeaders = body.length === 0 && request.open !== true;
    const block = blockOf(request.block ?? [...pseudoFieldsOf(request), ...request.fields]);
    // What fits is sent at once, so that the service reads it at once.
    let written = 0;
    let frames = headersFrames(stream, block, endsWithHeaders);
    for (;;) {
      while (written < body.length && session.window > 0 && exchange.window > 0) {
        const length = Math.min(FRAME_BYTES, body.length - written, session.window, exchange.window);
        const isLast = written + length === body.length && request.open !== true;
        frames.push(frame(FRAME.DATA, isLast ? FLAG.END_STREAM : 0, stream, body.subarray(written, written + length)));
        written += length;
        session.window -= length;
        exchange.window -= length;
      }
      if (frames.length > 0) session.raw.send(...frames);
      frames = [];
      if (isOver() || performance.now() >= untilMs) break;
      if (request.endless && exchange.data.length > 0) {
        const frames = exchange.data.length;
        const came = await session.raw.next(REST_MS * patience);
        if (!came && exchange.data.length === frames && !isOver()) break;
      } else await wait();
    }
    return finish(request, session, exchange, written < body.length);
  }

  async function finish(request: WireRequest, session: Session, exchange: Exchange, isUnsent: boolean) {
    const { stream, blocks, data } = exchange;
    const isClosed = session.raw.isClosed();
    const end = exchange.end ?? (session.goAway !== undefined ? `goaway ${session.goAway}` : undefined);
    let connection = "kept";
    if (exchange.end === undefined || isUnsent) {
      // A part of the request is not sent, or the response goes on.
      if (!isClosed && exchange.reset === undefined) session.raw.send(frame(FRAME.RST_STREAM, 0, stream, CANCEL));
    } else if (request.open) {
      const untilMs = performance.now() + RESET_MS;
      while (exchange.reset === undefined && !session.raw.isClosed() && performance.now() < untilMs)
        await session.raw.next(untilMs - performance.now());
      connection = exchange.reset === undefined ? "left open" : `reset ${exchange.reset}`;
      if (exchange.reset === undefined) session.raw.send(frame(FRAME.RST_STREAM, 0, stream, CANCEL));
    }
    session.stream = undefined;
    if (isClosed || session.goAway !== undefined) connection = "closed";
    if (connection === "closed") drop();
    const [first = [], second] = blocks.filter((fields) => !isInformational(fields));
    return {
      end: end ?? (isClosed ? "closed" : request.endless && data.length > 0 ? "went on" : "nothing"),
      connection,
      interim: blocks.filter(isInformational).map(statusOf),
      status: first.length === 0 ? undefined : statusOf(first),
      fields: first.filter(([name]) => name !== ":status"),
      body: Buffer.concat(data),
      trailers: second,
    };
  }

  return {
    async send(request, patience = 1) {
      if (sent++ % REQUESTS_PER_SESSION === 0) drop();
      const isReused = current !== undefined;
      const wasClosed = isUnusable();
      const response = await attempt(request, patience);
      if (wasClosed) return { ...response, connection: "closed before" };
      if (response.end !== "closed" || !isReused) return response;
      return { ...(await attempt(request, patience)), connection: "closed before" };
    },
    close: drop,
  };
}

function headersFrames(stream: number, block: Buffer, isEnd: boolean): Buffer[] {
  const pieces = Array.from({ length: Math.ceil(block.length / FRAME_BYTES) }, (_, i) =>
    block.subarray(i * FRAME_BYTES, (i + 1) * FRAME_BYTES),
  );
  return pieces.map((piece, i) => {
    const flags = (i === pieces.length - 1 ? FLAG.END_HEADERS : 0) | (i === 0 && isEnd ? FLAG.END_STREAM : 0);
    return frame(i === 0 ? FRAME.HEADERS : FRAME.CONTINUATION, flags, stream, piece);
  });
}

function pseudoFieldsOf({ method, path, fields }: WireRequest): Field[] {
  const authority = fields.some(([name]) => name === "host") ? [] : [[":authority", "arbor.example"] as const];
  return [[":method", method], [":scheme", "http"], [":path", path], ...authority];
}

function statusOf(fields: readonly Field[]): number {
  return Number(fields.find(([name]) => name === ":status")?.[1]);
}

function isInformational(fields: readonly Field[]): boolean {
  const status = statusOf(fields);
  return status >= 100 && status < 200;
}
