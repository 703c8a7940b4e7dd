// Calls that are refused get UNAVAILABLE in every protocol, and health checks their status. Which calls are refused: those
// that have waited too long, of the address with most of them.
import assert from "node:assert/strict";
import { once } from "node:events";
import { Agent, type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from "node:http";
import { connect } from "node:http2";
import { after, before, describe, it } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { RetryInfoSchema } from "#gen/google/rpc/error_details_pb.js";
import { Health } from "#gen/health/v1/health_pb.js";
import type { RequestRecord } from "../../src/telemetry/request-record.js";
import { defaultLimits } from "../../src/transport/http/limits/limits.js";
import { sendComplete } from "../../src/transport/http/response-writer.js";
import { createHealth } from "../../src/transport/services/health.js";
import { standStill } from "../support/stand-still.js";
import {
  DOMAIN,
  GrpcJs,
  groupsClient,
  openHttp2,
  type Running,
  rawHttp2,
  rawTcp,
  SERVICE,
  startServer,
  transports,
} from "./harness.js";

const ORIGIN = "https://app.example";

const records: Omit<RequestRecord, "setCaller" | "setFailure" | "end">[] = [];

// Without a place where calls may wait, each is refused.
async function start(waitingRequests = 0): Promise<Running> {
  const health = createHealth({
    services: [],
    ready: async () => {},
    leaving: new AbortController().signal,
    stopping: new AbortController().signal,
    errorDomain: DOMAIN,
  });
  return startServer({
    extraServices: [health],
    limits: { waitingRequests },
    corsOrigins: [ORIGIN],
    observers: [({ ...record }) => void records.push(record)],
  });
}

async function checkHealth({ url }: Running): Promise<void> {
  const paths = ["/healthz", "/readyz", "/readyz?verbose"];
  const statuses = paths.map(async (path) => (await fetch(url + path)).status);
  const client = createClient(Health, createGrpcTransport({ baseUrl: url }));
  const [found, { status }] = await Promise.all([Promise.all(statuses), client.check({})]);
  assert.deepEqual(found, [200, 200, 200]);
  assert.equal(status, 1);
}

describe("a call that is refused", () => {
  let server: Running;
  before(async () => {
    server = await start();
  });
  after(() => server.stop());

  it("REST gets 503 with RetryInfo and Retry-After, before its body and its token are looked at", async () => {
    const requests: readonly RequestInit[] = [
      {},
      { method: "POST", body: "{", headers: { authorization: "Bearer x", "content-type": "application/json" } },
    ];
    for (const init of requests) {
      const response = await fetch(`${server.url}/iam/v2beta1/groups/x`, init);
      assert.equal(response.status, 503);
      assert.equal(response.headers.get("retry-after"), "1");
      assert.equal(response.headers.get("content-type"), "application/json");
      const body = (await response.json()) as { code: number; details: readonly { "@type": string }[] };
      assert.equal(body.code, Code.Unavailable);
      const types = body.details.map((detail) => detail["@type"].replace("type.googleapis.com/google.rpc.", ""));
      assert.deepEqual(types, ["ErrorInfo", "RetryInfo"]);
    }
  });

  it("gRPC gets code 14", async () => {
    const client = new GrpcJs(server.url);
    const { code, metadata } = await client.call("GetGroup", { uid: "x" });
    client.close();
    assert.equal(code, Code.Unavailable);
    assert.match(String(metadata.get("grpc-status-details-bin")[0]), /google\.rpc\.RetryInfo/);
  });

  it("every protocol gets UNAVAILABLE with RetryInfo", async () => {
    await Promise.all(
      transports(server.url).map(async ([name, transport]) => {
        const error = await groupsClient(transport)
          .getGroup({ uid: "x" })
          .then(
            () => undefined,
            (failure: unknown) => ConnectError.from(failure),
          );
        assert.ok(error, `${name}: the call was handled`);
        assert.equal(error.code, Code.Unavailable, name);
        assert.equal(error.findDetails(RetryInfoSchema)[0]?.retryDelay?.seconds, 1n, name);
      }),
    );
    assert.equal(server.probe.calls.length, 0);
  });

  it("each is recorded with its method, its protocol and the bytes of its answer, and as rejected early", async () => {
    records.splice(0);
    const json = { "content-type": "application/json" };
    const responses = [
      await fetch(`${server.url}${SERVICE}/GetGroup`, { method: "POST", headers: json, body: "{}" }),
      await fetch(`${server.url}/iam/v2beta1/groups/x`),
      await fetch(`${server.url}/iam/v2beta1/groups/x`, { method: "HEAD" }),
    ];
    const bytes = await Promise.all(responses.map(async (response) => (await response.arrayBuffer()).byteLength));
    const client = new GrpcJs(server.url);
    await client.call("GetGroup", { uid: "x" });
    client.close();
    const method = `${SERVICE.slice(1)}/GetGroup`;
    assert.deepEqual(
      records.map((record) => [record.method, record.protocol, record.code, record.bytes, record.isEarly]),
      [
        [method, "connect", Code.Unavailable, bytes[0], true],
        [undefined, "rest", Code.Unavailable, bytes[1], true],
        [undefined, "rest", Code.Unavailable, 0, true],
        [method, "grpc", Code.Unavailable, 0, true],
      ],
    );
    assert.ok((bytes[0] ?? 0) > 0 && (bytes[1] ?? 0) > 0);
  });

  it("a request with a body, which Node answers, gets the same response as one without", async () => {
    const rest = "/iam/v2beta1/groups/x HTTP/1.1\r\nhost: a\r\n";
    const requests = [
      `GET ${rest}\r\n`,
      `PATCH ${rest}content-type: application/json\r\ncontent-length: 2\r\n\r\n{}`,
      `GET ${rest}origin: https://other.example\r\n\r\n`,
    ];
    const responses = requests.map(async (packet) => {
      const text = await rawTcp(Number(new URL(server.url).port), packet, (received) => received.endsWith("}"));
      return text
        .replace(/^(date|x-request-id): .*/gim, "$1")
        .toLowerCase()
        .split("\r\n")
        .sort();
    });
    const [first, second, third] = await Promise.all(responses);
    assert.match(first?.join() ?? "", /connection: keep-alive,.*http\/1\.1 503 service unavailable,.*x-request-id/);
    assert.deepEqual(first, second);
    assert.deepEqual(first, third);
  });

  it("scripts of allowed origins may read the answer, others may not", async () => {
    for (const origin of [ORIGIN, "https://other.example"]) {
      const allowed = origin === ORIGIN ? ORIGIN : null;
      const response = await fetch(`${server.url}/iam/v2beta1/groups/x`, { headers: { origin } });
      assert.equal(response.status, 503);
      assert.equal(response.headers.get("access-control-allow-origin"), allowed);
      assert.equal(response.headers.get("vary"), "origin");
      const session = connect(server.url);
      const [fields] = await once(session.request({ ":path": "/iam/v2beta1/groups/x", origin }), "response");
      session.close();
      assert.equal(fields[":status"], 503);
      assert.equal(fields["access-control-allow-origin"] ?? null, allowed);
      assert.match(String(fields["access-control-expose-headers"]), allowed === null ? /^undefined$/ : /x-request-id/);
    }
  });

  it("a connection of HTTP/1.1 goes on after each answer, whatever was asked", async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const send = (method: string, headers: OutgoingHttpHeaders, ...body: readonly string[]) =>
      new Promise<{ isReused: boolean; status: number | undefined; headers: IncomingHttpHeaders; text: string }>(
        (resolve, reject) => {
          const req = request(`${server.url}/iam/v2beta1/groups/x`, { agent, method, headers }, async (res) => {
            const text = (await res.toArray()).join("");
            resolve({ isReused: req.reusedSocket, status: res.statusCode, headers: res.headers, text });
          });
          req.on("error", reject);
          for (const part of body) req.write(part);
          req.end();
        },
      );
    const plain = await send("GET", { "x-request-id": "first" });
    const others = [
      await send("GET", { "x-request-id": "second", origin: "https://other.example" }),
      await send("POST", { "content-length": 2 }, "{}"),
      await send("POST", {}, "{", "}"),
      await send("HEAD", {}),
      await send("GET", { "content-type": "application/connect+json" }),
      await send("GET", {}),
    ];
    agent.destroy();
    assert.equal(plain.headers["x-request-id"], "first");
    const { date, "x-request-id": _, ...fields } = plain.headers;
    assert.ok(Math.abs(Date.parse(date ?? "") - Date.now()) < 10_000, date);
    for (const { isReused, status, headers, text } of others) {
      assert.equal(isReused, true);
      assert.equal(status, 503);
      const { date: _date, "x-request-id": _id, ...rest } = headers;
      assert.deepEqual(rest, fields);
      assert.ok(text === plain.text || text === "", text);
    }
  });

  it("requests of one packet get their answers in their order, and the last closes the connection", async () => {
    const get = (id: number, extra = "") => `GET /a HTTP/1.1\r\nHost: a\r\nX-Request-Id: ${id}\r\n${extra}\r\n`;
    const packet = [1, 2, 3, 4].map((id) => get(id)).join("") + get(5, "Connection: close\r\n");
    const text = await rawTcp(Number(new URL(server.url).port), packet);
    assert.equal(text.match(/HTTP\/1\.1 503 Service Unavailable\r\n/g)?.length, 5);
    assert.deepEqual(
      [...text.matchAll(/x-request-id: (\d)/gi)].map(([, id]) => id),
      ["1", "2", "3", "4", "5"],
    );
    const old = await rawTcp(Number(new URL(server.url).port), "GET /a HTTP/1.0\r\nHost: a\r\n\r\n");
    assert.match(old, /^HTTP\/1\.1 503 .*\r\nConnection: close\r\n/s);
  });

  it("health checks are answered", () => checkHealth(server));

  it("a preflight is answered, because it costs as little as a refusal", async () => {
    const headers = { origin: ORIGIN, "access-control-request-method": "POST" };
    const response = await fetch(`${server.url}${SERVICE}/GetGroup`, { method: "OPTIONS", headers });
    assert.equal(response.status, 204);
  });
});

