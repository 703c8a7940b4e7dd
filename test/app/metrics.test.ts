// The metrics of a whole service.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { startApp } from "../../src/app/app.js";
import { DEFAULT_METRICS_ADDRESS } from "../../src/app/metrics.js";
import { resolveSettings } from "../../src/config/config.js";
import { createLogger } from "../../src/telemetry/logger.js";
import { families } from "../../src/telemetry/metrics/families.js";
import { type Harness, startHarness } from "../support/harness.js";
import { metricNamesIn, scrape } from "../support/metrics.js";
import { PROJECT } from "../support/project.js";
import { memoryDir } from "../support/temp-dir.js";

const dashboard = readFileSync(join(PROJECT, "deploy/grafana/arbor.json"), "utf8");
const rules = readFileSync(join(PROJECT, "deploy/prometheus/alerts.yml"), "utf8");
const page = readFileSync(join(PROJECT, "docs/observability.md"), "utf8");

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
    const grown = (name: string, labels: Record<string, string> = {}) =>
      (after.sum(name, labels) ?? 0) - (before.sum(name, labels) ?? 0);
    assert.equal(grown("arbor_quota_rejections_total", { kind: "roots" }), 1);
    assert.equal(grown("arbor_token_exchanges_total", { grant: "token_exchange" }), 1);
    assert.equal(grown("arbor_token_exchanges_total", { outcome: "ok" }), 0);
    assert.ok(grown("arbor_cache_hits_total", { cache: "tokens" }) >= 4);
    assert.ok(grown("arbor_cache_misses_total", { cache: "tokens" }) >= 2);
    assert.ok(grown("arbor_write_batch_size_sum") >= 2, "units of work");
    assert.ok(grown("arbor_write_commit_duration_seconds_count") >= 1);
    assert.ok((after.sum("arbor_database_file_bytes") ?? 0) > 4096);
    assert.equal(after.sum("arbor_database_up"), 1);
    assert.equal(after.sum("arbor_signing_keys", { purpose: "api-token", state: "active" }), 1);
    assert.equal(after.sum("arbor_job_leased", { job_name: "audit-sealer" }) !== undefined, true);
    assert.ok((after.sum("arbor_connections", { kind: "http1" }) ?? 0) >= 1);
    assert.equal(after.sum("arbor_buffered_bytes_limit", { direction: "requests" }), 128 * 1024 * 1024);
    assert.equal(after.sum("arbor_build_info"), 1);
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

  test("a given address that is taken ends the start, and a default one is a warning", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    const given = startApp({ settings: settingsOf(`127.0.0.1:${port}`), logger: createLogger("silent") });
    await assert.rejects(given, { code: "EADDRINUSE" });
    other.close();
    // The first of two servers on one machine has the default address, unless another program has it.
    const lines: string[] = [];
    const logger = createLogger("warn", { write: (line) => void lines.push(line) });
    const apps = [];
    for (let i = 0; i < 2; i++) apps.push(await startApp({ settings: settingsOf(), logger }));
    for (const app of apps) assert.equal((await fetch(`${app.url}/healthz`)).status, 200);
    for (const app of apps) await app.stop();
    assert.equal(apps[1]?.metricsUrl, undefined);
    assert.ok(lines.some((line) => line.includes("metrics are not served") && line.includes("EADDRINUSE")));
    assert.equal(DEFAULT_METRICS_ADDRESS.host, "127.0.0.1");
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
