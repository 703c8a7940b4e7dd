// How streams of requests end that cannot be read to their end, and what a peer is told before it sends one.
import assert from "node:assert/strict";
import { once } from "node:events";
import type { ClientHttp2Session, IncomingHttpHeaders } from "node:http2";
import { after, before, describe, it } from "node:test";
import type { RequestRecord } from "../../src/telemetry/request-record.js";
import { createReflection } from "../../src/transport/services/reflection.js";
import { waitUntil } from "../support/wait-until.js";
import { openHttp2, type Running, SERVICE, startServer } from "./harness.js";

const REFLECT = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
const records: RequestRecord[] = [];
let server: Running;
let session: ClientHttp2Session;
before(async () => {
  server = await startServer({
    extraServices: createReflection([]),
    observers: [(record) => void records.push(record)],
  });
  session = openHttp2(server.url);
});
after(async () => {
  session.destroy();
  await server.stop();
});

function open(path: string, fields: Record<string, string>) {
  const stream = session.request({ ":method": "POST", ":path": path, te: "trailers", ...fields });
  stream.on("error", () => {});
  return stream;
}

// The fields that have the status: those of the head, or the trailers.
async function statusOf(stream: ReturnType<typeof open>): Promise<IncomingHttpHeaders> {
  const fields: IncomingHttpHeaders = {};
  stream.on("response", (head) => Object.assign(fields, head));
  stream.on("trailers", (trailers) => Object.assign(fields, trailers));
  stream.resume();
  await waitUntil(() => fields["grpc-status"]);
  return fields;
}

describe("a stream of requests", () => {
  it("in an unknown encoding is UNIMPLEMENTED, and names the known ones", async () => {
    const stream = open(REFLECT, { "content-type": "application/grpc", "grpc-encoding": "br" });
    const fields = await statusOf(stream);
    assert.deepEqual([fields["grpc-status"], fields["grpc-accept-encoding"]], ["12", "gzip"]);
    stream.close();
  });

  it("in too many pieces is INVALID_ARGUMENT, and the log says why", async () => {
    const stream = open(REFLECT, { "content-type": "application/grpc" });
    const status = statusOf(stream);
    // Each is a frame of its own, and far more than a message of as many bytes may have.
    stream.write(Buffer.from([0, 0, 0, 4, 0]));
    for (let i = 0; i < 600 && !stream.closed; i++) {
      stream.write(Buffer.of(10));
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.equal((await status)["grpc-status"], "3");
    stream.close();
    const record = await waitUntil(() => records.find(({ code }) => code === 3));
    assert.equal(record.reason, "pieces");
  });

  it("that is left open after the end of its call does not keep the call open", async () => {
    const stream = open(REFLECT, { "content-type": "application/grpc", "grpc-timeout": "50m" });
    const fields = await statusOf(stream);
    assert.equal(fields["grpc-status"], "4");
    for (let i = 0; i < 5; i++) stream.write(Buffer.from([0, 0, 0, 0, 2, 58, 0]));
    await waitUntil(() => records.find(({ code }) => code === 4));
  });
});

for (const [what, method, status, mebibytes] of [
  ["of which nothing is read", "NoSuchMethod", 404, 3],
  ["of which a part is read", "CreateGroup", 429, 5],
] as const) {
  it(`the rest of a body is dropped ${what}, and its request ends`, async () => {
    const stream = open(`${SERVICE}/${method}`, { "content-type": "application/json" });
    stream.end(Buffer.alloc(mebibytes * 1024 * 1024));
    const [head] = await once(stream, "response");
    stream.resume();
    assert.equal(head[":status"], status);
    await waitUntil(() => records.find(({ path }) => path.endsWith(`/${method}`)));
  });
}

it("a peer of HTTP/2 that waits for 100 Continue gets it", async () => {
  const stream = open(`${SERVICE}/GetGroup`, { "content-type": "application/json", expect: "100-continue" });
  await once(stream, "continue");
  stream.end('{"uid":"u1"}');
  const [head] = await once(stream, "response");
  assert.equal(head[":status"], 200);
  stream.resume();
});

it("a caller that leaves while it is authenticated is not waited for", async () => {
  let authenticate: (() => void) | undefined;
  const settled: RequestRecord[] = [];
  const slow = await startServer({
    authenticateCaller: () => new Promise((resolve) => (authenticate = () => resolve(undefined))),
    observers: [(record) => void settled.push(record)],
  });
  const own = openHttp2(slow.url);
  try {
    const stream = own.request({
      ":method": "POST",
      ":path": `${SERVICE}/GetGroup`,
      "content-type": "application/grpc",
    });
    stream.on("error", () => {});
    await waitUntil(() => authenticate);
    stream.close(8);
    await waitUntil(() => settled.at(0));
    authenticate?.();
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(slow.probe.calls.length, 0);
    assert.deepEqual([settled[0]?.code, settled[0]?.isCanceled], [1, true]);
  } finally {
    own.destroy();
    await slow.stop();
  }
});
