// Spans and their export, against a collector: what the SDK makes of the variables, and what of a span arrives.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Code, ConnectError } from "@connectrpc/connect";
import pino from "pino";
import type { TraceFields, Tracing } from "../../src/telemetry/spans.js";
import { startTracing } from "../../src/telemetry/tracing.js";
import { type OtlpCollector, startOtlpCollector } from "../support/otlp-collector.js";
import { withVariables } from "../support/variables.js";

const TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN_ID = "00f067aa0ba902b7";
const CALLER: TraceFields = { traceparent: `00-${TRACE_ID}-${SPAN_ID}-01`, tracestate: "vendor=value" };

let collector: OtlpCollector;
before(async () => {
  collector = await startOtlpCollector();
});
after(() => collector.stop());

/** Starts to trace with these variables and those of the collector; `lines` are the log. */
async function start(variables: Readonly<Record<string, string>> = {}) {
  const lines: { readonly msg: string; readonly reason?: string; readonly spans?: number }[] = [];
  const logger = pino({ level: "warn" }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint, ...variables };
  const tracing = await withVariables(env, () => startTracing({ env: process.env, logger, version: "1.2.3" }));
  return { tracing, lines };
}

async function startOn(variables: Readonly<Record<string, string>> = {}) {
  const { tracing, lines } = await start(variables);
  assert.ok(tracing !== undefined, "traces are off");
  return { tracing, lines };
}

const begin = (tracing: Tracing, name: string, fields: TraceFields = {}) =>
  tracing.startServer(name, fields, performance.now(), () => ({ "rpc.system": "grpc" }));

