// The spans of outgoing requests, and which servers learn them, with real servers.
import assert from "node:assert/strict";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import pino from "pino";
import { createGuardedFetch, findTracedOrigins } from "../../src/outbound/guarded-fetch.js";
import type { Tracing } from "../../src/telemetry/spans.js";
import { startTracing } from "../../src/telemetry/tracing.js";
import { type OtlpCollector, startOtlpCollector } from "../support/otlp-collector.js";
import { withVariables } from "../support/variables.js";

let collector: OtlpCollector;
let tracing: Tracing;
let origin: string;
const seen: IncomingHttpHeaders[] = [];
const server = createServer((req, res) => {
  seen.push(req.headers);
  res.statusCode = req.url === "/broken" ? 503 : 200;
  res.end("{}");
});
before(async () => {
  collector = await startOtlpCollector();
  const variables = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint, OTEL_BSP_SCHEDULE_DELAY: "50" };
  const logger = pino({ level: "silent" });
  const started = await withVariables(variables, () => startTracing({ env: process.env, logger, version: "1" }));
  assert.ok(started !== undefined);
  tracing = started;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
after(async () => {
  server.closeAllConnections();
  server.close();
  await tracing.stop(5_000);
  await collector.stop();
});

const begin = (name: string) => tracing.startServer(name, {}, performance.now(), () => ({}));

test("a request is a span of its call, which the server gets as traceparent", async () => {
  const fetch = createGuardedFetch({ trustedOrigins: [origin], startRequest: tracing.startRequest });
  const call = begin("call");
  await fetch(`${origin}/keys?signature=secret`, { trace: call, headers: { accept: "application/json" } });
  call.end();
  const trace = await collector.waitForTrace("call", "GET");
  const span = trace.find(({ name }) => name === "GET");
  assert.equal(seen.at(-1)?.traceparent, `00-${call.traceId}-${span?.spanId}-01`);
  assert.equal(seen.at(-1)?.accept, "application/json");
  assert.deepEqual([span?.kind, span?.parentSpanId], [3, trace.find(({ name }) => name === "call")?.spanId]);
  assert.deepEqual(span?.attributes, {
    "http.request.method": "GET",
    "url.scheme": "http",
    "server.address": "127.0.0.1",
    "server.port": Number(new URL(origin).port),
    "http.response.status_code": 200,
  });
});

test("a request that fails, or is answered with an error, is a span that failed", async () => {
  const fetch = createGuardedFetch({ trustedOrigins: [origin] });
  const call = begin("failing call");
  await fetch(`${origin}/broken`, { trace: call });
  await assert.rejects(fetch(`${origin}/`, { trace: call, signal: AbortSignal.abort() }));
  call.end();
  const trace = await collector.waitForTrace("failing call", "GET");
  const spans = trace.filter(({ name }) => name === "GET");
  assert.deepEqual(
    spans.map(({ attributes, failed }) => [attributes["error.type"], failed]),
    [
      ["503", true],
      ["OutboundError", true],
    ],
  );
});

test("a request that belongs to no call begins a trace", async () => {
  const fetch = createGuardedFetch({ trustedOrigins: [origin], startRequest: tracing.startRequest });
  await fetch(`${origin}/alone`, { method: "POST", body: "{}" });
  const trace = await collector.waitForTrace("POST");
  const [span] = trace;
  assert.deepEqual([trace.length, span?.parentSpanId], [1, ""]);
  assert.equal(seen.at(-1)?.traceparent, `00-${span?.traceId}-${span?.spanId}-01`);
});

test("control: where traces are off there is no traceparent", async () => {
  await createGuardedFetch({ trustedOrigins: [origin] })(`${origin}/off`);
  assert.equal(seen.at(-1)?.traceparent, undefined);
});

test("only the origins that the operator named learn the trace", () => {
  const traced = findTracedOrigins({
    trustedOrigins: ["http://10.0.0.5:8080"],
    operatorIssuers: ["https://login.example.com/tenant", "no URL"],
  });
  assert.deepEqual([...traced], ["http://10.0.0.5:8080", "https://login.example.com"]);
});
