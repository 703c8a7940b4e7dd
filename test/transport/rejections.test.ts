import assert from "node:assert/strict";
import type { ClientHttp2Session } from "node:http2";
import { after, before, describe, it } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { GetGroupRequestSchema } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import {
  DATA,
  END_STREAM,
  frame,
  HTTP2_START,
  headersFrame,
  http2Frame,
  openHttp2,
  type RawResponse,
  type Running,
  rawHttp2,
  rawTcp,
  SERVICE,
  startServer,
} from "./harness.js";
import { EXACTLY_ONE_HOST, errorBody, INVALID_HOST, parseHttp1 } from "./http1-response.js";

const GET = `${SERVICE}/GetGroup`;
const CREATE = `${SERVICE}/CreateGroup`;
const getUid = frame(toBinary(GetGroupRequestSchema, create(GetGroupRequestSchema, { uid: "u1" })));

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

const http1 = async (request: string) => parseHttp1(await rawTcp(server.port, request));

describe("a request that HTTP/1.1 does not know", () => {
  for (const method of ["GET", "HEAD"]) {
    it(`is told so, for ${method}`, async () => {
      const { status, head, body } = await http1(`${method} /\u0001 HTTP/1.1\r\nHost: a\r\n\r\n`);
      assert.equal(status, 400);
      const length = Number(/content-length: ([0-9]+)/.exec(head)?.[1]);
      assert.ok(length > 0);
      assert.equal(Buffer.byteLength(body), method === "HEAD" ? 0 : length);
    });
  }
});

describe("Host on HTTP/1.1", () => {
  const rows: readonly { name: string; head: string; status: number; text?: string }[] = [
    { name: "a name", head: "Host: example.com", status: 200 },
    { name: "a name and a port", head: "Host: example.com:8080", status: 200 },
    { name: "IPv4", head: "host: 127.0.0.1:1", status: 200 },
    { name: "IPv6", head: "Host: [::1]:8080", status: 200 },
    { name: "none", head: "X-A: b", status: 400, text: EXACTLY_ONE_HOST },
    { name: "empty", head: "Host:", status: 400, text: INVALID_HOST },
    { name: "two that agree", head: "Host: a\r\nHost: a", status: 400, text: EXACTLY_ONE_HOST },
    { name: "two that differ", head: "Host: a\r\nhOST: b", status: 400, text: EXACTLY_ONE_HOST },
    { name: "a space", head: "Host: a b", status: 400, text: INVALID_HOST },
    { name: "an open bracket", head: "Host: [::", status: 400, text: INVALID_HOST },
    { name: "no IPv6", head: "Host: [:::::]", status: 400, text: INVALID_HOST },
    { name: "a port above 65535", head: "Host: x:99999", status: 400, text: INVALID_HOST },
    { name: "user info", head: "Host: user@example.com", status: 400, text: INVALID_HOST },
    { name: "a path", head: "Host: example.com/x", status: 400, text: INVALID_HOST },
    { name: "a number that is no IPv4", head: "Host: 1.2.3.4.5.999", status: 400, text: INVALID_HOST },
    { name: "too long", head: `Host: ${"a".repeat(300)}`, status: 400, text: INVALID_HOST },
  ];
  for (const { name, head, status, text } of rows) {
    for (const path of ["/iam/v2beta1/groups", GET]) {
      it(`${name} ${path}`, async () => {
        const method = path === GET ? "POST" : "GET";
        const response = await http1(
          `${method} ${path} HTTP/1.1\r\n${head}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`,
        );
        assert.equal(response.status, status, response.body);
        if (text) assert.deepEqual(JSON.parse(response.body), errorBody(3, text));
      });
    }
  }

  it("gRPC-Web callers get a gRPC status", async () => {
    const response = await http1(
      `POST ${GET} HTTP/1.1\r\nHost: a b\r\nConnection: close\r\nContent-Type: application/grpc-web+proto\r\nContent-Length: 0\r\n\r\n`,
    );
    assert.equal(response.status, 200);
    assert.match(response.head, /grpc-status: 3\r\n/);
  });
});

