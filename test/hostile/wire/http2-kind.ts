// HTTP/2 sessions by hand: frames of all types with any flags, lengths and streams, in any state;
// floods of frames that are each allowed; and header blocks that are not.
import type { Random } from "../../support/openapi/random.js";
import { randomBytes } from "./bytes.js";
import { addressOf, type Kind, type Peer, type Sent } from "./campaign.js";
import type { Field } from "./hpack.js";
import { breakBlock, encodeBlock, fieldsFor } from "./http2-fields.js";
import { FLAG, FRAME, frame, openSession, settingsFrame, uint32 } from "./http2-session.js";
import { SERVICE_FAILED } from "./target.js";

/** The most frames of a session that is no flood. */
const BATCH = 60;
const EMPTY = Buffer.alloc(0);
const CANCEL = uint32(8);
/** How long the response to the last PING may take before the session is ended all the same, in milliseconds. */
const QUIET_MS = 1_000;
/** How long the response to what is sent first is waited for before streams are reset beside it, in milliseconds. */
const FIRST_MS = 2_000;
const LAST_PING = Buffer.from("the last");

/** The kind. */
export const http2Kind: Kind = {
  async send(random, peer) {
    if (random.chance(0.04)) return exchange(resets(random, peer), random, peer);
    return exchange({ frames: random.chance(0.02) ? flood(random, peer) : mixFrames(random, peer) }, random, peer);
  },
};

interface Frames {
  /** What has reached its handler before the rest is sent. */
  readonly first?: readonly Buffer[];
  readonly frames: readonly Buffer[];
}

async function exchange({ first = [], frames }: Frames, random: Random, peer: Peer): Promise<Sent> {
  let isAnswered = false;
  let isBroken = false;
  let isStarted = false;
  const session = openSession(peer.target.port, {
    localAddress: addressOf(peer),
    settings: random.chance(0.8) ? [[1, 0]] : firstSettings(random),
    polite: random.chance(0.9),
    reads: (name) => name === ":status" || name.startsWith("grpc-"),
    onFields(_stream, fields) {
      isStarted = true;
      fields.forEach(judge);
    },
    onEnd: (_stream, code) => code !== undefined && peer.count(`reset ${code}`),
    onGoAway(code) {
      peer.count(`goaway ${code}`);
      isBroken ||= code !== 0;
      // Node 20 leaves the socket of a session that it ended by an error to the timeout of idle sessions,
      // which the sessions that are held look at.
      if (isBroken && !peer.hold) session.reset();
    },
    onPong: (payload) => {
      isAnswered ||= payload.equals(LAST_PING);
    },
  });

  function judge([name, value]: Field): void {
    if (name === ":status") peer.count(value);
    if (name === "grpc-status") peer.count(`grpc ${value}`);
    const isFailure = name === "grpc-message" && SERVICE_FAILED.test(value);
    if (isFailure || (name === ":status" && value === "500") || (name === "grpc-status" && value === "2"))
      peer.fault(`${name} ${value}`);
  }

  if (first.length > 0) {
    session.send(...first);
    const until = performance.now() + FIRST_MS;
    while (!isStarted && !session.isClosed() && performance.now() < until) await session.next(FIRST_MS);
  }
  if (random.chance(0.1)) {
    for (const one of frames) {
      session.send(one);
      await new Promise((resolve) => setImmediate(resolve));
    }
  } else {
    session.send(...frames);
  }
  // Its response says that everything before it was read.
  session.send(frame(FRAME.PING, 0, 0, LAST_PING));
  const deadline = performance.now() + QUIET_MS;
  while (!isAnswered && !isBroken && !session.isClosed() && performance.now() < deadline) await session.next(QUIET_MS);
  // A session that was refused at once has read nothing.
  if (!session.isGreeted()) peer.count("not greeted");
  const inputs = session.isGreeted() ? first.length + frames.length : 0;
  if (peer.hold) return { inputs, closed: session.closed, destroy: session.destroy };
  if (random.chance(0.2)) session.reset();
  else session.end();
  await session.closed;
  return { inputs };
}

