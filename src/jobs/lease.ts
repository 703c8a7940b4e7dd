// The lease of a job, so that one node at a time runs it. Each take-over increases a fencing number, so the writes of a
// node that lost the lease without noticing are rejected.
import type { Store, UnitOptions } from "../store/store.js";
import type { JobRow } from "../store/tables/tables.js";
import type { Tx } from "../store/transaction.js";

/** How long a lease lasts unless it is renewed, in milliseconds. */
export const LEASE_MS = 3_000;
/** A lease that ends later than this was taken with a wrong clock, and is ignored. */
const MAX_LEASE_MS = 60_000;

/** Another node has the lease, so nothing was written. */
export class LeaseLostError extends Error {
  constructor(name: string) {
    super(`another node took over the job ${name}`);
    this.name = "LeaseLostError";
  }
}

/** A job as stored, and the time of the database when it was read. */
export interface JobState {
  readonly row: JobRow;
  readonly nowMs: number;
}

/** Reads a job, which may never have run. */
export async function readJob(tx: Tx, name: string): Promise<JobState> {
  return { row: (await tx.jobs.find(name)) ?? createJobRow(name), nowMs: await tx.jobs.nowMs() };
}

/** Whether another node than `holder` has the lease. */
export function isLeasedByOther({ row, nowMs }: JobState, holder: string): boolean {
  const leftMs = row.expireTimeMs - nowMs;
  return row.holder !== holder && leftMs > 0 && leftMs <= MAX_LEASE_MS;
}

/** The right to run a job until the lease ends. */
export interface Lease {
  readonly fence: number;
  /** For how long the lease has not been renewed, in milliseconds. */
  ageMs(): number;
  /**
   * Runs `unit` as {@link Store.write} does, if the fencing number is still that of the job, and renews the lease.
   *
   * @param unit gets the job as stored, with the renewed lease
   * @throws LeaseLostError when another node took over; nothing is written then
   */
  write<T>(unit: (tx: Tx, state: JobState) => Promise<T>, options?: UnitOptions): Promise<T>;
}

export interface LeaseDeps {
  readonly store: Store;
  readonly name: string;
  /** The name of this process; no other has the same. */
  readonly holder: string;
  readonly leaseMs: number;
}

/**
 * Takes the lease of a job unless another node has it. A lease that this process has for long enough is not written
 * again.
 *
 * @param known what was read of the job
 */
export async function takeLease(
  { store, name, holder, leaseMs }: LeaseDeps,
  known: JobState,
): Promise<Lease | undefined> {
  const leftMs = known.row.expireTimeMs - known.nowMs;
  const isFresh = known.row.holder === holder && leftMs > leaseMs / 2 && leftMs <= leaseMs;
  let renewedMs = performance.now() - (isFresh ? leaseMs - leftMs : 0);
  const fence = isFresh ? known.row.fence : await store.write(take, { maxIdleMs: leaseMs });
  if (fence === undefined) return undefined;

  async function take(tx: Tx): Promise<number | undefined> {
    const state = await readJob(tx, name);
    if (isLeasedByOther(state, holder)) return undefined;
    const { row, nowMs } = state;
    const taken = row.holder === holder ? row.fence : row.fence + 1;
    await tx.jobs.put({ ...row, holder, fence: taken, expireTimeMs: nowMs + leaseMs });
    return taken;
  }

  return {
    fence,
    ageMs: () => performance.now() - renewedMs,
    async write(unit, options) {
      const startMs = performance.now();
      const value = await store.write(
        async (tx) => {
          const { row, nowMs } = await readJob(tx, name);
          if (row.holder !== holder || row.fence !== fence) throw new LeaseLostError(name);
          const renewed = { ...row, expireTimeMs: nowMs + leaseMs };
          // Written before the unit runs: on PostgreSQL a concurrent take-over then waits for this transaction, or
          // makes it run again and find the new number.
          await tx.jobs.put(renewed);
          return unit(tx, { row: renewed, nowMs });
        },
        { maxIdleMs: leaseMs, ...options },
      );
      renewedMs = startMs;
      return value;
    },
  };
}

/** Ends the lease of this process, so that another node need not wait for its end. */
export async function releaseLease({ store, name, holder }: Omit<LeaseDeps, "leaseMs">): Promise<void> {
  await store.write(async (tx) => {
    const row = await tx.jobs.find(name);
    if (row?.holder === holder) await tx.jobs.put({ ...row, expireTimeMs: 0 });
  });
}

function createJobRow(name: string): JobRow {
  return {
    ...{ name, holder: "", fence: 0, expireTimeMs: 0, failures: 0 },
    ...{ startTimeMs: null, durationMs: null, changes: null, nextTimeMs: null, error: null, errorTimeMs: null },
  };
}
