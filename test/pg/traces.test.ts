// The spans of a transaction on PostgreSQL: when it began, why it ran again, and its commit.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import pino from "pino";
import { openPg } from "../../src/store/pg/open.js";
import type { Store } from "../../src/store/store.js";
import type { Tracing } from "../../src/telemetry/spans.js";
import { startTracing } from "../../src/telemetry/tracing.js";
import { type OtlpCollector, startOtlpCollector } from "../support/otlp-collector.js";
import { withVariables } from "../support/variables.js";
import { newDatabase } from "./databases.js";

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
  store = await openPg({ url: await newDatabase() });
});
after(async () => {
  await store.close();
  await tracing.stop(5_000);
  await collector.stop();
});

/** Writes a setting in a traced unit, whose first `conflicts` runs conflict with another transaction. */
async function writeTraced(name: string, conflicts: number) {
  const trace = tracing.startServer(name, {}, performance.now(), () => ({}));
  let tries = 0;
  await store.write(
    async (tx) => {
      const known = (await tx.settings.find("counter")) ?? "";
      if (tries++ < conflicts) await store.write((other) => other.settings.put("counter", `${known}.`));
      await tx.settings.put("counter", `${known}+`);
    },
    { trace },
  );
  trace.end();
  const spans = await collector.waitForTrace(name, "COMMIT");
  return { tries, spans, unit: spans.find((span) => span.name === name) };
}

test("a transaction that conflicts has an event for each time it runs again", async () => {
  const { tries, spans, unit } = await writeTraced("conflicting", 2);
  assert.equal(tries, 3);
  const retry = (tried: number) => ({
    name: "retry",
    attributes: { "arbor.tries": tried, "db.response.status_code": "40001" },
  });
  const begin = { name: "begin", attributes: {} };
  assert.deepEqual(unit?.events, [begin, retry(1), begin, retry(2), begin]);
  const commits = spans.filter(({ name }) => name === "COMMIT");
  assert.deepEqual(
    commits.map(({ parentSpanId, attributes }) => [parentSpanId, attributes]),
    [[unit.spanId, { "db.system.name": "postgresql", "db.operation.name": "COMMIT" }]],
  );
});

test("control: without a conflict it begins once", async () => {
  const { tries, unit } = await writeTraced("alone", 0);
  assert.equal(tries, 1);
  assert.deepEqual(
    unit?.events.map(({ name }) => name),
    ["begin"],
  );
});
