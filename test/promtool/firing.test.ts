// Faults of whole nodes, and the alerts that a Prometheus server sends for them with the rules of deploy/. Their
// expressions are those of the file; what they wait for before they fire is divided by the same number everywhere.
import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { parse } from "yaml";
import { type Service, startService } from "../e2e/process.js";
import { freePort } from "../support/free-port.js";
import { PROJECT } from "../support/project.js";
import { tempDir } from "../support/temp-dir.js";
import { waitUntil } from "../support/wait-until.js";
import { type Prometheus, startPrometheus } from "./prometheus.js";

const DIVISOR = 40;
/** What a scrape, its timeout, two evaluations and a busy machine may add to the time of a rule. */
const SLACK_MS = 15_000;

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
}
interface Rules {
  readonly groups: { readonly name: string; readonly rules: Rule[] }[];
}

/** The alerts for nodes that are away or without their database. A busy machine may cause others. */
const WATCHED = ["ArborDown", "ArborNoMetrics", "ArborDatabaseDown", "ArborDatabaseFault"];

const shipped = parse(readFileSync(join(PROJECT, "deploy/prometheus/alerts.yml"), "utf8")) as Rules;
const ruleOf = (alert: string) =>
  shipped.groups.flatMap(({ rules }) => rules).find((rule) => rule.alert === alert) ?? assert.fail(alert);

/** How many seconds a rule waits, which alerts.yml writes in whole minutes or hours. */
function secondsOf({ for: time = "0m" }: Rule): number {
  const [, count, unit] = /^(\d+)([mh])$/.exec(time) ?? assert.fail(time);
  return Number(count) * (unit === "h" ? 3_600 : 60);
}

function scaleRules(rules: Rules): Rules {
  const scale = (rule: Rule) => ({ ...rule, for: `${(secondsOf(rule) / DIVISOR) * 1_000}ms` });
  return { groups: rules.groups.map((group) => ({ ...group, rules: group.rules.map(scale) })) };
}

interface Node {
  readonly service: Service;
  readonly data: string;
  /** Where its metrics are, which Prometheus calls the instance. */
  readonly instance: string;
}

async function startNode(): Promise<Node> {
  const data = tempDir();
  const instance = `127.0.0.1:${await freePort()}`;
  return { service: await startService(data, "--metrics-listen", instance), data, instance };
}

let nodes: readonly Node[];
let prometheus: Prometheus;
before(async () => {
  nodes = await Promise.all(Array.from({ length: 4 }, startNode));
  const file = join(tempDir(), "alerts.yml");
  writeFileSync(file, JSON.stringify(scaleRules(shipped)));
  prometheus = await startPrometheus(
    file,
    nodes.map(({ instance }) => instance),
  );
});
after(async () => {
  await prometheus?.stop();
  for (const { service } of nodes ?? []) service.signal("SIGKILL");
  await Promise.all((nodes ?? []).map(({ service }) => service.ended));
});

interface FiringAlert {
  readonly state: string;
  readonly labels: { readonly alertname: string; readonly instance?: string };
}

/** The alerts that fire, such as `ArborDown 127.0.0.1:9464`. */
async function readFiring(): Promise<string[]> {
  const { alerts } = await prometheus.api<{ alerts: FiringAlert[] }>("alerts");
  return alerts
    .filter(({ state, labels }) => state === "firing" && WATCHED.includes(labels.alertname))
    .map(({ labels: { alertname, instance } }) => (instance === undefined ? alertname : `${alertname} ${instance}`))
    .sort();
}

async function waitForAlerts(...expected: readonly string[]): Promise<void> {
  const seconds = Math.max(...expected.map((one) => secondsOf(ruleOf(one.split(" ")[0] ?? ""))));
  const wanted = [...expected].sort().join();
  let found: string[] = [];
  try {
    await waitUntil(
      async () => {
        found = await readFiring();
        return found.join() === wanted;
      },
      (seconds / DIVISOR) * 1_000 + SLACK_MS,
    );
  } catch (error) {
    assert.deepEqual(found, [...expected].sort(), String(error));
  }
}

const scrapedUp = async () => {
  const { activeTargets } = await prometheus.api<{ activeTargets: { health: string }[] }>("targets");
  return activeTargets.length === nodes.length && activeTargets.every(({ health }) => health === "up");
};

// In this order: each fault comes while those before last.
describe("a Prometheus server with the rules of deploy/", () => {
  test("fires none of them while all nodes are well: the control", async () => {
    await waitUntil(() => scrapedUp().catch(() => false));
    const rules = await prometheus.api<Rules>("rules?type=alert");
    const expressions = ({ groups }: Rules) => groups.flatMap((group) => group.rules).length;
    assert.equal(expressions(rules), expressions(shipped));
    // Longer than every rule waits.
    for (const endMs = performance.now() + 10_000; performance.now() < endMs; )
      assert.deepEqual(await readFiring(), []);
  });

  test("fires when the data directory of a node is removed, whose metrics are still served", async () => {
    const [{ data, instance }] = nodes as [Node];
    rmSync(data, { recursive: true });
    await waitForAlerts(`ArborDatabaseDown ${instance}`, `ArborDatabaseFault ${instance}`);
    const response = await fetch(`http://${instance}/metrics`);
    assert.equal(response.status, 200);
    const text = await response.text();
    assert.match(text, /^arbor_build_info\{/m);
    assert.doesNotMatch(text, /^arbor_data_free_bytes/m, "there is no directory to ask");
  });

  test("fires for the one node whose process is stopped, and ends when it goes on", async () => {
    const [removed, stopped] = nodes as [Node, Node];
    const before = ["ArborDatabaseDown", "ArborDatabaseFault"].map((alert) => `${alert} ${removed.instance}`);
    stopped.service.signal("SIGSTOP");
    await waitForAlerts(...before, `ArborDown ${stopped.instance}`);
    stopped.service.signal("SIGCONT");
    await waitForAlerts(...before);
  });

  test("fires for one node of two that is gone", async () => {
    const [removed, killed] = nodes as [Node, Node];
    const before = ["ArborDatabaseDown", "ArborDatabaseFault"].map((alert) => `${alert} ${removed.instance}`);
    killed.service.signal("SIGKILL");
    await waitForAlerts(...before, `ArborDown ${killed.instance}`);
  });

  test("fires for each node, and for all of them, when none is left", async () => {
    for (const { service } of nodes) if (service.alive()) service.signal("SIGKILL");
    await waitForAlerts("ArborNoMetrics", ...nodes.map(({ instance }) => `ArborDown ${instance}`));
  });
});