describe(":authority on HTTP/2", () => {
  const rows: readonly { name: string; headers: Record<string, string | string[]>; fault?: string }[] = [
    { name: "a name", headers: { ":authority": "example.com" } },
    { name: "host that agrees", headers: { ":authority": "example.com", host: "EXAMPLE.com" } },
    { name: "host that differs", headers: { ":authority": "a", host: "b" }, fault: "host and :authority must agree" },
    { name: "a space", headers: { ":authority": "a b" }, fault: INVALID_HOST.slice(18) },
    { name: "an open bracket", headers: { ":authority": "[::" }, fault: INVALID_HOST.slice(18) },
    { name: "a port above 65535", headers: { ":authority": "x:99999" }, fault: INVALID_HOST.slice(18) },
    { name: "user info", headers: { ":authority": "u@x" }, fault: INVALID_HOST.slice(18) },
  ];
  for (const { name, headers, fault } of rows) {
    it(`${name}: gRPC`, async () => {
      const all = { ":path": GET, "content-type": "application/grpc", te: "trailers", ...headers };
      const response = await rawHttp2(session, all, getUid);
      if (response.rstCode === 1 && fault) return;
      const outcome = { ...response.headers, ...response.trailers };
      assert.equal(outcome[":status"], 200);
      assert.equal(outcome["grpc-status"], fault ? "3" : "0");
      if (fault) assert.equal(outcome["grpc-message"], `Invalid argument: ${fault}`);
    });

    it(`${name}: REST and Connect`, async () => {
      for (const path of ["/iam/v2beta1/groups", GET]) {
        const all = { ":path": path, "content-type": "application/json", ...headers };
        const response = await rawHttp2(session, all, Buffer.from("{}"));
        if (response.rstCode === 1 && fault) continue;
        assert.equal(response.headers[":status"], fault ? 400 : 200);
        if (fault) assert.deepEqual(JSON.parse(response.body.toString()), errorBody(3, `Invalid argument: ${fault}`));
      }
    });
  }
});

describe("more than one Authorization header", () => {
  const folded = "Bearer a, Bearer b";

  it("HTTP/1.1 REST", async () => {
    const { body } = await http1(
      "GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer a\r\nauthorization: Bearer b\r\n\r\n",
    );
    assert.equal(JSON.parse(body).authorization, folded);
  });

  it("HTTP/1.1 Connect", async () => {
    const { body } = await http1(
      `POST ${GET} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`,
    );
    assert.equal(JSON.parse(body).description, folded);
  });

  // Node's client refuses to repeat this field, so the frames of this request are made by hand.
  for (const [name, contentType, body] of [
    ["gRPC", "application/grpc", getUid],
    ["gRPC-Web", "application/grpc-web+proto", getUid],
    ["Connect", "application/json", Buffer.from("{}")],
  ] as const) {
    it(`HTTP/2 ${name}`, async () => {
      const fields = [
        ["content-type", contentType],
        ["authorization", "Bearer a"],
        ["authorization", "Bearer b"],
      ] as const;
      const response = await rawTcp(
        server.port,
        Buffer.concat([HTTP2_START, headersFrame(1, GET, fields), http2Frame(DATA, END_STREAM, 1, body)]),
        (text) => text.includes(folded),
      );
      assert.ok(response.includes(folded));
    });
  }
});

