import assert from "node:assert/strict";
import { test } from "node:test";
import { createRenderer } from "../../../src/telemetry/metrics/renderer.js";
import { createRequestCounts, type RequestCounts } from "../../../src/telemetry/metrics/request-counts.js";
import { type ParsedMetrics, parseMetrics } from "../../support/metrics.js";

const protocols = ["rest", "grpc"];
const OK = 0;
const NOT_FOUND = 5;
const INTERNAL = 13;

async function render({ sources }: RequestCounts): Promise<ParsedMetrics> {
  const { text } = await createRenderer(sources).render("prometheus");
  return parseMetrics(text);
}

const isOfRequests = ({ name }: { readonly name: string }) => name.startsWith("arbor_request");

test("requests are counted by method, protocol and code", async () => {
  const counts = createRequestCounts(
    [
      { name: "a", protocols },
      { name: "b", protocols },
    ],
    protocols,
  );
  counts.count("rest", "a", OK, 0.001);
  counts.count("rest", "a", OK, 0.001);
  counts.count("grpc", "a", NOT_FOUND, 0.001);
  counts.count("grpc", "b", 16, 0.001);
  const metrics = await render(counts);
  const of = metrics.samples.filter(({ name }) => name === "arbor_requests_total");
  assert.deepEqual(
    of.map(({ labels: { method, protocol, code }, value }) => [method, protocol, code, value]),
    [
      ["a", "rest", "OK", 2],
      ["a", "rest", "INTERNAL", 0],
      ["a", "rest", "UNAVAILABLE", 0],
      ["a", "grpc", "OK", 0],
      ["a", "grpc", "NOT_FOUND", 1],
      ["a", "grpc", "INTERNAL", 0],
      ["a", "grpc", "UNAVAILABLE", 0],
      ["b", "grpc", "OK", 0],
      ["b", "grpc", "INTERNAL", 0],
      ["b", "grpc", "UNAVAILABLE", 0],
      ["b", "grpc", "UNAUTHENTICATED", 1],
    ],
  );
});

test("durations are counted in cumulative buckets", async () => {
  const counts = createRequestCounts([{ name: "a", protocols }], protocols);
  for (const seconds of [0.001, 0.005, 0.006, 0.3, 70]) counts.count("rest", "a", OK, seconds);
  const metrics = await render(counts);
  const buckets = metrics.samples.filter(({ name }) => name === "arbor_request_duration_seconds_bucket");
  assert.deepEqual(
    buckets.map(({ labels, value }) => [labels.le, value]),
    [
      ["0.005", 2],
      ["0.025", 3],
      ["0.1", 3],
      ["0.5", 4],
      ["2.5", 4],
      ["+Inf", 5],
    ],
  );
  assert.equal(metrics.sum("arbor_request_duration_seconds_count"), 5);
  assert.ok(Math.abs((metrics.sum("arbor_request_duration_seconds_sum") ?? 0) - 70.312) < 1e-9);
});

test("methods that stream have no durations, and are counted", async () => {
  const counts = createRequestCounts([{ name: "watch", protocols, isStream: true }], protocols);
  counts.count("grpc", "watch", OK, 3600);
  const metrics = await render(counts);
  assert.equal(metrics.sum("arbor_requests_total", { method: "watch" }), 1);
  assert.equal(metrics.sum("arbor_request_duration_seconds_count"), undefined);
});

test("what no method answers is counted as unknown, and a method that is not in the table as other", async () => {
  const counts = createRequestCounts([{ name: "a", protocols }], protocols);
  counts.count("rest", undefined, NOT_FOUND, 0);
  counts.count("rest", "planted", OK, 0);
  counts.count("rest", "a", 99, 0);
  const metrics = await render(counts);
  assert.equal(metrics.sum("arbor_requests_total", { method: "unknown", code: "NOT_FOUND" }), 1);
  assert.equal(metrics.sum("arbor_requests_total", { method: "other", code: "OK" }), 1);
  assert.equal(metrics.sum("arbor_requests_total", { method: "a", code: "UNKNOWN" }), 1, "a number that is no code");
  assert.equal(metrics.sum("arbor_requests_total", { method: "planted" }), undefined);
});

for (const methods of [1, 5, 40]) {
  test(`however many codes callers cause, ${methods} methods have at most 200 series and lose no request`, async () => {
    const names = Array.from({ length: methods }, (_, i) => `m${i}`);
    const counts = createRequestCounts(
      names.map((name) => ({ name, protocols })),
      protocols,
      200,
    );
    let requests = 0;
    for (let code = 16; code >= 0; code--) {
      for (const name of [...names, undefined]) {
        for (const protocol of protocols) {
          counts.count(protocol, name, code, 0.01);
          requests++;
        }
      }
    }
    counts.count("grpc", "m0", INTERNAL, 0.01);
    const metrics = await render(counts);
    assert.equal(metrics.sum("arbor_requests_total"), requests + 1);
    assert.equal(metrics.sum("arbor_request_duration_seconds_count"), requests + 1);
    const series = metrics.samples.filter(isOfRequests).length;
    assert.ok(series <= 200, `${series} series`);
    const failures = methods === 40 ? undefined : 2;
    const found = metrics.sum("arbor_requests_total", { method: "m0", protocol: "grpc", code: "INTERNAL" });
    if (methods === 40) assert.ok(found !== undefined, "the first methods keep their series");
    else assert.equal(found, failures, "a reserved code has its series, also when all others are taken");
  });
}

test("the limit is what bounds them: a control without it has more", async () => {
  const names = Array.from({ length: 40 }, (_, i) => `m${i}`);
  const counts = createRequestCounts(
    names.map((name) => ({ name, protocols })),
    protocols,
  );
  for (const name of names) for (let code = 0; code < 17; code++) counts.count("rest", name, code, 0.01);
  const series = (await render(counts)).samples.filter(isOfRequests).length;
  assert.equal(series, 40 * (17 + 8));
});
