// Health for those that decide by it whether to send calls: the gRPC probes of Kubernetes (`Check` within a second,
// no token), balancers that hold a `Watch` open, and plain HTTP probes; before and while the service stops.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import * as grpc from "@grpc/grpc-js";
import { loadSync, type ServiceDefinition } from "@grpc/proto-loader";
import { openDatabase } from "../../../src/store/sqlite/driver.js";
import { type Harness, startHarness } from "../../support/harness.js";
import { startStopwatch } from "../../support/stopwatch.js";
import { tempDir } from "../../support/temp-dir.js";
import { waitUntil } from "../../support/wait-until.js";

const GROUPS = "chainguard.platform.iam.v2beta1.GroupsService";
const PING = "chainguard.platform.ping.v2beta1.PingService";
/** What Kubernetes waits for a response unless told otherwise, in milliseconds. */
const PROBE_MS = 1_000;

const health = methodsOf("grpc.health.v1.Health", "health/v1/health.proto", "node_modules/grpc-health-check/proto");
const groups = methodsOf(GROUPS, "chainguard/platform/iam/v2beta1/groups.proto", "proto");

describe("a service that serves", () => {
  let service: Harness;
  before(async () => {
    service = await startHarness();
  });
  after(() => service.stop());

  const rows: readonly { name: string; service: string; answer: object }[] = [
    { name: "the service as a whole", service: "", answer: { status: "SERVING" } },
    { name: "one RPC service", service: GROUPS, answer: { status: "SERVING" } },
    { name: "one without callers", service: PING, answer: { status: "SERVING" } },
    { name: "health itself", service: "grpc.health.v1.Health", answer: { status: "SERVING" } },
    {
      name: "a service it does not have",
      service: "liveness",
      answer: {
        code: grpc.status.NOT_FOUND,
        details: "Not found: service: there is no service liveness",
      },
    },
  ];
  for (const { name, service: serviceName, answer } of rows) {
    it(`says so within a second and without a token: ${name}`, async () => {
      assert.deepEqual(await probe(service.url, serviceName), answer);
    });
  }

  it("answers HTTP probes", async () => {
    for (const path of ["/healthz", "/readyz"]) {
      const response = await fetch(service.url + path, { signal: AbortSignal.timeout(PROBE_MS) });
      assert.deepEqual([response.status, await response.text()], [200, '{"status":"ok"}'], path);
    }
  });
});

describe("a service that stops", () => {
  it("says so to all who can still ask, finishes what was begun, and waits for no watcher", async () => {
    const data = tempDir();
    const service = await startHarness({ data });
    const { group: parent, token } = await service.organisation("leaving");
    const watches = [watch(service.url, ""), watch(service.url, GROUPS), watch(service.url, "liveness")];
    for (const { nextChange } of watches) await nextChange();
    const asking = await Promise.all([
      startRequest(service.url, "GET /healthz"),
      startRequest(service.url, "GET /readyz"),
      startRequest(service.url, "POST /grpc.health.v1.Health/Check", "{}"),
      startRequest(service.url, "POST /grpc.health.v1.Health/Check", `{"service":"${GROUPS}"}`),
    ]);

    // Another process that holds the database delays the call.
    const other = openDatabase(join(data, "arbor.db"));
    other.exec("BEGIN IMMEDIATE");
    const client = new grpc.Client(new URL(service.url).host, grpc.credentials.createInsecure());
    const pending = call(client, groups.CreateGroup, { parent, group: { name: "last" } }, 10_000, token);
    // Sent after it on the same connection, so that the call has arrived when this is answered.
    assert.deepEqual(await call(client, health.Check, { service: "" }), { status: "SERVING" });

    const elapsedMs = startStopwatch();
    const stopped = service.stop();
    for (const { ended } of watches) await ended;
    assert.deepEqual(
      watches.map(({ seen }) => seen),
      [["SERVING", "NOT_SERVING"], ["SERVING", "NOT_SERVING"], ["SERVICE_UNKNOWN"]],
    );
    assert.deepEqual(await Promise.all(asking.map((finish) => finish())), [
      { status: 200, body: '{"status":"ok"}' },
      { status: 503, body: '{"status":"draining"}' },
      { status: 200, body: '{"status":"NOT_SERVING"}' },
      { status: 200, body: '{"status":"NOT_SERVING"}' },
    ]);
    // On the connection that is open one more may be answered.
    await waitUntil(async () => codeOf(await probe(service.url, "")) === grpc.status.UNAVAILABLE);

    other.exec("ROLLBACK");
    other.close();
    assert.ok("uid" in (await pending), `${JSON.stringify(await pending)} is a group`);
    await stopped;
    assert.ok(elapsedMs() < 5_000, "nothing but the call held up the stop");
    client.close();
  });

  it("watchers many and idle cost it no time", async () => {
    const service = await startHarness();
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => warnings.push(warning);
    process.on("warning", onWarning);
    const watches = Array.from({ length: 30 }, () => watch(service.url, ""));
    for (const { nextChange } of watches) await nextChange();
    const elapsedMs = startStopwatch();
    const stopped = service.stop();
    for (const { ended } of watches) await ended;
    assert.ok(elapsedMs() < 900, "the stop waited for the next look of the watchers");
    for (const { seen } of watches) assert.deepEqual(seen, ["SERVING", "NOT_SERVING"]);
    await stopped;
    assert.ok(elapsedMs() < 2_000, "the stop waited for more than the second after GOAWAY");
    process.off("warning", onWarning);
    assert.deepEqual(warnings, []);
  });
});

