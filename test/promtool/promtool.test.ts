// The alert rules and the served metrics, checked by the tool of Prometheus, whose server also scrapes the service.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Harness, startHarness } from "../support/harness.js";
import { PROJECT } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";
import { startPrometheus } from "./prometheus.js";

const RULES = join(PROJECT, "deploy/prometheus/alerts.yml");

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
  const prometheus = await startPrometheus(RULES, [new URL(harness.app.metricsUrl ?? "").host]);
  try {
    const query = async (expression: string): Promise<string | undefined> => {
      const { result } = await prometheus.api<{ result: { value: [number, string] }[] }>(
        `query?query=${encodeURIComponent(expression)}`,
      );
      return result[0]?.value[1];
    };
    const found = await eventually(async () => (await query("up")) === "1" && query("sum(arbor_connections)"));
    assert.ok(Number(found) >= 1);
    assert.ok(Number(await query("count(arbor_job_runs_total)")) > 5, "counters keep their names");
    const { activeTargets } = await prometheus.api<{ activeTargets: { lastError: string }[] }>("targets");
    assert.deepEqual(
      activeTargets.map(({ lastError }) => lastError),
      [""],
    );
    const { groups } = await prometheus.api<{ groups: { rules: { lastError?: string }[] }[] }>("rules");
    const all = groups.flatMap((group) => group.rules);
    assert.ok(all.length > 20);
    assert.deepEqual(
      all.filter(({ lastError }) => lastError),
      [],
    );
  } finally {
    await prometheus.stop();
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
