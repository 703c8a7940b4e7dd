// What a caller does wrong in a Connect stream or by gRPC-Web is called INTERNAL neither in the response nor in
// the access log.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { gzipSync } from "node:zlib";
import type { Code } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import { createLogger } from "../../src/telemetry/logger.js";
import { type Harness, startHarness } from "../support/harness.js";
import { frame, SERVICE, startServer } from "./harness.js";

let service: Harness;
before(async () => {
  service = await startHarness();
});
after(() => service?.stop());

const WATCH = "/grpc.health.v1.Health/Watch";
const END_OF_STREAM = 2;
const COMPRESSED = 1;

function envelope(flag: number, content: Uint8Array): Buffer<ArrayBuffer> {
  const bytes = Buffer.alloc(5 + content.length);
  bytes[0] = flag;
  bytes.writeUInt32BE(content.length, 1);
  bytes.set(content, 5);
  return bytes;
}

const rows = [
  {
    name: "no message of its type",
    type: "proto",
    body: envelope(0, Buffer.from("{}")),
    code: "invalid_argument",
    message: /^Invalid argument: the message is no grpc\.health\.v1\.HealthCheckRequest$/,
  },
  {
    name: "a compressed message without an encoding",
    type: "json",
    body: envelope(COMPRESSED, gzipSync("{}")),
    code: "internal",
    message: /^Internal: a message is marked as compressed, but the request names no encoding$/,
  },
];
for (const { name, type, body, code, message } of rows) {
  test(`a Connect stream of ${name} ends as ${code}`, async () => {
    const contentType = `application/connect+${type}`;
    const response = await fetch(service.url + WATCH, {
      method: "POST",
      headers: { "content-type": contentType },
      body,
    });
    const bytes = Buffer.from(await response.arrayBuffer());
    assert.equal(bytes[0], END_OF_STREAM);
    assert.equal(bytes.readUInt32BE(1), bytes.length - 5);
    const { error } = JSON.parse(bytes.subarray(5).toString()) as {
      readonly error: {
        readonly code: string;
        readonly message: string;
        readonly details: readonly { type: string }[];
      };
    };
    assert.equal(error.code, code);
    assert.match(error.message, message);
    assert.deepEqual(
      error.details.map((detail) => detail.type),
      ["google.rpc.ErrorInfo"],
    );
  });
}

const TAIL = "/arbor.audit.v1.AuditService/TailEvents";
const EMPTY = envelope(0, Buffer.alloc(0));

interface Fault {
  readonly name: string;
  readonly type?: string;
  readonly body: Buffer<ArrayBuffer>;
  readonly encoding?: string;
  readonly code: Code;
  readonly text: RegExp;
}

// A control is last: its message is decompressed and decoded, or its field would not be named.
const faults: readonly Fault[] = [
  {
    name: "no message of its type",
    body: envelope(0, Buffer.from("{}")),
    code: 3,
    text: /is no arbor.*TailEventsRequest$/,
  },
  { name: "two messages", body: Buffer.concat([EMPTY, EMPTY]), code: 12, text: /takes exactly one$/ },
  { name: "no message", body: Buffer.alloc(0), code: 12, text: /takes exactly one$/ },
  { name: "a part of a message", body: Buffer.from([0, 0, 0, 0, 9, 1]), code: 3, text: /is incomplete$/ },
  { name: "an unknown flag", body: envelope(8, Buffer.alloc(0)), code: 3, text: /unknown flag$/ },
  { name: "a compressed message", body: envelope(COMPRESSED, gzipSync("")), code: 13, text: /names no encoding$/ },
  { name: "an unknown encoding", body: EMPTY, encoding: "x", code: 12, text: /-encoding: must be gzip$/ },
  {
    name: "a wrong field, compressed",
    type: "json",
    body: envelope(COMPRESSED, gzipSync('{"scope":1}')),
    encoding: "gzip",
    code: 3,
    text: /: scope /,
  },
];
for (const { name, type = "proto", body, encoding, code, text } of faults) {
  test(`the request of a stream with ${name} gets the code and text of a unary call`, async () => {
    const { token } = await service.organisation(name.replaceAll(/[ ,]+/g, "-"));
    const send = (contentType: string, field: string) =>
      fetch(service.url + TAIL, {
        method: "POST",
        headers: {
          authorization: `Bearer ${token}`,
          "content-type": contentType,
          ...(encoding !== undefined && { [field]: encoding }),
        },
        body,
      });
    const connect = Buffer.from(
      await (await send(`application/connect+${type}`, "connect-content-encoding")).arrayBuffer(),
    );
    const { error } = JSON.parse(connect.subarray(5).toString());
    assert.equal(error.code, codeToString(code));
    assert.match(error.message, text);
    const { headers } = await send(`application/grpc-web+${type}`, "grpc-encoding");
    assert.equal(headers.get("grpc-status"), String(code));
    assert.match(decodeURIComponent(headers.get("grpc-message") ?? ""), text);
    assert.ok(headers.has("grpc-status-details-bin"));
  });
}

test("the access log has the code that a caller of gRPC-Web got", async () => {
  let onLine: (line: string) => void = () => {};
  const line = new Promise<string>((resolve) => {
    onLine = resolve;
  });
  const logger = createLogger("info", { write: (text) => text.includes('"msg":"request"') && onLine(text) });
  const server = await startServer({ logger, accessLog: "all" });
  const response = await fetch(`${server.url}${SERVICE}/GetGroup`, {
    method: "POST",
    headers: { "content-type": "application/grpc-web+proto" },
    body: frame(Buffer.from("{}")),
  });
  const code = /grpc-status: (\d+)/.exec(await response.text())?.[1];
  assert.equal(code, "3");
  assert.equal(JSON.parse(await line).code, "INVALID_ARGUMENT");
  await server.stop();
});
