import assert from "node:assert/strict";
import { test } from "node:test";
import { Histogram } from "../../../src/kernel/histogram.js";
import { createRenderer } from "../../../src/telemetry/metrics/renderer.js";
import { readHistogram, readValue, readValues, type Sample } from "../../../src/telemetry/metrics/samples.js";
import { parseMetrics } from "../../support/metrics.js";

function ownLines(text: string): string[] {
  return text.split("\n").filter((line) => / ?arbor_/.test(line));
}

const histogram = new Histogram([1, 2]);
histogram.observe(1);
histogram.observe(1.5);
histogram.observe(9);
const sources = [
  readValue("arbor_write_conflicts_total", () => 7),
  readValues("arbor_connections", "kind", () => ({ http1: 1, http2: 2 })),
  readHistogram("arbor_write_batch_size", () => histogram),
  readValue("arbor_database_connections_limit", () => undefined),
];

test("the text format 0.0.4", async () => {
  const { contentType, text } = await createRenderer(sources).render("prometheus");
  assert.equal(contentType, "text/plain; version=0.0.4; charset=utf-8");
  assert.deepEqual(
    ownLines(text).filter((line) => !line.startsWith("# HELP")),
    [
      "# TYPE arbor_write_conflicts_total counter",
      "arbor_write_conflicts_total 7",
      "# TYPE arbor_connections gauge",
      'arbor_connections{kind="http1"} 1',
      'arbor_connections{kind="http2"} 2',
      "# TYPE arbor_write_batch_size histogram",
      'arbor_write_batch_size_bucket{le="1"} 1',
      'arbor_write_batch_size_bucket{le="2"} 2',
      'arbor_write_batch_size_bucket{le="+Inf"} 3',
      "arbor_write_batch_size_sum 11.5",
      "arbor_write_batch_size_count 3",
      "# TYPE arbor_database_connections_limit gauge",
    ],
  );
  assert.ok(text.endsWith("\n"));
  assert.ok((parseMetrics(text).sum("process_resident_memory_bytes") ?? 0) > 1e6, "the metrics of the process follow");
});

test("OpenMetrics has counters without their suffix in TYPE, and an end", async () => {
  const { contentType, text } = await createRenderer(sources).render("openmetrics");
  assert.equal(contentType, "application/openmetrics-text; version=1.0.0; charset=utf-8");
  assert.ok(text.includes("# TYPE arbor_write_conflicts counter\narbor_write_conflicts_total 7\n"));
  assert.ok(text.includes("# TYPE process_cpu_seconds counter\nprocess_cpu_seconds_total "));
  assert.ok(text.endsWith("\n# EOF\n"));
  const again = await createRenderer(sources).render("prometheus");
  assert.ok(again.text.includes("# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total "));
});

test("thousands of series are rendered in slices, with one header", async () => {
  const many = Array.from({ length: 30_000 }, (_, i): Sample => ({ value: i, labels: { method: `m${i}` } }));
  const renderer = createRenderer([{ name: "arbor_requests_total", collect: () => many }]);
  let ticks = 0;
  let isDone = false;
  const tick = () => {
    ticks++;
    if (!isDone) setImmediate(tick);
  };
  setImmediate(tick);
  const { text } = await renderer.render("prometheus");
  isDone = true;
  assert.equal(text.split("\n").filter((line) => line.startsWith("arbor_requests_total{")).length, 30_000);
  assert.equal(text.split("# TYPE arbor_requests_total").length, 2);
  assert.ok(ticks > 2, `the event loop went on ${ticks} times`);
});

test("scrapes at the same time share a rendering, and the next one reads anew", async () => {
  let reads = 0;
  const renderer = createRenderer([readValue("arbor_requests_in_flight", () => ++reads)]);
  const all = await Promise.all([1, 2, 3].map(() => renderer.render("prometheus")));
  assert.equal(reads, 1);
  assert.equal(new Set(all.map(({ text }) => text)).size, 1);
  await renderer.render("prometheus");
  assert.equal(reads, 2);
});

test("a source that fails fails the scrape, and not the next one", async () => {
  let isBroken = true;
  const renderer = createRenderer([
    readValue("arbor_requests_in_flight", () => {
      if (isBroken) throw new Error("planted");
      return 1;
    }),
  ]);
  await assert.rejects(renderer.render("prometheus"), /planted/);
  isBroken = false;
  assert.equal(parseMetrics((await renderer.render("prometheus")).text).sum("arbor_requests_in_flight"), 1);
});
