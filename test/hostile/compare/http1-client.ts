// HTTP/1.1 by hand: any bytes go out, and one response is read after another.

import { connect, type Socket } from "node:net";
import type { WireResponse } from "../../support/read-response.js";
import type { Field } from "../wire/hpack.js";
import { addressOf, QUIET_MS, RESPONSE_MS, REST_MS, type WireClient, type WireRequest } from "./exchange.js";

/** So many requests have one connection. */
const REQUESTS_PER_CONNECTION = 200;
const PROBE = Buffer.from("GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n");
const NO_BYTES = Buffer.alloc(0);

interface Connection {
  readonly socket: Socket;
  received: Buffer;
  isClosed: boolean;
  /** Called when bytes arrive or the connection closes. */
  wake: () => void;
}

/** A response that has begun to arrive. */
interface Parsed {
  readonly status: number;
  readonly fields: readonly Field[];
  readonly body: Buffer;
  readonly trailers: readonly Field[] | undefined;
  /** Where it ends; undefined while it goes on. */
  readonly end: number | undefined;
  /** Whether its end is that of the connection. */
  readonly untilClose: boolean;
}

/** Creates a client of the service at a port of 127.0.0.1. */
export function createHttp1Client(port: number): WireClient {
  let sent = 0;
  let current: Connection | undefined;

  function open(): Connection {
    const socket = connect({
      port,
      host: "127.0.0.1",
      localAddress: addressOf(Math.floor(sent / REQUESTS_PER_CONNECTION)),
      noDelay: true,
    });
    const made: Connection = { socket, received: NO_BYTES, isClosed: false, wake() {} };
    socket.on("data", (chunk: Buffer) => {
      made.received = made.received.length === 0 ? chunk : Buffer.concat([made.received, chunk]);
      made.wake();
    });
    // A service that closes with a request unread resets the connection.
    socket.on("error", () => {});
    socket.on("end", () => socket.end());
    socket.once("close", () => {
      made.isClosed = true;
      made.wake();
    });
    return made;
  }

  function drop(): void {
    current?.socket.destroy();
    current = undefined;
  }

  async function attempt(request: WireRequest, patience: number): Promise<WireResponse> {
    if (current?.isClosed) drop();
    current ??= open();
    const connection = current;
    connection.received = NO_BYTES;
    connection.socket.write(request.raw ?? format(request));
    const isHead = (request.raw?.toString("latin1", 0, 5) ?? `${request.method} `) === "HEAD ";
    const waitMs = request.odd ? QUIET_MS * patience : RESPONSE_MS;
    const restMs = request.endless ? REST_MS * patience : waitMs;
    const interim: number[] = [];
    const found = await readResponse(connection, isHead, waitMs, restMs, interim);
    if (found === undefined) {
      const end = connection.isClosed ? "closed" : "nothing";
      drop();
      return { ...NONE, end, connection: "closed", interim };
    }
    const { status, fields, body, trailers } = found;
    const response = { interim, status, fields, body, trailers };
    if (found.end === undefined) {
      const end = connection.isClosed ? (found.untilClose ? "complete" : "cut off") : "went on";
      drop();
      return { ...response, end, connection: "closed" };
    }
    connection.received = connection.received.subarray(found.end);
    return { ...response, end: "complete", connection: await findState(request, connection, fields, patience) };
  }

  // Whether the connection can be used again. After what is odd, another request tells.
  async function findState(
    { odd }: WireRequest,
    connection: Connection,
    fields: readonly Field[],
    patience: number,
  ): Promise<string> {
    const closes = fields.some(([name, value]) => name === "connection" && /\bclose\b/i.test(value));
    if (closes) {
      const untilMs = performance.now() + RESPONSE_MS;
      while (!connection.isClosed && performance.now() < untilMs) await next(connection, untilMs - performance.now());
      const state = connection.isClosed ? "closed" : "left open";
      drop();
      return state;
    }
    if (!odd) return "kept";
    // What follows the response belongs to the bytes that were sent before, which may be two requests.
    connection.socket.write(PROBE);
    const probe = await readResponse(connection, false, QUIET_MS * patience, QUIET_MS * patience, []);
    const isClosed = connection.isClosed;
    drop();
    if (probe?.end !== undefined) return probe.status === 200 ? "kept" : `then ${probe.status}`;
    return isClosed ? "closed" : "waits";
  }

  return {
    async send(request, patience = 1) {
      // What is odd has a connection of its own: its bytes may be taken for a part of another request.
      if (sent++ % REQUESTS_PER_CONNECTION === 0 || request.odd) drop();
      const isReused = current !== undefined;
      const wasClosed = current?.isClosed === true;
      const response = await attempt(request, patience);
      // The service closed the connection after the request before, when nothing said so.
      if (wasClosed) return { ...response, connection: "closed before" };
      if (response.end !== "closed" || !isReused || request.odd) return response;
      return { ...(await attempt(request, patience)), connection: "closed before" };
    },
    close: drop,
  };
}

