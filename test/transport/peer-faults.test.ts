// Peers that break off, lie about the version or send on after they were rejected:
// each gets its response, and neither the process nor other calls suffer.
import assert from "node:assert/strict";
import { once } from "node:events";
import { type ClientHttp2Session, constants } from "node:http2";
import { connect as connectTcp } from "node:net";
import { after, before, describe, it } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import * as grpc from "@grpc/grpc-js";
import { GetGroupRequestSchema } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { connectErrorFrom, unauthenticated } from "../../src/kernel/errors.js";
import type { Invoke } from "../../src/pipeline/invoke.js";
import type { Request } from "../../src/transport/http/request.js";
import { sendComplete } from "../../src/transport/http/response-writer.js";
import { LIMIT_MS } from "../support/wait-until.js";
import {
  DATA,
  DOMAIN,
  END_STREAM,
  frame,
  GrpcJs,
  HEADERS,
  HTTP2_START,
  headersFrame,
  http2Frame,
  openHttp2,
  RST_STREAM,
  type Running,
  rawHttp2,
  rawTcp,
  SERVICE,
  startServer,
} from "./harness.js";

const GET = `${SERVICE}/GetGroup`;
const get = (uid: string) => frame(toBinary(GetGroupRequestSchema, create(GetGroupRequestSchema, { uid })));
const grpcHeaders = { ":path": GET, "content-type": "application/grpc" };
const grpcFields = [["content-type", "application/grpc"]] as const;

describe("the version in an HTTP/1 request line", () => {
  let server: Running;
  before(async () => {
    server = await startServer();
  });
  after(() => server.stop());

  for (const version of ["2.0", "0.9"]) {
    for (const path of ["/", "/healthz", GET, "/oauth", "http://a/x"]) {
      it(`${version} is rejected with 505: ${path}`, async () => {
        const text = await rawTcp(server.port, `GET ${path} HTTP/${version}\r\nHost: a\r\n\r\n`);
        assert.match(text, /^HTTP\/1\.1 505 /);
      });
    }
  }

  it("1.0 and 1.1 are served", async () => {
    for (const version of ["1.0", "1.1"]) {
      const text = await rawTcp(server.port, `GET /x HTTP/${version}\r\nHost: a\r\nConnection: close\r\n\r\n`);
      assert.match(text, /^HTTP\/1\.1 200 /);
    }
  });
});

