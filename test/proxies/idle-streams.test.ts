// A stream that has nothing to say for 100 minutes, through each proxy of deploy/proxies. All times of the service and of
// the proxies are divided by the same number.
import assert from "node:assert/strict";
import { request } from "node:https";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError, createClient, type HandlerContext } from "@connectrpc/connect";

import { createGrpcTransport } from "@connectrpc/connect-node";
import { HEARTBEAT_MS } from "../../src/audit/event-tail.js";
import { defaultLimits } from "../../src/transport/http/limits/limits.js";
import { DEFAULT_HEARTBEAT_MS } from "../../src/transport/rest/gateway.js";
import { defineService } from "../../src/transport/services/extra-service.js";
import { type FeatureServer, startFeatureServer } from "../support/feature/feature-server.js";
import { LibraryService, type ListBooksRequest } from "../support/library/library_pb.js";
import { type Running, startServer } from "../transport/harness.js";
import { type Certificate, makeCertificate, type ProxyName, proxyNames, startProxy } from "./proxy.js";

const DIVISOR = 300;
const IDLE_MS = (100 * 60_000) / DIVISOR;
/** A timeout of a proxy that is shorter than the time between two heartbeats. */
const TOO_SHORT_S = 10;

const scaleMs = (ms: number) => ms / DIVISOR;
const { idleSocketMs, responseStallMs, keepAliveMs } = defaultLimits;
const limits = {
  idleSocketMs: scaleMs(idleSocketMs),
  responseStallMs: scaleMs(responseStallMs),
  keepAliveMs: scaleMs(keepAliveMs),
};

// As AuditService/TailEvents: a message without content after each time in which nothing happened.
async function* listBooks(_request: ListBooksRequest, { signal }: HandlerContext) {
  yield { name: "books/first" };
  const endMs = performance.now() + IDLE_MS;
  while (performance.now() < endMs) {
    await sleep(scaleMs(HEARTBEAT_MS), undefined, { signal });
    yield {};
  }
  yield { name: "books/last" };
}

// The gateway sends the heartbeats of REST by itself.
async function* watch() {
  yield { uid: "first" };
  await sleep(IDLE_MS, undefined, { ref: false });
  yield { uid: "last" };
}

let certificate: Certificate;
let server: Running;
let feature: FeatureServer;
before(async () => {
  certificate = makeCertificate();
  const rest = { clock: Date.now, heartbeatMs: scaleMs(DEFAULT_HEARTBEAT_MS) };
  feature = await startFeatureServer({}, rest, { Watch: watch });
  const extraServices = [defineService(LibraryService, { listBooks })];
  server = await startServer({ extraServices, gateway: feature.gateway, limits });
});
after(async () => {
  await server.stop();
  await feature.stop();
});

interface Outcome {
  readonly isComplete: boolean;
  /** How many messages or lines there were. */
  readonly parts: number;
  readonly reason: string;
}

async function followGrpc(url: string): Promise<Outcome> {
  const transport = createGrpcTransport({ baseUrl: url, nodeOptions: { ca: certificate.cert } });
  const names: string[] = [];
  try {
    for await (const { name } of createClient(LibraryService, transport).listBooks({})) names.push(name);
  } catch (error) {
    const { code, message } = ConnectError.from(error);
    return { isComplete: false, parts: names.length, reason: `${Code[code]} ${message}` };
  }
  return { isComplete: names.at(-1) === "books/last", parts: names.length, reason: "" };
}

function followRest(port: number): Promise<Outcome> {
  return new Promise((resolve) => {
    let text = "";
    const end = (reason: string) =>
      resolve({ isComplete: text.includes('"last"'), parts: text.split("\n\n").length - 1, reason });
    const target = { host: "127.0.0.1", port, servername: "localhost", ca: certificate.cert, agent: false };
    const headers = { host: `localhost:${port}`, accept: "text/event-stream" };
    const req = request({ ...target, path: "/feature/v1/watch/a?count=1", headers }, (res) => {
      res.on("data", (chunk: Buffer) => {
        text += chunk.toString();
      });
      res.on("error", (error) => end(error.message));
      res.on("end", () => end(`status ${res.statusCode}`));
    });
    req.on("error", (error) => end(error.message));
    req.end();
  });
}

async function through(name: ProxyName, scaleTimeout: (seconds: number) => number) {
  const proxy = await startProxy(name, { certificate, target: server.port, scaleTimeout });
  try {
    const [grpc, rest] = await Promise.all([followGrpc(proxy.url), followRest(proxy.port)]);
    return { grpc, rest, output: proxy.output() };
  } finally {
    await proxy.stop();
  }
}

describe("streams that are idle for 100 minutes", { concurrency: true }, () => {
  for (const name of proxyNames) {
    it(`${name}: heartbeats keep them`, async () => {
      const { grpc, rest, output } = await through(name, (seconds) => seconds / DIVISOR);
      assert.deepEqual([grpc.isComplete, grpc.reason], [true, ""], output);
      assert.equal(rest.isComplete, true, `${rest.reason} ${output}`);
      const heartbeats = IDLE_MS / scaleMs(HEARTBEAT_MS);
      assert.ok(grpc.parts > heartbeats / 2 && rest.parts > heartbeats / 2, `${grpc.parts} ${rest.parts}`);
    });

    it(`${name}: a timeout shorter than the heartbeat cuts them: the control`, async () => {
      const { grpc, rest } = await through(name, () => TOO_SHORT_S / DIVISOR);
      assert.deepEqual([grpc.isComplete, rest.isComplete], [false, false]);
    });
  }
});
