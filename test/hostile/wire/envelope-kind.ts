// Messages of gRPC, gRPC-Web and Connect, unary and streams, over HTTP/1.1 and HTTP/2: flags, lengths,
// compression, truncation, several messages, and frames that end a stream.
import { gzipSync } from "node:zlib";
import type { Random } from "../../support/openapi/random.js";
import { mutateBytes, randomBytes } from "./bytes.js";
import { addressOf, type Kind, type Peer, type Sent } from "./campaign.js";
import { type Field, literal } from "./hpack.js";
import { RESPONSE_MS, sendHttp1 } from "./http1-connection.js";
import { RPC_PATHS } from "./http2-fields.js";
import { FLAG, FRAME, frame, openSession, uint32 } from "./http2-session.js";
import { SERVICE_FAILED } from "./target.js";

/** The most calls of a connection. */
const BATCH = 40;
/** After so long the first message of a stream that goes on has come, in milliseconds. */
const QUIET_MS = 500;
const CANCEL = uint32(8);

/** The kind. */
export const envelopeKind: Kind = {
  send: (random, peer) => (random.chance(0.6) ? overHttp2(random, peer) : overHttp1(random, peer)),
};

/** A call as it goes out, whatever its body is. */
export interface RpcCall {
  readonly path: string;
  readonly type: string;
  readonly fields: readonly Field[];
  readonly body: Buffer;
}

/** What a call needs to know of the service. */
export type RpcPeer = { readonly target: Pick<Peer["target"], "organisation" | "token"> };

/** A group by its uid, a health check, and a request of reflection for the list of services. */
const MESSAGES: Readonly<Record<string, (peer: RpcPeer) => { binary: Buffer; json: string }>> = {
  GetGroup: ({ target }) => ({
    binary: Buffer.concat([Buffer.from([10, target.organisation.length]), Buffer.from(target.organisation)]),
    json: `{"uid":"${target.organisation}"}`,
  }),
  ServerReflectionInfo: () => ({ binary: Buffer.from([0x3a, 0x01, 0x2a]), json: '{"listServices":"*"}' }),
  Check: () => ({ binary: Buffer.from([10, 1, 0x61]), json: '{"service":"a"}' }),
};
const NONE = { binary: Buffer.alloc(0), json: "{}" };
/** The content types of gRPC. */
export const GRPC = [
  "application/grpc",
  "application/grpc",
  "application/grpc+proto",
  "application/grpc+json",
  "application/grpc+x",
];
/** The content types of gRPC-Web. */
export const WEB = [
  "application/grpc-web",
  "application/grpc-web+proto",
  "application/grpc-web+json",
  "application/grpc-web-text",
];
/** The content types of Connect. */
export const CONNECT = [
  "application/connect+proto",
  "application/connect+json",
  "application/proto",
  "application/json",
];
const FLAGS = [0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 0x80, 0x81, 0xff];
const ENCODINGS = ["gzip", "gzip", "identity", "br", "deflate", "gzip, gzip", ""];
const FIELDS: readonly Field[] = [
  ["grpc-timeout", "10S"],
  ["grpc-timeout", "1n"],
  ["grpc-timeout", "x"],
  ["connect-timeout-ms", "1"],
  ["connect-timeout-ms", "99999999999"],
  ["connect-timeout-ms", "-1"],
  ["connect-protocol-version", "1"],
  ["connect-protocol-version", "0"],
  ["grpc-accept-encoding", "gzip"],
  ["connect-accept-encoding", "gzip, x"],
  ["accept-encoding", "gzip"],
  ["x-grpc-web", "1"],
  ["te", "trailers"],
  ["a-bin", "AA=="],
  ["a-bin", "%"],
  ["grpc-status", "0"],
];

/** Builds a call whose parts may each be wrong. */
export function rpcCall(random: Random, peer: RpcPeer, types: readonly string[]): RpcCall {
  const path = random.chance(0.97) ? random.pick(RPC_PATHS) : `${random.pick(RPC_PATHS)}/`;
  const type = random.pick(types);
  const { binary, json } = MESSAGES[path.split("/")[2] ?? ""]?.(peer) ?? NONE;
  const good = type.endsWith("json") ? Buffer.from(json) : binary;
  const isEnveloped = type !== "application/proto" && type !== "application/json";
  const fields: Field[] = [];
  if (random.chance(0.4)) fields.push(["authorization", `Bearer ${peer.target.token}`]);
  if (random.chance(0.3)) {
    const name = isEnveloped
      ? type.includes("connect")
        ? "connect-content-encoding"
        : "grpc-encoding"
      : "content-encoding";
    fields.push([name, random.pick(ENCODINGS)]);
  }
  for (let more = random.int(3); more > 0; more--) fields.push(random.pick(FIELDS));
  let body = isEnveloped ? envelopes(good, random) : message(good, random);
  if (type.includes("text")) body = base64(body, random);
  return { path, type, fields, body };
}

