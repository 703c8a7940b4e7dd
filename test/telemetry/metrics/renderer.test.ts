import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Histogram } from "../../../src/kernel/histogram.js";
import { createRenderer } from "../../../src/telemetry/metrics/renderer.js";
import {
  readHistogram,
  readValue,
  readValues,
  type Sample,
  type Source,
} from "../../../src/telemetry/metrics/samples.js";
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

describe("a family that cannot be read is left out", () => {
  const fail = () => {
    throw new Error("planted");
  };
  const faults: Readonly<Record<string, Source>> = {
    "a value": readValue("arbor_requests_in_flight", fail),
    "values by label": readValues("arbor_connections", "kind", fail),
    "a histogram": readHistogram("arbor_write_batch_size", fail),
    "one that fails before its first sample": { name: "arbor_job_runs_total", collect: fail },
    "one that fails after many samples": {
      name: "arbor_requests_total",
      *collect() {
        for (let i = 0; i < 1_000; i++) yield { value: i, labels: { method: `m${i}`, protocol: "rest", code: "OK" } };
        fail();
      },
    },
  };
  for (const [title, source] of Object.entries(faults)) {
    for (const format of ["prometheus", "openmetrics"] as const) {
      test(`${title}, as ${format}`, async () => {
        const before = readValue("arbor_build_info", () => 1);
        const after = readValue("arbor_scrape_duration_seconds", () => 2);
        const reports: string[] = [];
        const onUnreadable = (family: string, error: unknown) => void reports.push(`${family}: ${error}`);
        const renderer = createRenderer([before, source, after], { onUnreadable });
        for (let scrapes = 0; scrapes < 2; scrapes++) {
          const found = parseMetrics((await renderer.render(format)).text);
          assert.deepEqual([found.sum("arbor_build_info"), found.sum("arbor_scrape_duration_seconds")], [1, 2]);
          assert.equal(found.types.has(source.name.replace(/_total$/, "")) || found.types.has(source.name), false);
        }
        assert.deepEqual(reports, [`${source.name}: Error: planted`], "reported once");
      });
    }
  }

  test("and is there again when it can be read, and is reported anew", async () => {
    let isBroken = true;
    let reports = 0;
    const source = readValue("arbor_requests_in_flight", () => (isBroken ? fail() : 1));
    const renderer = createRenderer([source], { onUnreadable: () => void reports++ });
    const read = async () => parseMetrics((await renderer.render("prometheus")).text).sum("arbor_requests_in_flight");
    assert.equal(await read(), undefined);
    isBroken = false;
    assert.equal(await read(), 1);
    isBroken = true;
    assert.equal(await read(), undefined);
    assert.equal(reports, 2);
  });
});
