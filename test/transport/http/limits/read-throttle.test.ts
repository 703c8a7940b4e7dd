import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, Socket } from "node:net";
import { it } from "node:test";
import { Connection } from "../../../../src/transport/http/limits/connection.js";
import { ReadThrottle } from "../../../../src/transport/http/limits/read-throttle.js";
import { SocketReader } from "../../../../src/transport/http/socket-reader.js";
import { waitUntil } from "../../../support/wait-until.js";

const LIMITS = { readTurnUs: 100, readCutUs: 1_000, sessionCutUs: 2_000, readPauseFactor: 1, maxReadPauseMs: 5_000 };

/** A reader that notes what happens to it. */
class NotedReader extends SocketReader {
  isHeld = false;
  constructor() {
    super(new Socket());
  }
  override hold(): void {
    this.isHeld = true;
  }
  override release(): void {
    this.isHeld = false;
  }
}

function connectionOf(key: string, { isHttp2 = false, isProven = false, isProxy = false } = {}) {
  const socket = new Socket();
  const connection = new Connection(socket, { key, address: key, isProxy, rejection: undefined });
  const reader = new NotedReader();
  connection.isHttp2 = isHttp2;
  if (!isHttp2) connection.reader = reader;
  connection.isProven = isProven;
  return { connection, reader, socket };
}

function throttleOf(limits = LIMITS) {
  const charged: [key: string, ms: number][] = [];
  const cut: Connection[] = [];
  const throttle = new ReadThrottle({
    limits,
    charge: (key, ms) => charged.push([key, ms]),
    onCut: (connection) => cut.push(connection),
  });
  return { throttle, charged, cut };
}

it("pauses all connections of an address that costs too much in one turn, and no other", async () => {
  const { throttle, charged } = throttleOf();
  const all = ["a", "a", "b"].map((key) => connectionOf(key));
  for (const { connection } of all) throttle.add(connection);
  const [first, second, other] = all as [(typeof all)[0], (typeof all)[0], (typeof all)[0]];
  throttle.charge(first.connection, 100);
  assert.equal(first.reader.isHeld, false);
  throttle.charge(first.connection, 1);
  assert.deepEqual([first.reader.isHeld, second.reader.isHeld, other.reader.isHeld], [true, true, false]);
  assert.deepEqual([throttle.isPaused("a"), throttle.isPaused("b")], [true, false]);
  await waitUntil(() => !first.reader.isHeld);
  assert.equal(second.reader.isHeld, false);
  assert.deepEqual(charged, [["a", 0.101]]);
});

it("forgets what was cheap at the end of each turn", async () => {
  const { throttle } = throttleOf();
  const { connection, reader } = connectionOf("a");
  throttle.add(connection);
  for (let turn = 0; turn < 5; turn++) {
    throttle.charge(connection, 60);
    assert.equal(reader.isHeld, false);
    await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setImmediate(resolve));
  }
});

it("remembers a pause although the last connection has closed meanwhile", async () => {
  const { throttle } = throttleOf();
  const { connection } = connectionOf("a");
  throttle.add(connection);
  throttle.charge(connection, 5_000);
  throttle.remove(connection);
  assert.equal(throttle.isPaused("a"), true);
  await waitUntil(() => !throttle.isPaused("a"));
});

it("cuts sessions of HTTP/2 of which far too much is refused, with the others of their address that are not known", () => {
  const { throttle, cut } = throttleOf();
  const flood = connectionOf("a", { isHttp2: true, isProven: true });
  const unknown = connectionOf("a", { isHttp2: true });
  const proven = connectionOf("a", { isHttp2: true, isProven: true });
  const http1 = connectionOf("a");
  const other = connectionOf("b", { isHttp2: true });
  const all = [flood, unknown, proven, http1, other];
  for (const { connection } of all) throttle.add(connection);
  throttle.charge(flood.connection, 1_000, true);
  assert.deepEqual(cut, []);
  throttle.charge(flood.connection, 1, true);
  assert.deepEqual(cut, [flood.connection, unknown.connection]);
  assert.deepEqual(
    all.map(({ socket }) => socket.destroyed),
    [true, true, false, false, false],
  );
});

it("cuts a session alone that costs far too much, and none for what several cost together", () => {
  const { throttle, cut } = throttleOf();
  const all = Array.from({ length: 3 }, () => connectionOf("a", { isHttp2: true }).connection);
  const detecting = connectionOf("a").connection;
  detecting.reader = undefined;
  for (const connection of [...all, detecting]) throttle.add(connection);
  for (const connection of [...all, detecting]) throttle.charge(connection, 2_000);
  assert.deepEqual(cut, []);
  const [first] = all;
  if (first) throttle.charge(first, 1);
  throttle.charge(detecting, 1);
  assert.deepEqual(cut, [first]);
});

it("counts the cost of a session anew in each turn", async () => {
  const { throttle, cut } = throttleOf();
  const { connection } = connectionOf("a", { isHttp2: true });
  throttle.add(connection);
  for (let turn = 0; turn < 3; turn++) {
    throttle.charge(connection, 1_500);
    await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.deepEqual(cut, []);
});

it("cuts no connection of a proxy, which others use too", () => {
  const { throttle, cut } = throttleOf();
  const { connection } = connectionOf("connection 1", { isHttp2: true, isProxy: true });
  throttle.add(connection);
  throttle.charge(connection, 5_000, true);
  assert.deepEqual(cut, []);
});

it("reads nothing of a socket that is held, whatever resumes it", async () => {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect((server.address() as { port: number }).port, "127.0.0.1");
  const [socket] = (await once(server, "connection")) as [Socket];
  try {
    let bytes = 0;
    socket.on("data", (chunk: Buffer) => (bytes += chunk.length));
    const reader = new SocketReader(socket);
    reader.begin();
    reader.hold("throttled");
    reader.hold("throttled");
    reader.hold("pipelined");
    client.write("x");
    for (let i = 0; i < 20; i++) {
      socket.resume();
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    reader.release("throttled");
    for (let i = 0; i < 20; i++) {
      socket.resume();
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    assert.equal(bytes, 0);
    assert.ok(socket.listenerCount("resume") <= 1);
    reader.release("pipelined");
    await waitUntil(() => bytes === 1);
    assert.equal(socket.listenerCount("resume"), 0);
  } finally {
    client.destroy();
    socket.destroy();
    server.close();
  }
});

it("does not resume a socket that has no parser yet", async () => {
  const server = createServer({ pauseOnConnect: true });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect((server.address() as { port: number }).port, "127.0.0.1");
  const [socket] = (await once(server, "connection")) as [Socket];
  try {
    const reader = new SocketReader(socket);
    client.write("x");
    reader.hold("throttled");
    reader.release("throttled");
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setTimeout(resolve, 1));
    assert.equal(socket.isPaused(), true);
    let bytes = 0;
    socket.on("data", (chunk: Buffer) => (bytes += chunk.length));
    reader.begin();
    await waitUntil(() => bytes === 1);
  } finally {
    client.destroy();
    socket.destroy();
    server.close();
  }
});