function message(good: Buffer, random: Random): Buffer {
  // Inflates to 200 KiB, which is within what a message may have.
  if (random.chance(0.002)) return gzipSync(Buffer.alloc(200 * 1024));
  return random.pick<() => Buffer>([
    () => good,
    () => good,
    () => gzipSync(good),
    () => gzipSync(good).subarray(0, random.int(25)),
    () => mutateBytes(gzipSync(good), random),
    () => mutateBytes(good, random),
    () => randomBytes(random, 60),
    () => Buffer.alloc(0),
    () => Buffer.concat([good, good]),
    // Fields that no message has, groups without end, and lengths beyond the end.
    () => Buffer.from([0xfa, 0xff, 0x03, 0x01, 0x00]),
    () => Buffer.alloc(random.int(200), 0x0b),
    () => Buffer.from([10, 0xff, 0xff, 0xff, 0xff, 0x0f]),
    () => Buffer.from('{"metadata":{"a":["b"]},"error":{"code":"x"}}'),
    () => Buffer.from("grpc-status: 0\r\n"),
  ])();
}

/** Puts a message into envelopes, of which some are wrong. */
export function envelopes(good: Buffer, random: Random): Buffer {
  const parts: Buffer[] = [];
  for (let count = random.chance(0.7) ? 1 : random.int(5); count > 0; count--) {
    const content = message(good, random);
    const head = Buffer.alloc(5);
    head[0] = random.pick(FLAGS);
    const wrong = [content.length + 1, Math.max(0, content.length - 1), 0, 2 ** 32 - 1, 2 ** 31, 4 * 1024 * 1024 + 1];
    head.writeUInt32BE(random.chance(0.85) ? content.length : random.pick(wrong), 1);
    parts.push(head, content);
  }
  const body = Buffer.concat(parts);
  if (random.chance(0.1)) return body.subarray(0, random.int(body.length + 1));
  return random.chance(0.05) ? mutateBytes(body, random) : body;
}

/** Writes a body in base64, in any of the ways that clients do, and in some that are wrong. */
export function base64(body: Buffer, random: Random): Buffer {
  const text = body.toString("base64");
  return Buffer.from(
    random.pick([
      text,
      text,
      text,
      text.replace(/=+$/, ""),
      `${text}${text}`,
      `${text}=`,
      `!${text}`,
      text.slice(1),
      `${text}\n`,
    ]),
  );
}

async function overHttp2(random: Random, peer: Peer): Promise<Sent> {
  const calls = Array.from({ length: 1 + random.int(BATCH) }, () =>
    rpcCall(random, peer, [...GRPC, ...GRPC, ...WEB, ...CONNECT]),
  );
  const frames: Buffer[] = [];
  const left = new Set<number>();
  for (const [i, call] of calls.entries()) {
    const stream = 2 * i + 1;
    if (!call.path.includes("/Watch")) left.add(stream);
    const isCut = random.chance(0.02);
    if (isCut) left.delete(stream);
    frames.push(...framesOf(call, stream, random, isCut));
  }
  const session = openSession(peer.target.port, {
    localAddress: addressOf(peer),
    settings: [[1, 0]],
    reads: (name) => name === ":status" || name === "grpc-status",
    onFields(stream, fields) {
      for (const [name, value] of fields) judgeField(peer, calls[(stream - 1) / 2], name, value);
    },
    onData: (stream, bytes) => judgeBody(peer, calls[(stream - 1) / 2], bytes),
    onEnd(stream, code) {
      if (code !== undefined) peer.count(`reset ${code}`);
      left.delete(stream);
    },
    onGoAway: (code) => {
      peer.count(`goaway ${code}`);
      if (code !== 0 && !peer.hold) session.reset();
    },
  });
  session.send(...frames);
  const deadline = performance.now() + RESPONSE_MS;
  while (left.size > 0 && !session.isClosed() && performance.now() < deadline) await session.next(RESPONSE_MS);
  if (left.size > 0 && !session.isClosed()) peer.fault(`no end of ${formatCall(calls[([...left][0] ?? 1) >> 1])}`);
  const inputs = session.isGreeted() ? calls.length : 0;
  if (peer.hold) return { inputs, closed: session.closed, destroy: session.destroy };
  session.end();
  await session.closed;
  return { inputs };
}

