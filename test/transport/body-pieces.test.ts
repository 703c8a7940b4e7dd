// Bodies in small pieces, and requests ahead of responses: what honest clients send is served whole, and more than that is
// refused before it costs much.
import assert from "node:assert/strict";
import { connect as connectTcp } from "node:net";
import { after, before, describe, it } from "node:test";
import { connect as connectTls } from "node:tls";
import { create, toBinary, toJsonString } from "@bufbuild/protobuf";
import { CreateGroupRequestSchema } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import type { Limits } from "../../src/transport/http/limits/limits.js";
import { createReflection } from "../../src/transport/services/reflection.js";
import { FRAME, openFrames } from "../hostile/support/frames.js";
import { waitUntil } from "../support/wait-until.js";
import {
  DATA,
  END_STREAM,
  frame,
  HTTP2_START,
  headersFrame,
  http2Frame,
  openHttp2,
  type Running,
  rawHttp2,
  rawTcp,
  SERVICE,
  startServer,
  TLS,
} from "./harness.js";

const CREATE = `${SERVICE}/CreateGroup`;
const TOO_MANY = "body: must arrive in pieces of 64 bytes or more";
const LENGTH = 20_000;
const message = create(CreateGroupRequestSchema, { group: { name: "a", description: "d".repeat(LENGTH) } });
const json = Buffer.from(toJsonString(CreateGroupRequestSchema, message));
const framed = frame(toBinary(CreateGroupRequestSchema, message));

const PROTOCOLS = [
  { name: "Connect", type: "application/json", body: json, refusal: /"invalid_argument"/ },
  { name: "Connect binary", type: "application/proto", body: framed.subarray(5), refusal: /"invalid_argument"/ },
  { name: "gRPC-Web", type: "application/grpc-web+proto", body: framed, refusal: /grpc-status: 3/ },
] as const;

const GRPC = { name: "gRPC", type: "application/grpc", body: framed } as const;

const split = (body: Buffer, size: number) =>
  Array.from({ length: Math.ceil(body.length / size) }, (_, i) => body.subarray(i * size, (i + 1) * size));
const chunked = (pieces: readonly Buffer[]) =>
  Buffer.concat([
    ...pieces.flatMap((piece) => [Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from("\r\n")]),
    Buffer.from("0\r\n\r\n"),
  ]);

let server: Running;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

describe("a body over HTTP/1.1", () => {
  const post = (running: Running, type: string, pieces: readonly Buffer[]) =>
    rawTcp(
      running.port,
      Buffer.concat([
        Buffer.from(
          `POST ${CREATE} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: ${type}\r\nTransfer-Encoding: chunked\r\n\r\n`,
        ),
        chunked(pieces),
      ]),
    );

  for (const { name, type, body, refusal } of PROTOCOLS) {
    it(`is served whole in pieces of 64 bytes, and refused in pieces of 20: ${name}`, async () => {
      assert.match(await post(server, type, split(body, 64)), new RegExp(`${LENGTH}`));
      const before = server.probe.calls.length;
      const text = await post(server, type, split(body, 20));
      assert.match(text, refusal);
      assert.match(text, new RegExp(TOO_MANY));
      assert.equal(server.probe.calls.length, before, "what had arrived passed for the whole");
    });
  }

  it("may have 256 pieces of any size", async () => {
    const text = await post(server, "application/json", split(Buffer.from('{"group":{"name":"a"}}'.padEnd(256)), 1));
    assert.match(text, /^HTTP\/1.1 200/);
  });

  it("is served in pieces of any size where they are not counted (control)", async () => {
    const lax = await startServer({ limits: { bodyPieces: Number.POSITIVE_INFINITY } });
    try {
      assert.match(await post(lax, "application/json", split(json, 20)), new RegExp(`"${LENGTH}"`));
    } finally {
      await lax.stop();
    }
  });
});