describe("what is not served", () => {
  const json = { "content-type": "application/json" };
  const connectError = (code: string, message: string) => ({ code, message });
  const rows: readonly {
    name: string;
    headers: Record<string, string>;
    body?: Buffer;
    status: number;
    error: { code: string; message: string };
    extra?: Record<string, string>;
  }[] = [
    {
      name: "an unknown method by Connect",
      headers: { ":path": `${SERVICE}/Nope`, ...json },
      body: Buffer.from("{}"),
      status: 404,
      error: connectError("unimplemented", `Unimplemented: method: no such method ${SERVICE}/Nope`),
    },
    {
      name: "Connect GET of a method that writes",
      headers: { ":path": `${CREATE}?encoding=json&message={}`, ":method": "GET" },
      status: 405,
      error: connectError("unimplemented", "Unimplemented: method: CreateGroup takes POST"),
      extra: { allow: "POST" },
    },
    {
      name: "PUT",
      headers: { ":path": GET, ":method": "PUT", ...json },
      body: Buffer.from("{}"),
      status: 405,
      error: connectError("unimplemented", "Unimplemented: method: GetGroup takes GET and POST"),
      extra: { allow: "GET, POST" },
    },
    {
      name: "an unknown media type",
      headers: { ":path": GET, "content-type": "text/plain" },
      body: Buffer.from("{}"),
      status: 415,
      error: connectError("unimplemented", "Unimplemented: content-type: not one this method takes"),
    },
    {
      name: "gRPC-Web as text of an unknown form",
      headers: { ":path": GET, "content-type": "application/grpc-web-text+thrift" },
      body: Buffer.from("AAAA"),
      status: 415,
      error: connectError("unimplemented", "Unimplemented: content-type: not one this method takes"),
    },
    {
      name: "another version of Connect",
      headers: { ":path": GET, ...json, "connect-protocol-version": "2" },
      body: Buffer.from("{}"),
      status: 400,
      error: connectError("invalid_argument", "Invalid argument: connect-protocol-version must be 1"),
    },
    {
      name: "JSON of another shape",
      headers: { ":path": GET, ...json },
      body: Buffer.from('{"uid":1}'),
      status: 400,
      error: connectError("invalid_argument", "Invalid argument: uid: uid must be a string"),
    },
    {
      name: "no protobuf",
      headers: { ":path": GET, "content-type": "application/proto" },
      body: Buffer.alloc(11, 0xff),
      status: 400,
      error: connectError(
        "invalid_argument",
        "Invalid argument: the message is no chainguard.platform.iam.v2beta1.GetGroupRequest",
      ),
    },
  ];
  for (const { name, headers, body, status, error, extra } of rows) {
    it(name, async () => {
      const response: RawResponse = await rawHttp2(session, headers, body);
      assert.equal(response.headers[":status"], status);
      const { details, ...rest } = JSON.parse(response.body.toString());
      assert.deepEqual(rest, error);
      assert.equal(details[0].type, "google.rpc.ErrorInfo");
      for (const [field, value] of Object.entries(extra ?? {})) assert.equal(response.headers[field], value);
    });
  }

  it("gRPC over HTTP/1.1 is 415", async () => {
    const { status, body } = await http1(
      `POST ${GET} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/grpc\r\nContent-Length: 0\r\n\r\n`,
    );
    assert.equal(status, 415);
    assert.equal(JSON.parse(body).code, "unimplemented");
  });

  it("an unknown method by gRPC-Web has its status in the headers", async () => {
    const response = await rawHttp2(
      session,
      { ":path": "/a.B/C", "content-type": "application/grpc-web+proto" },
      getUid,
    );
    assert.equal(response.headers[":status"], 200);
    assert.equal(response.headers["grpc-status"], "12");
    assert.equal(response.headers["grpc-message"], "Unimplemented: method: no such method /a.B/C");
  });

  it("paths that only look like RPC go to the gateway", async () => {
    for (const path of ["/.well-known/openid-configuration", "/v1/a.b", "/a.b", "/a.b/c/d", "/a.b/"]) {
      const response = await rawHttp2(session, { ":method": "GET", ":path": path });
      assert.equal(JSON.parse(response.body.toString()).url, path);
    }
  });

  for (const [name, request, status] of [
    ["an absolute target that is not HTTP", "GET ftp://evil/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 400],
    ["GET *", "GET * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 400],
    ["two lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400],
    ["length and chunks", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400],
    ["a space before the colon", "GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400],
    ["a TLS hello", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc", 400],
    ["headers above 16 KiB", `GET / HTTP/1.1\r\nHost: a\r\nX: ${"x".repeat(17_000)}\r\n\r\n`, 431],
    [
      "more body than allowed, with Expect",
      "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 9999999\r\n\r\n",
      413,
    ],
  ] as const) {
    it(`HTTP/1.1: ${name} is ${status} with a body`, async () => {
      const response = await http1(request);
      assert.equal(response.status, status);
      assert.ok(JSON.parse(response.body).message);
      assert.match(response.head, /connection: close/);
    });
  }

  // RFC 9112, section 3.2.2: servers must accept the form clients send to proxies.
  for (const [name, target, url] of [
    ["an absolute target", "GET http://elsewhere/a/b?c=d", "/a/b?c=d"],
    ["an absolute target without a path", "GET http://elsewhere", "/"],
    ["OPTIONS *", "OPTIONS *", "*"],
  ] as const) {
    it(`HTTP/1.1: ${name} goes to the gateway`, async () => {
      const response = await http1(`${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
      assert.equal(response.status, 200);
      assert.equal(JSON.parse(response.body).url, url);
    });
  }

  it("HTTP/1.1: CONNECT is cut", async () => {
    assert.equal(await rawTcp(server.port, "CONNECT a:22 HTTP/1.1\r\nHost: a\r\n\r\n"), "");
  });

  it("HTTP/2: CONNECT is rejected", async () => {
    const stream = session.request({ ":method": "CONNECT", ":authority": "a:22" });
    const status = await new Promise((resolve) => stream.on("response", (fields) => resolve(fields[":status"])));
    assert.equal(status, 400);
    stream.close();
  });

  it("an allowed body with Expect is asked for", async () => {
    const text = await rawTcp(
      server.port,
      "POST /x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}",
    );
    assert.match(text, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n/);
  });
});
