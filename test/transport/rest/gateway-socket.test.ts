import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { after, before, test } from "node:test";
import { failure } from "../../support/feature/error-texts.js";
import type { FeatureHandler } from "../../support/feature/feature.js";
import { BODY_LIMIT, type FeatureServer, startDefault } from "../../support/feature/feature-server.js";

const tooLarge = failure(8, "RESOURCE_EXHAUSTED", `Resource exhausted: body: must be at most ${BODY_LIMIT} bytes`);
let server: FeatureServer;
// What GetThing does.
let getThing: FeatureHandler = () => ({});

before(async () => {
  server = await startDefault((request, call) => getThing(request, call));
});
after(() => server.stop());

async function raw(text: string, until: (soFar: string) => boolean): Promise<string> {
  const socket: Socket = connect(server.port, "127.0.0.1");
  await once(socket, "connect");
  socket.on("error", () => {});
  let soFar = "";
  socket.on("data", (chunk: Buffer) => {
    soFar += chunk.toString();
    if (until(soFar)) socket.end();
  });
  socket.write(text);
  await once(socket, "close");
  return soFar;
}

const targets: readonly { line: string; status: string; reason: string }[] = [
  { line: "GET http://elsewhere/feature/v1/things/a HTTP/1.1", status: "200 OK", reason: "absolute form" },
  {
    line: "GET HTTPS://elsewhere:99999/feature/v1/things/a HTTP/1.1",
    status: "200 OK",
    reason: "absolute form, upper case",
  },
  { line: "GET http://elsewhere HTTP/1.1", status: "404 Not Found", reason: "absolute form without a path" },
  { line: "GET http://elsewhere?page_size=1 HTTP/1.1", status: "404 Not Found", reason: "absolute form, query alone" },
  { line: "OPTIONS * HTTP/1.1", status: "204 No Content", reason: "the server as a whole" },
  { line: "GET * HTTP/1.1", status: "400 Bad Request", reason: "a star for another method" },
  { line: "GET /feature/v1/things/../x HTTP/1.1", status: "400 Bad Request", reason: "dots" },
];

for (const { line, status, reason } of targets) {
  test(`${line}: ${reason}`, async () => {
    getThing = () => ({});
    const text = `${line}\r\nHost: x\r\n\r\n`;
    const got = await raw(text, (soFar) => soFar.includes("\r\n\r\n"));
    assert.ok(got.startsWith(`HTTP/1.1 ${status}\r\n`), got);
  });
}

test("rejects a chunked body without end as soon as it is too large", async () => {
  const chunk = `4000\r\n${"x".repeat(0x4000)}\r\n`;
  const head = "POST /feature/v1/things/p HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  const got = await raw(head + chunk.repeat(6), (soFar) => soFar.includes("details"));
  assert.ok(got.startsWith("HTTP/1.1 413 Payload Too Large\r\n"), got);
  assert.ok(got.includes(tooLarge), got);
});

test("a connection outlives a request that was rejected with its body unread", async () => {
  const rejected = `POST /feature/v1/nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n${"x".repeat(100_000)}`;
  const next = "GET /feature/v1/labels/a HTTP/1.1\r\nHost: x\r\n\r\n";
  const got = await raw(rejected + next, (soFar) => soFar.endsWith('{"a":"b"}'));
  assert.match(got, /^HTTP\/1\.1 404 [\s\S]*HTTP\/1\.1 200 OK\r\n[\s\S]*\{"a":"b"\}$/);
});

test("a connection is cut when the unread rest of a body is beyond measure", async () => {
  const socket = connect(server.port, "127.0.0.1");
  socket.on("error", () => {});
  let got = "";
  socket.on("data", (chunk: Buffer) => {
    got += chunk.toString();
  });
  socket.write("POST /feature/v1/things/p HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n");
  const chunk = Buffer.alloc(1 << 20, 0x20);
  for (let i = 0; i < 64 && !socket.destroyed; i++) {
    if (socket.write(chunk)) continue;
    await new Promise<void>((resolve) => {
      socket.once("drain", resolve).once("close", () => resolve());
    });
  }
  assert.ok(socket.destroyed);
  assert.ok(got.startsWith("HTTP/1.1 413 Payload Too Large\r\n"), got);
});

test("a caller that goes away in the middle of a body is no error, and no call", async () => {
  const { length } = server.calls;
  server.internal.length = 0;
  const socket = connect(server.port, "127.0.0.1");
  await once(socket, "connect");
  socket.write('POST /feature/v1/things/p HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{"displayName":');
  socket.resetAndDestroy();
  await once(socket, "close");
  // The server is alive and has finished with the other connection once it answers this.
  for (let i = 0; i < 3; i++) await server.send("h1", { path: "/feature/v1/labels/a" });
  assert.deepEqual(
    server.calls.slice(length).map(({ method }) => method),
    ["GetLabels", "GetLabels", "GetLabels"],
  );
  assert.deepEqual(server.internal, []);
});

// HTTP/2 by hand (RFC 9113), as node's client ends a stream before it resets it.
function frame(type: number, flags: number, stream: number, payload: Uint8Array): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

function literal(name: string, value: string): Buffer {
  const text = (part: string) => Buffer.concat([Buffer.from([part.length]), Buffer.from(part)]);
  return Buffer.concat([Buffer.from([0]), text(name), text(value)]);
}

const PING = frame(6, 0, 0, Buffer.from("12345678"));

for (const body of ['{"displayName":"x"}', '{"displayName":', ""]) {
  test(`a stream that is reset after ${JSON.stringify(body)} is no call, even if that were a body`, async () => {
    const { length } = server.calls;
    server.internal.length = 0;
    const fields = { ":method": "POST", ":scheme": "http", ":path": "/feature/v1/things/p", ":authority": "x" };
    const headers = Buffer.concat(Object.entries(fields).map(([name, value]) => literal(name, value)));
    const socket = connect(server.h2Port, "127.0.0.1");
    const pings = { seen: 0 };
    const waitForPings = (count: number) =>
      new Promise<void>((resolve) => {
        const look = () => pings.seen >= count && resolve();
        socket.on("data", look);
        look();
      });
    socket.on("data", (chunk: Buffer) => {
      pings.seen += chunk.toString("latin1").split("12345678").length - 1;
    });
    socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    socket.write(Buffer.concat([frame(4, 0, 0, Buffer.alloc(0)), frame(1, 4, 1, headers)]));
    if (body !== "") socket.write(frame(0, 0, 1, Buffer.from(body)));
    socket.write(PING);
    await waitForPings(1);
    socket.write(Buffer.concat([frame(3, 0, 1, Buffer.from([0, 0, 0, 8])), PING]));
    await waitForPings(2);
    for (let i = 0; i < 3; i++) await server.send("h2", { path: "/feature/v1/labels/a" });
    socket.destroy();
    assert.deepEqual(
      server.calls.slice(length).map(({ method }) => method),
      ["GetLabels", "GetLabels", "GetLabels"],
    );
    assert.deepEqual(server.internal, []);
  });
}

test("a caller that goes away during a call fires its signal", async () => {
  const gone = new Promise<void>((resolve) => {
    getThing = (_request, call) =>
      new Promise((_, reject) => {
        call.signal.addEventListener("abort", () => {
          reject(new Error("gone"));
          resolve();
        });
        socket.resetAndDestroy();
      });
  });
  const socket = connect(server.port, "127.0.0.1");
  socket.on("error", () => {});
  socket.write("GET /feature/v1/things/a HTTP/1.1\r\nHost: x\r\n\r\n");
  await gone;
});
