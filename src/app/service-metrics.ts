// The metrics that are counted in this process.

import type { ExchangeCounts } from "../issuer/sts/exchange-counts.js";
import type { Job } from "../jobs/jobs.js";
import { type QuotaKind, quotas } from "../kernel/quotas.js";
import { type CacheCounts, createCacheCounts } from "../pipeline/auth/authenticate.js";
import type { Store } from "../store/port.js";
import { readHistogram, readValue, readValues, type Source } from "../telemetry/metrics/samples.js";
import type { Limits } from "../transport/http/limits.js";
import type { Server } from "../transport/server.js";

/** Counts that the parts of a service increment. */
export interface ServiceCounts {
  readonly quotaRejections: Record<QuotaKind, number>;
  readonly tokenCache: CacheCounts;
  /** By the name of the job. */
  readonly jobRuns: Map<string, { success: number; failure: number }>;
}

/** Creates the counts, which are 0. */
export function createServiceCounts(): ServiceCounts {
  const quotaRejections = Object.fromEntries(Object.keys(quotas).map((kind) => [kind, 0])) as Record<QuotaKind, number>;
  return { quotaRejections, tokenCache: createCacheCounts(), jobRuns: new Map() };
}

/** Counts the runs of a job in this process. */
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

/** The parts of a service with counts of their own. */
export interface MeasuredService {
  readonly counts: ServiceCounts;
  readonly store: Pick<Store, "stats">;
  readonly server: Pick<Server, "openWork" | "countBufferedBytes" | "countConnections">;
  readonly exchanges: ExchangeCounts;
  /** The caches of the issuer, by name. */
  readonly caches: Readonly<Record<string, CacheCounts>>;
  readonly limits: Limits;
}

/** Creates the sources of a service. */
export function createServiceSources({ counts, store, server, exchanges, caches, limits }: MeasuredService): Source[] {
  const readCaches = (name: keyof CacheCounts) => () =>
    Object.fromEntries(
      Object.entries({ tokens: counts.tokenCache, ...caches }).map(([cache, values]) => [cache, values[name]]),
    );
  return [
    readValue("arbor_requests_in_flight", () => server.openWork().calls),
    readValues("arbor_quota_rejections_total", "kind", () => counts.quotaRejections),
    readValues("arbor_connections", "kind", server.countConnections),
    readValues("arbor_buffered_bytes", "direction", server.countBufferedBytes),
    readValues("arbor_buffered_bytes_limit", "direction", () => ({
      requests: limits.requestBufferBytes,
      answers: limits.answerBufferBytes,
    })),
    ...createStoreSources(store),
    {
      name: "arbor_token_exchanges_total",
      *collect() {
        for (const [grant, outcomes] of Object.entries(exchanges))
          for (const [outcome, value] of Object.entries(outcomes)) yield { value, labels: { grant, outcome } };
      },
    },
    {
      name: "arbor_job_runs_total",
      *collect() {
        for (const [name, outcomes] of counts.jobRuns)
          for (const [outcome, value] of Object.entries(outcomes)) yield { value, labels: { job_name: name, outcome } };
      },
    },
    readValues("arbor_cache_hits_total", "cache", readCaches("hits")),
    readValues("arbor_cache_misses_total", "cache", readCaches("misses")),
    readValues("arbor_cache_entries", "cache", readCaches("entries")),
  ];
}

function createStoreSources(store: Pick<Store, "stats">): Source[] {
  return [
    readValue("arbor_write_queue_length", () => store.stats().waiting),
    readHistogram("arbor_write_batch_size", () => store.stats().batchUnits),
    readHistogram("arbor_write_commit_duration_seconds", () => store.stats().commitSeconds),
    readValue("arbor_write_conflicts_total", () => store.stats().conflicts),
    readValues("arbor_database_file_bytes", "file", () => {
      const files = store.stats().files?.();
      return files && { database: files.database, wal: files.wal };
    }),
    readValue("arbor_data_free_bytes", () => store.stats().files?.().free),
    readValues("arbor_database_connections", "state", () => {
      const { pool } = store.stats();
      return pool && { busy: pool.busy, idle: pool.idle };
    }),
    readValue("arbor_database_connections_limit", () => store.stats().pool?.max),
  ];
}