function headersFrames(stream: number, block: Buffer, flags: number, random: Random): Buffer[] {
  if (!random.chance(0.15)) return [frame(FRAME.HEADERS, flags | FLAG.END_HEADERS, stream, block)];
  // In pieces, which may be empty.
  const cuts = Array.from({ length: 1 + random.int(4) }, () => random.int(block.length + 1)).sort((a, b) => a - b);
  const pieces = [0, ...cuts].map((at, i) => block.subarray(at, cuts[i] ?? block.length));
  return pieces.map((piece, i) => {
    const end = i === pieces.length - 1 ? FLAG.END_HEADERS : 0;
    return i === 0 ? frame(FRAME.HEADERS, flags | end, stream, piece) : frame(FRAME.CONTINUATION, end, stream, piece);
  });
}

// Streams that are opened only to be reset, beside some that wait for their responses.
function resets(random: Random, { target }: Peer): Frames {
  const frames: Buffer[] = [];
  let stream = 1;
  const open = (flags: number, fields = fieldsFor(target, random, false)) => {
    frames.push(frame(FRAME.HEADERS, FLAG.END_HEADERS | flags, stream, encodeBlock(fields, random)));
    stream += 2;
    return stream - 2;
  };
  const post = (path: string): Field[] => [
    [":method", "POST"],
    [":scheme", "http"],
    [":path", path],
    [":authority", "127.0.0.1"],
    ["content-type", "application/grpc"],
    ["te", "trailers"],
  ];
  // Half of them as a client with short deadlines does it, the others in any way.
  const isPlain = random.chance(0.5);
  for (let waiting = isPlain ? 1 : random.int(4); waiting > 0; waiting--) {
    const watch = open(0, post(`/grpc.health.v1.Health/${isPlain ? "Watch" : random.pick(["Watch", "Check"])}`));
    if (isPlain || random.chance(0.7)) frames.push(frame(FRAME.DATA, FLAG.END_STREAM, watch, Buffer.alloc(5)));
  }
  const first = isPlain || random.chance(0.5) ? frames.splice(0) : [];
  const isAny = () => !isPlain && random.chance(0.2);
  for (let count = 101 + random.int(150); count > 0; count--) {
    const flags = isPlain ? FLAG.END_STREAM : random.pick([0, FLAG.END_STREAM]);
    const opened = open(flags, isAny() ? undefined : post("/grpc.health.v1.Health/Check"));
    frames.push(frame(FRAME.RST_STREAM, 0, opened, isAny() ? uint32(random.int(16)) : CANCEL));
  }
  return { first, frames };
}

function flood(random: Random, { target }: Peer): Buffer[] {
  const open = frame(FRAME.HEADERS, FLAG.END_HEADERS, 1, encodeBlock(fieldsFor(target, random, false), random));
  const one = random.pick<() => Buffer>([
    () => frame(FRAME.PING, 0, 0, Buffer.alloc(8)),
    () => frame(FRAME.PING, FLAG.ACK, 0, Buffer.alloc(8)),
    () => settingsFrame([[3, random.int(100)]]),
    () => frame(FRAME.SETTINGS, 0, 0, EMPTY),
    () => frame(FRAME.SETTINGS, FLAG.ACK, 0, EMPTY),
    () => settingsFrame([[4, random.int(2 ** 31)]]),
    () => frame(FRAME.DATA, 0, 1, EMPTY),
    () => frame(FRAME.DATA, FLAG.PADDED, 1, Buffer.from([0])),
    () => frame(FRAME.WINDOW_UPDATE, 0, 1, uint32(1)),
    () => frame(FRAME.WINDOW_UPDATE, 0, 0, uint32(1)),
    () => frame(FRAME.PRIORITY, 0, 1 + 2 * random.int(1_000), Buffer.alloc(5)),
    () => frame(FRAME.CONTINUATION, 0, 3, EMPTY),
    () => frame(20, 0xff, random.int(100), EMPTY),
  ]);
  const frames = Array.from({ length: 50 + random.int(150) }, one);
  const isContinued = frames[0]?.[3] === FRAME.CONTINUATION;
  return isContinued ? [frame(FRAME.HEADERS, 0, 3, EMPTY), ...frames] : [open, ...frames];
}

