// Each alert rule is fired by what the service itself says in a real outage.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { tempDir } from "../support/temp-dir.js";
import { eventOutages } from "./outages/events.js";
import type { Outage, Outages } from "./outages/outage.js";
import { processOutages } from "./outages/process.js";
import { requestOutages } from "./outages/requests.js";
import { storeOutages } from "./outages/store.js";
import { findUnserved, prepareReplay, Recording, type Rule, readRules, replay } from "./recording.js";

const outages: Outages = { ...processOutages, ...requestOutages, ...storeOutages, ...eventOutages };
const rules = readRules();
/** These are about targets that cannot be scraped, of which Prometheus has `up` alone. */
const WITHOUT_METRICS = ["ArborDown", "ArborNoMetrics"];

/** Finds rules without an outage, and outages of rules that are not there. */
function findProblems(rules: readonly Pick<Rule, "alert">[], outages: Outages): string[] {
  const fired = Object.values(outages).flatMap(({ alerts }) => alerts);
  const names = rules.map(({ alert }) => alert);
  return [
    ...names.filter((alert) => !fired.includes(alert)).map((alert) => `${alert} has no outage`),
    ...fired.filter((alert) => !names.includes(alert)).map((alert) => `there is no ${alert}`),
  ];
}

async function record({ run, gapMs }: Outage): Promise<Recording> {
  const ends: (() => unknown)[] = [];
  const recording = new Recording(gapMs);
  try {
    await run(recording, (end) => void ends.unshift(end));
  } finally {
    for (const end of ends) await end();
  }
  return recording;
}

function writeRule(rule: Rule): string {
  const file = join(tempDir(), "rule.yml");
  writeFileSync(file, JSON.stringify({ groups: [{ name: "one", rules: [rule] }] }));
  return file;
}

/** The selectors of a rule that the last scrape before the outage does not have, or the last one of it. */
function findVanished({ expr }: Rule, { scrapes, well }: Recording): string[] {
  const [before, last] = [scrapes[well - 1]?.metrics, scrapes.findLast(({ metrics }) => metrics)?.metrics];
  assert.ok(before && last);
  return [...findUnserved(expr, before), ...findUnserved(expr, last)];
}

test("every rule has an outage that fires it", () => {
  assert.ok(rules.length > 20);
  assert.deepEqual(findProblems(rules, outages), []);
});

test("a rule without an outage is found, and an outage without its rule: the control", () => {
  const planted = { alert: "ArborPlanted" };
  assert.deepEqual(findProblems([...rules, planted], outages), ["ArborPlanted has no outage"]);
  assert.deepEqual(
    findProblems(
      rules.filter(({ alert }) => alert !== "ArborDiskSpace"),
      outages,
    ),
    ["there is no ArborDiskSpace"],
  );
});

// Most of them wait most of the time, and each has a service of its own.
describe("in a real outage", { concurrency: 4 }, () => {
  for (const [what, outage] of Object.entries(outages)) {
    test(`${what}: ${outage.alerts.join(", ")}`, async () => {
      const recording = await record(outage);
      for (const alert of outage.alerts) {
        const rule = rules.find((one) => one.alert === alert) ?? assert.fail(alert);
        if (!WITHOUT_METRICS.includes(alert)) assert.deepEqual(findVanished(rule, recording), [], alert);
        assert.deepEqual(await replay(recording, alert), { before: false, inOutage: true }, alert);
      }
    });
  }
});

describe("of several targets", () => {
  const killed = outages["the process is killed"];
  const sealerStops = outages["somebody has added a trigger that keeps the audit log from being sealed"];

  test("those are down that are named for it, or were scraped before", async () => {
    assert.ok(killed);
    const recording = await record(killed);
    const never = new Recording();
    await never.scrape("http://127.0.0.1:1/metrics", recording.scrapes.length);
    const firesAt = prepareReplay([
      { job: "arbor", instance: "one", recording },
      { job: "pods", instance: "two", recording },
      { job: "arbor-metrics", instance: "never scraped", recording: never },
      { job: "pods", instance: "another program", recording: never },
    ]);
    assert.ok(await firesAt(recording.scrapes.length - 1, "ArborDown", 3));
  });

  test("one alert stands for what all nodes of a job read in their database", async () => {
    assert.ok(sealerStops);
    const recording = await record(sealerStops);
    const firesAt = prepareReplay([
      { job: "arbor", instance: "one", recording },
      { job: "arbor", instance: "two", recording },
      { job: "staging", instance: "three", recording },
    ]);
    for (const alert of ["ArborAuditSealerLag", "ArborJobFails"])
      assert.ok(await firesAt(recording.scrapes.length - 1, alert, 2), alert);
  });
});

describe("the control: a recording fires no rule", () => {
  const keyOutage = outages["the active key of API tokens is removed from the database"];

  test("over a series that the service does not emit, or has not in the outage", async () => {
    assert.ok(keyOutage);
    const recording = await record(keyOutage);
    const invented: readonly Rule[] = [
      { alert: "ArborPlanted", expr: "arbor_planted > 0" },
      { alert: "ArborPlanted", expr: 'arbor_signing_keys{purpose="planted"} == 0' },
    ];
    for (const rule of invented) {
      assert.deepEqual(
        await replay(recording, rule.alert, writeRule(rule)),
        { before: false, inOutage: false },
        rule.expr,
      );
      assert.notDeepEqual(findVanished(rule, recording), [], rule.expr);
    }
  });

  test("that is of another outage", async () => {
    assert.ok(keyOutage);
    const recording = await record(keyOutage);
    const firing = [];
    // A busy machine may cause others.
    const slow = ["ArborEventLoopDelay", "ArborLatency", "ArborCommitsSlow"];
    for (const { alert } of rules)
      if (!slow.includes(alert) && (await replay(recording, alert)).inOutage) firing.push(alert);
    assert.deepEqual(firing, ["ArborNoActiveKey"]);
  });
});
