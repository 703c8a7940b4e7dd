// The metrics of a whole service.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { request } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startApp } from "../../src/app/app.js";
import { DEFAULT_METRICS_ADDRESS } from "../../src/app/metrics.js";
import { resolveSettings } from "../../src/config/config.js";
import { createLogger } from "../../src/telemetry/logger.js";
import { families } from "../../src/telemetry/metrics/families.js";
import { type Harness, startHarness } from "../support/harness.js";
import { type LocalIssuer, startLocalIssuer } from "../support/local-issuer.js";
import { metricNamesIn, scrape } from "../support/metrics.js";
import { PROJECT } from "../support/project.js";
import { standStill } from "../support/stand-still.js";
import { memoryDir } from "../support/temp-dir.js";

const dashboard = readFileSync(join(PROJECT, "deploy/grafana/arbor.json"), "utf8");
const rules = readFileSync(join(PROJECT, "deploy/prometheus/alerts.yml"), "utf8");
const page = readFileSync(join(PROJECT, "docs/observability.md"), "utf8");
const pages = readdirSync(join(PROJECT, "docs"))
  .filter((name) => name.endsWith(".md"))
  .map((name) => readFileSync(join(PROJECT, "docs", name), "utf8"))
  .join("\n");

/** The queries of a dashboard, as one text. */
function readQueries(json: string): string {
  const { panels } = JSON.parse(json) as { panels: { targets?: { expr: string }[] }[] };
  return panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)).join("\n");
}

/** The metrics that texts name and no query reads. */
function findWithoutPanel(texts: readonly string[], queries: string, served: ReadonlyMap<string, string>): string[] {
  const shown = metricNamesIn(queries);
  return [...metricNamesIn(texts.join("\n"))].filter((name) => served.has(name) && !shown.has(name)).sort();
}