// Frames as a client sends them, and in the end one that may be wrong in any way.
function mixFrames(random: Random, { target }: Peer): Buffer[] {
  const frames: Buffer[] = [];
  const streams: number[] = [];
  let next = 1;
  const anyStream = () =>
    streams.length === 0 || random.chance(0.1) ? 1 + random.int(next + 4) : random.pick(streams);
  const most = 1 + random.int(BATCH);
  while (frames.length < most) {
    const kind = random.int(100);
    if (streams.length === 0 || kind < 45) {
      const isWrong = random.chance(0.15);
      const flags = random.chance(0.4) ? FLAG.END_STREAM : 0;
      frames.push(...headersFrames(next, encodeBlock(fieldsFor(target, random, isWrong), random), flags, random));
      if (flags === 0) streams.push(next);
      next += random.chance(0.95) ? 2 : 2 * (1 + random.int(50));
    } else if (kind < 65) {
      const stream = random.pick(streams);
      const flags = random.chance(0.5) ? FLAG.END_STREAM : 0;
      frames.push(frame(FRAME.DATA, flags, stream, body(random)));
      if (flags !== 0) streams.splice(streams.indexOf(stream), 1);
    } else if (kind < 75) {
      const stream = random.pick(streams);
      frames.push(frame(FRAME.RST_STREAM, 0, stream, uint32(random.pick([0, 1, 2, 5, 7, 8, 11, 2 ** 32 - 1]))));
      streams.splice(streams.indexOf(stream), 1);
    } else if (kind < 82) {
      frames.push(frame(FRAME.WINDOW_UPDATE, 0, random.pick([0, ...streams]), uint32(1 + random.int(2 ** 20))));
    } else if (kind < 87) {
      frames.push(settingsFrame(goodSettings(random)));
    } else if (kind < 91) {
      frames.push(frame(FRAME.PING, 0, 0, Buffer.from("12345678")));
    } else if (kind < 95) {
      frames.push(frame(FRAME.PRIORITY, 0, 1 + 2 * random.int(next), Buffer.concat([uint32(0), Buffer.from([16])])));
    } else if (kind < 98) {
      // Of unknown type: to be ignored.
      frames.push(frame(10 + random.int(246), random.int(256), anyStream(), randomBytes(random, 50)));
    } else {
      // Trailers.
      const stream = random.pick(streams);
      frames.push(...headersFrames(stream, encodeBlock([["x-trailer", "a"]], random), FLAG.END_STREAM, random));
      streams.splice(streams.indexOf(stream), 1);
    }
  }
  if (random.chance(0.6)) frames.push(...wrongFrames(random, next, anyStream(), target));
  return frames;
}

function body(random: Random): Buffer {
  return random.pick<() => Buffer>([
    () => EMPTY,
    () => Buffer.alloc(5),
    () => Buffer.from([0, 0, 0, 0, 2, 10, 0]),
    () => Buffer.from("{}"),
    () => Buffer.from([1, 0, 0, 0, 1, 0]),
    () => randomBytes(random, 100),
    () => Buffer.alloc(random.int(16_384)),
  ])();
}

function goodSettings(random: Random): [number, number][] {
  return Array.from({ length: random.int(4) }, () =>
    random.pick<[number, number]>([
      [3, random.int(1_000)],
      [4, random.pick([0, 1, 65_535, 2 ** 31 - 1])],
      [5, random.pick([16_384, 2 ** 24 - 1])],
      [6, random.pick([0, 100, 2 ** 32 - 1])],
      [8, 1],
      [random.int(65_536) | 0x100, random.int(2 ** 31)],
    ]),
  );
}

// The dynamic table of responses, windows without room, and a few that are wrong.
function firstSettings(random: Random): [number, number][] {
  return random.pick<[number, number][]>([
    [],
    [[1, random.pick([1, 100, 4_096])]],
    [
      [1, 0],
      [4, 0],
    ],
    [
      [1, 0],
      [2, 1],
    ],
    [
      [1, 0],
      [2, 2],
    ],
    [
      [1, 0],
      [4, 2 ** 31],
    ],
    [
      [1, 0],
      [5, 1],
    ],
    [
      [1, 0],
      [6, 0],
    ],
    Array.from({ length: 40 }, (_, i): [number, number] => [i + 10, i]),
  ]);
}

