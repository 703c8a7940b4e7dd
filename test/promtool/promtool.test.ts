// The alert rules and the served metrics, checked by the tool of Prometheus, whose server also scrapes the service.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../support/free-port.js";
import { type Harness, startHarness } from "../support/harness.js";
import { PROJECT } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";

const RULES = join(PROJECT, "deploy/prometheus/alerts.yml");
const RULE_TESTS = join(PROJECT, "deploy/prometheus/alerts.test.yml");

let harness: Harness;
let metrics: string;
before(async () => {
  harness = await startHarness({ metricsListen: "127.0.0.1:0" });
  const { token } = await harness.organisation("measured");
  for (let i = 0; i < 20; i++) {
    const headers = i % 4 === 0 ? {} : { authorization: `Bearer ${token}` };
    await fetch(`${harness.url}/iam/v2beta1/groups`, { headers });
  }
  metrics = await (await fetch(harness.app.metricsUrl ?? "")).text();
});
after(() => harness.stop());

function promtool(args: readonly string[], input = "") {
  const { status, stdout, stderr, error } = spawnSync("promtool", args, { input, encoding: "utf8", timeout: 60_000 });
  if (error !== undefined) throw error;
  return { status, output: stdout + stderr };
}

test("promtool check rules", () => {
  const { status, output } = promtool(["check", "rules", RULES]);
  assert.equal(status, 0, output);
  assert.match(output, /SUCCESS: \d\d rules found/);
});

test("promtool check rules finds a fault: the control", () => {
  const file = join(tempDir(), "rules.yml");
  writeFileSync(file, "groups: [{ name: a, rules: [{ alert: A, expr: 'rate(x' }] }]");
  assert.notEqual(promtool(["check", "rules", file]).status, 0);
});

test("promtool test rules", () => {
  const { status, output } = promtool(["test", "rules", RULE_TESTS]);
  assert.equal(status, 0, output);
});

test("promtool check metrics", () => {
  const { status, output } = promtool(["check", "metrics"], metrics);
  assert.deepEqual([status, output], [0, ""]);
});

test("promtool check metrics finds a fault: the control", () => {
  const { status, output } = promtool(
    ["check", "metrics"],
    metrics.replaceAll("arbor_job_runs_total", "arbor_job_runs"),
  );
  assert.notEqual(status, 0);
  assert.match(output, /arbor_job_runs counter metrics should have "_total" suffix/);
});

test("a Prometheus server scrapes in OpenMetrics and loads the rules", async () => {
  const directory = tempDir();
  const file = join(directory, "prometheus.yml");
  const target = new URL(harness.app.metricsUrl ?? "").host;
  writeFileSync(
    file,
    JSON.stringify({
      global: { scrape_interval: "1s" },
      rule_files: [RULES],
      scrape_configs: [{ job_name: "arbor", static_configs: [{ targets: [target] }] }],
    }),
  );
  const listen = `127.0.0.1:${await freePort()}`;
  const args = [`--config.file=${file}`, `--storage.tsdb.path=${directory}/data`, `--web.listen-address=${listen}`];
  const prometheus = spawn("prometheus", args, { stdio: "ignore" });
  try {
    const query = async (expression: string): Promise<string | undefined> => {
      const url = `http://${listen}/api/v1/query?query=${encodeURIComponent(expression)}`;
      const response = (await (await fetch(url)).json()) as { data: { result: { value: [number, string] }[] } };
      return response.data.result[0]?.value[1];
    };
    const found = await eventually(async () => (await query("up")) === "1" && query("sum(arbor_connections)"));
    assert.ok(Number(found) >= 1);
    assert.ok(Number(await query("count(arbor_job_runs_total)")) > 5, "counters keep their names");
    const { data } = (await (await fetch(`http://${listen}/api/v1/targets`)).json()) as {
      data: { activeTargets: { lastError: string }[] };
    };
    assert.deepEqual(
      data.activeTargets.map(({ lastError }) => lastError),
      [""],
    );
    const rules = (await (await fetch(`http://${listen}/api/v1/rules`)).json()) as {
      data: { groups: { rules: { lastError?: string }[] }[] };
    };
    const all = rules.data.groups.flatMap((group) => group.rules);
    assert.ok(all.length > 20);
    assert.deepEqual(
      all.filter(({ lastError }) => lastError),
      [],
    );
  } finally {
    prometheus.kill("SIGKILL");
    await once(prometheus, "exit");
  }
});

async function eventually<T>(attempt: () => Promise<T | false | undefined>): Promise<T> {
  let last: unknown;
  for (let tries = 0; tries < 100; tries++) {
    try {
      const found = await attempt();
      if (found !== false && found !== undefined) return found;
    } catch (error) {
      last = error;
    }
    await sleep(200);
  }
  throw new Error("it did not happen within 20 s", { cause: last });
}