describe("a service", () => {
  let harness: Harness;
  before(async () => {
    harness = await startHarness({ metricsListen: "127.0.0.1:0", quotas: "roots=0", rootCreation: "users" });
  });
  after(() => harness.stop());

  const get = (path: string, token?: string) =>
    fetch(harness.url + path, { headers: token === undefined ? {} : { authorization: `Bearer ${token}` } });

  test("every name in the dashboard and in the rules is served, and every family is in the documentation", async () => {
    const { token } = await harness.organisation("walk");
    assert.equal((await get("/iam/v2beta1/groups", token)).status, 200);
    const { types } = await scrape(harness.app.metricsUrl);
    for (const [where, text] of Object.entries({ dashboard, rules })) {
      const names = metricNamesIn(text);
      assert.ok(names.size > 15, `${where} names ${names.size} metrics`);
      assert.deepEqual(
        [...names].filter((name) => !types.has(name)),
        [],
        where,
      );
    }
    const served = [...types].filter(([name]) => name.startsWith("arbor_"));
    assert.deepEqual(served.map(([name]) => name).sort(), Object.keys(families).sort());
    for (const [name, type] of served) {
      const { help, labels } = families[name as keyof typeof families];
      const row = `| \`${name}\` | ${type} | ${labels.map((label) => `\`${label}\``).join(", ")} | ${help} |`;
      assert.ok(page.includes(row), `docs/observability.md lacks: ${row}`);
    }
    assert.ok(!types.has("arbor_requests_planted_total"), "the control: a name that is not served");
  });

  test("every metric that a rule or a page names has a panel on the dashboard", async () => {
    const { types } = await scrape(harness.app.metricsUrl);
    const queries = readQueries(dashboard);
    assert.deepEqual(findWithoutPanel([rules, pages, ...Object.keys(families)], queries, types), []);
    const without = queries.replaceAll("arbor_workers_configured", "up");
    assert.deepEqual(findWithoutPanel([rules], without, types), ["arbor_workers_configured"], "the control");
  });

  test("the public port has no metrics", async () => {
    for (const path of ["/metrics", "/metrics/", "/-/metrics"]) {
      const response = await get(path);
      assert.equal(response.status, 404, path);
      assert.doesNotMatch(await response.text(), /# TYPE/);
    }
  });

  test("what its parts count is served", async () => {
    const before = await scrape(harness.app.metricsUrl);
    const { token } = await harness.organisation("counts");
    for (let i = 0; i < 5; i++) assert.equal((await get("/iam/v2beta1/groups", token)).status, 200);
    const person = await harness.identity();
    const created = await fetch(`${harness.url}/iam/v2beta1/groups/`, {
      method: "POST",
      headers: { authorization: `Bearer ${person.token}`, "content-type": "application/json" },
      body: JSON.stringify({ name: "root" }),
    });
    assert.equal(created.status, 429, await created.text());
    const exchanged = await fetch(`${harness.url}/sts/exchange`, {
      method: "POST",
      headers: { authorization: "Bearer x.y.z" },
    });
    assert.ok(exchanged.status >= 400);
    const after = await scrape(harness.app.metricsUrl);
    const increaseOf = (name: string, labels: Record<string, string> = {}) =>
      (after.sum(name, labels) ?? 0) - (before.sum(name, labels) ?? 0);
    assert.equal(increaseOf("arbor_quota_rejections_total", { kind: "roots" }), 1);
    assert.equal(increaseOf("arbor_token_exchanges_total", { grant: "token_exchange" }), 1);
    assert.equal(increaseOf("arbor_token_exchanges_total", { outcome: "ok" }), 0);
    assert.ok(increaseOf("arbor_cache_hits_total", { cache: "tokens" }) >= 4);
    assert.ok(increaseOf("arbor_cache_misses_total", { cache: "tokens" }) >= 2);
    assert.ok(increaseOf("arbor_write_batch_size_sum") >= 2, "units of work");
    assert.ok(increaseOf("arbor_write_commit_duration_seconds_count") >= 1);
    assert.ok((after.sum("arbor_database_file_bytes") ?? 0) > 4096);
    assert.equal(after.sum("arbor_database_up"), 1);
    assert.equal(after.sum("arbor_signing_keys", { purpose: "api-token", state: "active" }), 1);
    assert.equal(after.sum("arbor_job_leased", { job_name: "audit-sealer" }) !== undefined, true);
    assert.ok((after.sum("arbor_connections", { kind: "http1" }) ?? 0) >= 1);
    assert.equal(after.sum("arbor_buffered_bytes_limit", { direction: "requests" }), 128 * 1024 * 1024);
    assert.equal(after.sum("arbor_build_info"), 1);
  });
});

describe("values while a service works", () => {
  let workloads: LocalIssuer;
  let harness: Harness;
  let token: string;
  let group: string;
  before(async () => {
    workloads = await startLocalIssuer();
    harness = await startHarness({ metricsListen: "127.0.0.1:0", trustedIssuers: workloads.issuer });
    ({ token, group } = await harness.organisation("values"));
  });
  after(async () => {
    await harness?.stop();
    await workloads?.stop();
  });

  const value = async (name: string, labels: Record<string, string> = {}) =>
    (await scrape(harness.app.metricsUrl)).sum(name, labels) ?? 0;

  async function waitFor(name: string, isReached: (value: number) => boolean, labels: Record<string, string> = {}) {
    for (let tries = 0; ; tries++) {
      const found = await value(name, labels);
      if (isReached(found)) return;
      assert.ok(tries < 200, `${name} is ${found}`);
      await sleep(20);
    }
  }

  test("open requests are in flight, and what arrived of their bodies is held", async () => {
    await waitFor("arbor_requests_in_flight", (count) => count === 0);
    const open = Array.from({ length: 3 }, () => {
      const req = request(`${harness.url}/iam/v2beta1/groups/${group}`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json", "content-length": 2_000 },
      });
      req.on("error", () => {});
      req.write(" ".repeat(1_000));
      return req;
    });
    await waitFor("arbor_requests_in_flight", (count) => count === 3);
    await waitFor("arbor_buffered_bytes", (bytes) => bytes >= 3_000, { direction: "requests" });
    for (const req of open) req.destroy();
    await waitFor("arbor_requests_in_flight", (count) => count === 0);
    await waitFor("arbor_buffered_bytes", (bytes) => bytes === 0, { direction: "requests" });
  });

  test("the delay of the event loop, and the heap", async () => {
    // The delay is that since the last scrape, and is measured by a timer, so one stop may be missed.
    await scrape(harness.app.metricsUrl);
    let metrics = await scrape(harness.app.metricsUrl);
    const lag = () => metrics.sum("nodejs_eventloop_lag_max_seconds") ?? 0;
    for (let tries = 0; tries < 10 && lag() < 0.2; tries++) {
      standStill(300);
      await sleep(100);
      metrics = await scrape(harness.app.metricsUrl);
    }
    assert.ok(lag() >= 0.2, `${lag()} s`);
    const { heapUsed } = process.memoryUsage();
    const used = metrics.sum("nodejs_heap_size_used_bytes") ?? 0;
    assert.ok(used > heapUsed / 4 && used < heapUsed * 4, `${used} of ${heapUsed}`);
    assert.ok((metrics.sum("process_resident_memory_bytes") ?? 0) > used);
  });

  test("lookups in the caches of the issuer", async () => {
    const relationship = { claimMatch: { issuer: workloads.issuer, subjectPattern: "ci-[0-9]{1,7}" } };
    const { uid } = await harness.identity({ relation: 1, relationship }, group);
    const before = await scrape(harness.app.metricsUrl);
    for (const sub of ["ci-1", "ci-2", "ci-3"]) {
      const query = new URLSearchParams({ aud: harness.url, identity: uid });
      const authorization = `Bearer ${workloads.token({ aud: harness.url, sub })}`;
      const answer = await fetch(`${harness.url}/sts/exchange?${query}`, { headers: { authorization } });
      assert.equal(answer.status, 200, await answer.text());
    }
    const after = await scrape(harness.app.metricsUrl);
    for (const cache of ["issuer_keys", "claim_patterns"]) {
      const increaseOf = (name: string) => (after.sum(name, { cache }) ?? 0) - (before.sum(name, { cache }) ?? 0);
      assert.equal(increaseOf("arbor_cache_misses_total"), 1, cache);
      assert.ok(increaseOf("arbor_cache_hits_total") >= 2, cache);
      assert.equal(increaseOf("arbor_cache_entries"), 1, cache);
    }
    assert.equal(after.sum("arbor_cache_entries", { cache: "login_providers" }), 0);
  });
});

describe("where metrics are served", () => {
  const settingsOf = (metricsListen?: string) =>
    resolveSettings({
      flags: { data: memoryDir(), listen: "127.0.0.1:0", accessLog: false, tokenAlgorithm: "ES256", metricsListen },
      env: {},
    });

  test("off serves none", async () => {
    const app = await startApp({ settings: settingsOf("off"), logger: createLogger("silent") });
    assert.equal(app.metricsUrl, undefined);
    await app.stop();
  });

  test("a given address that is taken ends the start; in place of the default one a free port is used", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    const given = startApp({ settings: settingsOf(`127.0.0.1:${port}`), logger: createLogger("silent") });
    await assert.rejects(given, { code: "EADDRINUSE" });
    other.close();
    // One of two servers at most has the default address: another program may have it, or give it up in between.
    const lines: string[] = [];
    const logger = createLogger("warn", { write: (line) => void lines.push(line) });
    const apps = [];
    for (let i = 0; i < 2; i++) apps.push(await startApp({ settings: settingsOf(), logger }));
    for (const app of apps) assert.equal((await fetch(`${app.url}/healthz`)).status, 200);
    for (const { metricsUrl } of apps) assert.ok((await scrape(metricsUrl)).samples.length > 0);
    for (const app of apps) await app.stop();
    const ports = apps.map(({ metricsUrl }) => Number(new URL(metricsUrl ?? "").port));
    assert.equal(new Set(ports).size, 2);
    const moved = ports.filter((port) => port !== DEFAULT_METRICS_ADDRESS.port);
    assert.ok(moved.length > 0);
    const warned = lines
      .map((line) => JSON.parse(line))
      .filter(({ msg }) => /^metrics are served on a free port/.test(msg));
    assert.deepEqual(
      warned.map(({ host, port }) => [host, port]),
      moved.map((port) => [DEFAULT_METRICS_ADDRESS.host, port]),
    );
  });

  test("metrics are answered while the service drains, and end with it", async () => {
    const app = await startApp({ settings: settingsOf("127.0.0.1:0"), logger: createLogger("silent") });
    const { hostname, port } = new URL(app.url);
    const socket = (await import("node:net")).connect(Number(port), hostname);
    socket.on("error", () => {});
    // A request whose body never comes keeps the service from ending at once.
    socket.write("POST /iam/v2beta1/groups HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n");
    await fetch(`${app.url}/healthz`);
    const stopped = app.stop();
    const { samples } = await scrape(app.metricsUrl);
    assert.ok(samples.length > 100);
    socket.destroy();
    await stopped;
    await assert.rejects(fetch(app.metricsUrl ?? ""));
  });
});
