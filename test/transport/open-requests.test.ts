// How many requests of one address may be open, and that long responses of a connection keep no call of it from beginning.
import assert from "node:assert/strict";
import { once } from "node:events";
import { constants } from "node:http2";
import { connect, type Socket } from "node:net";
import { after, it } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { GetGroupRequestSchema, ListGroupsRequestSchema } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { defaultLimits, type Limits } from "../../src/transport/http/limits/limits.js";
import {
  dataFrame,
  FRAME,
  type FrameConnection,
  grpcFields,
  headersFrame,
  openFrames,
  resetFrame,
} from "../hostile/support/frames.js";
import { frame } from "../hostile/support/grpc.js";
import { type Running, SERVICE, startServer } from "./harness.js";

const LIMIT = 5;
const running: Running[] = [];
const open: { close(): void }[] = [];
after(async () => {
  for (const one of open) one.close();
  for (const server of running) await server.stop(0);
});

async function start(limits: Partial<Limits>): Promise<Running> {
  const server = await startServer({ limits });
  running.push(server);
  return server;
}

async function connectFrames(server: Running, address: string): Promise<FrameConnection> {
  const connection = openFrames(server.url, address);
  open.push(connection);
  await connection.ready;
  return connection;
}

const message = (uid: string) => frame(toBinary(GetGroupRequestSchema, create(GetGroupRequestSchema, { uid })));
const call = (server: Running, id: number, uid: string) => [
  headersFrame(id, grpcFields(server.url, `${SERVICE}/GetGroup`)),
  dataFrame(id, message(uid), true),
];

/** How each stream ended: "answered", or the code it was reset with. */
function endsOf(connection: FrameConnection, count: number): Promise<ReadonlyMap<number, string>> {
  const ends = new Map<number, string>();
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`${ends.size} of ${count} streams ended`)), 10_000);
    connection.onFrame = ({ type, stream, flags, payload }) => {
      if (type === FRAME.reset) ends.set(stream, `reset with ${payload.readUInt32BE(0)}`);
      else if (type === FRAME.headers && flags & 1) ends.set(stream, "answered");
      if (ends.size < count) return;
      clearTimeout(timer);
      resolve(ends);
    };
  });
}

it("rejects one request more of an address over HTTP/2 so that it may be retried, and none of other addresses", async () => {
  const server = await start({ requestsPerAddress: LIMIT });
  const holding = await connectFrames(server, "127.0.2.1");
  // Their messages never come.
  const ids = Array.from({ length: LIMIT }, (_, i) => 1 + 2 * i);
  holding.send(...ids.map((id) => headersFrame(id, grpcFields(server.url, `${SERVICE}/GetGroup`))));
  const second = await connectFrames(server, "127.0.2.1");
  let next = 1;
  const outcome = async (connection: FrameConnection) => {
    const id = next;
    next += 2;
    const ended = endsOf(connection, 1);
    connection.send(...call(server, id, "x"));
    return (await ended).get(id);
  };
  const deadline = performance.now() + 5_000;
  const rejected = `reset with ${constants.NGHTTP2_REFUSED_STREAM}`;
  while ((await outcome(second)) !== rejected) assert.ok(performance.now() < deadline, "never rejected");
  assert.equal(await outcome(await connectFrames(server, "127.0.2.2")), "answered");
  holding.send(resetFrame(ids[0] ?? 0));
  while ((await outcome(second)) !== "answered") assert.ok(performance.now() < deadline, "room is lost");
});

it("rejects one request more of an address over HTTP/1.1 with 429", async () => {
  const server = await start({ requestsPerAddress: LIMIT });
  const head = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n";
  const ask = async () => {
    const socket: Socket = connect(server.port, "127.0.0.1");
    open.push({ close: () => socket.destroy() });
    socket.on("error", () => {});
    await once(socket, "connect");
    return socket;
  };
  const holding = await connectFrames(server, "127.0.0.1");
  holding.send(
    ...Array.from({ length: LIMIT }, (_, i) => headersFrame(1 + 2 * i, grpcFields(server.url, `${SERVICE}/GetGroup`))),
  );
  await new Promise((resolve) => setTimeout(resolve, 200));
  const socket = await ask();
  socket.write(head);
  const [chunk] = (await once(socket, "data")) as [Buffer];
  assert.match(chunk.toString(), /^HTTP\/1\.1 429 .*connection: close.*"code":8/is);
});

it("forgets requests behind one that is not answered when their connection is lost", async () => {
  const server = await start({ requestsPerAddress: LIMIT });
  // What is counted for an address is forgotten with the last of its connections.
  await connectFrames(server, "127.0.0.1");
  const requests = "GET /x HTTP/1.1\r\nHost: a\r\n\r\n".repeat(LIMIT - 1);
  let release = () => {};
  server.probe.gate = new Promise((resolve) => {
    release = resolve;
  });
  const slow = `${SERVICE}/GetGroup`;
  for (let round = 0; round < 4; round++) {
    const socket = connect(server.port, "127.0.0.1");
    socket.on("error", () => {});
    await once(socket, "connect");
    const body = '{"uid":"slow"}';
    const head = `POST ${slow} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
    socket.write(head + body + requests);
    await new Promise((resolve) => setTimeout(resolve, 100));
    socket.destroy();
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  release();
  const response = await fetch(`${server.url}/x`);
  assert.equal(response.status, 200);
});

// The server runs in this process: once nothing is left to do, its responses wait for their reader.
async function untilIdle(): Promise<void> {
  const deadline = performance.now() + 20_000;
  let utilization = 1;
  while (utilization > 0.2 && performance.now() < deadline) {
    const before = performance.eventLoopUtilization();
    await new Promise((resolve) => setTimeout(resolve, 300));
    utilization = performance.eventLoopUtilization(before).utilization;
  }
}

for (const [sessionMemoryMegabytes, expected, answers] of [
  [defaultLimits.sessionMemoryMegabytes, 0, 60],
  // What the library counts itself must not be the narrower limit: it resets calls that have just begun.
  [1, 10, 15],
] as const) {
  it(`resets ${expected} of the calls that begin while long answers wait, with ${sessionMemoryMegabytes} MiB a session`, async () => {
    const server = await start({ sessionMemoryMegabytes });
    const connection = openFrames(server.url, "127.0.2.3", 0);
    open.push(connection);
    await connection.ready;
    const list = frame(toBinary(ListGroupsRequestSchema, create(ListGroupsRequestSchema, { pageSize: 20_000 })));
    const fields = grpcFields(server.url, `${SERVICE}/ListGroups`);
    const lists = Array.from({ length: answers }, (_, i) => 1 + 2 * i);
    connection.send(...lists.flatMap((id) => [headersFrame(id, fields), dataFrame(id, list, true)]));
    await untilIdle();
    let reset = 0;
    connection.onFrame = ({ type, payload }) => {
      if (type === FRAME.reset && payload.readUInt32BE(0) === constants.NGHTTP2_ENHANCE_YOUR_CALM) reset++;
    };
    const later = Array.from({ length: 10 }, (_, i) => 201 + 2 * i);
    connection.send(...later.flatMap((id) => call(server, id, "x")));
    await untilIdle();
    assert.equal(reset, expected);
  });
}