const NONE = { status: undefined, fields: [], body: NO_BYTES, trailers: undefined } as const;

function format({ method, path, fields, body, chunked }: WireRequest): Buffer {
  const lines = [["host", "arbor.example"], ...fields].filter(
    ([name], at) => at > 0 || !fields.some((field) => field[0] === "host") || name !== "host",
  );
  if (body !== undefined && !fields.some(([name]) => name === "content-length")) {
    lines.push(chunked ? ["transfer-encoding", "chunked"] : ["content-length", String(body.length)]);
  }
  const head = `${method} ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`;
  return Buffer.concat([Buffer.from(head, "latin1"), ...(chunked ? chunksOf(body ?? NO_BYTES) : [body ?? NO_BYTES])]);
}

function chunksOf(body: Buffer): Buffer[] {
  const half = Math.ceil(body.length / 2);
  const parts = [body.subarray(0, half), body.subarray(half)].filter(({ length }) => length > 0);
  const chunks = parts.flatMap((part) => [Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from("\r\n")]);
  return [...chunks, Buffer.from("0\r\n\r\n")];
}

function next(connection: Connection, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(finish, ms);
    function finish(): void {
      clearTimeout(timer);
      connection.wake = () => {};
      resolve();
    }
    connection.wake = finish;
  });
}

// Reads one final response; undefined when none has begun in time. Each wait may take `waitMs` anew, and `restMs` once there
// are bytes of a body that may go on for ever.
async function readResponse(
  connection: Connection,
  isHead: boolean,
  waitMs: number,
  restMs: number,
  interim: number[],
): Promise<Parsed | undefined> {
  for (let at = 0; ; ) {
    const found = parse(connection.received, at, isHead);
    if (found !== undefined && found.status < 200) {
      interim.push(found.status);
      at = found.end ?? at;
      continue;
    }
    if (found?.end !== undefined || connection.isClosed) return found;
    const length = connection.received.length;
    await next(connection, found !== undefined && found.body.length > 0 ? restMs : waitMs);
    if (connection.received.length === length && !connection.isClosed) return found;
  }
}

const HEAD_END = Buffer.from("\r\n\r\n");

function parse(bytes: Buffer, at: number, isHead: boolean): Parsed | undefined {
  const headEnd = bytes.indexOf(HEAD_END, at);
  if (headEnd < 0) return undefined;
  const [line = "", ...lines] = bytes.subarray(at, headEnd).toString("latin1").split("\r\n");
  const status = Number(line.slice(9, 12));
  const fields = lines.map(toField);
  const start = headEnd + HEAD_END.length;
  const findValue = (name: string) => fields.find((field) => field[0] === name)?.[1];
  const common = { status, fields, trailers: undefined, untilClose: false };
  if (isHead || status < 200 || status === 204 || status === 304) return { ...common, body: NO_BYTES, end: start };
  if (findValue("transfer-encoding") === "chunked") return { ...common, ...readChunks(bytes, start) };
  const length = findValue("content-length");
  if (length === undefined) return { ...common, body: bytes.subarray(start), end: undefined, untilClose: true };
  const end = start + Number(length);
  return { ...common, body: bytes.subarray(start, end), end: bytes.length < end ? undefined : end };
}

function toField(line: string): Field {
  const colon = line.indexOf(":");
  return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
}

function readChunks(bytes: Buffer, start: number): Pick<Parsed, "body" | "end" | "trailers"> {
  const parts: Buffer[] = [];
  for (let at = start; ; ) {
    const lineEnd = bytes.indexOf("\r\n", at);
    const size = lineEnd < 0 ? Number.NaN : Number.parseInt(bytes.subarray(at, lineEnd).toString("latin1"), 16);
    const from = lineEnd + 2;
    if (Number.isNaN(size) || bytes.length < from + size + 2)
      return { body: Buffer.concat(parts), end: undefined, trailers: undefined };
    if (size === 0) return { body: Buffer.concat(parts), ...readTrailers(bytes, from) };
    parts.push(bytes.subarray(from, from + size));
    at = from + size + 2;
  }
}

function readTrailers(bytes: Buffer, at: number): Pick<Parsed, "end" | "trailers"> {
  if (bytes.toString("latin1", at, at + 2) === "\r\n") return { end: at + 2, trailers: undefined };
  const end = bytes.indexOf(HEAD_END, at);
  if (end < 0) return { end: undefined, trailers: undefined };
  return { end: end + HEAD_END.length, trailers: bytes.toString("latin1", at, end).split("\r\n").map(toField) };
}
