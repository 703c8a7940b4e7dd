// Metrics whose values are in the database: jobs, keys and the audit log. A scrape reads them, waits for them for a
// limited time, and keeps them for some seconds.

import { waitAtMost } from "../jobs/schedule.js";
import type { Clock } from "../kernel/time.js";
import type { UnsealedCount } from "../store/audit/chain.js";
import type { Store } from "../store/store.js";
import type { JobRow } from "../store/tables/schema.js";
import type { KeyRow } from "../store/tables/tokens.js";
import type { Tx } from "../store/transaction.js";
import type { FamilyName } from "../telemetry/metrics/families.js";
import { readValue, readValues, type Source } from "../telemetry/metrics/samples.js";

/** How long a scrape waits for the database, and how long values are kept, in milliseconds. */
const WAIT_MS = 1_000;
const FRESH_MS = 5_000;
/**
 * Unsealed rows are counted among this many of the newest rows of the audit log, which takes some milliseconds on
 * SQLite.
 */
const NEWEST_ROWS = 5_000;

export interface DatabaseMetricsDeps {
  readonly store: Pick<Store, "read">;
  readonly clock: Clock;
  /** The name of this process among the holders of leases. */
  readonly holder: string;
  /** The names of all jobs. Rows of other jobs, which nodes of other versions have, have no metrics. */
  readonly jobs: () => ReadonlySet<string>;
  /** Replaced in tests. */
  readonly waitMs?: number;
  readonly freshMs?: number;
}

interface StoredValues {
  readonly nowMs: number;
  readonly jobs: readonly JobRow[];
  readonly keys: readonly KeyRow[];
  readonly unsealed: UnsealedCount;
  readonly subscriptions: ReadonlyMap<string, number>;
}

/**
 * Creates the sources of these metrics. `refresh` never rejects: while the database does not respond there are no values.
 */
export function createDatabaseMetrics(deps: DatabaseMetricsDeps) {
  const { store, clock, holder, waitMs = WAIT_MS, freshMs = FRESH_MS } = deps;
  let current: StoredValues | undefined;
  let readMs = Number.NEGATIVE_INFINITY;
  let reading: Promise<void> | undefined;

  async function read(): Promise<void> {
    try {
      current = await store.read(readStoredValues);
      readMs = performance.now();
    } catch {
      current = undefined;
    }
    reading = undefined;
  }

  async function refresh(): Promise<void> {
    if (performance.now() - readMs < freshMs) return;
    reading ??= read();
    // Old values would mislead; the next scrape waits for the same read.
    if (!(await waitAtMost(reading, waitMs))) current = undefined;
  }

  const byJob = (name: FamilyName, readRow: (row: JobRow, nowMs: number) => number | undefined): Source => ({
    name,
    *collect() {
      const known = deps.jobs();
      for (const row of current?.jobs ?? []) {
        const value = known.has(row.name) ? readRow(row, current?.nowMs ?? 0) : undefined;
        if (value !== undefined) yield { value, labels: { job_name: row.name } };
      }
    },
  });
  const isLeased = ({ expireTimeMs }: JobRow, nowMs: number) => expireTimeMs > nowMs;

  const sources: readonly Source[] = [
    readValue("arbor_database_up", () => (current === undefined ? 0 : 1)),
    byJob("arbor_job_leader", (row, nowMs) => Number(isLeased(row, nowMs) && row.holder === holder)),
    byJob("arbor_job_leased", (row, nowMs) => Number(isLeased(row, nowMs))),
    byJob("arbor_job_last_run_timestamp_seconds", (row) => toSeconds(row.startTimeMs)),
    byJob("arbor_job_last_duration_seconds", (row) => toSeconds(row.durationMs)),
    byJob("arbor_job_overdue_seconds", (row, nowMs) => Math.max(0, nowMs - (row.nextTimeMs ?? nowMs)) / 1000),
    byJob("arbor_job_failures", (row) => row.failures),
    {
      name: "arbor_signing_keys",
      collect: () => (current === undefined ? [] : countKeys(current.keys)),
    },
    readValues("arbor_signing_key_change_timestamp_seconds", "state", () => current && findNextChanges(current.keys)),
    readValues("arbor_event_subscriptions", "state", () => current && countByState(current.subscriptions)),
    readValue("arbor_audit_unsealed_rows", () => current?.unsealed.rows),
    readValue("arbor_audit_sealer_lag_seconds", () => {
      const oldestMs = current?.unsealed.oldestTimeMs;
      if (oldestMs === undefined) return undefined;
      return oldestMs === null ? 0 : Math.max(0, clock() - oldestMs) / 1000;
    }),
  ];
  return { refresh, sources };
}

async function readStoredValues(tx: Tx): Promise<StoredValues> {
  return {
    nowMs: await tx.jobs.nowMs(),
    jobs: await tx.jobs.list(),
    keys: await tx.keys.list(),
    unsealed: await tx.auditChain.countUnsealed(NEWEST_ROWS),
    subscriptions: await tx.eventPositions.countStates(),
  };
}

function countByState(found: ReadonlyMap<string, number>): Record<string, number> {
  return { live: 0, failing: 0, stalled: 0, suspended: 0, ...Object.fromEntries(found) };
}

function toSeconds(ms: number | null): number | undefined {
  return ms === null ? undefined : ms / 1000;
}

function countKeys(keys: readonly KeyRow[]) {
  const counts = new Map<
    string,
    { value: number; readonly labels: { readonly purpose: string; readonly state: string } }
  >();
  for (const { purpose, state } of keys) {
    const known = counts.get(`${purpose} ${state}`);
    if (known === undefined) counts.set(`${purpose} ${state}`, { value: 1, labels: { purpose, state } });
    else known.value++;
  }
  return counts.values();
}

function findNextChanges(keys: readonly KeyRow[]): Record<string, number> {
  const next: Record<string, number> = {};
  for (const { purpose, state, nextTimeMs } of keys) {
    if (purpose !== "api-token" || nextTimeMs === null) continue;
    next[state] = Math.min(next[state] ?? Number.POSITIVE_INFINITY, nextTimeMs / 1000);
  }
  return next;
}
