// Every way to refuse a request over HTTP/2, of each protocol, with a body that the response does not need: the response
// arrives, its stream ends, and the session goes on.
import assert from "node:assert/strict";
import { type ClientHttp2Session, connect, type IncomingHttpHeaders } from "node:http2";
import { after, before, it } from "node:test";
import { type Harness, startHarness } from "../support/harness.js";

const GROUPS = "/chainguard.platform.iam.v2beta1.GroupsService";
const HEALTH = "/grpc.health.v1.Health";
const BODY = Buffer.alloc(100_000, "x");
const TIMES = 20;

/** The headers that a protocol needs, besides the method and the path. */
const PROTOCOLS = {
  rest: { "content-type": "application/json" },
  connect: { "content-type": "application/json", "connect-protocol-version": "1" },
  "connect binary": { "content-type": "application/proto" },
  "gRPC-Web": { "content-type": "application/grpc-web+proto" },
  "gRPC-Web text": { "content-type": "application/grpc-web-text" },
  gRPC: { "content-type": "application/grpc", te: "trailers" },
} as const;
type Protocol = keyof typeof PROTOCOLS;
const RPC = ["connect", "connect binary", "gRPC-Web", "gRPC-Web text", "gRPC"] as const;
const ENVELOPED = ["gRPC-Web", "gRPC"] as const;
const ALL = Object.keys(PROTOCOLS) as readonly Protocol[];

interface Way {
  readonly name: string;
  readonly protocols: readonly Protocol[];
  readonly headers?: IncomingHttpHeaders;
  /** The path of an RPC; of REST it is the one that creates a group unless given. */
  readonly path?: string;
  readonly restPath?: string;
  readonly body?: Buffer;
  /** Whether the caller has a token that is good. */
  readonly isUnknown?: boolean;
}

const envelope = (flag: number, announced: number) => {
  const body = Buffer.from(BODY);
  body[0] = flag;
  body.writeUInt32BE(announced, 1);
  return body;
};

const WAYS: readonly Way[] = [
  { name: "an unknown service", protocols: ALL, path: "/a.B/C", restPath: "/nothing" },
  { name: "an unknown method", protocols: RPC, path: `${GROUPS}/Nothing` },
  { name: "another HTTP method", protocols: ["rest", ...RPC], headers: { ":method": "PUT" } },
  { name: "OPTIONS", protocols: ["rest"], headers: { ":method": "OPTIONS" } },
  { name: "a page that takes no body", protocols: ["rest"], restPath: "/healthz" },
  { name: "another method of a page", protocols: ["rest"], headers: { ":method": "PUT" }, restPath: "/oauth/token" },
  {
    name: "a media type that is none of ours",
    protocols: ["rest", "connect"],
    headers: { "content-type": "text/plain" },
  },
  { name: "a form", protocols: ["rest"], headers: { "content-type": "application/x-www-form-urlencoded" } },
  { name: "no media type", protocols: ["connect"], headers: { "content-type": undefined } },
  { name: "a stream's media type", protocols: ["connect"], headers: { "content-type": "application/connect+json" } },
  { name: "an unknown codec", protocols: ["gRPC"], headers: { "content-type": "application/grpc+xml" } },
  { name: "an unknown codec", protocols: ["gRPC-Web"], headers: { "content-type": "application/grpc-web+xml" } },
  { name: "an unknown encoding", protocols: ["rest", "connect"], headers: { "content-encoding": "zstd" } },
  { name: "an unknown encoding", protocols: ENVELOPED, headers: { "grpc-encoding": "zstd" } },
  { name: "broken compression", protocols: ["rest", "connect"], headers: { "content-encoding": "gzip" } },
  {
    ...{ name: "broken compression", protocols: ENVELOPED },
    ...{ headers: { "grpc-encoding": "gzip" }, body: envelope(1, BODY.length - 5) },
  },
  { name: "compression without encoding", protocols: ENVELOPED, body: envelope(1, BODY.length - 5) },
  { name: "an unknown flag", protocols: ENVELOPED, body: envelope(4, BODY.length - 5) },
  { name: "two messages", protocols: ENVELOPED, body: envelope(0, 10) },
  { name: "a message that is none", protocols: ALL },
  { name: "another version of the protocol", protocols: ["connect"], headers: { "connect-protocol-version": "2" } },
  { name: "a malformed timeout", protocols: ["connect", "connect binary"], headers: { "connect-timeout-ms": "soon" } },
  {
    name: "a malformed timeout",
    protocols: ["gRPC", "gRPC-Web", "gRPC-Web text"],
    headers: { "grpc-timeout": "soon" },
  },
  { name: "no time left", protocols: ["connect", "connect binary"], headers: { "connect-timeout-ms": "0" } },
  { name: "no time left", protocols: ["gRPC", "gRPC-Web", "gRPC-Web text"], headers: { "grpc-timeout": "0S" } },
  { name: "a host that is none", protocols: ALL, headers: { ":authority": "x:99999" } },
  { name: "two hosts", protocols: ALL, headers: { host: "other.example" } },
  { name: "no token", protocols: ALL, isUnknown: true },
  { name: "a token that is none", protocols: ALL, headers: { authorization: "Bearer x" } },
  { name: "more bytes than the method takes", protocols: RPC, path: `${HEALTH}/Check`, isUnknown: true },
  { name: "more bytes than the method takes", protocols: ["rest"], restPath: "/oauth/token" },
  {
    ...{ name: "more bytes announced than the method takes", protocols: ENVELOPED },
    ...{ path: `${GROUPS}/CreateGroup`, body: envelope(0, 3_000_000) },
  },
  { name: "a stream that takes no such message", protocols: RPC, path: `${HEALTH}/Watch`, isUnknown: true },
  { name: "a stream of requests", protocols: RPC, path: "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo" },
];