describe("invalid bytes after a request that was handled", () => {
  const post = "POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}";

  for (const [name, responseMs] of [
    ["at once", 0],
    ["later", 50],
  ] as const) {
    for (const garbage of ["\u0000\u0001", "GET / HTTP/9.9\r\n\r\n", "\u0016\u0003\u0001"]) {
      it(`come after its answer, which is made ${name}: ${JSON.stringify(garbage)}`, async () => {
        let handled = 0;
        const answer = async (request: Request) => {
          handled++;
          await delay(responseMs);
          sendComplete(request, 200, { "content-length": 4 }, "done");
        };
        const server = await startServer({ answer });
        const text = await rawTcp(server.port, post + garbage);
        assert.equal(handled, 1);
        assert.match(text, /^HTTP\/1\.1 200 /);
        assert.match(text, /done$/);
        await server.stop();
      });
    }
  }

  it("within its body are its own fault", async () => {
    const server = await startServer();
    const text = await rawTcp(
      server.port,
      "POST /x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    );
    assert.match(text, /HTTP\/1\.1 400 /);
    await server.stop();
  });
});

it("an error while a request is taken ends that request alone", async () => {
  const answer = ({ url }: Request) => {
    if (url === "/fault") throw new TypeError("planted");
  };
  const server = await startServer({ answer });
  assert.equal(await rawTcp(server.port, "GET /fault HTTP/1.1\r\nHost: a\r\n\r\n"), "");
  const session = openHttp2(server.url);
  const { rstCode } = await rawHttp2(session, { ":path": "/fault", ":method": "GET" });
  assert.equal(rstCode, constants.NGHTTP2_INTERNAL_ERROR);
  assert.equal((await rawHttp2(session, grpcHeaders, get("u1"))).trailers["grpc-status"], "0");
  session.destroy();
  await server.stop();
});

describe("a gRPC call that is rejected before its body ends", () => {
  const rejectAll: Invoke = async () => {
    throw connectErrorFrom(unauthenticated(), DOMAIN);
  };
  let server: Running;
  let session: ClientHttp2Session;
  before(async () => {
    server = await startServer({ invoke: rejectAll });
    session = openHttp2(server.url);
  });
  after(async () => {
    session.destroy();
    await server.stop();
  });

  for (const path of [`${SERVICE}/NoSuchMethod`, GET]) {
    it(`gets its status with 5 MB outstanding: ${path}`, async () => {
      const client = new GrpcJs(server.url, { "grpc.max_send_message_length": -1 });
      const method = path === GET ? "GetGroup" : "DeleteGroup";
      const outcome = await client.call(method, { uid: "x".repeat(5_000_000) }, new grpc.Metadata(), {
        deadline: Date.now() + LIMIT_MS,
      });
      assert.ok(
        outcome.code === grpc.status.UNAUTHENTICATED || outcome.code === grpc.status.RESOURCE_EXHAUSTED,
        `code ${outcome.code}: ${outcome.details}`,
      );
      client.close();
    });
  }

  it("gets its status before the reset, although the body never ends", async () => {
    const stream = session.request({ ":method": "POST", ...grpcHeaders, ":path": "/a.B/C" }, { endStream: false });
    stream.write(get("u1"));
    let status: unknown;
    stream.on("response", (headers) => {
      status = headers["grpc-status"];
    });
    stream.resume();
    await once(stream, "close");
    assert.equal(status, "12");
    assert.equal(stream.rstCode, constants.NGHTTP2_NO_ERROR);
  });

  it("keeps its status beside a hundred others", async () => {
    const all = Array.from({ length: 100 }, () =>
      rawHttp2(session, { ...grpcHeaders, ":path": "/a.B/C" }, get("u"), false),
    );
    for (const { headers } of await Promise.all(all)) assert.equal(headers["grpc-status"], "12");
  });
});

describe("streams that are reset", () => {
  // One stream stays open, all others are reset as soon as they are opened.
  const flood = (count: number) => {
    const sent: Uint8Array[] = [HTTP2_START, headersFrame(1, GET, grpcFields), http2Frame(DATA, 1, 1, get("slow"))];
    for (let i = 1; i <= count; i++) {
      const id = 2 * i + 1;
      sent.push(headersFrame(id, GET, grpcFields), http2Frame(RST_STREAM, 0, id, Buffer.from([0, 0, 0, 8])));
    }
    return Buffer.concat(sent);
  };
  const GOAWAY_CALM = Buffer.from([0, 0, 0, constants.NGHTTP2_ENHANCE_YOUR_CALM]).toString("latin1");

  it("end the session by GOAWAY beside an open stream, round after round", async () => {
    const server = await startServer({ limits: { refusedSessionMs: 100 } });
    server.probe.gate = delay(20);
    for (let round = 0; round < 36; round++) {
      const response = await rawTcp(server.port, flood(110 + ((round * 53) % 190)));
      assert.ok(response.includes(GOAWAY_CALM), `round ${round}`);
    }
    const session = openHttp2(server.url);
    assert.equal((await rawHttp2(session, grpcHeaders, get("u1"))).trailers["grpc-status"], "0");
    session.destroy();
    await server.stop();
  });

  it("let the stream that stays open end with its answer", async () => {
    const server = await startServer({ limits: { refusedSessionMs: 500 } });
    server.probe.gate = delay(50);
    const response = await rawTcp(server.port, flood(150));
    assert.ok(response.includes("core"), "the open call was answered after GOAWAY");
    await server.stop();
  });

  // 0: what grpc-js sends when the deadline has passed before the call is sent.
  for (const timeout of ["50m", "0m"])
    it(`come from deadlines of ${timeout} that passed while the service was held up`, async () => {
      const server = await startServer();
      const sent: Uint8Array[] = [HTTP2_START];
      const fields = [
        ["content-type", "application/grpc"],
        ["grpc-timeout", timeout],
      ] as const;
      for (let i = 0; i < 300; i++) {
        sent.push(
          headersFrame(2 * i + 1, GET, fields),
          http2Frame(RST_STREAM, 0, 2 * i + 1, Buffer.from([0, 0, 0, 8])),
        );
      }
      sent.push(headersFrame(601, GET, grpcFields), http2Frame(DATA, 1, 601, get("u1")));
      const response = await rawTcp(server.port, Buffer.concat(sent), (text) => text.includes("core"));
      assert.ok(response.includes("core") && !response.includes(GOAWAY_CALM));
      await server.stop();
    });

  it("do not end the session when there are fewer", async () => {
    const server = await startServer();
    server.probe.gate = delay(50);
    const response = await rawTcp(server.port, flood(90), (text) => text.includes("core"));
    assert.ok(!response.includes(GOAWAY_CALM));
    await server.stop();
  });

  it("by deadlines that pass cost the patient calls of their connection nothing", async () => {
    const server = await startServer();
    server.probe.gate = delay(1_500);
    const client = new GrpcJs(server.url);
    const patient = Array.from({ length: 50 }, () => client.call("GetGroup", { uid: "slow" }));
    const expired: number[] = [];
    for (let burst = 0; burst < 6; burst++) {
      const calls = Array.from({ length: 50 }, () =>
        client.call("GetGroup", { uid: "slow" }, new grpc.Metadata(), { deadline: Date.now() + 5 }),
      );
      expired.push(...(await Promise.all(calls)).map(({ code }) => code));
    }
    assert.deepEqual(new Set(expired), new Set([grpc.status.DEADLINE_EXCEEDED]));
    assert.deepEqual(new Set((await Promise.all(patient)).map(({ code }) => code)), new Set([grpc.status.OK]));
    client.close();
    await server.stop();
  });
});

describe("a body that arrives while its rejection is sent", () => {
  let server: Running;
  before(async () => {
    server = await startServer({
      authenticateCaller: () => {
        throw unauthenticated();
      },
    });
  });
  after(() => server.stop());

  for (const [name, contentType] of [
    ["Connect", "application/json"],
    ["gRPC-Web", "application/grpc-web+proto"],
    ["gRPC", "application/grpc"],
  ] as const) {
    it(`does not end the rejection before its end is sent: ${name}`, async () => {
      for (let i = 0; i < 60; i++) {
        const frames = await answerFrames(server.port, contentType, i % 6);
        const end = frames.findIndex(({ type, flags }) => (type === DATA || type === HEADERS) && flags & END_STREAM);
        const reset = frames.findIndex(({ type }) => type === RST_STREAM);
        assert.ok(end >= 0 && (reset < 0 || end < reset), JSON.stringify(frames));
      }
    });
  }
});

interface SentFrame {
  readonly type: number;
  readonly flags: number;
}

/** The frames of stream 1 up to its end or reset, when the body of its request is sent after `delayMs`. */
async function answerFrames(port: number, contentType: string, delayMs: number): Promise<SentFrame[]> {
  const socket = connectTcp(port, "127.0.0.1");
  const fields = [["content-type", contentType]] as const;
  socket.write(Buffer.concat([HTTP2_START, headersFrame(1, GET, fields)]));
  const timer = setTimeout(() => socket.write(http2Frame(DATA, END_STREAM, 1, get("u1"))), delayMs);
  let received = Buffer.alloc(0);
  const frames: SentFrame[] = [];
  for await (const chunk of socket) {
    received = Buffer.concat([received, chunk as Buffer]);
    while (received.length >= 9 && received.length >= 9 + received.readUIntBE(0, 3)) {
      if (received.readUInt32BE(5) === 1) frames.push({ type: received[3] ?? -1, flags: received[4] ?? 0 });
      received = received.subarray(9 + received.readUIntBE(0, 3));
    }
    if (frames.some(({ type, flags }) => type === RST_STREAM || flags & END_STREAM)) break;
  }
  clearTimeout(timer);
  return frames;
}
