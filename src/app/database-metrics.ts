// Metrics whose values are in the database: jobs, keys, the audit log and the delivery of events. Every process reads the
// same. A scrape reads them, waits for them for a limited time, and keeps them for some seconds.

import { waitAtMost } from "../jobs/schedule.js";
import type { Clock } from "../kernel/time.js";
import type { UnsealedCount } from "../store/audit/chain.js";
import type { WaitingCount } from "../store/events/deliveries.js";
import type { StateCount } from "../store/events/positions.js";
import type { Store } from "../store/store.js";
import type { DeliveryState, SuspendReason } from "../store/tables/events.js";
import type { JobRow } from "../store/tables/tables.js";
import type { KeyPurpose, KeyRow, KeyState } from "../store/tables/tokens.js";
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
/** The most waiting events that are counted, which takes a millisecond or two. */
const MAX_WAITING = 1_000;
const keyPurposes: readonly KeyPurpose[] = ["api-token", "page-token", "audit", "registry"];
const keyStates: readonly KeyState[] = ["pending", "active", "verify"];
/** Values of the label `longer_than`, in milliseconds. */
const failingTimes = { "10m": 600_000, "1h": 3_600_000, "6h": 21_600_000 } as const;

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
  readonly events: StoredEvents;
}

/** The delivery of events of all organisations. */
interface StoredEvents {
  readonly states: readonly StateCount[];
  readonly failing: Readonly<Record<keyof typeof failingTimes, number>>;
  readonly waiting: WaitingCount;
  readonly unsentMs: number | undefined;
}

/**
 * Creates the sources of these metrics. `refresh` never rejects: while the database does not respond there are no values.
 */
export function createDatabaseMetrics(deps: DatabaseMetricsDeps) {
  const { store, clock, holder, waitMs = WAIT_MS, freshMs = FRESH_MS } = deps;
  const startMs = clock();
  let current: StoredValues | undefined;
  let readMs = Number.NEGATIVE_INFINITY;
  let reading: Promise<void> | undefined;

  async function read(): Promise<void> {
    try {
      current = await store.read((tx) => readStoredValues(tx, clock()));
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

  const ageOf = (sinceMs: number | null | undefined) => (sinceMs ? Math.max(0, clock() - sinceMs) / 1000 : 0);

  // A job without a row, or whose first run does not end, is due since this process started.
  function* readOverdue({ jobs, nowMs }: StoredValues) {
    const rows = new Map(jobs.map((row) => [row.name, row]));
    for (const name of deps.jobs()) {
      const dueMs = rows.get(name)?.nextTimeMs;
      yield { value: dueMs == null ? ageOf(startMs) : Math.max(0, nowMs - dueMs) / 1000, labels: { job_name: name } };
    }
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
    { name: "arbor_job_overdue_seconds", collect: () => (current === undefined ? [] : readOverdue(current)) },
    byJob("arbor_job_failures", (row) => row.failures),
    {
      name: "arbor_signing_keys",
      collect: () => (current === undefined ? [] : countKeys(current.keys)),
    },
    readValues("arbor_signing_key_change_timestamp_seconds", "state", () => current && findNextChanges(current.keys)),
    readValues("arbor_event_subscriptions", "state", () => current && countByState(current.events.states)),
    readValues("arbor_event_subscriptions_failing", "longer_than", () => current?.events.failing),
    readValues("arbor_event_subscriptions_suspended", "reason", () => current && countByReason(current.events.states)),
    readValue("arbor_events_waiting", () => current?.events.waiting.n),
    readValues(
      "arbor_event_oldest_seconds",
      "waits_for",
      () => current && { retry: ageOf(current.events.waiting.oldestMs), unsent: ageOf(current.events.unsentMs) },
    ),
    readValue("arbor_audit_unsealed_rows", () => current?.unsealed.rows),
    readValue("arbor_audit_sealer_lag_seconds", () => {
      const oldestMs = current?.unsealed.oldestTimeMs;
      if (oldestMs === undefined) return undefined;
      return oldestMs === null ? 0 : Math.max(0, clock() - oldestMs) / 1000;
    }),
  ];
  return { refresh, sources };
}

async function readStoredValues(tx: Tx, clockMs: number): Promise<StoredValues> {
  return {
    nowMs: await tx.jobs.nowMs(),
    jobs: await tx.jobs.list(),
    keys: await tx.keys.list(),
    unsealed: await tx.auditChain.countUnsealed(NEWEST_ROWS),
    events: await readStoredEvents(tx, clockMs),
  };
}

async function readStoredEvents({ eventPositions, eventDeliveries }: Tx, clockMs: number): Promise<StoredEvents> {
  const failing = { "10m": 0, "1h": 0, "6h": 0 };
  for (const [time, ms] of Object.entries(failingTimes) as [keyof typeof failing, number][])
    failing[time] = await eventPositions.countFailing(clockMs - ms);
  return {
    states: await eventPositions.countStates(),
    failing,
    waiting: await eventDeliveries.countWaiting(MAX_WAITING),
    unsentMs: await eventPositions.findOldestUnsent(),
  };
}

function countByState(found: readonly StateCount[]): Record<string, number> {
  const counts: Record<DeliveryState, number> = { live: 0, failing: 0, stalled: 0, suspended: 0 };
  for (const { state, n } of found) counts[state] += n;
  return counts;
}

function countByReason(found: readonly StateCount[]): Record<string, number> {
  const counts: Record<Exclude<SuspendReason, "">, number> = { caller: 0, gone: 0, failed: 0, backlog: 0 };
  for (const { suspendReason, n } of found) if (suspendReason !== "") counts[suspendReason] += n;
  return counts;
}

function toSeconds(ms: number | null): number | undefined {
  return ms === null ? undefined : ms / 1000;
}

// What there is none of has the value 0: an alert for a key that is missing could not read a series that is missing.
function countKeys(keys: readonly KeyRow[]) {
  const count = (purpose: KeyPurpose, state: KeyState) =>
    keys.filter((row) => row.purpose === purpose && row.state === state).length;
  return keyPurposes.flatMap((purpose) =>
    keyStates.map((state) => ({ value: count(purpose, state), labels: { purpose, state } })),
  );
}

function findNextChanges(keys: readonly KeyRow[]): Record<string, number> {
  const next: Record<string, number> = {};
  for (const { purpose, state, nextTimeMs } of keys) {
    if (purpose !== "api-token" || nextTimeMs === null) continue;
    next[state] = Math.min(next[state] ?? Number.POSITIVE_INFINITY, nextTimeMs / 1000);
  }
  return next;
}