function framesOf({ path, type, fields, body }: RpcCall, stream: number, random: Random, isCut: boolean): Buffer[] {
  const head: Field[] = [
    [":method", "POST"],
    [":scheme", "http"],
    [":path", path],
    [":authority", "127.0.0.1"],
    ["content-type", type],
    ...fields,
  ];
  const block = Buffer.concat(head.map((field) => literal(field)));
  if (body.length === 0 && !isCut && random.chance(0.3)) {
    return [frame(FRAME.HEADERS, FLAG.END_HEADERS | FLAG.END_STREAM, stream, block)];
  }
  const cut = random.chance(0.2) ? random.int(body.length + 1) : body.length;
  const frames = [
    frame(FRAME.HEADERS, FLAG.END_HEADERS, stream, block),
    frame(FRAME.DATA, 0, stream, body.subarray(0, cut)),
  ];
  // A few end in the middle.
  if (isCut) return [...frames, frame(FRAME.RST_STREAM, 0, stream, CANCEL)];
  return [...frames, frame(FRAME.DATA, FLAG.END_STREAM, stream, body.subarray(cut))];
}

function overHttp1(random: Random, peer: Peer): Promise<Sent> {
  const calls: RpcCall[] = [];
  const most = 1 + random.int(BATCH);
  while (calls.length < most) {
    const call = rpcCall(random, peer, [...WEB, ...CONNECT]);
    calls.push(call);
    // It goes on for ever, and what follows it waits.
    if (call.path.includes("/Watch")) break;
  }
  return sendHttp1(peer, calls.map(requestOf), {
    pieces: random.chance(0.5) ? "together" : "last-alone",
    quietMs: calls.at(-1)?.path.includes("/Watch") ? QUIET_MS : RESPONSE_MS,
    onAnswer({ status, headers, body }, number) {
      judgeField(peer, calls[number], ":status", String(status));
      judgeField(peer, calls[number], "grpc-status", headers["grpc-status"] ?? "0");
      judgeBody(peer, calls[number], body);
    },
  });
}

function requestOf({ path, type, fields, body }: RpcCall): Buffer {
  const lines = [["host", "127.0.0.1"], ["content-type", type], ["content-length", String(body.length)], ...fields];
  const head = `POST ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`;
  return Buffer.concat([Buffer.from(head, "latin1"), body]);
}

function judgeField(peer: Peer, call: RpcCall | undefined, name: string, value: string): void {
  if (name === ":status") {
    peer.count(value);
    if (value === "500" || value === "502") peer.fault(`status ${value} to ${formatCall(call)}`);
  } else if (name === "grpc-status") {
    peer.count(`grpc ${value}`);
    if (value === "2") peer.fault(`grpc-status ${value} to ${formatCall(call)}`);
  } else if (name === "grpc-message" && SERVICE_FAILED.test(value)) {
    peer.fault(`${value} to ${formatCall(call)}`);
  }
}

// UNKNOWN and INTERNAL, as the trailers of gRPC-Web and the errors of Connect write them. INTERNAL with a text of its own
// is what the protocols prescribe for some envelopes.
const INTERNAL = new RegExp(`grpc-status: ?2\\b|"code": ?"unknown"|${SERVICE_FAILED.source}`);

function judgeBody(peer: Peer, call: RpcCall | undefined, bytes: Buffer): void {
  const text = bytes.toString("latin1");
  const plain = call?.type.includes("text")
    ? text
        .split(/(?<==)(?!=)/)
        .map((part) => Buffer.from(part, "base64").toString("latin1"))
        .join("")
    : text;
  if (INTERNAL.test(plain)) peer.fault(`${JSON.stringify(plain.slice(0, 300))} to ${formatCall(call)}`);
}

function formatCall(call: RpcCall | undefined): string {
  if (call === undefined) return "nothing";
  const { path, type, fields, body } = call;
  const others = fields.filter(([name]) => name !== "authorization");
  return `${path} ${type} ${JSON.stringify(others)} ${body.subarray(0, 200).toString("hex")}`;
}
