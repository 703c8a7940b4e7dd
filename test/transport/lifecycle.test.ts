import assert from "node:assert/strict";
import { BlockList, connect as connectTcp } from "node:net";
import { describe, it } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { GetGroupRequestSchema } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { createLogger } from "../../src/telemetry/logger.js";
import { startStopwatch } from "../support/stopwatch.js";
import { waitUntil } from "../support/wait-until.js";
import {
  frame,
  GrpcJs,
  groupsClient,
  openHttp2,
  type Probe,
  rawHttp2,
  rawTcp,
  SERVICE,
  startServer,
  TLS,
  transports,
} from "./harness.js";

/** Holds GetGroup of "slow" until opened, and tells when it is being held. */
function holdSlow(probe: Probe): { readonly started: Promise<void>; open(): void } {
  let open = () => {};
  let tell = () => {};
  const started = new Promise<void>((resolve) => {
    tell = resolve;
  });
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  Object.defineProperty(probe, "gate", {
    get() {
      tell();
      return gate;
    },
  });
  return { started: started, open };
}

function connectionError(port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connectTcp(port, "127.0.0.1", () => {
      socket.destroy();
      resolve("connected");
    });
    socket.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? ""));
  });
}

describe("stop", () => {
  for (const [name, tls] of [
    ["cleartext", undefined],
    ["TLS", TLS],
  ] as const) {
    for (const [index, [protocol]] of transports("http://unused").entries()) {
      it(`${name} ${protocol}: a call in flight finishes, new connections are refused`, async () => {
        const server = await startServer({ tls });
        const transport = transports(server.url)[index];
        assert.ok(transport);
        const { started, open } = holdSlow(server.probe);
        const call = groupsClient(transport[1]).getGroup({ uid: "slow" });
        await started;
        const stopped = server.stop(5_000);
        await waitUntil(async () => (await connectionError(server.port)) === "ECONNREFUSED");
        open();
        assert.equal((await call).uid, "slow");
        const elapsedMs = startStopwatch();
        await stopped;
        assert.ok(elapsedMs() < 2_000, "the stop waited for idle connections");
      });
    }
  }

  it("grpc-js: a call in flight finishes, the next one fails", async () => {
    const server = await startServer();
    const { started, open } = holdSlow(server.probe);
    const client = new GrpcJs(server.url);
    const call = client.call("GetGroup", { uid: "slow" });
    await started;
    const stopped = server.stop(5_000);
    open();
    assert.equal((await call).code, 0);
    await stopped;
    assert.equal((await client.call("GetGroup", { uid: "u1" })).code, 14);
    client.close();
  });

  it("what does not finish is cut at the end of the grace period", async () => {
    const server = await startServer();
    const { started, open } = holdSlow(server.probe);
    const client = new GrpcJs(server.url);
    const call = client.call("GetGroup", { uid: "slow" });
    await started;
    await server.stop(30);
    // A client that still reads the reset of its stream gets INTERNAL, one that finds the connection closed UNAVAILABLE.
    assert.match(String((await call).code), /^1[34]$/);
    open();
    client.close();
  });

  it("idle connections and silent ones do not hold it up", async () => {
    const server = await startServer();
    const silent = connectTcp(server.port, "127.0.0.1");
    const idle = connectTcp(server.port, "127.0.0.1", () => idle.write("GET /x HTTP/1.1\r\nHost: a\r\n\r\n"));
    await new Promise((resolve) => idle.once("data", resolve));
    const session = openHttp2(server.url);
    await rawHttp2(session, { ":method": "GET", ":path": "/x" });
    const closed = Promise.all([silent, idle].map((s) => new Promise((resolve) => s.once("close", resolve))));
    const elapsedMs = startStopwatch();
    await server.stop(5_000);
    await closed;
    assert.ok(elapsedMs() < 2_000);
  });

  it("may be asked for twice, and without a start", async () => {
    const server = await startServer();
    await Promise.all([server.stop(1_000), server.stop(1_000)]);
    await server.stop(0);
  });

  it("an address in use is the caller's to see", async () => {
    const server = await startServer();
    await assert.rejects(startServer({ listen: { host: "127.0.0.1", port: server.port } }), { code: "EADDRINUSE" });
    await server.stop();
  });
});

