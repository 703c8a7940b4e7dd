// The background work of the service: jobs that one node does for all, and what a call leaves to do after its response.
import { hostname } from "node:os";
import { createAcceptances } from "../../iam/people/acceptances.js";
import { createJobs, type Job } from "../../jobs/jobs.js";
import { randomIds } from "../../kernel/ids.js";
import type { Quotas } from "../../pipeline/resource/quota.js";
import { watchClock } from "../clock-jumps.js";
import { countRuns, createServiceJobs } from "../jobs.js";
import type { AreaDeps } from "./area.js";
import type { StoreArea } from "./store.js";

export type Background = ReturnType<typeof createBackground>;

export interface BackgroundDeps extends AreaDeps {
  readonly storage: StoreArea;
  readonly quotas: Quotas;
}

/** Creates the jobs, which do nothing before they are started. */
export function createBackground({
  settings,
  ids,
  logger,
  counts,
  onProblem,
  opened,
  storage,
  quotas,
}: BackgroundDeps) {
  const { store, keys, clock } = storage;
  const holder = nameNode();
  const jobs = createJobs({ store, holder, onProblem });
  // Closed after everything that writes, so that the audit log is sealed to its end.
  opened.add(() => jobs.stop());
  const clockWatch = watchClock({ logger });
  opened.add(clockWatch.stop);
  const addJobs = (added: readonly Job[]) => {
    for (const job of added) jobs.add(countRuns(clockWatch.pauseAfterJump(job), counts));
  };
  addJobs(createServiceJobs({ settings, counts, quotas, store, keys, clock, ids, onProblem }));
  const acceptances = createAcceptances({ store, clock, ids, onProblem });
  opened.add(acceptances.stop);
  return {
    /** The name of this process among the holders of leases. */
    holder,
    addJobs,
    /** Accepts the bindings that await a person who has made a call. */
    acceptances,
    start: () => jobs.start(),
    sources: clockWatch.sources,
  };
}

// Unique, and made of what operators know.
function nameNode(): string {
  return `${hostname()}-${process.pid}-${randomIds.newId().slice(0, 8)}`;
}
