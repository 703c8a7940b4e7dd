import assert from "node:assert/strict";
import type { ClientHttp2Session } from "node:http2";
import { after, before, describe, it } from "node:test";
import { gzipSync } from "node:zlib";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import { GetGroupRequestSchema, GroupSchema } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { ErrorInfoSchema } from "#gen/google/rpc/error_details_pb.js";
import { StatusSchema } from "#gen/google/rpc/status_pb.js";
import {
  DATA,
  END_STREAM,
  frame,
  HTTP2_START,
  headersFrame,
  http2Frame,
  openHttp2,
  type RawResponse,
  RST_STREAM,
  type Running,
  rawHttp2,
  rawTcp,
  SERVICE,
  startServer,
} from "../harness.js";

const GET = `${SERVICE}/GetGroup`;
const message = Buffer.from(toBinary(GetGroupRequestSchema, create(GetGroupRequestSchema, { uid: "u1" })));
const good = frame(message);

/** The prefix of a message of `length` bytes, none of which follow. */
function prefix(length: number, flag = 0): Buffer {
  const bytes = Buffer.alloc(5);
  bytes[0] = flag;
  bytes.writeUInt32BE(length, 1);
  return bytes;
}

interface Row {
  readonly name: string;
  readonly headers?: Record<string, string>;
  readonly body?: Buffer | readonly Buffer[];
  /** Whether the client says that it has sent all; it does unless told otherwise. */
  readonly end?: boolean;
  readonly status: number;
  readonly text: string;
}

const ONE = "Unimplemented: message: this method takes exactly one";
const TIMEOUT = "Invalid argument: grpc-timeout must be one to eight digits and one of H, M, S, m, u, n";
const MALFORMED = "Invalid argument: the message is no chainguard.platform.iam.v2beta1.GetGroupRequest";