it("control: with places to wait all of them are handled", async () => {
  const server = await start(defaultLimits.waitingRequests);
  try {
    assert.equal((await fetch(`${server.url}/iam/v2beta1/groups/x`)).status, 200);
    await checkHealth(server);
  } finally {
    await server.stop();
  }
});

describe("calls that wait", () => {
  /** Each call blocks the event loop for as long, in milliseconds. */
  const COST_MS = 20;

  async function startSlow(maxWaitMs: number): Promise<Running> {
    return startServer({
      limits: { maxWaitMs },
      answer(request) {
        standStill(COST_MS);
        sendComplete(request, 200, {}, "{}");
      },
      observers: [({ ...record }) => void records.push(record)],
    });
  }

  function call(port: number, localAddress: string, headers: OutgoingHttpHeaders = {}): Promise<number> {
    return new Promise((resolve, reject) => {
      const req = request({ host: "127.0.0.1", port, path: "/x", localAddress, headers, agent: false }, (res) => {
        res.resume();
        res.on("end", () => resolve(res.statusCode ?? 0));
      });
      req.on("error", reject).end();
    });
  }

  const callMany = (port: number, count: number, address = "127.0.0.1") =>
    Promise.all(Array.from({ length: count }, () => call(port, address)));

  it("for longer than they may are refused, and those of another address are not", async (t) => {
    const server = await startSlow(300);
    t.after(() => server.stop());
    records.splice(0);
    const many = callMany(server.port, 60, "127.0.0.2");
    await delay(50);
    const few = [await call(server.port, "127.0.0.3"), await call(server.port, "127.0.0.3")];
    const statuses = await many;
    assert.deepEqual(few, [200, 200]);
    assert.ok(statuses.includes(200), "none was handled");
    const refused = statuses.filter((status) => status === 503).length;
    assert.ok(refused > 10, `${refused} of 60 were refused`);
    assert.equal(refused + statuses.filter((status) => status === 200).length, 60);
    const recorded = records.filter(({ reason }) => reason === "max_wait");
    assert.equal(recorded.length, refused);
    for (const { isEarly, status, durationMs } of recorded) {
      assert.deepEqual([isEarly, status], [true, 503]);
      // What it waited is a part of what it took.
      assert.ok(durationMs >= 250, `${durationMs} ms`);
    }
  });

  it("control: those that may wait longer are all handled, and the latest has waited for the others", async (t) => {
    const server = await startSlow(30_000);
    t.after(() => server.stop());
    records.splice(0);
    assert.deepEqual(new Set(await callMany(server.port, 60)), new Set([200]));
    assert.ok(Math.max(...records.map(({ durationMs }) => durationMs)) > 30 * COST_MS);
  });

  it("for longer than their callers do get DEADLINE_EXCEEDED", async (t) => {
    const server = await startSlow(30_000);
    t.after(() => server.stop());
    const many = callMany(server.port, 30, "127.0.0.2");
    await delay(20);
    const impatient = Array.from({ length: 10 }, () => call(server.port, "127.0.0.2", { "grpc-timeout": "100m" }));
    const statuses = await Promise.all(impatient);
    assert.ok(statuses.filter((status) => status === 504).length >= 5, statuses.join());
    assert.deepEqual(new Set(await many), new Set([200]));
  });

  for (const { limit, expected } of [
    { limit: 150, expected: "DeadlineExceeded" },
    { limit: 60_000, expected: "none" },
  ])
    it(`a caller that waits ${limit} ms over any protocol gets ${expected} of a call that waits 600 ms`, async (t) => {
      const server = await startSlow(30_000);
      t.after(() => server.stop());
      // The deadline as a field alone: a client that keeps time itself leaves at the same moment.
      const headers = { "grpc-timeout": `${limit}m`, "connect-timeout-ms": String(limit) };
      const clients = transports(server.url).map(([name, transport]) => ({ name, client: groupsClient(transport) }));
      // Connects, so that the calls below are read before their turn.
      for (const { client } of clients) await client.getGroup({ uid: "x" });
      // On one connection, so that all of them are read before the calls below.
      const session = openHttp2(server.url);
      const many = Array.from({ length: 30 }, () => rawHttp2(session, { ":method": "GET", ":path": "/x" }));
      await delay(20);
      const outcomes = clients.map(async ({ name, client }) => {
        const code = await client.getGroup({ uid: "x" }, { headers }).then(
          () => "none",
          (error: unknown) => Code[ConnectError.from(error).code],
        );
        return `${name}: ${code}`;
      });
      assert.deepEqual(
        await Promise.all(outcomes),
        clients.map(({ name }) => `${name}: ${expected}`),
      );
      await Promise.all(many);
      session.close();
    });
});