type Method = ServiceDefinition[string];

function methodsOf(name: string, file: string, directory: string): ServiceDefinition {
  const includeDirs = [directory, "node_modules/google-proto-files"];
  return loadSync(file, { includeDirs, enums: String, defaults: true })[name] as ServiceDefinition;
}

/** What a probe learns: a response, or code and text of a failure. */
async function probe(url: string, service: string): Promise<object> {
  const client = new grpc.Client(new URL(url).host, grpc.credentials.createInsecure());
  const response = await call(client, health.Check, { service });
  client.close();
  return response;
}

function call(client: grpc.Client, method: Method | undefined, request: object, ms = PROBE_MS, token?: string) {
  const { path, requestSerialize, responseDeserialize } = method ?? assert.fail("no such method");
  const metadata = new grpc.Metadata();
  if (token !== undefined) metadata.set("authorization", `Bearer ${token}`);
  const options = { deadline: Date.now() + ms };
  return new Promise<object>((resolve) => {
    client.makeUnaryRequest(
      path,
      requestSerialize,
      responseDeserialize,
      request,
      metadata,
      options,
      (error, response) => resolve(error ? { code: error.code, details: error.details } : { ...response }),
    );
  });
}

function codeOf(response: object): unknown {
  return "code" in response ? response.code : response;
}

/** A watcher with a connection of its own. */
function watch(url: string, service: string) {
  const { path, requestSerialize, responseDeserialize } = health.Watch ?? assert.fail();
  const client = new grpc.Client(new URL(url).host, grpc.credentials.createInsecure());
  const stream = client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, { service });
  const seen: unknown[] = [];
  stream.on("data", ({ status }) => seen.push(status));
  const ended = once(stream, "end").finally(() => client.close());
  // Listens from the beginning: the first answers of several watchers may come in the same tick.
  const first = once(stream, "data");
  return { seen, ended, nextChange: () => first };
}

/**
 * A request over HTTP/1.1 of which the first line has been read. Returns what sends the rest and reads
 * the response: the only way to ask a service that takes no new connections.
 */
async function startRequest(url: string, line: string, body = "") {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  socket.setEncoding("latin1");
  // In one piece with a whole request, whose response shows that both were read.
  socket.write(`GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n${line} HTTP/1.1\r\n`);
  await once(socket, "data");
  return async () => {
    const fields = body === "" ? "" : `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`;
    socket.write(`Host: a\r\n${fields}\r\n${body}`);
    const text = await restOf(socket);
    const [head = "", ...content] = text.split("\r\n\r\n");
    return { status: Number(head.split(" ")[1]), body: content.join("\r\n\r\n") };
  };
}

async function restOf(socket: Socket): Promise<string> {
  let text = "";
  socket.on("data", (chunk) => {
    text += chunk;
  });
  await once(socket, "close");
  return text;
}