const rows: readonly Row[] = [
  { name: "one message", body: good, status: 0, text: "" },
  { name: "a byte per frame", body: [...good].map((byte) => Buffer.from([byte])), status: 0, text: "" },
  { name: "an empty message", body: prefix(0), status: 0, text: "" },
  {
    name: "a length of 4 GiB and then nothing",
    body: prefix(0xffffffff),
    end: false,
    status: 8,
    text: "Resource exhausted: message: 4294967295 bytes are more than 4194304",
  },
  {
    name: "a length of 4 MiB and one byte",
    body: prefix(4 * 1024 * 1024 + 1),
    end: false,
    status: 8,
    text: "Resource exhausted: message: 4194305 bytes are more than 4194304",
  },
  {
    name: "the compressed flag without grpc-encoding",
    body: frame(gzipSync(message), 1),
    status: 13,
    text: "Internal: a message is marked as compressed, but the request names no encoding",
  },
  {
    name: "the compressed flag with the encoding identity",
    headers: { "grpc-encoding": "identity" },
    body: frame(gzipSync(message), 1),
    status: 13,
    text: "Internal: a message is marked as compressed, but the request names no encoding",
  },
  {
    name: "the compressed flag without grpc-encoding, as JSON",
    headers: { "content-type": "application/grpc+json" },
    body: frame(gzipSync("{}"), 1),
    status: 13,
    text: "Internal: a message is marked as compressed, but the request names no encoding",
  },
  { name: "flag 2", body: frame(message, 2), status: 3, text: "Invalid argument: a message has an unknown flag" },
  { name: "flag 255", body: frame(message, 255), status: 3, text: "Invalid argument: a message has an unknown flag" },
  { name: "no message", status: 12, text: ONE },
  { name: "an empty body", body: Buffer.alloc(0), status: 12, text: ONE },
  { name: "two messages", body: Buffer.concat([good, good]), status: 12, text: ONE },
  { name: "trailing bytes", body: Buffer.concat([good, Buffer.from([1, 2])]), status: 12, text: ONE },
  { name: "trailing bytes later", body: [good, Buffer.from([1, 2])], status: 12, text: ONE },
  {
    name: "four bytes of prefix",
    body: good.subarray(0, 4),
    status: 3,
    text: "Invalid argument: the message is incomplete",
  },
  { name: "half a message", body: good.subarray(0, 7), status: 3, text: "Invalid argument: the message is incomplete" },
  { name: "an endless varint", body: frame(Buffer.alloc(11, 0xff)), status: 3, text: MALFORMED },
  { name: "a negative length", body: frame(Buffer.from("0affffffffffffffffff01", "hex")), status: 3, text: MALFORMED },
  { name: "a string longer than the message", body: frame(Buffer.from("0a7f61", "hex")), status: 3, text: MALFORMED },
  { name: "an end of no group", body: frame(Buffer.from([0x0c])), status: 3, text: MALFORMED },
  {
    name: "unknown fields",
    body: frame(Buffer.concat([message, Buffer.from("9a060161", "hex")])),
    status: 0,
    text: "",
  },
  { name: "a field twice", body: frame(Buffer.concat([message, message])), status: 0, text: "" },
  {
    name: "grpc-timeout 0n",
    headers: { "grpc-timeout": "0n" },
    body: good,
    status: 4,
    text: "Deadline exceeded: the call took longer than allowed",
  },
  { name: "grpc-timeout 99999999H", headers: { "grpc-timeout": "99999999H" }, body: good, status: 0, text: "" },
  ...["1x", "-1S", "1", "S", "123456789m", "1 S", "1.5S"].map((value) => ({
    name: `grpc-timeout ${value}`,
    headers: { "grpc-timeout": value },
    body: good,
    status: 3,
    text: TIMEOUT,
  })),
  {
    name: "an unknown method",
    headers: { ":path": `${SERVICE}/Nope` },
    body: good,
    status: 12,
    text: `Unimplemented: method: no such method ${SERVICE}/Nope`,
  },
  {
    name: "an unknown method, as JSON",
    headers: { ":path": `${SERVICE}/Nope`, "content-type": "application/grpc+json" },
    body: frame(Buffer.from("{}")),
    status: 12,
    text: `Unimplemented: method: no such method ${SERVICE}/Nope`,
  },
  {
    name: "an unknown method, as JSON with a parameter",
    headers: { ":path": `${SERVICE}/Nope`, "content-type": "application/grpc+json; charset=utf-8" },
    body: frame(Buffer.from("{}")),
    status: 12,
    text: `Unimplemented: method: no such method ${SERVICE}/Nope`,
  },
  {
    name: "an unknown method, in an unknown form",
    headers: { ":path": `${SERVICE}/Nope`, "content-type": "application/grpc+thrift" },
    body: good,
    status: 12,
    text: `Unimplemented: method: no such method ${SERVICE}/Nope`,
  },
  {
    name: "an unknown service",
    headers: { ":path": "/a.B/C" },
    body: good,
    status: 12,
    text: "Unimplemented: method: no such method /a.B/C",
  },
  {
    name: "a path that is no RPC",
    headers: { ":path": "/iam/v2beta1/groups" },
    body: good,
    status: 12,
    text: "Unimplemented: method: no such method /iam/v2beta1/groups",
  },
  {
    name: "a path with a query",
    headers: { ":path": `${GET}?a=b` },
    body: good,
    status: 12,
    text: `Unimplemented: method: no such method ${GET}?a=b`,
  },
  {
    name: "an unknown encoding",
    headers: { "grpc-encoding": "br" },
    body: good,
    status: 12,
    text: "Unimplemented: grpc-encoding: must be gzip",
  },
  { name: "gzip", headers: { "grpc-encoding": "gzip" }, body: frame(gzipSync(message), 1), status: 0, text: "" },
  {
    name: "broken gzip",
    headers: { "grpc-encoding": "gzip" },
    body: frame(gzipSync(message).subarray(0, 15), 1),
    status: 3,
    text: "Invalid argument: the message is not valid gzip",
  },
  {
    name: "a gzip bomb",
    headers: { "grpc-encoding": "gzip" },
    body: frame(gzipSync(Buffer.alloc(64 * 1024 * 1024)), 1),
    status: 8,
    text: "Resource exhausted: message: must be at most 4194304 bytes",
  },
  {
    name: "no protobuf behind gzip",
    headers: { "grpc-encoding": "gzip" },
    body: frame(Buffer.alloc(11, 0xff)),
    status: 3,
    text: "Invalid argument: the message is no chainguard.platform.iam.v2beta1.GetGroupRequest",
  },
];

/** What some clients add to the type of a call, which means nothing there. */
const PARAMETERS = ["; charset=utf-8", ";charset=UTF-8", " ; charset=us-ascii", ';x="a;b"', ";"];

