// The spans of group commit: one batch for all units of a tick, a part of one traced call and linked with the others.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import pino from "pino";
import type { TraceSpan } from "../../src/kernel/trace.js";
import { openSqlite } from "../../src/store/sqlite/open.js";
import type { Store } from "../../src/store/store.js";
import type { Tracing } from "../../src/telemetry/spans.js";
import { startTracing } from "../../src/telemetry/tracing.js";
import { type CollectedSpan, type OtlpCollector, startOtlpCollector } from "../support/otlp-collector.js";
import { memoryDir } from "../support/temp-dir.js";
import { withVariables } from "../support/variables.js";

let collector: OtlpCollector;
let tracing: Tracing;
let store: Store;
before(async () => {
  collector = await startOtlpCollector();
  const variables = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint, OTEL_BSP_SCHEDULE_DELAY: "50" };
  const logger = pino({ level: "silent" });
  const started = await withVariables(variables, () => startTracing({ env: process.env, logger, version: "1" }));
  assert.ok(started !== undefined);
  tracing = started;
  store = openSqlite({ directory: memoryDir() });
});
after(async () => {
  await store.close();
  await tracing.stop(5_000);
  await collector.stop();
});

const begin = (name: string) => tracing.startServer(name, {}, performance.now(), () => ({}));
const write = (trace: TraceSpan | undefined, value: string) =>
  store.write((tx) => tx.settings.put(value, value), { trace });

function spanOf(trace: readonly CollectedSpan[], name: string): CollectedSpan {
  const found = trace.find((span) => span.name === name);
  assert.ok(found !== undefined, `there is no span ${name}`);
  return found;
}

/**
 * Repeats `run` until all its units are in one batch. A batch ends after some milliseconds, and on a busy machine one
 * unit may take as long.
 *
 * @returns the trace of the call with this name
 */
async function inOneBatch(name: string, units: number, run: (name: string) => Promise<unknown>) {
  for (let tries = 0; tries < 50; tries++) {
    const unique = `${name} ${tries}`;
    await run(unique);
    const trace = await collector.waitForTrace(unique, "group commit");
    if (spanOf(trace, "group commit").attributes["arbor.batch.calls"] === units) return { trace, name: unique };
  }
  throw new Error(`${units} units were never in one batch`);
}

test("a batch is part of its first traced call, linked with the others, and contains the commit", async () => {
  const { trace, name } = await inOneBatch("first", 3, async (unique) => {
    const [first, second] = [begin(unique), begin(`second of ${unique}`)];
    await Promise.all([write(undefined, "a"), write(first, "b"), write(second, "c")]);
    first.end();
    second.end();
  });
  const [other] = await collector.waitForTrace(`second of ${name}`);
  const [call, batch, commit] = [spanOf(trace, name), spanOf(trace, "group commit"), spanOf(trace, "COMMIT")];
  assert.ok(other !== undefined);
  assert.deepEqual([batch.parentSpanId, commit.parentSpanId], [call.spanId, batch.spanId]);
  assert.deepEqual([batch.links, other.links, call.links], [[other.spanId], [batch.spanId], []]);
  assert.deepEqual(batch.attributes, { "db.system.name": "sqlite", "arbor.batch.calls": 3 });
  assert.deepEqual(commit.attributes, { "db.system.name": "sqlite", "db.operation.name": "COMMIT" });
  const events = [call.events, other.events].flat();
  assert.deepEqual(
    events.map((event) => event.name),
    ["begin", "begin"],
  );
});

test("a unit that fails leaves the batch intact, and a batch that fails says so", async () => {
  const { trace } = await inOneBatch("failing unit", 2, async (unique) => {
    const [failing, other] = [begin(unique), begin("other unit")];
    const outcomes = await Promise.allSettled([
      store.write(() => Promise.reject(new RangeError("no")), { trace: failing }),
      write(other, "d"),
    ]);
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ["rejected", "fulfilled"],
    );
    failing.fail(new RangeError("no"));
    other.end();
  });
  assert.equal(spanOf(trace, "group commit").failed, false);

  const overdue = begin("overdue unit");
  await assert.rejects(
    store.write(() => new Promise((resolve) => setTimeout(resolve, 20)), { trace: overdue }),
    /awaited something other/,
  );
  overdue.end();
  const failed = await collector.waitForTrace("overdue unit", "group commit");
  assert.deepEqual(
    [spanOf(failed, "group commit").failed, failed.some(({ name }) => name === "COMMIT")],
    [true, false],
  );
});

test("units without a recorded span make no batch span", async () => {
  const before = collector.spans.length;
  await write(undefined, "e");
  const marker = begin("marker");
  marker.end();
  await collector.waitForTrace("marker");
  assert.deepEqual(
    collector.spans.slice(before).map(({ name }) => name),
    ["marker"],
  );
});
