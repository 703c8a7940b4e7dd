// Jobs of a service that nobody calls: those with short intervals do not run, because a run writes its lease.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Harness, startHarness } from "../support/harness.js";
import { waitUntil } from "../support/wait-until.js";

const IDLE_MS = 4_000;
const SHORT_JOBS = ["audit-sealer", "event-delivery"];

let harness: Harness;
before(async () => {
  harness = await startHarness();
});
after(() => harness.stop());

async function readRuns(): Promise<ReadonlyMap<string, number>> {
  const families = await harness.app.collectMetrics();
  const { values = [] } = families.find(({ name }) => name === "arbor_job_runs_total") ?? {};
  const runs = values.filter(({ labels }) => labels?.outcome === "success");
  return new Map(runs.map(({ labels, value }) => [String(labels?.job_name), Number(value)]));
}

test("a job without work runs once, for its record", async () => {
  const startMs = performance.now();
  await waitUntil(async () => {
    const runs = await readRuns();
    return SHORT_JOBS.every((name) => (runs.get(name) ?? 0) > 0);
  });
  await sleep(IDLE_MS);
  const runs = await readRuns();
  const minutes = Math.floor((performance.now() - startMs) / 60_000);
  // Starting leaves rows to seal, which takes a run or two.
  for (const name of SHORT_JOBS) assert.ok((runs.get(name) ?? 0) <= 3 + minutes, `${name}: ${runs.get(name)} runs`);
});
