// How messages of HTTP/1.x are told apart: what is not read here as every peer reads it ends its connection, so that
// nothing hidden in it is taken for a request.
import assert from "node:assert/strict";
import { connect } from "node:net";
import { after, before, describe, it } from "node:test";
import { type Running, rawTcp, SERVICE, startServer } from "./harness.js";
import { EXACTLY_ONE_HOST, errorBody, INVALID_HOST, parseHttp1 } from "./http1-response.js";

const GET = `${SERVICE}/GetGroup`;
/** A call that the probe sees. */
const POST_JSON = `POST ${GET} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`;

let server: Running;
before(async () => {
  server = await startServer();
});
after(() => server.stop());

const http1 = async (request: string) => parseHttp1(await rawTcp(server.port, request));

describe("Transfer-Encoding on HTTP/1.1", () => {
  const body = "2\r\n{}\r\n0\r\n\r\n";
  const NOT_CHUNKED = "Unimplemented: transfer-encoding: must be chunked, on HTTP/1.1";
  const rows: readonly { name: string; head: string; version?: string; status: number }[] = [
    { name: "chunked", head: "Transfer-Encoding: chunked", status: 200 },
    { name: "in capitals", head: "transfer-encoding: CHUNKED", status: 200 },
    { name: "behind another", head: "Transfer-Encoding: gzip, chunked", status: 501 },
    { name: "behind another of its own", head: "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked", status: 501 },
    { name: "behind identity", head: "Transfer-Encoding: identity, chunked", status: 501 },
    { name: "behind nothing", head: "Transfer-Encoding: , chunked", status: 501 },
    { name: "before another", head: "Transfer-Encoding: chunked, gzip", status: 501 },
    { name: "twice", head: "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", status: 501 },
    { name: "with a parameter", head: "Transfer-Encoding: chunked;a=b", status: 501 },
    { name: "with a tab in it", head: "Transfer-Encoding: chun\tked", status: 501 },
    { name: "empty", head: "Transfer-Encoding:", status: 501 },
    { name: "gzip", head: "Transfer-Encoding: gzip", status: 501 },
    { name: "identity", head: "Transfer-Encoding: identity", status: 501 },
    { name: "on HTTP/1.0", head: "Connection: keep-alive\r\nTransfer-Encoding: chunked", version: "1.0", status: 501 },
    { name: "beside a length", head: "Content-Length: 5\r\nTransfer-Encoding: chunked", status: 400 },
    { name: "another beside a length", head: "Content-Length: 5\r\nTransfer-Encoding: gzip", status: 400 },
  ];
  for (const { name, head, version = "1.1", status } of rows) {
    it(`${name} is ${status}, and no request after a rejected one runs`, async () => {
      server.probe.calls = [];
      const text = await rawTcp(
        server.port,
        `POST /x HTTP/${version}\r\nHost: a\r\n${head}\r\n\r\n${body}${POST_JSON}`,
        (got) => status === 200 && got.split("HTTP/1.1 200 OK").length === 3,
      );
      assert.equal(Number(text.slice(9, 12)), status, text);
      assert.equal(server.probe.calls.length, status === 200 ? 1 : 0);
      if (status === 200) return;
      assert.match(text, /^connection: close/im);
      assert.equal(text.split("HTTP/1.1 ").length, 2, text);
      if (status === 501)
        assert.deepEqual(JSON.parse(text.slice(text.indexOf("\r\n\r\n"))), errorBody(12, NOT_CHUNKED, "UNIMPLEMENTED"));
    });
  }
});

describe("Host on HTTP/1.0", () => {
  // RFC 9112, section 3.2: only HTTP/1.1 demands it. The health checks of balancers send none.
  for (const [target, type] of [
    ["GET /healthz", "application/json"],
    ["HEAD /healthz", "application/json"],
    ["GET /iam/v2beta1/groups", "application/json"],
    [`POST ${GET}`, "application/json"],
    [`POST ${GET}`, "application/grpc-web+json"],
  ] as const) {
    it(`none, on HTTP/1.0: ${target} ${type}`, async () => {
      const body = type === "application/json" ? "{}" : "\0\0\0\0\x02{}";
      const response = await http1(
        `${target} HTTP/1.0\r\nContent-Type: ${type}\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      );
      assert.equal(response.status, 200, response.body);
      assert.doesNotMatch(response.head, /grpc-status/);
    });
  }

  for (const [name, head, text] of [
    ["two", "Host: a\r\nHost: a", EXACTLY_ONE_HOST],
    ["one that is none", "Host: a b", INVALID_HOST],
    ["an empty one", "Host:", INVALID_HOST],
  ] as const) {
    it(`${name}, on HTTP/1.0`, async () => {
      const response = await http1(`GET /healthz HTTP/1.0\r\n${head}\r\n\r\n`);
      assert.equal(response.status, 400);
      assert.deepEqual(JSON.parse(response.body), errorBody(3, text));
    });
  }
});

describe("what follows on a connection that ends, after an answer that stays open", () => {
  const call = '{"uid":"slow"}';
  const slow = (head: string) =>
    `POST ${GET} HTTP/1.1\r\nHost: a\r\n${head}Content-Type: application/json\r\nContent-Length: ${call.length}\r\n\r\n${call}`;
  const encoded = "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n";
  let waiting: Running;
  before(async () => {
    waiting = await startServer();
    Object.defineProperty(waiting.probe, "gate", { value: new Promise(() => {}) });
  });
  after(() => waiting.stop(0));

  // Whether the connection was cut, or else whether all was taken.
  const flood = (begin: string, requests: number): Promise<"cut" | "taken" | "unread"> =>
    new Promise((resolve) => {
      const all = Buffer.from("GET /a HTTP/1.1\r\nHost: a\r\n\r\n".repeat(requests));
      const socket = connect(waiting.port, "127.0.0.1", () => socket.write(begin));
      setTimeout(() => socket.write(all), 100);
      setTimeout(() => {
        resolve(socket.writableLength === 0 ? "taken" : "unread");
        socket.destroy();
      }, 1_000);
      socket.on("error", () => undefined);
      socket.once("close", () => resolve("cut"));
    });

  it("is ignored, and cut where there is no end of it: by Upgrade", async () => {
    const begin = slow("Upgrade: x\r\n");
    assert.deepEqual([await flood(begin, 1_000), await flood(begin, 50)], ["cut", "taken"]);
  });

  it("is not read: by a transfer coding", async () => {
    const begin = slow("") + encoded;
    // More than the buffers of the system hold.
    assert.deepEqual([await flood(begin, 1_000_000), await flood(begin, 50)], ["unread", "taken"]);
  });
});