describe("gRPC framing", () => {
  let server: Running;
  let session: ClientHttp2Session;
  before(async () => {
    server = await startServer();
    session = openHttp2(server.url);
  });
  after(async () => {
    session.destroy();
    await server.stop();
  });

  const call = (row: Pick<Row, "headers" | "body" | "end">): Promise<RawResponse> =>
    rawHttp2(
      session,
      { ":path": GET, "content-type": "application/grpc", te: "trailers", ...row.headers },
      row.body,
      row.end,
    );

  for (const parameter of PARAMETERS) {
    it(`parameters of the content type are passed over: ${parameter}`, async () => {
      const types = [
        "application/grpc",
        "application/grpc+proto",
        "application/grpc-web",
        "application/grpc-web+proto",
      ];
      for (const type of types) {
        const { headers, body } = await call({
          headers: { "content-type": type + parameter },
          body: frame(Buffer.alloc(0)),
        });
        assert.equal(headers[":status"], 200, type);
        assert.equal(body[0], 0, `${type}: a message comes first`);
      }
    });
  }

  for (const row of rows) {
    it(row.name, async () => {
      const response = await call(row);
      assert.equal(response.headers[":status"], 200);
      const form = row.headers?.["content-type"]?.includes("json") ? "json" : "proto";
      assert.equal(response.headers["content-type"], `application/grpc+${form}`);
      const outcome = { ...response.headers, ...response.trailers };
      assert.equal(Number(outcome["grpc-status"]), row.status, String(outcome["grpc-message"]));
      assert.equal(outcome["grpc-message"] ?? "", row.text.replaceAll("%", "%25"));
      if (row.status === 0) return;
      const status = fromBinary(StatusSchema, Buffer.from(String(outcome["grpc-status-details-bin"]), "base64"));
      assert.equal(status.code, row.status);
      assert.equal(status.message, row.text);
      const [info] = status.details;
      assert.equal(info && anyUnpack(info, ErrorInfoSchema)?.domain, "iam.test");
    });
  }

  it("an unknown encoding is told which ones there are", async () => {
    const { headers, trailers } = await call({ headers: { "grpc-encoding": "br" }, body: good });
    assert.equal({ ...headers, ...trailers }["grpc-accept-encoding"], "gzip");
  });

  it("binary metadata that is no base64 does no harm", async () => {
    const { trailers } = await call({ headers: { "trace-bin": "!!!" }, body: good });
    assert.equal(trailers["grpc-status"], "0");
  });

  it("deep nesting does not end the process", async () => {
    // GetGroupRequest has no nesting of its own, so the groups are unknown fields.
    const nested = Buffer.concat([Buffer.alloc(100_000, 0x13), Buffer.alloc(100_000, 0x14)]);
    const { headers, trailers } = await call({ body: frame(nested) });
    assert.ok(["0", "3"].includes(String({ ...headers, ...trailers }["grpc-status"])));
    assert.equal((await call({ body: good })).trailers["grpc-status"], "0");
  });

  it("a message that stops half-way is given up", async () => {
    const slow = await startServer({ limits: { requestMs: 50 } });
    const peer = openHttp2(slow.url);
    const { headers } = await rawHttp2(
      peer,
      { ":path": GET, "content-type": "application/grpc", te: "trailers" },
      good.subarray(0, 6),
      false,
    );
    assert.equal(headers["grpc-message"], "Invalid argument: the message did not arrive in time");
    peer.destroy();
    await slow.stop();
  });

  it("a call that never sends a byte is given up", async () => {
    const slow = await startServer({ limits: { requestMs: 50 } });
    const peer = openHttp2(slow.url);
    const { headers } = await rawHttp2(peer, { ":path": GET, "content-type": "application/grpc" }, undefined, false);
    assert.equal(headers["grpc-message"], "Invalid argument: the message did not arrive in time");
    peer.destroy();
    await slow.stop();
  });

  for (const [name, flags] of [
    ["before its end", 0],
    ["with its end", END_STREAM],
  ] as const) {
    it(`a call that is cancelled ${name} does not run`, async () => {
      server.probe.calls = [];
      const fields = [["content-type", "application/grpc"]] as const;
      const cancel = Buffer.from([0, 0, 0, 8]);
      await rawTcp(
        server.port,
        Buffer.concat([
          HTTP2_START,
          headersFrame(1, GET, fields),
          http2Frame(DATA, flags, 1, good),
          http2Frame(RST_STREAM, 0, 1, cancel),
          headersFrame(3, GET, fields),
          http2Frame(DATA, END_STREAM, 3, good),
        ]),
        (text) => text.includes("grpc-status") || text.includes("core"),
      );
      assert.equal(server.probe.calls.length, 1);
    });
  }

  it("the answer of a call that was cancelled while it ran is dropped", async () => {
    server.probe.calls = [];
    let open = () => {};
    server.probe.gate = new Promise((resolve) => {
      open = resolve;
    });
    const stream = session.request({ ":method": "POST", ":path": GET, "content-type": "application/grpc" });
    stream.on("error", () => {});
    stream.end(frame(toBinary(GetGroupRequestSchema, create(GetGroupRequestSchema, { uid: "slow" }))));
    await call({ body: good });
    const [first] = server.probe.calls;
    assert.ok(first);
    const aborted = new Promise((resolve) => first.signal.addEventListener("abort", resolve));
    stream.close(8);
    await aborted;
    open();
    const { body } = await call({ body: good });
    assert.equal(fromBinary(GroupSchema, body.subarray(5)).uid, "u1");
  });
});
