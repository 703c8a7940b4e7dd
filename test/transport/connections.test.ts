// Connections above a limit: the longest idle one makes room, and otherwise the new one gets a response that says so, over
// every protocol.
import assert from "node:assert/strict";
import { once } from "node:events";
import { constants, type IncomingHttpHeaders } from "node:http2";
import { connect, type Socket } from "node:net";
import { after, describe, it } from "node:test";
import { connect as connectTls } from "node:tls";
import { Code } from "@connectrpc/connect";
import { createLogger } from "../../src/telemetry/logger.js";
import type { Limits } from "../../src/transport/http/limits/limits.js";
import { GrpcJs, openHttp2, type Running, rawHttp2, SERVICE, startServer, TLS } from "./harness.js";

const running: Running[] = [];
const open: Socket[] = [];
after(async () => {
  for (const socket of open) socket.destroy();
  for (const server of running) await server.stop(0);
});

interface StartOptions {
  readonly tls?: typeof TLS;
  readonly limits?: Partial<Limits>;
  readonly ready?: () => Promise<unknown>;
}

async function start(options: StartOptions = {}): Promise<Running> {
  const limits = { connectionsPerAddress: 1, ...options.limits };
  const server = await startServer({ ...options, limits });
  running.push(server);
  return server;
}

function openSocket({ port, url }: Running, localAddress = "127.0.0.1"): Socket {
  const target = { port, host: "127.0.0.1", localAddress };
  const socket = url.startsWith("https") ? connectTls({ ...target, rejectUnauthorized: false }) : connect(target);
  open.push(socket);
  socket.on("error", () => {});
  return socket;
}

/** Sends a request on a connection of its own and reads until the server closes it. */
async function askOnce(server: Running, localAddress?: string, fields = "", target = "GET /x"): Promise<string> {
  const socket = openSocket(server, localAddress);
  let text = "";
  socket.on("data", (chunk) => {
    text += chunk;
  });
  socket.write(`${target} HTTP/1.1\r\nHost: a\r\n${fields}Connection: close\r\n\r\n`);
  await new Promise((resolve) => socket.once("close", resolve));
  return text;
}

/** Opens a connection whose call does not end. */
async function callOnce(server: Running): Promise<Socket> {
  const socket = openSocket(server);
  const before = server.probe.calls.length;
  socket.write(`POST ${SERVICE}/GetGroup HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n`);
  socket.write('Content-Length: 14\r\n\r\n{"uid":"slow"}');
  while (server.probe.calls.length === before) await new Promise((resolve) => setTimeout(resolve, 1));
  return socket;
}

