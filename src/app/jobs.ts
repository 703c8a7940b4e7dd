// The background jobs of the service, except for those of the issuer.
import { createRetention } from "../audit/retention.js";
import { createSealer, type SealerDeps } from "../audit/sealer.js";
import type { Settings } from "../config/config.js";
import { continueWork } from "../iam/directories/work.js";
import { deleteMarked } from "../iam/identities/deletion.js";
import { deleteAllEnded } from "../iam/role-bindings/ended-bindings.js";
import type { Job } from "../jobs/jobs.js";
import type { Ids } from "../kernel/ids.js";
import type { Quotas } from "../pipeline/resource/quota.js";
import { createEventSweep } from "../registry/oci/notification-routes.js";
import { identityKind } from "../store/iam/identities.js";
import { roleBindingKind } from "../store/iam/role-bindings.js";
import type { Store } from "../store/store.js";
import type { ServiceCounts } from "./metrics.js";

export interface ServiceJobsDeps extends Pick<SealerDeps, "store" | "keys" | "clock" | "onProblem"> {
  readonly ids: Ids;
  readonly quotas: Quotas;
  readonly settings: Settings;
  readonly counts: Pick<ServiceCounts, "stoppedChains">;
}

export function createServiceJobs({ settings, counts, ids, quotas, ...deps }: ServiceJobsDeps): Job[] {
  const { store, clock } = deps;
  const onStopped = (chains: number) => {
    counts.stoppedChains = chains;
  };
  const jobs = [createSealer({ ...deps, onStopped })];
  if (settings.auditRetention !== undefined) {
    const retentionMs = settings.auditRetention * 1_000;
    jobs.push(createRetention({ ...deps, retentionMs }));
  }
  const sweeps = [createEventSweep(clock), createEndedBindingSweep({ store, clock, ids })];
  return [...jobs, ...sweeps, createIdentityDeletion(store), createDirectoryWork({ store, clock, ids, quotas })];
}

export function countRuns(job: Job, { jobRuns }: ServiceCounts): Job {
  const counts = { success: 0, failure: 0 };
  jobRuns.set(job.name, counts);
  return {
    ...job,
    async run(run) {
      try {
        const changes = await job.run(run);
        counts.success++;
        return changes;
      } catch (error) {
        counts.failure++;
        throw error;
      }
    },
  };
}

/** How often this job looks for deletions that a process began and did not end, in milliseconds. */
const DELETION_MS = 5_000;

/** Creates the job that completes deletions of identities. */
function createIdentityDeletion({ read }: Pick<Store, "read">): Job {
  return {
    name: "identity-deletion",
    problem: "identities could not be deleted completely",
    intervalMs: DELETION_MS,
    hasWork: async () => (await read((tx) => tx.table(identityKind).findMarked(1))).length > 0,
    run: ({ write, signal }) => deleteMarked({ read, write }, () => signal.aborted),
  };
}

/** How often this job looks for role bindings that have ended, in milliseconds. */
const ENDED_MS = 5_000;

/**
 * Creates the job that deletes role bindings that have ended. A clock that is ahead does not decide alone what has ended.
 * Unlike other sweeps it does not pause after a jump of the clock: rights that have ended must not come back.
 */
function createEndedBindingSweep({ store, clock, ids }: Pick<ServiceJobsDeps, "store" | "clock" | "ids">): Job {
  const readNowMs = () => store.read(async (tx) => Math.min(clock(), await tx.jobs.nowMs()));
  return {
    name: "ended-bindings",
    problem: "role bindings that have ended could not be deleted",
    intervalMs: ENDED_MS,
    async hasWork() {
      const nowMs = await readNowMs();
      return (await store.read((tx) => tx.table(roleBindingKind).findEnded(nowMs, 1))).length > 0;
    },
    run: ({ write, signal }) => deleteAllEnded({ write }, { ids, readNowMs, isStopped: () => signal.aborted }),
  };
}

/** How often this job looks for what changes of directories have left to do, in milliseconds. */
const DIRECTORY_MS = 5_000;

/** Creates the job that gives and deletes the role bindings that follow from large changes of directories. */
function createDirectoryWork({
  store,
  clock,
  ids,
  quotas,
}: Pick<ServiceJobsDeps, "store" | "clock" | "ids" | "quotas">): Job {
  const { read } = store;
  return {
    name: "directory-rights",
    problem: "what people get by the groups of directories could not be given completely",
    intervalMs: DIRECTORY_MS,
    hasWork: async () => (await read((tx) => tx.scimWork.list(1))).length > 0,
    run: ({ write, signal }) => {
      const context = (nowMs: number) => ({ ids, quotas, nowMs });
      return continueWork({ read, write }, { context, nowMs: clock, isStopped: () => signal.aborted });
    },
  };
}
