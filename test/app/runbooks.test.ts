// Every alert has a section in docs/production.md that says what it means, what to look at and what to do.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { parse } from "yaml";
import { flagOf, settingNames } from "../../src/config/settings.js";
import { PROJECT } from "../support/project.js";

interface Alert {
  readonly alert: string;
  readonly annotations: { readonly runbook?: string };
}

const read = (path: string) => readFileSync(join(PROJECT, path), "utf8");
const rules = parse(read("deploy/prometheus/alerts.yml")) as { groups: { rules: Alert[] }[] };
const alerts = rules.groups.flatMap((group) => group.rules);
const page = read("docs/production.md");
const runbookOf = (alert: string) => `docs/production.md#${alert.toLowerCase()}`;

/** Finds what is missing in a page for these alerts, and sections that belong to none. */
function findProblems(alerts: readonly Alert[], page: string): string[] {
  const [, runbook = ""] = page.split(/^## Alerts$/m);
  const sections = new Map(
    runbook.split(/^### /m).map((section) => [section.split("\n", 1)[0] ?? "", section.replace(/\s+/g, " ")]),
  );
  const names = alerts.map(({ alert }) => alert);
  const unknown = [...sections.keys()].slice(1).filter((name) => !names.includes(name));
  const incomplete = alerts.flatMap(({ alert, annotations }) => {
    const section = sections.get(alert) ?? "";
    const missing = ["Meaning", "Look at", "Do"].filter(
      (part) => !new RegExp(`- \\*\\*${part}\\.\\*\\* .{20}`).test(section),
    );
    if (annotations.runbook !== runbookOf(alert)) missing.push("annotation");
    return missing.map((part) => `${alert}: ${part}`);
  });
  return [...unknown, ...incomplete];
}

test("every alert has its section, and every section its alert", () => {
  assert.ok(alerts.length > 20);
  assert.deepEqual(findProblems(alerts, page), []);
});

test("metrics that a section names are those of the documentation", () => {
  const documented = read("docs/observability.md");
  const named = page.match(/\barbor_[a-z_]+/g)?.map((name) => name.replace(/_bucket$/, "")) ?? [];
  assert.ok(named.length > 10);
  assert.deepEqual(
    named.filter((name) => !documented.includes(`\`${name}\``)),
    [],
  );
});

test("flags that the page names exist", () => {
  const flags = new Set(page.match(/--[a-z][a-z-]+/g));
  const known = [...settingNames.map(flagOf), "--expand", "--contract", "--vacuum", "--purpose"];
  assert.ok(flags.size > 10);
  assert.deepEqual(
    [...flags].filter((flag) => !known.includes(flag)),
    [],
  );
});

test("an alert without a section, a section without an alert and a part that is missing are found: the control", () => {
  const [first] = alerts;
  assert.ok(first);
  const planted = { alert: "ArborPlanted", annotations: { runbook: runbookOf("ArborPlanted") } };
  assert.deepEqual(findProblems([...alerts, planted], page), [
    "ArborPlanted: Meaning",
    "ArborPlanted: Look at",
    "ArborPlanted: Do",
  ]);
  assert.deepEqual(findProblems(alerts.slice(1), page), [first.alert]);
  assert.deepEqual(findProblems(alerts, page.replace("- **Do.**", "- **Done.**")), [`${first.alert}: Do`]);
  const moved = alerts.map((alert) => (alert === first ? { ...alert, annotations: {} } : alert));
  assert.deepEqual(findProblems(moved, page), [`${first.alert}: annotation`]);
});
