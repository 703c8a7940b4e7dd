// Counts of requests, as a whole service serves them.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { GroupsService } from "#gen/chainguard/platform/iam/v2beta1/groups_pb.js";
import { rejectReasons } from "../../src/kernel/reject-reason.js";
import { families, MAX_REQUEST_SERIES, MAX_SERIES } from "../../src/telemetry/metrics/families.js";
import { protocolNames, type RequestProtocol, RequestRecord } from "../../src/telemetry/request-record.js";
import { type Harness, startHarness } from "../support/harness.js";
import { type ParsedMetrics, scrape } from "../support/metrics.js";
import { requestH1, requestH2 } from "../support/requests.js";

const SERVICE = "chainguard.platform.iam.v2beta1.GroupsService";

const ORIGIN = "https://app.example";

let harness: Harness;
let token: string;
before(async () => {
  harness = await startHarness({ metricsListen: "127.0.0.1:0", corsOrigins: ORIGIN });
  token = (await harness.organisation("requests")).token;
});
after(() => harness.stop());

type Labels = Readonly<Record<string, string>>;

// The record of a request ends when its response closes, which may be after the caller has it.
async function scrapeWhen(isReached: (metrics: ParsedMetrics) => boolean): Promise<ParsedMetrics> {
  for (let tries = 0; ; tries++) {
    const metrics = await scrape(harness.app.metricsUrl);
    if (isReached(metrics) || tries === 100) return metrics;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const total = (metrics: ParsedMetrics, labels: Labels = {}) => metrics.sum("arbor_requests_total", labels) ?? 0;
const countTimed = (metrics: ParsedMetrics, labels: Labels = {}) =>
  metrics.sum("arbor_request_duration_seconds_count", labels) ?? 0;

function transports() {
  const options = { baseUrl: harness.url, httpVersion: "2" as const };
  return {
    grpc: createGrpcTransport(options),
    "grpc-web": createGrpcWebTransport(options),
    connect: createConnectTransport(options),
  };
}

test("calls of every protocol are counted with the method and the code", async () => {
  const before = await scrape(harness.app.metricsUrl);
  const headers = { authorization: `Bearer ${token}` };
  assert.equal((await fetch(`${harness.url}/iam/v2beta1/groups`, { headers })).status, 200);
  assert.equal((await fetch(`${harness.url}/iam/v2beta1/groups`)).status, 401);
  for (const transport of Object.values(transports())) {
    const client = createClient(GroupsService, transport);
    await client.listGroups({}, { headers });
    await assert.rejects(client.listGroups({}));
  }
  const after = await scrapeWhen((now) => total(now, { method: `${SERVICE}/ListGroups` }) === 8);
  for (const protocol of ["rest", "grpc", "grpc-web", "connect"]) {
    const labels = { method: `${SERVICE}/ListGroups`, protocol };
    assert.equal(total(after, { ...labels, code: "OK" }), 1, protocol);
    assert.equal(total(after, { ...labels, code: "UNAUTHENTICATED" }), 1, protocol);
    assert.equal(countTimed(after, labels), 2, protocol);
  }
  const withoutToken = (metrics: ParsedMetrics) =>
    metrics.sum("arbor_requests_rejected_total", { reason: "token_missing" }) ?? 0;
  assert.equal(withoutToken(after) - withoutToken(before), 4);
});

test("routes that are no methods are counted as http, with the code that their status stands for", async () => {
  for (const path of ["/healthz", "/readyz"]) assert.equal((await fetch(harness.url + path)).status, 200);
  assert.equal((await fetch(`${harness.url}/healthz`, { method: "DELETE" })).status, 405);
  const metrics = await scrapeWhen((now) => total(now, { method: "healthz" }) === 2);
  assert.equal(total(metrics, { method: "healthz", protocol: "http", code: "OK" }), 1);
  assert.equal(total(metrics, { method: "healthz", protocol: "http", code: "UNIMPLEMENTED" }), 1);
  assert.equal(total(metrics, { method: "readyz", protocol: "http", code: "OK" }), 1);
});

test("the home page, the documentation and preflights have names", async () => {
  const before = await scrape(harness.app.metricsUrl);
  for (const path of ["/", "/docs/", "/docs/cli.html", "/docs/adr/0003-group-commit.html"]) {
    assert.equal((await fetch(harness.url + path)).status, 200);
  }
  const headers = { origin: ORIGIN, "access-control-request-method": "GET" };
  assert.equal((await fetch(`${harness.url}/iam/v2beta1/groups`, { method: "OPTIONS", headers })).status, 204);
  const metrics = await scrapeWhen((now) => total(now, { method: "preflight" }) === 1);
  assert.equal(total(metrics, { method: "home", protocol: "http", code: "OK" }), 1);
  assert.equal(total(metrics, { method: "docs", protocol: "http", code: "OK" }), 3);
  assert.equal(total(metrics, { method: "preflight", protocol: "http", code: "OK" }), 1);
  assert.equal(total(metrics, { method: "unknown" }), total(before, { method: "unknown" }));
});

test("a path of the documentation that has no page is counted as one that is not served", async () => {
  const unserved = { method: "unknown", protocol: "rest", code: "NOT_FOUND" };
  const before = await scrape(harness.app.metricsUrl);
  assert.equal((await fetch(`${harness.url}/docs/nothing.html`)).status, 404);
  const metrics = await scrapeWhen((now) => total(now) > total(before));
  assert.equal(total(metrics, unserved) - total(before, unserved), 1);
  assert.equal(total(metrics, { method: "docs" }), total(before, { method: "docs" }));
});

test("requests that are rejected early are counted, and have no duration", async () => {
  const method = `${SERVICE}/ListRoles`;
  const record = recordOf("connect", method, 14);
  record.isEarly = true;
  const before = await scrape(harness.app.metricsUrl);
  harness.app.requestMetrics.observe(record);
  const metrics = await scrape(harness.app.metricsUrl);
  const of = (now: ParsedMetrics) => [total(now, { code: "UNAVAILABLE" }), countTimed(now)];
  const [counted = 0, durations = 0] = of(before);
  assert.deepEqual(of(metrics), [counted + 1, durations]);
  record.isEarly = false;
  harness.app.requestMetrics.observe(record);
  assert.deepEqual(of(await scrape(harness.app.metricsUrl)), [counted + 2, durations + 1], "the control");
});

test("nothing that callers send is in the metrics", async () => {
  const marker = "planted4711";
  const before = await scrape(harness.app.metricsUrl);
  const port = Number(new URL(harness.url).port);
  const headers = {
    authorization: `Bearer ${marker}.${marker}.${marker}`,
    "x-request-id": marker,
    "user-agent": marker,
    "x-forwarded-for": marker,
    traceparent: marker,
    [`x-${marker}`]: marker,
  };
  const paths = [
    `/${marker}`,
    `/iam/v2beta1/groups/${marker}`,
    `/iam/v2beta1/groups?name=${marker}`,
    `/oauth/callback/${marker}`,
    `/${marker}.Service/${marker}`,
    `/${SERVICE}/${marker}`,
    `/${SERVICE}/ListGroups?${marker}`,
    `/metrics/${marker}`,
    `/%22%7d%0a${marker}`,
  ];
  const types = ["application/json", "application/grpc", "application/grpc-web+proto", `text/${marker}`];
  let sent = 0;
  for (const path of paths) {
    for (const type of types) {
      for (const method of ["GET", "POST", "PROPFIND"]) {
        const request = { method, path, headers: { ...headers, "content-type": type } };
        await requestH1(port, request);
        await requestH2(port, request).catch(() => {});
        sent += 2;
      }
    }
  }
  const created = await fetch(`${harness.url}/iam/v2beta1/groups`, {
    headers: { authorization: `Bearer ${token}`, "x-request-id": marker },
  });
  assert.equal(created.status, 200);
  const after = await scrapeWhen((now) => total(now) - total(before) >= sent);
  assert.ok(total(after) - total(before) >= sent, "the control: these requests were counted");
  assert.ok(total(after, { method: "unknown" }) > total(before, { method: "unknown" }));
  for (const accept of ["text/plain", "application/openmetrics-text; version=1.0.0"]) {
    const text = await (await fetch(harness.app.metricsUrl ?? "", { headers: { accept } })).text();
    assert.ok(!text.includes(marker), accept);
    assert.ok(text.includes(`${SERVICE}/ListGroups`), "the control: names of methods are found so");
  }
});

test("with every method, protocol and code there are at most 20,000 series, and no request is lost", async () => {
  const { names, observe } = harness.app.requestMetrics;
  assert.ok(names.length > 250);
  const before = await scrape(harness.app.metricsUrl);
  let added = 0;
  for (const method of [...names, undefined]) {
    for (const protocol of protocolNames) {
      for (let code = 0; code <= 16; code++) {
        observe(recordOf(protocol, method, code));
        added++;
      }
    }
  }
  const metrics = await scrape(harness.app.metricsUrl);
  assert.equal(total(metrics) - total(before) >= added, true, "each request is in some series");
  const ofRequests = metrics.samples.filter(({ name }) => /^arbor_request(s_total|_duration)/.test(name)).length;
  assert.ok(ofRequests > 10_000 && ofRequests <= MAX_REQUEST_SERIES, `${ofRequests} series of requests`);
  const failures = metrics.samples.filter(({ labels }) => labels.code === "INTERNAL").length;
  assert.ok(failures > 900, `${failures} series of failures`);

  // The others at their most: what this server has, and what it would have with all states of keys and jobs.
  const jobs = new Set(metrics.samples.flatMap(({ labels }) => labels.job_name ?? [])).size;
  const jobFamilies = Object.keys(families).filter((name) => name.startsWith("arbor_job_")).length;
  const others = metrics.samples.length - ofRequests + jobs * (jobFamilies + 1) + 4 * 3 + 3 + rejectReasons.length;
  assert.ok(others <= MAX_SERIES - MAX_REQUEST_SERIES, `${others} other series`);
  assert.ok(metrics.samples.length <= MAX_SERIES);
});

function recordOf(protocol: RequestProtocol, method: string | undefined, code: number): RequestRecord {
  const start = { requestId: "r", protocol, httpVersion: "2", httpMethod: "POST", path: "/" } as const;
  const record = new RequestRecord({ ...start, remoteAddress: undefined, traceId: undefined, bytesIn: undefined }, []);
  record.method = method;
  record.code = code;
  record.end(200, true);
  return record;
}
