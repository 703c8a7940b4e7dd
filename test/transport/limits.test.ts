import assert from "node:assert/strict";
import { Agent, request } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import { connect as connectTcp } from "node:net";
import { after, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { create, toBinary } from "@bufbuild/protobuf";
import { GetGroupRequestSchema } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { readBody } from "../../src/transport/http/body-reader.js";
import { defaultLimits, describeLimits } from "../../src/transport/http/limits/limits.js";
import type { Request } from "../../src/transport/http/request.js";
import { sendComplete } from "../../src/transport/http/response-writer.js";
import { chooseScale } from "../support/scale.js";
import { startStopwatch } from "../support/stopwatch.js";
import {
  ACK,
  CONTINUATION,
  DATA,
  END_STREAM,
  frame,
  GrpcJs,
  HEADERS,
  HTTP2_START,
  headersFrame,
  http2Frame,
  INITIAL_WINDOW_SIZE,
  openHttp2,
  PRIORITY,
  RST_STREAM,
  type Running,
  rawHttp2,
  rawTcp,
  SERVICE,
  SETTINGS,
  startServer,
  TLS,
  WINDOW_UPDATE,
} from "./harness.js";

const GET = `${SERVICE}/GetGroup`;
const good = frame(toBinary(GetGroupRequestSchema, create(GetGroupRequestSchema, { uid: "u1" })));
const grpcFields = [["content-type", "application/grpc"]] as const;
/** A flood: many times as many as a connection may have. */
const RESETS = chooseScale(20_000, 5_000);

const running: Running[] = [];
after(() => Promise.all(running.map((server) => server.stop())));

async function start(...args: Parameters<typeof startServer>): Promise<Running> {
  const server = await startServer(...args);
  running.push(server);
  return server;
}

async function stillServes(server: Running): Promise<void> {
  const session = openHttp2(server.url);
  const { trailers } = await rawHttp2(session, { ":path": GET, "content-type": "application/grpc" }, good);
  assert.equal(trailers["grpc-status"], "0");
  session.destroy();
}

/** The types of the frames that end streams, of those received whole: trailers, or resets. */
function typesOfEnds(bytes: Buffer): readonly number[] {
  const types: number[] = [];
  for (let at = 0; at + 9 <= bytes.length; at += 9 + bytes.readUIntBE(at, 3)) {
    const [type = 0, flags = 0] = bytes.subarray(at + 3, at + 5);
    if (type === RST_STREAM || (type === HEADERS && flags & END_STREAM)) types.push(type);
  }
  return types;
}

describe("limits", () => {
  it("have a reason each, and the promised values", () => {
    for (const { name, value, why } of describeLimits()) {
      assert.ok(value > 0, name);
      assert.ok(why.length > 10, name);
    }
    assert.equal(defaultLimits.messageBytes, 4_194_304);
    assert.equal(defaultLimits.streamsPerSession, 1_000_000);
    assert.equal(defaultLimits.callMs, 30_000);
  });

  for (const [name, bytes] of [
    ["nothing", ""],
    ["half a preface", "PRI * HTTP"],
    ["the letter of a POST", "P"],
  ] as const) {
    it(`a peer that sends ${name} is cut`, async () => {
      const server = await start({ limits: { protocolDetectionMs: 30 } });
      assert.equal(await rawTcp(server.port, bytes), "");
    });
  }

  it("a peer that stalls in TLS is cut", async () => {
    const server = await start({ tls: TLS, limits: { protocolDetectionMs: 30 } });
    assert.equal(await rawTcp(server.port, "\x16\x03\x01"), "");
  });

  it("a request in single bytes is understood", async () => {
    const server = await start();
    const text = "POST /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    const response = await new Promise<string>((resolve) => {
      let got = "";
      const socket = connectTcp(server.port, "127.0.0.1", async () => {
        for (const byte of text) await new Promise<void>((sent) => socket.write(byte, () => sent()));
      });
      socket.setNoDelay(true);
      socket.on("data", (chunk) => {
        got += chunk;
      });
      socket.on("close", () => resolve(got));
    });
    assert.match(response, /^HTTP\/1\.1 200 OK/);
  });

  it("slow headers are answered with 408", async () => {
    const server = await start({ limits: { headersMs: 30, timeoutCheckMs: 10 } });
    const response = await rawTcp(server.port, "GET / HTTP/1.1\r\nHost: a\r\n");
    assert.match(response, /^HTTP\/1\.1 408 Request Timeout\r\n/);
    assert.match(response, /the request did not arrive in time/);
  });

  it("an HTTP/2 session without frames is closed", async () => {
    const server = await start({ limits: { keepAliveMs: 30, sessionCloseMs: 30 } });
    await new Promise<void>((resolve) => {
      const session = openHttp2(server.url);
      session.on("close", () => resolve());
    });
  });

  it("an HTTP/2 peer that sends a preface alone and ignores GOAWAY is cut", async () => {
    const server = await start({ limits: { keepAliveMs: 30, sessionCloseMs: 30 } });
    const response = await rawTcp(server.port, HTTP2_START);
    assert.ok(response.length > 0);
  });

  it("an HTTP/2 session with an open stream that never moves is cut", async () => {
    const server = await start({ limits: { keepAliveMs: 30, sessionCloseMs: 30 } });
    await rawTcp(server.port, Buffer.concat([HTTP2_START, headersFrame(1, GET, grpcFields)]));
  });

  // Its response cannot be sent any more. Without the limit Node 20 keeps such a session until it was idle.
  for (const [name, broken] of [
    ["DATA on stream 0", http2Frame(DATA, 0, 0, Buffer.from("x"))],
    ["DATA on a stream that nobody opened", http2Frame(DATA, 0, 5, Buffer.from("x"))],
    ["a stream with an even number", headersFrame(2, GET, grpcFields)],
    ["a window that grows by 0", http2Frame(WINDOW_UPDATE, 0, 0, Buffer.alloc(4))],
    ["a frame of priority that is too short", http2Frame(PRIORITY, 0, 1, Buffer.alloc(4))],
    ["headers that do not continue", http2Frame(CONTINUATION, 0, 1, Buffer.from("x"))],
  ] as const) {
    it(`an HTTP/2 peer that breaks the protocol and stays is cut: ${name}`, async () => {
      const server = await start({ limits: { responseStallMs: 50 } });
      const call = [headersFrame(1, GET, grpcFields), http2Frame(DATA, END_STREAM, 1, good)];
      await rawTcp(server.port, Buffer.concat([HTTP2_START, ...call, broken]));
    });
  }

  it("an HTTP/2 peer that reads nothing for a while is not cut for it", async () => {
    const bytes = 32 * 1024 * 1024;
    const server = await start({
      limits: { responseStallMs: 2_000 },
      answer(request) {
        // More than a request may be charged.
        request.writeHead(200, {}, "pieces");
        (request.body as ServerHttp2Stream).end(Buffer.alloc(bytes));
      },
    });
    // Windows as large as they may be: what holds the response back is the socket.
    const wide = Buffer.from([0, INITIAL_WINDOW_SIZE, 0x7f, 0xff, 0xff, 0xff]);
    const wider = Buffer.from([0x7f, 0xff, 0, 0]);
    const socket = connectTcp(server.port, "127.0.0.1");
    socket.write(
      Buffer.concat([
        HTTP2_START,
        http2Frame(SETTINGS, 0, 0, wide),
        http2Frame(WINDOW_UPDATE, 0, 0, wider),
        headersFrame(1, "/large", []),
        http2Frame(DATA, END_STREAM, 1),
      ]),
    );
    await sleep(100);
    // Frames that only have to be acknowledged wait behind it.
    socket.write(Buffer.concat([http2Frame(SETTINGS, 0, 0), http2Frame(SETTINGS, 0, 0)]));
    await sleep(300);
    let read = 0;
    for await (const chunk of socket) {
      read += (chunk as Buffer).length;
      if (read > bytes) break;
    }
    assert.ok(read > bytes, `${read} bytes`);
  });

  for (const [name, headers] of [
    ["REST", { ":path": "/slow" }],
    ["Connect", { ":path": GET, "content-type": "application/json" }],
    ["gRPC-Web", { ":path": GET, "content-type": "application/grpc-web+proto" }],
  ] as const) {
    it(`a body that does not end is given up: ${name}`, async () => {
      const answer = (request: Request) => void readBody(request, 1_000).catch(() => sendComplete(request, 400, {}));
      const server = await start({ limits: { requestMs: 30 }, answer });
      const session = openHttp2(server.url);
      await rawHttp2(session, headers, Buffer.from("{"), false);
      session.destroy();
    });
  }

  it("a session gives way after its number of streams", async () => {
    const server = await start({ limits: { streamsPerSession: 3 } });
    const client = new GrpcJs(server.url);
    for (let i = 0; i < 10; i++) assert.equal((await client.call("GetGroup", { uid: "u1" })).code, 0);
    client.close();
  });

  for (const [name, code] of [
    ["with CANCEL", 8],
    ["without an error code", 0],
  ] as const) {
    for (const [path, contentType] of [
      [GET, "application/grpc"],
      [GET, "application/json"],
      ["/x", "application/json"],
    ] as const) {
      it(`a flood of resets ${name} ends the connection and little else: ${path} ${contentType}`, async () => {
        let handled = 0;
        const answer = () => {
          handled++;
        };
        const server = await start({ answer });
        const parts: Uint8Array[] = [HTTP2_START];
        for (let i = 0; i < RESETS; i++) {
          const id = 2 * i + 1;
          parts.push(headersFrame(id, path, [["content-type", contentType]]), http2Frame(DATA, END_STREAM, id, good));
          parts.push(http2Frame(RST_STREAM, 0, id, Buffer.from([0, 0, 0, code])));
        }
        const elapsedMs = startStopwatch();
        await rawTcp(server.port, Buffer.concat(parts)).catch(() => "");
        assert.ok(elapsedMs() < 5_000);
        assert.ok(server.probe.calls.length + handled <= 200, `${server.probe.calls.length + handled} calls ran`);
        await stillServes(server);
      });
    }
  }

  it("resets that the peer provokes count as well", async () => {
    const server = await start();
    const parts: Uint8Array[] = [HTTP2_START];
    for (let i = 0; i < RESETS; i++) {
      const id = 2 * i + 1;
      parts.push(headersFrame(id, GET, grpcFields), http2Frame(8, 0, id, Buffer.alloc(4)));
    }
    const elapsedMs = startStopwatch();
    await rawTcp(server.port, Buffer.concat(parts)).catch(() => "");
    assert.ok(elapsedMs() < 5_000);
    await stillServes(server);
  });

  it("open streams above the limit are rejected", async () => {
    const server = await start({ limits: { concurrentStreams: 5 } });
    const session = openHttp2(server.url);
    await new Promise((resolve) => session.once("remoteSettings", resolve));
    assert.equal(session.remoteSettings.maxConcurrentStreams, 5);
    session.destroy();
  });

  it("what a caller gives up makes room for what it sends with the same packet", async () => {
    const server = await start();
    const width = 400;
    const fields = [...grpcFields, ["grpc-timeout", "20m"]] as const;
    // Limits are in force once their SETTINGS are acknowledged.
    const parts: Uint8Array[] = [HTTP2_START, http2Frame(SETTINGS, ACK, 0)];
    for (let i = 0; i < width; i++) parts.push(headersFrame(2 * i + 1, GET, fields));
    for (let i = 0; i < width; i++) {
      const id = 2 * (width + i) + 1;
      parts.push(http2Frame(RST_STREAM, 0, 2 * i + 1, Buffer.from([0, 0, 0, 8])));
      parts.push(headersFrame(id, GET, grpcFields), http2Frame(DATA, END_STREAM, id, good));
    }
    let ends: readonly number[] = [];
    await rawTcp(server.port, Buffer.concat(parts), (text) => {
      ends = typesOfEnds(Buffer.from(text, "latin1"));
      return ends.length >= width;
    });
    assert.deepEqual(new Set(ends), new Set([HEADERS]), "calls were rejected");
    assert.equal(ends.length, width);
  });

  for (const contentType of ["application/json", "application/grpc-web+proto"]) {
    it(`a connection stays usable after a body was rejected half-way: ${contentType}`, async () => {
      const server = await start();
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      const post = (body: Buffer) =>
        new Promise<number | undefined>((resolve, reject) => {
          const headers = { "content-type": contentType, "transfer-encoding": "chunked" };
          const options = { port: server.port, path: GET, method: "POST", agent, headers };
          const req = request(options, (res) => res.resume().on("end", () => resolve(res.statusCode)));
          req.on("error", reject);
          req.end(body);
        });
      const elapsedMs = startStopwatch();
      const rejected = await post(frame(Buffer.alloc(6 * 1024 * 1024)));
      assert.equal(rejected, contentType === "application/json" ? 429 : 200);
      assert.equal(await post(contentType === "application/json" ? Buffer.from("{}") : good), 200);
      assert.ok(elapsedMs() < 10_000, "the connection was stuck until a timeout");
      agent.destroy();
    });
  }

  it("connections per address are limited, but not behind a proxy", async () => {
    for (const [behindProxy, expected] of [
      [false, 2],
      [true, 4],
    ] as const) {
      const server = await start({ behindProxy, limits: { connectionsPerAddress: 2 } });
      const sockets = await Promise.all(Array.from({ length: 4 }, () => openAndAsk(server.port)));
      assert.equal(sockets.filter(({ answered }) => answered).length, expected);
      for (const { socket } of sockets) socket.destroy();
    }
  });

  it("a place is free again when its connection has closed", async () => {
    const server = await start({ limits: { connectionsPerAddress: 1 } });
    for (let i = 0; i < 3; i++) {
      const text = await rawTcp(server.port, "GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
      assert.match(text, /^HTTP\/1\.1 200 OK/);
    }
  });

  it("connections in all are limited", async () => {
    const server = await start({ limits: { connections: 2 } });
    const sockets = await Promise.all(Array.from({ length: 4 }, () => openAndAsk(server.port)));
    assert.equal(sockets.filter(({ answered }) => answered).length, 2);
    for (const { socket } of sockets) socket.destroy();
  });

  it("TLS without ALPN is HTTP/1.1", async () => {
    const server = await start({ tls: TLS });
    const text = await new Promise<string>((resolve) => {
      let got = "";
      const socket = connectTls({ port: server.port, host: "127.0.0.1", rejectUnauthorized: false }, () =>
        socket.write("GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
      );
      socket.on("data", (chunk) => {
        got += chunk;
      });
      socket.on("close", () => resolve(got));
    });
    assert.match(text, /^HTTP\/1\.1 200 OK/);
  });
});

/** Opens a connection and keeps it; whether a request on it was answered by a handler. */
function openAndAsk(port: number) {
  return new Promise<{ socket: ReturnType<typeof connectTcp>; answered: boolean }>((resolve) => {
    const socket = connectTcp(port, "127.0.0.1", () => socket.write("GET /x HTTP/1.1\r\nHost: a\r\n\r\n"));
    socket.on("error", () => resolve({ socket, answered: false }));
    socket.on("close", () => resolve({ socket, answered: false }));
    socket.on("data", (chunk) => resolve({ socket, answered: chunk.toString().startsWith("HTTP/1.1 200 ") }));
  });
}