/** Takes the one place that an address has. */
async function connectOnce(server: Running): Promise<Socket> {
  const socket = openSocket(server);
  socket.write("GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
  const [chunk] = (await once(socket, "data")) as [Buffer];
  assert.match(chunk.toString(), /^HTTP\/1\.1 200 /);
  return socket;
}

for (const [name, tls] of [
  ["cleartext", undefined],
  ["TLS", TLS],
] as const) {
  describe(name, () => {
    it("HTTP/1.1 gets 503 with an error, other addresses and later connections are served", async () => {
      const server = await start(tls && { tls });
      const first = await connectOnce(server);
      const rejected = await askOnce(server);
      const [head = "", body = ""] = rejected.split("\r\n\r\n");
      assert.match(head, /^HTTP\/1\.1 503 Service Unavailable\r\n/);
      assert.match(head, /\r\nconnection: close\r\n/i);
      assert.match(head, /\r\nretry-after: 1\r\n/i);
      const error = JSON.parse(body) as { code: number; details: readonly { "@type": string }[] };
      assert.equal(error.code, Code.Unavailable);
      assert.ok(error.details.some((detail) => detail["@type"].endsWith("RetryInfo")));
      assert.match(await askOnce(server, "127.0.0.2"), /^HTTP\/1\.1 200 /);
      first.destroy();
      await once(first, "close");
      const deadlineMs = performance.now() + 5_000;
      while (!(await askOnce(server)).startsWith("HTTP/1.1 200 ")) assert.ok(performance.now() < deadlineMs);
    });

    it("health checks get their answers", async () => {
      const server = await start({ ...(tls && { tls }), ready: async () => "read-only" });
      await connectOnce(server);
      const check = (target: string) => askOnce(server, undefined, "", target);
      assert.match(await check("GET /healthz"), /^HTTP\/1\.1 200 OK\r\n.*\r\n\r\n\{"status":"ok"\}$/s);
      assert.match(await check("GET /readyz?x=1"), /^HTTP\/1\.1 200 OK\r\n.*\r\n\r\n\{"status":"read-only"\}$/s);
      assert.match(await check("HEAD /healthz"), /^HTTP\/1\.1 200 OK\r\n.*\r\ncontent-length: 15\r\n.*\r\n\r\n$/s);
      for (const other of ["GET /healthz/x", "GET //healthz", "GET /x?/healthz"])
        assert.match(await check(other), /^HTTP\/1\.1 503 /, other);
      const failing = await start({ ...(tls && { tls }), ready: () => Promise.reject(new Error("no store")) });
      await connectOnce(failing);
      assert.match(
        await askOnce(failing, undefined, "", "GET /readyz"),
        /^HTTP\/1\.1 503 .*\{"status":"unavailable"\}$/s,
      );
    });

    it("HTTP/2 gets GOAWAY with ENHANCE_YOUR_CALM, and its streams are refused, so that callers try elsewhere", async () => {
      const server = await start(tls && { tls });
      await connectOnce(server);
      const session = openHttp2(server.url);
      const goaway = once(session, "goaway");
      const response = rawHttp2(session, { ":method": "GET", ":path": "/x" });
      const closed = new Promise<void>((resolve) => session.once("close", resolve));
      const [code, , text] = (await goaway) as [number, number, Buffer];
      assert.equal(code, constants.NGHTTP2_ENHANCE_YOUR_CALM);
      assert.match(text.toString(), /too many connections/);
      const { headers, rstCode } = await response;
      assert.deepEqual(headers, {} as IncomingHttpHeaders);
      // Node's client ends its streams with the code of the GOAWAY if it reads that first.
      const { NGHTTP2_REFUSED_STREAM, NGHTTP2_ENHANCE_YOUR_CALM } = constants;
      assert.ok([NGHTTP2_REFUSED_STREAM, NGHTTP2_ENHANCE_YOUR_CALM].includes(rstCode), `reset with ${rstCode}`);
      await closed;
      const client = new GrpcJs(server.url);
      const answer = await client.call("GetGroup", { uid: "u1" });
      assert.ok([Code.Unavailable, Code.ResourceExhausted].includes(answer.code), JSON.stringify(answer));
      client.close();
    });
  });
}

describe("the id of a request on a connection too many", () => {
  const made = /^[0-9a-f]{32}$/;
  const cases: readonly { name: string; fields: string; id: RegExp; tls?: typeof TLS }[] = [
    { name: "the caller's", fields: "X-Request-Id:  mine.1 \r\n", id: /^mine\.1$/ },
    { name: "the caller's over TLS", fields: "X-Request-Id:  mine.1 \r\n", id: /^mine\.1$/, tls: TLS },
    { name: "a new one for none", fields: "", id: made },
    { name: "a new one for one that is malformed", fields: "x-request-id: a b\r\n", id: made },
    { name: "a new one for two", fields: "x-request-id: a\r\nx-request-id: b\r\n", id: made },
  ];
  for (const { name, fields, id, tls } of cases) {
    it(name, async () => {
      const lines: Record<string, unknown>[] = [];
      const logger = createLogger("info", { write: (line) => void lines.push(JSON.parse(line)) });
      const limits = { connectionsPerAddress: 1 };
      const server = await startServer({ ...(tls && { tls }), limits, logger, accessLog: "all" });
      running.push(server);
      await connectOnce(server);
      const response = await askOnce(server, undefined, fields);
      const [head = "", body = ""] = response.split("\r\n\r\n");
      const given = /\r\nx-request-id: (.*)(?:\r\n|$)/i.exec(head)?.[1] ?? "";
      assert.match(given, id);
      const line = lines.find((one) => one.msg === "request" && one.status === 503);
      assert.equal(line?.requestId, given);
      assert.deepEqual(
        [line?.reason, line?.code, line?.path, line?.bytes, line?.remoteAddress],
        ["address_connections", "UNAVAILABLE", "/x", Buffer.byteLength(body), "127.0.0.1"],
      );
      const warning = lines.find((one) => one.level === "warn");
      assert.equal(warning?.remoteAddress, "127.0.0.1");
    });
  }
});

it("above the limit of the process, the last of the places are for answers", async () => {
  const lines: Record<string, unknown>[] = [];
  const logger = createLogger("info", { write: (line) => void lines.push(JSON.parse(line)) });
  const limits = { connections: 40, reservedConnections: 100 };
  const server = await startServer({ limits, logger, accessLog: "all" });
  running.push(server);
  server.probe.gate = new Promise(() => {});
  for (let i = 0; i < 38; i++) await callOnce(server);
  assert.match(await askOnce(server), /^HTTP\/1\.1 503 /);
  assert.match(await askOnce(server, "127.0.0.2", "", "GET /healthz"), /^HTTP\/1\.1 200 /);
  assert.equal(lines.find(({ status }) => status === 503)?.reason, "connections");
  const [warning] = lines.filter(({ level }) => level === "warn");
  assert.match(String(warning?.msg), /as many are open as the process may have/);
  assert.equal(warning?.limit, 40);
  for (let i = 0; i < 2; i++) await once(openSocket(server), "connect");
  assert.equal(await askOnce(server), "");
});

for (const [name, tls] of [
  ["cleartext", undefined],
  ["TLS", TLS],
] as const) {
  it(`at the limit of the process the longest idle connection closes, not one with a call, over ${name}`, async () => {
    const server = await start({ ...(tls && { tls }), limits: { connections: 20, connectionsPerAddress: 50 } });
    server.probe.gate = new Promise(() => {});
    const busy = await callOnce(server);
    const session = openHttp2(server.url);
    await rawHttp2(session, { ":method": "GET", ":path": "/x" });
    const first = await connectOnce(server);
    const others = [];
    // One of the 20 places is in reserve.
    for (let i = 0; i < 16; i++) others.push(await connectOnce(server));
    const goaway = once(session, "goaway");
    const third = await connectOnce(server);
    assert.equal((await goaway)[0], constants.NGHTTP2_NO_ERROR);
    const closed = once(first, "close");
    assert.match(await askOnce(server), /^HTTP\/1\.1 200 /);
    await closed;
    assert.ok([busy, ...others, third].every(({ destroyed }) => !destroyed));
  });
}

it("is bounded: beyond some that are being answered connections are cut at once", async () => {
  const server = await start({ limits: { reservedConnections: 2, reservedConnectionMs: 60_000 } });
  await connectOnce(server);
  // Two that never ask hold both places.
  for (let i = 0; i < 2; i++) await once(openSocket(server), "connect");
  assert.equal(await askOnce(server), "");
  // The control: without them there is a response.
  const other = await start({ limits: { reservedConnections: 2, reservedConnectionMs: 60_000 } });
  await connectOnce(other);
  assert.match(await askOnce(other), /^HTTP\/1\.1 503 /);
});

it("one that never asks is closed in time, and a stop does not wait for it", async () => {
  const server = await start({ limits: { reservedConnectionMs: 50 } });
  await connectOnce(server);
  const socket = openSocket(server);
  await once(socket, "close");
});

it("over TLS only so many a second are answered, because a handshake costs much", async () => {
  const server = await start({ tls: TLS, limits: { rejectedHandshakes: 0 } });
  await connectOnce(server);
  assert.equal(await askOnce(server), "");
});