describe("routes for operators", () => {
  const rows: readonly {
    name: string;
    path: string;
    method?: string;
    ready?: () => Promise<void>;
    status: number;
    body: object;
  }[] = [
    { name: "alive", path: "/healthz", status: 200, body: { status: "ok" } },
    { name: "alive, with a query", path: "/healthz?verbose", status: 200, body: { status: "ok" } },
    {
      name: "alive though not ready",
      path: "/healthz",
      ready: () => Promise.reject(new Error("no")),
      status: 200,
      body: { status: "ok" },
    },
    { name: "ready", path: "/readyz", status: 200, body: { status: "ok" } },
    {
      name: "not ready",
      path: "/readyz",
      ready: () => Promise.reject(new Error("secret")),
      status: 503,
      body: { status: "unavailable" },
    },
    { name: "POST", path: "/healthz", method: "POST", status: 405, body: { status: "method not allowed" } },
  ];
  for (const { name, path, method = "GET", ready, status, body } of rows) {
    it(name, async () => {
      const server = await startServer({ ready });
      const session = openHttp2(server.url);
      const response = await rawHttp2(session, { ":method": method, ":path": path });
      assert.equal(response.headers[":status"], status);
      assert.deepEqual(JSON.parse(response.body.toString()), body);
      const text = await rawTcp(server.port, `${method} ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
      assert.match(text, new RegExp(`^HTTP/1\\.1 ${status} `));
      session.destroy();
      await server.stop();
    });
  }

  it("draining is not ready", async () => {
    const server = await startServer();
    const { started, open } = holdSlow(server.probe);
    const client = new GrpcJs(server.url);
    const call = client.call("GetGroup", { uid: "slow" });
    // Sent in one piece with a request that is not finished, so that its connection stays.
    const socket = connectTcp(server.port, "127.0.0.1", () => socket.write("GET /readyz HTTP/1.1\r\n"));
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk;
    });
    const closed = new Promise((resolve) => socket.once("close", resolve));
    await started;
    await rawTcp(server.port, "GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    const stopped = server.stop(5_000);
    socket.write("Host: a\r\n\r\n");
    await closed;
    assert.match(text, /^HTTP\/1\.1 503 /);
    assert.match(text, /\r\nConnection: close\r\n/);
    open();
    await call;
    await stopped;
    client.close();
  });
});

describe("access log", () => {
  it("has one line per request, without queries and tokens", async () => {
    const lines: string[] = [];
    let resolveAll = () => {};
    const all = new Promise<void>((resolve) => {
      resolveAll = resolve;
    });
    const logger = createLogger("info", {
      write(line) {
        if (JSON.parse(line).msg === "request" && lines.push(line) === 6) resolveAll();
      },
    });
    const proxies = new BlockList();
    proxies.addAddress("127.0.0.1");
    const trusted = { addresses: proxies, header: "X-Forwarded-For" } as const;
    const server = await startServer({ logger, accessLog: "all", proxies: trusted });
    const session = openHttp2(server.url);
    const body = frame(toBinary(GetGroupRequestSchema, create(GetGroupRequestSchema, { uid: "u1" })));
    const common = { authorization: "Bearer hidden", "x-request-id": "r-1", "x-forwarded-for": "9.9.9.9, 1.2.3.4" };
    const path = `${SERVICE}/GetGroup`;
    await rawHttp2(session, { ...common, ":path": path, "content-type": "application/grpc" }, body);
    await rawHttp2(session, { ...common, ":path": "/a.B/C", "content-type": "application/grpc" }, body);
    await rawHttp2(
      session,
      { ...common, ":path": path, "content-type": "application/grpc", "grpc-encoding": "gzip" },
      body,
    );
    await rawHttp2(session, { ...common, ":path": path, "content-type": "application/grpc-web+proto" }, body);
    await rawHttp2(
      session,
      { ...common, ":path": path, "content-type": "application/json" },
      Buffer.from('{"uid":"gone"}'),
    );
    await rawTcp(server.port, "GET /x?access_token=hidden HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    await all;
    session.destroy();
    await server.stop();

    assert.equal(lines.join("").includes("hidden"), false);
    const records = lines.map((line) => {
      const { level, time, msg: _, durationMs, ...rest } = JSON.parse(line);
      assert.equal(level, "info");
      assert.equal(typeof durationMs, "number");
      assert.ok(time);
      return rest;
    });
    const from = { httpVersion: "2", remoteAddress: "1.2.3.4", requestId: "r-1", status: 200 };
    const method = `${SERVICE.slice(1)}/GetGroup`;
    // A line is written when the response has closed on this side, so their order is not that of the requests.
    const failed = records.find(({ status }) => status === 404);
    const http1 = records.find(({ httpVersion }) => httpVersion === "1.1");
    assert.match(http1?.requestId, /^[0-9a-f]{32}$/);
    assert.equal(http1?.bytes, JSON.stringify({ method: "GET", url: "/x?access_token=hidden" }).length);
    assert.deepEqual(
      records.map(sortable).sort(),
      [
        { protocol: "grpc", ...from, method, code: "OK", bytesIn: 9, bytes: 30 },
        { protocol: "grpc", ...from, path: "/a.B/C", code: "UNIMPLEMENTED", bytes: 0 },
        { protocol: "grpc", ...from, method, code: "OK", bytesIn: 9, bytes: 30 },
        { protocol: "grpc-web", ...from, method, code: "OK", bytesIn: 9, bytes: 51 },
        { protocol: "connect", ...from, method, code: "NOT_FOUND", bytesIn: 14, bytes: failed?.bytes, status: 404 },
        {
          ...{ protocol: "rest", httpMethod: "GET", path: "/x", httpVersion: "1.1", requestId: http1?.requestId },
          ...{ remoteAddress: "127.0.0.1", code: "OK", bytes: http1?.bytes, status: 200 },
        },
      ]
        .map(sortable)
        .sort(),
    );
  });
});

function sortable(record: object): string {
  return JSON.stringify(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));
}