function wrongFrames(random: Random, next: number, stream: number, target: Peer["target"]): Buffer[] {
  const type = random.int(11);
  const fields = fieldsFor(target, random, random.chance(0.5));
  const block = encodeBlock(fields, random);
  const lengths = [0, 1, 3, 4, 5, 6, 7, 8, 9, 16_384, 16_385];
  return random.pick<() => Buffer[]>([
    () => headersFrames(next, breakBlock(fields, random), random.pick([0, FLAG.END_STREAM]), random),
    () => headersFrames(next, breakBlock(fields, random), random.pick([0, FLAG.END_STREAM]), random),
    () => headersFrames(next, breakBlock(fields, random), random.pick([0, FLAG.END_STREAM]), random),
    // Any type with any length, flags and stream.
    () => [
      frame(type, random.int(256), random.pick([0, stream, next]), Buffer.alloc(random.pick(lengths), random.int(256))),
    ],
    () => [
      frame(
        type,
        random.pick([0, 1, 4, 5, 8, 13, 0x20, 0x2d]),
        random.pick([0, stream, 2, 2 ** 31 - 1, 2 ** 31 + 1]),
        block,
      ),
    ],
    () => [frame(type, 0, stream, randomBytes(random, 30))],
    // A head that promises more, or less, than there is.
    () => [frame(type, 0, stream, EMPTY, random.pick([1, 1_000, 16_384, 2 ** 24 - 1]))],
    () => [frame(FRAME.DATA, 0, stream, Buffer.alloc(100), 50)],
    // Padding longer than the frame.
    () => [frame(FRAME.DATA, FLAG.PADDED, stream, Buffer.from([200, 1, 2]))],
    () => [frame(FRAME.HEADERS, FLAG.PADDED | FLAG.END_HEADERS, next, Buffer.concat([Buffer.from([255]), block]))],
    () => [
      frame(
        FRAME.HEADERS,
        FLAG.PRIORITY | FLAG.END_HEADERS,
        next,
        Buffer.concat([uint32(next), Buffer.from([0]), block]),
      ),
    ],
    // A block that is interrupted, or has no end, or no beginning.
    () => [frame(FRAME.HEADERS, 0, next, block), frame(FRAME.PING, 0, 0, Buffer.alloc(8))],
    () => [frame(FRAME.HEADERS, 0, next, block), frame(FRAME.CONTINUATION, 4, next + 2, block)],
    () => [frame(FRAME.HEADERS, 0, next, block)],
    () => [frame(FRAME.CONTINUATION, FLAG.END_HEADERS, stream, block)],
    () => [frame(FRAME.PUSH_PROMISE, FLAG.END_HEADERS, stream, Buffer.concat([uint32(2), block]))],
    // Streams out of order, of the other side, and zero.
    () => headersFrames(Math.max(1, next - 40), block, 0, random),
    () => headersFrames(2 * random.int(10), block, 0, random),
    () => headersFrames(2 ** 31 - 1, block, 0, random),
    () => [frame(FRAME.DATA, 0, next + 2 * random.int(3), Buffer.alloc(10))],
    () => [frame(FRAME.RST_STREAM, 0, next + 2 * random.int(3), CANCEL)],
    () => [frame(FRAME.WINDOW_UPDATE, 0, random.pick([0, stream]), uint32(0))],
    () => [frame(FRAME.WINDOW_UPDATE, 0, random.pick([0, stream]), uint32(2 ** 31 - 1))],
    () => [frame(FRAME.WINDOW_UPDATE, 0, next + 2, uint32(1))],
    () => [settingsFrame(firstSettings(random))],
    () => [frame(FRAME.SETTINGS, FLAG.ACK, 0, Buffer.alloc(6))],
    () => [frame(FRAME.SETTINGS, 0, stream, EMPTY)],
    () => [
      frame(FRAME.GOAWAY, 0, 0, Buffer.concat([uint32(stream), uint32(random.int(16)), randomBytes(random, 100)])),
    ],
    () => [frame(FRAME.PRIORITY, 0, stream, Buffer.concat([uint32(stream), Buffer.from([0])]))],
    // More streams than are allowed at a time.
    () => Array.from({ length: 130 }, (_, i) => frame(FRAME.HEADERS, FLAG.END_HEADERS, next + 2 * i, block)),
    () => [randomBytes(random, 300)],
    () => [Buffer.from("GET / HTTP/1.1\r\nHost: a\r\n\r\n")],
  ])();
}