describe("a body over HTTP/2", () => {
  // In one packet, so that its end has arrived before anything can be answered.
  const post = async (running: Running, type: string, pieces: readonly Buffer[]) => {
    const connection = openFrames(running.url, "127.0.0.1");
    const frames = pieces.map((piece, i) => http2Frame(DATA, i === pieces.length - 1 ? END_STREAM : 0, 1, piece));
    const head = headersFrame(1, CREATE, [["content-type", type]]);
    let text = "";
    let hasEnded = false;
    connection.onFrame = ({ stream, flags, type: kind, payload }) => {
      if (stream !== 1) return;
      text += payload.toString("latin1");
      hasEnded ||= (kind === FRAME.data || kind === FRAME.headers) && (flags & END_STREAM) !== 0;
    };
    await waitUntil(() => (connection.received[FRAME.settings] ?? 0) > 1);
    connection.send(head, ...frames);
    await waitUntil(() => hasEnded);
    connection.close();
    return text;
  };

  for (const { name, type, body } of [...PROTOCOLS, GRPC]) {
    it(`is served whole in pieces of 64 bytes, and refused in pieces of 20: ${name}`, async () => {
      assert.match(await post(server, type, split(body, 64)), new RegExp(`${LENGTH}`));
      const before = server.probe.calls.length;
      assert.doesNotMatch(await post(server, type, split(body, 20)), new RegExp(`${LENGTH}`));
      assert.equal(server.probe.calls.length, before, "what had arrived passed for the whole");
    });
  }

  it("is served in pieces of any size where they are not counted (control)", async () => {
    const lax = await startServer({ limits: { bodyPieces: Number.POSITIVE_INFINITY } });
    try {
      assert.match(await post(lax, "application/json", split(json, 20)), new RegExp(`"${LENGTH}"`));
    } finally {
      await lax.stop();
    }
  });
});

function countMessages(bytes: Buffer): number {
  let count = 0;
  for (let at = 0; at + 5 <= bytes.length; count++) at += 5 + bytes.readUInt32BE(at + 1);
  return count;
}

describe("a stream of messages", () => {
  it("may consist of small messages, each of which is a piece", async () => {
    const reflecting = await startServer({ extraServices: createReflection([]) });
    const connection = openFrames(reflecting.url, "127.0.0.1");
    try {
      await waitUntil(() => (connection.received[FRAME.settings] ?? 0) > 1);
      const path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
      // ServerReflectionRequest.list_services: "".
      const request = frame(Buffer.from([0x3a, 0]));
      const messages = Array<Buffer>(400).fill(http2Frame(DATA, 0, 1, request));
      let responses = Buffer.alloc(0);
      connection.onFrame = ({ type, payload }) => {
        if (type === FRAME.data) responses = Buffer.concat([responses, payload]);
      };
      connection.send(headersFrame(1, path, [["content-type", "application/grpc"]]), ...messages);
      await waitUntil(() => countMessages(responses) === 400);
    } finally {
      connection.close();
      await reflecting.stop();
    }
  });
});

describe("a flood of pieces over HTTP/2", () => {
  it("is not parsed at all where it comes with the preface", async () => {
    const frames = Array<Buffer>(2_000).fill(http2Frame(DATA, 0, 1, Buffer.from("x")));
    const head = headersFrame(1, CREATE, [["content-type", "application/grpc"]]);
    assert.equal(await rawTcp(server.port, Buffer.concat([HTTP2_START, head, ...frames])), "");
    const few = [head, ...frames.slice(0, 200)];
    const text = await rawTcp(server.port, Buffer.concat([HTTP2_START, ...few]), () => true);
    assert.notEqual(text, "");
  });

  // What one connection may send before the window is larger.
  const pieces = Buffer.concat(Array<Buffer>(60_000).fill(http2Frame(DATA, 0, 1, Buffer.from("x"))));
  const head = headersFrame(1, CREATE, [["content-type", "application/grpc"]]);

  it("ends its connection and the unknown ones of its address, and no other", async () => {
    const flood = openFrames(server.url, "127.0.0.2");
    const beside = openFrames(server.url, "127.0.0.2");
    const other = openHttp2(server.url);
    await Promise.all([flood.ready, beside.ready]);
    await waitUntil(() => (beside.received[FRAME.settings] ?? 0) > 1);
    flood.send(head, pieces);
    await waitUntil(() => flood.isClosed && beside.isClosed);
    const { status } = await get(other, "/still");
    assert.equal(status, 200);
    // The address is served again.
    let again = openFrames(server.url, "127.0.0.2");
    await waitUntil(() => {
      // On a busy machine one may have waited for too long.
      if (again.isClosed) again = openFrames(server.url, "127.0.0.2");
      return (again.received[FRAME.settings] ?? 0) > 0;
    });
    again.close();
    other.destroy();
  });

  it("goes on where its cost is not limited (control)", async () => {
    const lax = await startServer({
      limits: { readCutUs: Number.POSITIVE_INFINITY, sessionCutUs: Number.POSITIVE_INFINITY },
    });
    const flood = openFrames(lax.url, "127.0.0.2");
    try {
      await flood.ready;
      await waitUntil(() => (flood.received[FRAME.settings] ?? 0) > 1);
      flood.send(head, pieces, http2Frame(FRAME.ping, 0, 0, Buffer.alloc(8)));
      await waitUntil(() => (flood.received[FRAME.ping] ?? 0) > 0);
      assert.equal(flood.isClosed, false);
    } finally {
      flood.close();
      await lax.stop();
    }
  });
});