let harness: Harness;
let owner: { readonly token: string; readonly group: string };
before(async () => {
  harness = await startHarness({ rootCreation: "users" });
  owner = await harness.organisation("refusals.example");
});
after(() => harness?.stop());

interface Outcome {
  readonly status: number;
  readonly grpcStatus: string | undefined;
  readonly body: Buffer;
}

// Resolves when the stream has closed, which is what is tested.
function send(session: ClientHttp2Session, headers: IncomingHttpHeaders, body: Buffer | undefined): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const stream = session.request(headers, { endStream: body === undefined });
    let head: IncomingHttpHeaders = {};
    let trailers: IncomingHttpHeaders = {};
    const chunks: Buffer[] = [];
    stream.on("response", (fields) => (head = fields));
    stream.on("trailers", (fields) => (trailers = fields));
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("error", reject);
    stream.on("close", () =>
      resolve({
        status: Number(head[":status"] ?? 0),
        grpcStatus: String(head["grpc-status"] ?? trailers["grpc-status"] ?? ""),
        body: Buffer.concat(chunks),
      }),
    );
    if (body !== undefined) stream.end(body);
  });
}

for (const way of WAYS) {
  for (const protocol of way.protocols) {
    it(`ends the stream of ${way.name}, over ${protocol}`, { timeout: 60_000 }, async () => {
      const session = connect(harness.url);
      session.on("error", () => {});
      const authorization = `Bearer ${owner.token}`;
      const path = protocol === "rest" ? (way.restPath ?? `/iam/v2beta1/groups/${owner.group}`) : way.path;
      const headers = {
        ":method": "POST",
        ":path": path ?? `${GROUPS}/CreateGroup`,
        ...(way.isUnknown !== true && { authorization }),
        ...PROTOCOLS[protocol],
        ...way.headers,
      };
      for (const [name, value] of Object.entries(headers))
        if (value === undefined) Reflect.deleteProperty(headers, name);
      try {
        const outcomes = await Promise.all(
          Array.from({ length: TIMES }, () => send(session, headers, way.body ?? BODY)),
        );
        for (const { status, grpcStatus, body } of outcomes) {
          assert.ok(status >= 200, `status ${status}`);
          // A stream over Connect or gRPC-Web says how it ended in its body.
          if (status === 200 && grpcStatus === "" && path !== "/healthz")
            assert.match(body.toString("latin1"), /error|grpc-status|Z3JwYy/);
          if (grpcStatus !== "") assert.notEqual(grpcStatus, "0");
        }
        const read = { ":path": `/iam/v2beta1/groups/${owner.group}`, authorization };
        assert.equal((await send(session, read, undefined)).status, 200);
        const change = { ...read, ":method": "PATCH", "content-type": "application/json" };
        assert.equal((await send(session, change, Buffer.from('{"description":"x"}'))).status, 200);
      } finally {
        session.destroy();
      }
    });
  }
}
