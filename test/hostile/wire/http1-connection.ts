// An HTTP/1.1 connection by hand: any bytes go out, and answers are read as they come.
import { connect } from "node:net";
import { addressOf, type Peer, type Sent } from "./campaign.js";

/** A response as it came. */
export interface RawResponse {
  readonly status: number;
  /** By name in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** What to do with a connection. */
export interface Http1Options {
  /**
   * How the inputs go out: `together` in one piece; `last-alone` with the last one after the responses to
   * the others, since its error would end the connection before those are written; or these pieces.
   */
  readonly pieces: "together" | "last-alone" | readonly Buffer[];
  /** After so long without a response none is expected any more, in milliseconds. */
  readonly quietMs: number;
  /** Told of every response, in order; without it only statuses are looked for, whatever surrounds them. */
  readonly onAnswer?: (response: RawResponse, number: number) => void;
  /** Told of a status when there is no `onAnswer`. */
  readonly onStatus?: (status: number) => void;
}

/** How long a response that is owed may take, however busy the machine is, in milliseconds. */
export const RESPONSE_MS = 20_000;

/**
 * Sends inputs over one connection and waits for as many responses, or until nothing more comes; then
 * sends FIN and waits for the end of the connection. A connection that is held gets no FIN.
 */
export async function sendHttp1(peer: Peer, inputs: readonly Buffer[], options: Http1Options): Promise<Sent> {
  const { onAnswer, onStatus, pieces, quietMs } = options;
  const socket = connect({ port: peer.target.port, host: "127.0.0.1", localAddress: addressOf(peer), noDelay: true });
  let responses = 0;
  let fin = false;
  let endedByService = false;
  let wake: (() => void) | undefined;
  socket.on("error", () => {});
  const closed = new Promise<void>((resolve) => {
    socket.once("close", () => {
      endedByService = !fin;
      wake?.();
      resolve();
    });
  });

  function onCounted(status: number): void {
    if (status >= 200) responses++;
    onStatus?.(status);
  }
  const read =
    onAnswer === undefined ? statusReader(onCounted) : responseReader((response) => onAnswer(response, responses++));
  socket.on("data", (chunk: Buffer) => {
    read(chunk);
    wake?.();
  });

  // Resolves with the responses that are waited for, the end of the connection, or after a while without either.
  async function waitForResponses(count: number): Promise<void> {
    let last = -1;
    while (responses < count && !socket.destroyed && responses !== last) {
      last = responses;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, quietMs);
        wake = () => {
          if (responses < count && responses === last && !socket.destroyed) return;
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  if (pieces === "last-alone" && inputs.length > 1) {
    socket.write(Buffer.concat(inputs.slice(0, -1)));
    await waitForResponses(inputs.length - 1);
    if (!socket.destroyed) socket.write(inputs.at(-1) ?? "");
  } else {
    const all = typeof pieces === "string" ? [Buffer.concat(inputs)] : pieces;
    for (const [i, piece] of all.entries()) {
      if (i > 0) await new Promise((resolve) => setImmediate(resolve));
      if (socket.destroyed) break;
      socket.write(piece);
    }
  }
  await waitForResponses(inputs.length);

  // What waits for the rest of a request has been read; what follows an error has not.
  const taken = Math.max(1, Math.min(inputs.length, responses + (endedByService ? 0 : 1)));
  if (onAnswer !== undefined && responses < inputs.length && !endedByService && quietMs >= RESPONSE_MS) {
    peer.fault(`${responses} answers to ${inputs.length} requests after ${quietMs} ms`);
  }
  if (peer.hold) return { inputs: taken, closed, destroy: () => socket.destroy() };
  fin = true;
  socket.end();
  if (!socket.destroyed) await closed;
  return { inputs: taken };
}

const STATUS = /HTTP\/1\.1 (\d{3})/g;

function statusReader(onStatus: (status: number) => void): (chunk: Buffer) => void {
  let rest = "";
  return (chunk) => {
    const text = rest + chunk.toString("latin1");
    let end = 0;
    for (const match of text.matchAll(STATUS)) {
      onStatus(Number(match[1]));
      end = match.index + match[0].length;
    }
    // A status may be cut in two.
    rest = text.slice(Math.max(end, text.length - 11));
  };
}

const HEAD_END = Buffer.from("\r\n\r\n");

// No response to HEAD, CONNECT or an upgrade is read here.
function responseReader(onAnswer: (response: RawResponse) => void): (chunk: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);

  function take(): boolean {
    const headEnd = rest.indexOf(HEAD_END);
    if (headEnd < 0) return false;
    const lines = rest.subarray(0, headEnd).toString("latin1").split("\r\n");
    const status = Number(lines[0]?.slice(9, 12));
    const headers: Record<string, string> = {};
    for (const line of lines.slice(1)) {
      const colon = line.indexOf(":");
      headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
    }
    const start = headEnd + HEAD_END.length;
    let body: Buffer | undefined;
    let end = start;
    if (status < 200 || status === 204 || status === 304) {
      body = Buffer.alloc(0);
    } else if (headers["transfer-encoding"] === "chunked") {
      const chunks = chunksFrom(rest, start);
      if (chunks === undefined) return false;
      [body, end] = chunks;
    } else {
      end = start + Number(headers["content-length"] ?? 0);
      if (rest.length < end) return false;
      body = rest.subarray(start, end);
    }
    rest = rest.subarray(end);
    if (status >= 200) onAnswer({ status, headers, body });
    return rest.length > 0;
  }

  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    while (take()) {}
  };
}

// The content of a chunked body that begins at `at`, and where it ends; undefined when it is not all there.
function chunksFrom(bytes: Buffer, at: number): [content: Buffer, end: number] | undefined {
  const chunks: Buffer[] = [];
  for (;;) {
    const lineEnd = bytes.indexOf("\r\n", at);
    if (lineEnd < 0) return undefined;
    const size = Number.parseInt(bytes.subarray(at, lineEnd).toString("latin1"), 16);
    const start = lineEnd + 2;
    if (bytes.length < start + size + 2) return undefined;
    if (size === 0) return [Buffer.concat(chunks), start + 2];
    chunks.push(bytes.subarray(start, start + size));
    at = start + size + 2;
  }
}
