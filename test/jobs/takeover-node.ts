// A node that runs one endless job and writes a result every 30 ms, until it is killed or another node takes
// over: node takeover-node DATABASE_URL HOLDER LEASE_MS CLOCK_OFFSET_MS fenced|control
import { setTimeout as sleep } from "node:timers/promises";
import { createJobs } from "../../src/jobs/jobs.js";
import { LeaseLostError } from "../../src/jobs/lease.js";
import { openPg } from "../../src/store/pg/open.js";
import type { Tx } from "../../src/store/transaction.js";
import { auditRow } from "../audit/log-kit.js";
import { JOB, RESULT_MS } from "./takeover-campaign.js";

const [, , url = "", holder = "", leaseMs, offsetMs, mode] = process.argv;
const store = await openPg({ url, poolSize: 3, clock: () => Date.now() + Number(offsetMs) });
const jobs = createJobs({
  store,
  holder,
  leaseMs: Number(leaseMs),
  onProblem: (problem, error) => say(problem, error),
});

jobs.add({
  ...{ name: JOB, problem: "no results", intervalMs: 100 },
  async run({ fence, signal, write }) {
    say("leads", fence);
    // The control writes without the check of the fencing number.
    const writeResult = mode === "control" ? store.write : write;
    for (let results = 1; ; results++) {
      await sleep(RESULT_MS);
      try {
        await writeResult((tx) => addResult(tx, fence));
      } catch (error) {
        if (!(error instanceof LeaseLostError)) {
          // PostgreSQL ends a transaction whose node is paused.
          say("failed", error);
          continue;
        }
        say("late", fence);
        throw error;
      }
      say("wrote", fence);
      if (signal.aborted) return results;
    }
  },
});
jobs.start();
// The timers of jobs do not keep a process alive.
setInterval(() => {}, 60_000);

// Results are numbered in the order of their transactions.
async function addResult(tx: Tx, fence: number): Promise<void> {
  const number = Number((await tx.settings.find(JOB)) ?? 0) + 1;
  await tx.settings.put(JOB, String(number));
  await tx.audit.append(auditRow("", { subjectUid: String(number), actorUid: holder, requestId: String(fence) }));
}

function say(what: string, of: unknown): void {
  process.stdout.write(`${what} ${of}\n`);
}