test("a span arrives with its children, events, links and attributes", async () => {
  const { tracing } = await startOn({ OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test" });
  const server = begin(tracing, "test.v1.Things/Get");
  const child = server.startChild("read transaction", { "db.system.name": "sqlite" });
  child.addEvent("begin", { "arbor.tries": 2 });
  child.addLink(server);
  child.end();
  const request = child.startRequest("GET");
  request.fail({ code: "ECONNREFUSED" });
  server.end();
  await tracing.stop(5_000);
  const trace = await collector.waitForTrace("test.v1.Things/Get", "read transaction", "GET");
  const [serverSpan, childSpan, requestSpan] = ["test.v1.Things/Get", "read transaction", "GET"].map((name) =>
    trace.find((span) => span.name === name),
  );
  assert.ok(serverSpan && childSpan && requestSpan);
  assert.deepEqual([serverSpan.kind, childSpan.kind, requestSpan.kind], [2, 1, 3]);
  assert.deepEqual(
    [serverSpan.parentSpanId, childSpan.parentSpanId, requestSpan.parentSpanId],
    ["", serverSpan.spanId, childSpan.spanId],
  );
  assert.deepEqual(childSpan.attributes, { "db.system.name": "sqlite" });
  assert.deepEqual(childSpan.events, [{ name: "begin", attributes: { "arbor.tries": 2 } }]);
  assert.deepEqual(childSpan.links, [serverSpan.spanId]);
  assert.ok(serverSpan.startNs <= childSpan.startNs && childSpan.endNs <= serverSpan.endNs, "the child is outside");
  assert.deepEqual(requestSpan.attributes, { "error.type": "ECONNREFUSED" });
  assert.deepEqual([serverSpan.failed, childSpan.failed, requestSpan.failed], [false, false, true]);
  const { resource } = serverSpan;
  assert.deepEqual(
    [resource["service.name"], resource["service.version"], resource["deployment.environment.name"]],
    ["arbor", "1.2.3", "test"],
  );
});

test("the service has the name that the variable gives it", async () => {
  const { tracing } = await startOn({ OTEL_SERVICE_NAME: "arbor-eu", OTEL_EXPORTER_OTLP_HEADERS: "x-key=secret" });
  begin(tracing, "named").end();
  await tracing.stop(5_000);
  const [span] = await collector.waitForTrace("named");
  assert.equal(span?.resource["service.name"], "arbor-eu");
  assert.equal(collector.requests.at(-1)?.["x-key"], "secret");
});

test("a well-formed traceparent is the parent, and is passed on", async () => {
  const { tracing } = await startOn();
  const server = begin(tracing, "continued", CALLER);
  assert.equal(server.traceId, TRACE_ID);
  const { traceparent = "", tracestate } = server.headers();
  assert.match(traceparent, new RegExp(`^00-${TRACE_ID}-(?!${SPAN_ID})[0-9a-f]{16}-01$`));
  assert.equal(tracestate, "vendor=value");
  server.end();
  await tracing.stop(5_000);
  const [span] = await collector.waitForTrace("continued");
  assert.deepEqual([span?.traceId, span?.parentSpanId], [TRACE_ID, SPAN_ID]);
});

test("an error is recorded by its code, never by its text", async () => {
  const { tracing } = await startOn();
  const failures: readonly (readonly [name: string, error: unknown, type: string, failed: boolean])[] = [
    ["not found", new ConnectError("the group g1", Code.NotFound), "NOT_FOUND", false],
    ["unavailable", new ConnectError("the group g1", Code.Unavailable), "UNAVAILABLE", true],
    ["defect", new RangeError("the group g1"), "RangeError", true],
    ["odd", { code: "the group g1" }, "_OTHER", true],
  ];
  const server = begin(tracing, "failures");
  for (const [name, error] of failures) server.startChild(name).fail(error);
  server.end();
  server.fail(new Error("after its end"));
  await tracing.stop(5_000);
  const trace = await collector.waitForTrace("failures", "odd");
  for (const [name, , type, failed] of failures) {
    const span = trace.find((one) => one.name === name);
    assert.deepEqual([span?.attributes["error.type"], span?.failed], [type, failed], name);
  }
  assert.equal(trace.find(({ name }) => name === "failures")?.attributes["error.type"], undefined);
});

test("a span with very many children says how many are missing", async () => {
  const { tracing } = await startOn();
  const server = begin(tracing, "long list");
  for (let i = 0; i < 130; i++) server.startChild("read transaction").end();
  server.end();
  await tracing.stop(5_000);
  const trace = await collector.waitForTrace("long list");
  assert.equal(trace.length, 101);
  assert.equal(trace.find(({ name }) => name === "long list")?.attributes["arbor.dropped_children"], 30);
});

test("the sampler decides, and says so to other services", async () => {
  const share = async (sampler: string, argument: string, fields: TraceFields = {}) => {
    const { tracing } = await startOn({ OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: argument });
    let recorded = 0;
    for (let i = 0; i < 2_000; i++) {
      const span = begin(tracing, "sampled", fields);
      if (span.isRecording) recorded++;
      const flags = span.headers().traceparent?.slice(-2);
      assert.equal(flags, span.isRecording ? "01" : "00");
      assert.match(span.startChild("child").traceId, /^[0-9a-f]{32}$/);
    }
    return recorded / 2_000;
  };
  assert.equal(await share("always_off", ""), 0);
  assert.equal(await share("parentbased_always_on", ""), 1);
  const tenth = await share("traceidratio", "0.1");
  assert.ok(tenth > 0.05 && tenth < 0.15, `${tenth} of the traces`);
  // A caller decides for samplers that follow the parent, and for no others.
  const caller = { traceparent: `00-${"f".repeat(32)}-${SPAN_ID}-01` };
  assert.equal(await share("parentbased_traceidratio", "0", caller), 1);
  assert.equal(await share("traceidratio", "0", caller), 0);
});

test("without the propagator a caller's trace is ignored", async () => {
  const { tracing } = await startOn({ OTEL_PROPAGATORS: "none", OTEL_TRACES_SAMPLER: "parentbased_always_off" });
  const span = begin(tracing, "own", CALLER);
  assert.notEqual(span.traceId, TRACE_ID);
  assert.equal(span.isRecording, false);
  assert.deepEqual(span.headers(), {});
  const { tracing: other } = await startOn({ OTEL_TRACES_SAMPLER: "parentbased_always_off" });
  assert.equal(begin(other, "own", CALLER).isRecording, true);
});

test("variables turn traces on and off", async () => {
  const endpoint = collector.endpoint;
  const none = { OTEL_EXPORTER_OTLP_ENDPOINT: "" };
  const cases: readonly (readonly [Readonly<Record<string, string>>, isOn: boolean, warning?: RegExp])[] = [
    [{}, true],
    [none, false],
    [{ ...none, OTEL_SERVICE_NAME: "arbor", OTEL_TRACES_SAMPLER: "always_on" }, false],
    [{ ...none, OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: endpoint }, false],
    [{ ...none, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${endpoint}/v1/traces` }, true],
    [{ ...none, OTEL_TRACES_EXPORTER: "otlp" }, true],
    [{ OTEL_TRACES_EXPORTER: "none" }, false],
    [{ OTEL_TRACES_EXPORTER: "zipkin" }, true, /OTEL_TRACES_EXPORTER must be otlp or none; "zipkin"/],
    [{ ...none, OTEL_TRACES_EXPORTER: "zipkin" }, false, /OTEL_TRACES_EXPORTER/],
    [{ OTEL_SDK_DISABLED: "true" }, false],
    [{ OTEL_SDK_DISABLED: "TRUE" }, false],
    [{ OTEL_SDK_DISABLED: "false" }, true],
    [{ OTEL_SDK_DISABLED: "1" }, true, /OTEL_SDK_DISABLED must be true or false/],
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4318" },
      false,
      /OTEL_EXPORTER_OTLP_ENDPOINT must be an http or https URL/,
    ],
    [{ OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" }, true, /OTEL_EXPORTER_OTLP_PROTOCOL must be http\/json; "grpc"/],
    [{ OTEL_EXPORTER_OTLP_PROTOCOL: "http/json" }, true],
    [{ OTEL_PROPAGATORS: "b3" }, true, /OTEL_PROPAGATORS: "b3" is not supported/],
    [{ OTEL_TRACES_SAMPLER: "sometimes" }, true, /OTEL_TRACES_SAMPLER value "sometimes" invalid/],
    [{ OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "7" }, true, /OTEL_TRACES_SAMPLER_ARG=7/],
    [{ OTEL_BSP_SCHEDULE_DELAY: "soon" }, true, /OTEL_BSP_SCHEDULE_DELAY/],
  ];
  for (const [variables, isOn, warning] of cases) {
    const { tracing, lines } = await start(variables);
    const name = JSON.stringify(variables);
    assert.equal(tracing !== undefined, isOn, name);
    const texts = lines.map(({ msg, reason }) => `${msg} ${reason ?? ""}`);
    if (warning === undefined) assert.deepEqual(texts, [], name);
    else
      assert.ok(
        texts.some((text) => warning.test(text)),
        `${name}: ${texts.join("\n")}`,
      );
    await tracing?.stop(1_000);
  }
});

test("a warning quotes no password", async () => {
  const { lines } = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: "htp://user:hunter2@collector:4318" });
  assert.equal(lines.length, 1);
  assert.doesNotMatch(JSON.stringify(lines), /hunter2/);
});

test("a collector that refuses is logged once, and nothing waits for it", async () => {
  collector.status = 400;
  try {
    const { tracing, lines } = await startOn({ OTEL_BSP_SCHEDULE_DELAY: "10" });
    for (let i = 0; i < 5; i++) {
      begin(tracing, "refused").end();
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
    await tracing.stop(5_000);
    assert.deepEqual(
      lines.map(({ msg, spans }) => [msg, spans]),
      [["spans could not be exported and are lost", 1]],
    );
  } finally {
    collector.status = 200;
  }
});