async function get(session: ReturnType<typeof openHttp2>, path: string): Promise<{ readonly status: number }> {
  const { headers } = await rawHttp2(session, { ":method": "GET", ":path": path });
  return { status: Number(headers[":status"]) };
}

describe("requests ahead of their responses", () => {
  const ahead = (count: number) => `GET /a HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(count);
  const countIn = (text: string) => text.split("HTTP/1.1 200").length - 1;

  it("are all answered, up to a hundred of a connection, which is then closed", async () => {
    assert.equal(countIn(await rawTcp(server.port, ahead(99), (text) => countIn(text) === 99)), 99);
    assert.equal(countIn(await rawTcp(server.port, ahead(3_000))), 100);
  });

  it("are all answered where they are not limited (control)", async () => {
    const lax = await startServer({ limits: { pipelinedRequests: Number.POSITIVE_INFINITY } });
    try {
      assert.equal(countIn(await rawTcp(lax.port, ahead(500), (text) => countIn(text) === 500)), 500);
    } finally {
      await lax.stop();
    }
  });

  it("are read again when the responses before them have ended", async () => {
    let answered = 0;
    const text = await rawTcp(server.port, ahead(50), (all) => {
      answered = countIn(all);
      return answered === 50;
    });
    assert.equal(countIn(text), 50);
  });
});

describe("a connection of an address that is paused", () => {
  it("loses no byte of what it sends before it is read", async () => {
    // Each pipelined request pauses the address, and its new connections wait while that goes on.
    const strict = await startServer({
      limits: { readTurnUs: 1, readPauseFactor: 2_000, maxReadPauseMs: 50, sessionWaitMs: 60_000 },
    });
    const noisy = connectTcp(strict.port, "127.0.0.1");
    noisy.resume();
    const noise = setInterval(() => noisy.write("GET /a HTTP/1.1\r\nHost: a\r\n\r\n".repeat(3)), 10);
    try {
      const hidden = "GET /hidden HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
      const body = `{"group":{"name":"${"x".repeat(200)}"}}${hidden}`;
      const head = `POST ${CREATE} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/json\r\n`;
      const all = `${head}Content-Length: ${body.length}\r\n\r\n${body}`;
      const answers = await Promise.all(
        Array.from({ length: 12 }, async (_, i) => {
          await new Promise((resolve) => setTimeout(resolve, i * 15));
          return sendInParts(strict.port, [all.slice(0, -hidden.length), hidden]);
        }),
      );
      // The body is no JSON, and the request within it never runs.
      for (const text of answers) assert.match(text, /^HTTP\/1.1 400/);
    } finally {
      clearInterval(noise);
      noisy.destroy();
      await strict.stop();
    }
  });
});

function sendInParts(port: number, [first = "", second = ""]: readonly string[]): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    const socket = connectTcp(port, "127.0.0.1", () => {
      socket.write(first);
      setTimeout(() => socket.write(second), 300);
    });
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1");
    });
    socket.on("error", () => {});
    socket.on("close", () => resolve(text));
  });
}

describe("a stream of one message in pieces of a byte", () => {
  const sendPieces = async (
    limits: Partial<Limits>,
    isOver: (received: Readonly<Record<number, number>>) => boolean,
  ) => {
    const reflecting = await startServer({ extraServices: createReflection([]), limits });
    const connection = openFrames(reflecting.url, "127.0.0.1");
    try {
      await waitUntil(() => (connection.received[FRAME.settings] ?? 0) > 1);
      const path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
      connection.send(headersFrame(1, path, [["content-type", "application/grpc"]]));
      const message = frame(Buffer.alloc(8_000));
      for (let at = 0; at < 1_000; at += 500)
        connection.send(...split(message.subarray(at, at + 500), 1).map((piece) => http2Frame(DATA, 0, 1, piece)));
      connection.send(http2Frame(FRAME.ping, 0, 0, Buffer.alloc(8)));
      await waitUntil(() => isOver(connection.received));
      return { ...connection.received };
    } finally {
      await reflecting.stop();
    }
  };

  it("ends", async () => {
    await sendPieces({}, (received) => (received[FRAME.reset] ?? 0) + (received[FRAME.headers] ?? 0) > 0);
  });

  it("goes on where its pieces are not counted (control)", async () => {
    const limits = { bodyPieces: Number.POSITIVE_INFINITY };
    const received = await sendPieces(limits, (frames) => (frames[FRAME.ping] ?? 0) > 0);
    assert.deepEqual([received[FRAME.reset], received[FRAME.headers]], [undefined, undefined]);
  });
});

describe("requests that would fill the memory", () => {
  const fields = (count: number) => Array.from({ length: count }, (_, i) => `a${i}: b\r\n`).join("");

  it("may have 128 header fields", async () => {
    const get = (count: number) =>
      rawTcp(server.port, `GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${fields(count)}\r\n`);
    assert.match(await get(126), /^HTTP\/1.1 200/);
    assert.match(await get(127), /^HTTP\/1.1 431/);
    assert.match(await get(1_000), /^HTTP\/1.1 431/);
  });

  it("end the connection where more than one read is behind an Upgrade", async () => {
    const upgrade = "GET /a HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n";
    // The connection ends, which is what is waited for.
    const text = await rawTcp(server.port, upgrade.repeat(40_000));
    assert.ok(text.split("HTTP/1.1 200").length < 20_000);
  });
});

describe("over TLS", () => {
  let secure: Running;
  before(async () => {
    secure = await startServer({ tls: TLS });
  });
  after(() => secure.stop());

  const exchange = (protocol: "h2" | "http/1.1", bytes: Buffer) =>
    new Promise<string>((resolve) => {
      let text = "";
      const to = { host: "127.0.0.1", port: secure.port, rejectUnauthorized: false, ALPNProtocols: [protocol] };
      const socket = connectTls(to, () => socket.write(bytes));
      socket.on("data", (chunk: Buffer) => {
        text += chunk.toString("latin1");
      });
      socket.on("error", () => {});
      socket.on("close", () => resolve(text));
    });

  it("a body in small pieces is refused over HTTP/1.1, and ends the connection", async () => {
    const head = `POST ${CREATE} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`;
    const text = await exchange("http/1.1", Buffer.concat([Buffer.from(head), chunked(split(json, 20))]));
    assert.match(text, /^HTTP\/1.1 400/);
    assert.match(text, new RegExp(TOO_MANY));
  });

  it("a hundred requests of a connection are answered that are sent at once", async () => {
    const text = await exchange("http/1.1", Buffer.from("GET /a HTTP/1.1\r\nHost: a\r\n\r\n".repeat(3_000)));
    assert.equal(text.split("HTTP/1.1 200").length - 1, 100);
  });

  it("a flood of pieces over HTTP/2 ends its connection", async () => {
    const pieces = Array<Buffer>(60_000).fill(http2Frame(DATA, 0, 1, Buffer.from("x")));
    const head = headersFrame(1, CREATE, [["content-type", "application/grpc"]]);
    await exchange("h2", Buffer.concat([HTTP2_START, head, ...pieces]));
  });
});
